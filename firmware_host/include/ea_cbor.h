/* What does a CBOR body say, and how is one written? Bounded on both sides; no memory of its own.
 *
 * Read: maps and arrays of known or open length, texts, bytes, whole numbers of 32 bits, floats (passed over), true,
 * false, null. No tags, no texts in pieces. A claimed length costs nothing until its bytes are there.
 */
#ifndef EA_CBOR_H
#define EA_CBOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EA_DEPTH_MAX 4 /* A call is a map in a map; each level costs stack. */

enum { EA_UNSIGNED, EA_NEGATIVE, EA_BYTES, EA_TEXT, EA_ARRAY, EA_MAP, EA_TAG, EA_SIMPLE };
enum { EA_FALSE = 20, EA_TRUE = 21, EA_NULL = 22 };

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} ea_in;

typedef struct {
    uint8_t kind;
    bool open;            /* a length that is not told; for EA_SIMPLE: the break */
    uint32_t value;       /* number, count, length in bytes, or which simple value */
    const uint8_t *bytes; /* of EA_BYTES and EA_TEXT */
} ea_item;

/* Read one head, and the bytes of a text. False: nothing readable is there. */
bool ea_next(ea_in *in, ea_item *item);

/* Pass over one whole value. False when it is not well formed or nested too deep. */
bool ea_skip(ea_in *in, unsigned depth_left);

/* Go into a map: false when there is none. Then ea_more before every entry; it is false after the last. */
bool ea_enter(ea_in *in, ea_item *map);
bool ea_more(ea_in *in, ea_item *map);

/* Find the value of a key in a well-formed map. 1: `value` stands before it; 0: not there; -1: no map, or key twice. */
int ea_find(ea_in map, const char *key, ea_in *value);

bool ea_says(const ea_item *item, const char *text);

/* Read a whole number that fits 32 bits. */
bool ea_number(const ea_item *item, int32_t *number);

typedef struct {
    uint8_t *at;
    uint8_t *end;
    bool full; /* Something did not fit; from then on nothing is written. */
} ea_out;

void ea_put_head(ea_out *out, uint8_t kind, uint32_t value);
void ea_put_text(ea_out *out, const char *text);
void ea_put_text_of(ea_out *out, const char *text, size_t length);
void ea_put_number(ea_out *out, int32_t number);
void ea_put_truth(ea_out *out, bool truth);
void ea_open_map(ea_out *out);
void ea_close_map(ea_out *out);

#endif
