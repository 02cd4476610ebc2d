/* How does a board say what it can do? Tables of constants: tools, their arguments and results. See docs/firmware.md.
 *
 * There are no floats: an EA_NUMBER is a whole number of its smallest steps. With decimals = 1, 215 is 21.5.
 */
#ifndef EA_TOOLS_H
#define EA_TOOLS_H

#include "ea_cbor.h"

#define EA_GROUP_TOOLS 64 /* The first group that SMP leaves to users. */
#define EA_FIELDS_MAX 8

typedef enum { EA_AN_INTEGER, EA_A_NUMBER, EA_A_BOOLEAN, EA_A_CHOICE, EA_A_TEXT } ea_type;
typedef enum { EA_READ, EA_WRITE, EA_IRREVERSIBLE } ea_effect;

/* An argument or a result. */
typedef struct {
    const char *name;
    const char *help;           /* NULL: the name says it */
    const char *unit;           /* NULL: none */
    const char *const *choices; /* of EA_A_CHOICE; NULL ends the list */
    int32_t least;              /* of numbers, in smallest steps; of a text its length */
    int32_t most;
    uint8_t type;     /* an ea_type */
    uint8_t decimals; /* of EA_A_NUMBER: digits after the point */
} ea_field;

typedef struct {
    int32_t number;   /* a number in smallest steps; 0 or 1; or which choice */
    const char *text; /* of EA_A_TEXT: printable ASCII, not ended by a zero */
    uint8_t length;
} ea_value;

/* Do it: the arguments have been checked. Return NULL when it is done, or why it is not: a constant text. */
typedef const char *(*ea_call)(void *state, const ea_value *arguments, ea_value *results);

typedef struct {
    const char *name; /* a letter, then letters, digits or _ */
    const char *help; /* one sentence for the model */
    const ea_field *arguments;
    const ea_field *results;
    ea_call call;
    uint16_t timeout_ms; /* how long it may take at most */
    uint8_t argument_count;
    uint8_t result_count;
    uint8_t effect;  /* an ea_effect */
    bool idempotent; /* whether doing it twice does no harm */
} ea_tool;

#define EA_ARGUMENTS(fields) .arguments = (fields), .argument_count = sizeof(fields) / sizeof((fields)[0])
#define EA_RESULTS(fields) .results = (fields), .result_count = sizeof(fields) / sizeof((fields)[0])

typedef struct {
    const char *name;
    const ea_tool *tools;
    uint8_t count;
    void *state; /* handed to every call */
} ea_board;

/* Why a request was not answered as asked. `group` 0: in SMP's own numbers. */
typedef struct {
    uint16_t group;
    uint8_t code;
    const char *reason; /* NULL: the code says it */
    const char *about;  /* NULL, or which argument */
} ea_refusal;

enum { EA_NO_SUCH_TOOL = 1, EA_WRONG_ARGUMENTS, EA_TOOL_FAILED, EA_DONE_BUT_TOO_LONG };

/* The three commands of our group. False: `refusal` says why. */
bool ea_tools_list(const ea_board *board, ea_in body, ea_out *out, ea_refusal *refusal);
bool ea_tools_describe(const ea_board *board, ea_in body, ea_out *out, ea_refusal *refusal);
bool ea_tools_call(const ea_board *board, ea_in body, ea_out *out, ea_refusal *refusal);

#endif
