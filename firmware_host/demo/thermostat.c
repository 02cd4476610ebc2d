#include "thermostat.h"

#include <string.h>

#ifdef EA_KEPT_SECTION
#define KEPT __attribute__((section(EA_KEPT_SECTION)))
#else
#define KEPT
#endif

enum { OFF, ON };
#define RELAY_TARGET_LEAST 100 /* 10.0 °C: below it the demonstration's interlock keeps the relay off. */
#define SHOWN_BYTES 16

static struct {
    int32_t target; /* tenths of a degree */
    int32_t measured;
    int32_t relay;
    char shown[SHOWN_BYTES];
    uint8_t shown_length;
} board;

/* Not cleared at a start, so it may hold anything after the power came: `check` tells. */
static struct {
    uint32_t count;
    uint32_t starts;
    uint32_t check;
} kept KEPT;

static uint32_t check_of_kept(void)
{
    return ~(kept.count * 31u + kept.starts * 17u) ^ 0xEA5Au;
}

void thermostat_start(void)
{
    if (kept.check != check_of_kept())
        kept.count = kept.starts = 0;
    kept.starts++;
    kept.check = check_of_kept();
    board.target = 190;
    board.measured = 204;
    board.relay = OFF;
    board.shown_length = 0;
}

static const char *read_thermostat(void *state, const ea_value *arguments, ea_value *results)
{
    (void)state;
    (void)arguments;
    results[0].number = board.target;
    results[1].number = board.measured;
    results[2].number = board.relay;
    return NULL;
}

static const char *set_thermostat(void *state, const ea_value *arguments, ea_value *results)
{
    (void)state;
    board.target = arguments[0].number;
    results[0].number = board.target;
    return NULL;
}

static const char *switch_relay(void *state, const ea_value *arguments, ea_value *results)
{
    (void)state;
    if (arguments[0].number == ON && board.target < RELAY_TARGET_LEAST)
        return "the interlock keeps the relay off below 10 degrees";
    board.relay = arguments[0].number;
    results[0].number = board.relay;
    return NULL;
}

static const char *read_counter(void *state, const ea_value *arguments, ea_value *results)
{
    (void)state;
    (void)arguments;
    results[0].number = (int32_t)(kept.count & INT32_MAX);
    results[1].number = (int32_t)(kept.starts & INT32_MAX);
    return NULL;
}

static const char *count_up(void *state, const ea_value *arguments, ea_value *results)
{
    if (kept.count == INT32_MAX)
        return "the counter is full";
    kept.count++;
    kept.check = check_of_kept();
    return read_counter(state, arguments, results);
}

static const char *clear_counter(void *state, const ea_value *arguments, ea_value *results)
{
    kept.count = 0;
    kept.check = check_of_kept();
    return read_counter(state, arguments, results);
}

static const char *show_text(void *state, const ea_value *arguments, ea_value *results)
{
    (void)state;
    memcpy(board.shown, arguments[0].text, arguments[0].length);
    board.shown_length = arguments[0].length;
    results[0].text = board.shown;
    results[0].length = board.shown_length;
    return NULL;
}

#define TEMPERATURE "degrees Celsius"
#define COUNTED .least = 0, .most = INT32_MAX

static const char *const POSITIONS[] = {"off", "on", NULL};

static const ea_field TARGET[] = {
    {.name = "celsius", .type = EA_A_NUMBER, .decimals = 1, .least = 50, .most = 300, .unit = TEMPERATURE},
};
static const ea_field CLIMATE[] = {
    {.name = "target", .type = EA_A_NUMBER, .decimals = 1, .least = 50, .most = 300, .unit = TEMPERATURE},
    {.name = "measured", .type = EA_A_NUMBER, .decimals = 1, .least = -400, .most = 1250, .unit = TEMPERATURE},
    {.name = "relay", .type = EA_A_CHOICE, .choices = POSITIONS},
};
static const ea_field POSITION[] = {{.name = "position", .type = EA_A_CHOICE, .choices = POSITIONS}};
static const ea_field COUNTER[] = {
    {.name = "count", .type = EA_AN_INTEGER, COUNTED},
    {.name = "starts", .type = EA_AN_INTEGER, COUNTED, .help = "how often the board has started"},
};
static const ea_field SHOWN[] = {{.name = "text", .type = EA_A_TEXT, .least = 1, .most = SHOWN_BYTES}};

static const ea_tool TOOLS[] = {
    {
        .name = "read_thermostat",
        .help = "Read the thermostat: the temperature it is set to, the measured one, and the relay.",
        .effect = EA_READ,
        .idempotent = true,
        .timeout_ms = 1000,
        EA_RESULTS(CLIMATE),
        .call = read_thermostat,
    },
    {
        .name = "set_thermostat",
        .help = "Set the thermostat to a temperature.",
        .effect = EA_WRITE,
        .idempotent = true,
        .timeout_ms = 1000,
        EA_ARGUMENTS(TARGET),
        EA_RESULTS(TARGET),
        .call = set_thermostat,
    },
    {
        .name = "switch_relay",
        .help = "Switch the relay on or off.",
        .effect = EA_WRITE,
        .idempotent = true,
        .timeout_ms = 1000,
        EA_ARGUMENTS(POSITION),
        EA_RESULTS(POSITION),
        .call = switch_relay,
    },
    {
        .name = "read_counter",
        .help = "Read the counter.",
        .effect = EA_READ,
        .idempotent = true,
        .timeout_ms = 1000,
        EA_RESULTS(COUNTER),
        .call = read_counter,
    },
    {
        .name = "count_up",
        .help = "Count one up.",
        .effect = EA_WRITE,
        .idempotent = false,
        .timeout_ms = 1000,
        EA_RESULTS(COUNTER),
        .call = count_up,
    },
    {
        .name = "clear_counter",
        .help = "Set the counter back to zero; what it held is lost.",
        .effect = EA_IRREVERSIBLE,
        .idempotent = true,
        .timeout_ms = 1000,
        EA_RESULTS(COUNTER),
        .call = clear_counter,
    },
    {
        .name = "show_text",
        .help = "Show a short text on the display.",
        .effect = EA_WRITE,
        .idempotent = true,
        .timeout_ms = 1000,
        EA_ARGUMENTS(SHOWN),
        EA_RESULTS(SHOWN),
        .call = show_text,
    },
};

const ea_board thermostat = {"thermostat", TOOLS, sizeof TOOLS / sizeof TOOLS[0], NULL};
