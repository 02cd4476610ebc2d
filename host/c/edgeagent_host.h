/* Host of an edgeagent: speaks to `edgeagent host` in lines of JSON. One file, C99, the standard library's string functions
   alone; no allocation, no thread, no clock: bytes in, messages out, and back.

   In one source file:   #define EDGEAGENT_HOST_IMPLEMENTATION
   then everywhere:      #include "edgeagent_host.h"

   Laws: a message is given out when its line has come whole and is JSON; what is no JSON, or longer than the memory that was
   given, is skipped and told as EA_SKIPPED. The pieces of a message lie in that memory and hold until `take` returns.
   The same messages come however the bytes are cut. */

#ifndef EDGEAGENT_HOST_H
#define EDGEAGENT_HOST_H

#include <stddef.h>

typedef struct {
    const char *at;
    size_t length;
} ea_text; /* A piece of a message, as it came: `{"on":true}`, `"text"`, `7`. Nothing where `length` is 0. */

typedef enum {
    EA_ANSWER,  /* to a request of ours: `value` is the result */
    EA_FAULT,   /* the same: `value` is the error, with `code` and `message` */
    EA_REQUEST, /* wants one ea_answer or ea_refuse with its `id`: `value` are the parameters */
    EA_NOTICE,  /* wants none */
    EA_SKIPPED  /* was no message: `value` is how it begins */
} ea_kind;

typedef struct {
    ea_kind kind;
    ea_text id;     /* as JSON */
    ea_text method; /* as JSON, with its quotes: compare it by ea_is */
    ea_text value;
} ea_message;

typedef void (*ea_take)(void *self, const ea_message *message);
typedef int (*ea_write)(void *self, const char *bytes, size_t length); /* 0 where all of it was written */

typedef struct {
    char *memory;
    size_t room, length;
    int is_skipping;
    long next_id;
    ea_take take;
    ea_write write;
    void *self;
} ea_host;

/* Begin, with memory for the longest line. */
void ea_begin(ea_host *host, char *memory, size_t room, ea_take take, ea_write write, void *self);

/* Take bytes that came; `take` is called for each message that they complete. */
void ea_feed(ea_host *host, const char *bytes, size_t length);

/* The stream has ended: the last line counts without its end. */
void ea_end(ea_host *host);

/* Send a request; `params` is JSON. Returns its id, or -1 where it could not be written. */
long ea_ask(ea_host *host, const char *method, const char *params);

/* Send a notification. Returns 0, or -1. */
int ea_tell(ea_host *host, const char *method, const char *params);

/* Answer a request. Returns 0, or -1. */
int ea_answer(ea_host *host, ea_text id, const char *result);

/* Answer a request with an error; `why` is plain text. Returns 0, or -1. */
int ea_refuse(ea_host *host, ea_text id, int code, const char *why);

/* The piece of a JSON value at a path of names and numbers, as "update.content.0.text"; nothing if it is not there. */
ea_text ea_find(ea_text json, const char *path);

/* Whether a piece is a JSON string that says just this, and whether it is this very number, word or the like. */
int ea_is(ea_text json, const char *text);

/* The whole number that a piece is, or `otherwise`. */
long ea_number(ea_text json, long otherwise);

/* Copy what a JSON string says, as UTF-8 with a null byte; cut to `room` between two characters. Returns the bytes of all of it. */
size_t ea_copy(ea_text json, char *into, size_t room);

/* Write a text as a JSON string with its quotes and a null byte. Returns its length, or 0 where there is no room. */
size_t ea_quote(const char *text, char *into, size_t room);

#endif

#ifdef EDGEAGENT_HOST_IMPLEMENTATION
#undef EDGEAGENT_HOST_IMPLEMENTATION

#include <string.h>

#define EA_DEPTH_MAX 200 /* the deepest nesting that is read, as the agent reads it */

/* -- JSON: each takes where a value begins and where the text ends, and returns where the value ends, or NULL ---------- */

static const char *ea_blank(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at;
}

static int ea_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int ea_hex(char c) {
    if (ea_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static const char *ea_string(const char *at, const char *end) {
    int left;
    for (at++; at < end && *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at != '\\')
            continue;
        if (++at == end || strchr("\"\\/bfnrtu", *at) == NULL || *at == '\0')
            return NULL;
        for (left = *at == 'u' ? 4 : 0; left > 0; left--)
            if (++at == end || ea_hex(*at) < 0)
                return NULL;
    }
    return at < end ? at + 1 : NULL;
}

static const char *ea_digits(const char *at, const char *end) {
    const char *begin = at;
    while (at < end && ea_is_digit(*at))
        at++;
    return at > begin ? at : NULL;
}

static const char *ea_numeral(const char *at, const char *end) {
    if (at < end && *at == '-')
        at++;
    at = at < end && *at == '0' ? at + 1 : ea_digits(at, end);
    if (at != NULL && at < end && *at == '.')
        at = ea_digits(at + 1, end);
    if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        at = ea_digits(at, end);
    }
    return at;
}

static const char *ea_word(const char *at, const char *end, const char *word) {
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0 ? at + length : NULL;
}

static const char *ea_scalar(const char *at, const char *end) {
    switch (*at) {
    case '"':
        return ea_string(at, end);
    case 't':
        return ea_word(at, end, "true");
    case 'f':
        return ea_word(at, end, "false");
    case 'n':
        return ea_word(at, end, "null");
    default:
        return ea_numeral(at, end);
    }
}

/* The name before a member, with its colon. */
static const char *ea_name(const char *at, const char *end) {
    at = ea_blank(at, end);
    if (at == end || *at != '"' || (at = ea_string(at, end)) == NULL)
        return NULL;
    at = ea_blank(at, end);
    return at < end && *at == ':' ? ea_blank(at + 1, end) : NULL;
}

/* Any value. What is open is kept as one bit a level, so that no text can make this need more memory. */
static const char *ea_value(const char *at, const char *end) {
    unsigned char is_object[EA_DEPTH_MAX / 8];
    int depth = 0;
    memset(is_object, 0, sizeof is_object);
    for (;;) {
        int opens;
        at = ea_blank(at, end);
        if (at == end)
            return NULL;
        opens = *at == '{' || *at == '[';
        if (opens) {
            char closing = *at == '{' ? '}' : ']';
            if (depth == EA_DEPTH_MAX)
                return NULL;
            if (*at == '{')
                is_object[depth / 8] |= (unsigned char)(1u << depth % 8);
            else
                is_object[depth / 8] &= (unsigned char)~(1u << depth % 8);
            at = ea_blank(at + 1, end);
            if (at == end)
                return NULL;
            depth++;
            if (*at == closing)
                opens = 0;
        } else if ((at = ea_scalar(at, end)) == NULL) {
            return NULL;
        }
        /* Behind a value, or before the first one of what has been opened. */
        while (!opens && depth > 0) {
            int in_object = is_object[(depth - 1) / 8] >> (depth - 1) % 8 & 1;
            at = ea_blank(at, end);
            if (at == end)
                return NULL;
            if (*at == ',') {
                at++;
                opens = 1;
            } else if (*at == (in_object ? '}' : ']')) {
                at++;
                depth--;
            } else {
                return NULL;
            }
        }
        if (depth == 0)
            return at;
        if (is_object[(depth - 1) / 8] >> (depth - 1) % 8 & 1 && (at = ea_name(at, end)) == NULL)
            return NULL;
    }
}

/* -- looking into values ------------------------------------------------------------------------------------------------ */

static const ea_text ea_nothing = {NULL, 0};

static ea_text ea_piece(const char *at, const char *end) {
    ea_text piece;
    piece.at = at;
    piece.length = (size_t)(end - at);
    return piece;
}

/* Four digits of an escape. */
static unsigned long ea_escape(const char *at) {
    return (unsigned long)(ea_hex(at[0]) << 12 | ea_hex(at[1]) << 8 | ea_hex(at[2]) << 4 | ea_hex(at[3]));
}

/* One character of a string as UTF-8, at most 4 bytes; returns where the next one begins. Half a pair is U+FFFD. */
static const char *ea_character(const char *at, const char *end, char *out, size_t *length) {
    unsigned long code;
    const char *plain = "\"\\/bfnrt", *means = "\"\\/\b\f\n\r\t", *found;
    if (*at != '\\') {
        size_t more = (unsigned char)*at >= 0xf0 ? 4 : (unsigned char)*at >= 0xe0 ? 3 : (unsigned char)*at >= 0xc0 ? 2 : 1;
        for (*length = 0; *length < more && at + *length < end; ++*length)
            out[*length] = at[*length];
        return at + *length;
    }
    if (at[1] != 'u') {
        found = strchr(plain, at[1]);
        out[0] = found != NULL ? means[found - plain] : at[1];
        *length = 1;
        return at + 2;
    }
    code = ea_escape(at + 2);
    at += 6;
    if (code >= 0xd800 && code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        unsigned long low = ea_escape(at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            at += 6;
        }
    }
    if (code >= 0xd800 && code < 0xe000)
        code = 0xfffd;
    if (code < 0x80) {
        out[0] = (char)code;
        *length = 1;
    } else if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        *length = 2;
    } else if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        *length = 3;
    } else {
        out[0] = (char)(0xf0 | code >> 18);
        out[1] = (char)(0x80 | (code >> 12 & 0x3f));
        out[2] = (char)(0x80 | (code >> 6 & 0x3f));
        out[3] = (char)(0x80 | (code & 0x3f));
        *length = 4;
    }
    return at;
}

/* Whether a JSON string says just these bytes. */
static int ea_says(ea_text json, const char *text, size_t length) {
    const char *at = json.at + 1, *end = json.at + json.length - 1;
    while (at < end) {
        char bytes[4];
        size_t count;
        at = ea_character(at, end, bytes, &count);
        if (count > length || memcmp(bytes, text, count) != 0)
            return 0;
        text += count;
        length -= count;
    }
    return length == 0;
}

/* The member of that name, or the element of that number. */
static ea_text ea_step(ea_text json, const char *name, size_t length) {
    const char *at = json.at, *end = json.at + json.length, *behind;
    size_t wanted = 0, place = 0, each;
    int is_object;
    if (json.length < 2 || (*at != '{' && *at != '['))
        return ea_nothing;
    is_object = *at == '{';
    for (each = 0; !is_object && each < length; each++) {
        if (!ea_is_digit(name[each]) || wanted > 100000000)
            return ea_nothing;
        wanted = wanted * 10 + (size_t)(name[each] - '0');
    }
    for (at = ea_blank(at + 1, end); at < end && *at != '}' && *at != ']'; at = ea_blank(behind, end)) {
        const char *value = at;
        int is_it = place++ == wanted;
        if (is_object) {
            if ((value = ea_name(at, end)) == NULL)
                return ea_nothing;
            is_it = ea_says(ea_piece(at, ea_string(at, end)), name, length);
        }
        if ((behind = ea_value(value, end)) == NULL)
            return ea_nothing;
        if (is_it)
            return ea_piece(value, behind);
        behind = ea_blank(behind, end);
        if (behind < end && *behind == ',')
            behind++;
    }
    return ea_nothing;
}

ea_text ea_find(ea_text json, const char *path) {
    while (*path != '\0' && json.length > 0) {
        size_t length = strcspn(path, ".");
        json = ea_step(json, path, length);
        path += length;
        if (*path == '.')
            path++;
    }
    return json;
}

int ea_is(ea_text json, const char *text) {
    if (json.length >= 2 && json.at[0] == '"')
        return ea_says(json, text, strlen(text));
    return json.length > 0 && json.length == strlen(text) && memcmp(json.at, text, json.length) == 0;
}

long ea_number(ea_text json, long otherwise) {
    size_t at = json.length > 0 && json.at[0] == '-' ? 1 : 0;
    long found = 0;
    if (json.length == at || json.length - at > 9) /* nine digits fit every long */
        return otherwise;
    for (; at < json.length; at++) {
        if (!ea_is_digit(json.at[at]))
            return otherwise;
        found = found * 10 + (json.at[at] - '0');
    }
    return json.at[0] == '-' ? -found : found;
}

size_t ea_copy(ea_text json, char *into, size_t room) {
    const char *at, *end;
    size_t whole = 0, kept = 0, count;
    int fits = room > 0;
    if (room > 0)
        into[0] = '\0';
    if (json.length < 2 || json.at[0] != '"')
        return 0;
    at = json.at + 1;
    end = json.at + json.length - 1;
    while (at < end) {
        char bytes[4];
        at = ea_character(at, end, bytes, &count);
        whole += count;
        fits = fits && kept + count < room;
        if (fits) {
            memcpy(into + kept, bytes, count);
            kept += count;
            into[kept] = '\0';
        }
    }
    return whole;
}

/* -- what comes --------------------------------------------------------------------------------------------------------- */

static void ea_give(ea_host *host, ea_kind kind, ea_text id, ea_text method, ea_text value) {
    ea_message message;
    message.kind = kind;
    message.id = id;
    message.method = method;
    message.value = value;
    host->take(host->self, &message);
}

static void ea_line(ea_host *host) {
    const char *begin = ea_blank(host->memory, host->memory + host->length), *end = host->memory + host->length, *behind;
    ea_text whole = ea_piece(begin, end), id, method, value;
    if (begin == end)
        return;
    behind = ea_value(begin, end);
    if (behind == NULL || ea_blank(behind, end) != end || *begin != '{') {
        ea_give(host, EA_SKIPPED, ea_nothing, ea_nothing, whole);
        return;
    }
    id = ea_find(whole, "id");
    method = ea_find(whole, "method");
    if (method.length > 0 && method.at[0] == '"')
        ea_give(host, id.length > 0 ? EA_REQUEST : EA_NOTICE, id, method, ea_find(whole, "params"));
    else if (id.length > 0 && (value = ea_find(whole, "result")).length > 0)
        ea_give(host, EA_ANSWER, id, ea_nothing, value);
    else if (id.length > 0 && (value = ea_find(whole, "error")).length > 0)
        ea_give(host, EA_FAULT, id, ea_nothing, value);
    else
        ea_give(host, EA_SKIPPED, ea_nothing, ea_nothing, whole);
}

void ea_begin(ea_host *host, char *memory, size_t room, ea_take take, ea_write write, void *self) {
    memset(host, 0, sizeof *host);
    host->memory = memory;
    host->room = room;
    host->next_id = 1;
    host->take = take;
    host->write = write;
    host->self = self;
}

void ea_feed(ea_host *host, const char *bytes, size_t length) {
    size_t at;
    for (at = 0; at < length; at++) {
        if (bytes[at] == '\n') {
            if (!host->is_skipping)
                ea_line(host);
            host->length = 0;
            host->is_skipping = 0;
        } else if (host->length < host->room) {
            host->memory[host->length++] = bytes[at];
        } else if (!host->is_skipping) {
            host->is_skipping = 1;
            ea_give(host, EA_SKIPPED, ea_nothing, ea_nothing, ea_piece(host->memory, host->memory + host->length));
        }
    }
}

void ea_end(ea_host *host) {
    ea_feed(host, "\n", 1);
}

/* -- what goes ---------------------------------------------------------------------------------------------------------- */

static int ea_put(ea_host *host, const char *text, size_t length) {
    return host->write(host->self, text, length) == 0 ? 0 : -1;
}

static int ea_puts(ea_host *host, const char *text) {
    return ea_put(host, text, strlen(text));
}

static const char *ea_digits_of(long number, char *room, size_t size) {
    char *at = room + size - 1;
    unsigned long left = number < 0 ? 0ul - (unsigned long)number : (unsigned long)number;
    *at = '\0';
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0)
        *--at = '-';
    return at;
}

static int ea_put_quoted(ea_host *host, const char *text) {
    static const char hex[] = "0123456789abcdef";
    int wrong = ea_put(host, "\"", 1);
    for (; *text != '\0' && wrong == 0; text++) {
        char escape[6] = {'\\', 'u', '0', '0', 0, 0};
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            escape[1] = (char)byte;
            wrong = ea_put(host, escape, 2);
        } else if (byte < 0x20) {
            escape[4] = hex[byte >> 4];
            escape[5] = hex[byte & 15];
            wrong = ea_put(host, escape, 6);
        } else {
            wrong = ea_put(host, text, 1);
        }
    }
    return wrong != 0 ? wrong : ea_put(host, "\"", 1);
}

static int ea_send(ea_host *host, ea_text id, const char *method, const char *name, const char *value) {
    int wrong = ea_puts(host, "{\"jsonrpc\":\"2.0\"");
    if (wrong == 0 && id.length > 0)
        wrong = ea_puts(host, ",\"id\":") || ea_put(host, id.at, id.length);
    if (wrong == 0 && method != NULL)
        wrong = ea_puts(host, ",\"method\":") || ea_put_quoted(host, method);
    if (wrong == 0 && value != NULL)
        wrong = ea_puts(host, name) || ea_puts(host, value);
    return wrong != 0 ? -1 : ea_puts(host, "}\n");
}

long ea_ask(ea_host *host, const char *method, const char *params) {
    char room[24];
    long id = host->next_id++;
    const char *digits = ea_digits_of(id, room, sizeof room);
    return ea_send(host, ea_piece(digits, digits + strlen(digits)), method, ",\"params\":", params) == 0 ? id : -1;
}

int ea_tell(ea_host *host, const char *method, const char *params) {
    return ea_send(host, ea_nothing, method, ",\"params\":", params);
}

int ea_answer(ea_host *host, ea_text id, const char *result) {
    return ea_send(host, id, NULL, ",\"result\":", result);
}

int ea_refuse(ea_host *host, ea_text id, int code, const char *why) {
    char room[24];
    if (ea_puts(host, "{\"jsonrpc\":\"2.0\",\"id\":") != 0 || ea_put(host, id.at, id.length) != 0)
        return -1;
    if (ea_puts(host, ",\"error\":{\"code\":") != 0 || ea_puts(host, ea_digits_of(code, room, sizeof room)) != 0)
        return -1;
    return ea_puts(host, ",\"message\":") || ea_put_quoted(host, why) || ea_puts(host, "}}\n") ? -1 : 0;
}

typedef struct {
    char *at;
    size_t left, length;
} ea_buffer;

static int ea_into_buffer(void *self, const char *bytes, size_t length) {
    ea_buffer *buffer = self;
    if (length >= buffer->left)
        return -1;
    memcpy(buffer->at + buffer->length, bytes, length);
    buffer->length += length;
    buffer->left -= length;
    return 0;
}

size_t ea_quote(const char *text, char *into, size_t room) {
    ea_buffer buffer;
    ea_host writer;
    buffer.at = into;
    buffer.left = room;
    buffer.length = 0;
    ea_begin(&writer, NULL, 0, NULL, ea_into_buffer, &buffer);
    if (ea_put_quoted(&writer, text) != 0)
        return 0;
    into[buffer.length] = '\0';
    return buffer.length;
}

#endif
