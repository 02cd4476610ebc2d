/* Which board is demonstrated? A thermostat, a relay, a display, and a counter that survives a reset. */
#ifndef THERMOSTAT_H
#define THERMOSTAT_H

#include "ea_tools.h"

extern const ea_board thermostat;

/* After every start, cold or warm. */
void thermostat_start(void);

#endif
