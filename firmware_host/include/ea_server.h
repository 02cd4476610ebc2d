/* What does the board answer to what it hears? An SMP server: bytes in, bytes out. No clock, no allocation, no port.
 *
 * Groups: os (echo, reset, parameters), statistics (one group, "link"), and tools, by which the board describes what
 * it can do (ea_tools.h). Law: nothing is done before the frame's checksum and the whole body have been checked.
 */
#ifndef EA_SERVER_H
#define EA_SERVER_H

#include "ea_frame.h"
#include "ea_tools.h"

typedef struct {
    ea_reader reader;
    uint8_t answer[EA_PACKET_BYTES_MAX];
    const ea_board *board;
    ea_put put;
    void *context;
    uint32_t requests;
    uint32_t refused;
    bool wants_reset; /* A reset was asked for and answered. Nothing is taken in any more. */
} ea_server;

/* `put` sends bytes and returns when they have been taken. */
void ea_server_start(ea_server *server, const ea_board *board, ea_put put, void *context);

/* Take what was heard, in portions of any size. After it, look at `wants_reset`. */
void ea_server_take(ea_server *server, const uint8_t *bytes, size_t count);

/* For the firmware's own tests: the first tool whose description does not fit an answer, or -1. */
int ea_server_check(ea_server *server);

#endif
