/* Checks of the client: `check play FILE…` reads transcripts whole and cut at every byte, and writes their host's lines;
   `check any LINES SEED` feeds lines of any kind. Both say what is wrong and end with 1, or say how much was right. */

#define EDGEAGENT_HOST_IMPLEMENTATION
#include "edgeagent_host.h"

#include <stdio.h>
#include <stdlib.h>

#define ROOM (1 << 16)

typedef struct {
    unsigned long count, sum;
} seen;

static void add(seen *all, const char *bytes, size_t length) {
    size_t at;
    for (at = 0; at < length; at++)
        all->sum = all->sum * 31 + (unsigned char)bytes[at];
    all->sum = all->sum * 31 + 7;
}

static void note(void *self, const ea_message *message) {
    seen *all = self;
    char text[64];
    all->count++;
    all->sum = all->sum * 31 + (unsigned long)message->kind;
    add(all, message->id.at, message->id.length);
    add(all, message->method.at, message->method.length);
    add(all, message->value.at, message->value.length);
    ea_copy(ea_find(message->value, "update.content.text"), text, sizeof text);
    add(all, text, strlen(text));
    ea_number(ea_find(message->value, "0.1.2"), 0);
    ea_is(message->method, "session/update");
}

static int nowhere(void *self, const char *bytes, size_t length) {
    (void)self, (void)bytes, (void)length;
    return 0;
}

static seen fed(char *memory, size_t room, const char *bytes, size_t length, size_t cut) {
    seen all = {0, 0};
    ea_host host;
    ea_begin(&host, memory, room, note, nowhere, &all);
    ea_feed(&host, bytes, cut);
    ea_feed(&host, bytes + cut, length - cut);
    ea_end(&host);
    return all;
}

/* -- transcripts -------------------------------------------------------------------------------------------------------- */

static char written[ROOM];
static size_t written_length;

static int keep(void *self, const char *bytes, size_t length) {
    (void)self;
    if (written_length + length > sizeof written)
        return -1;
    memcpy(written + written_length, bytes, length);
    written_length += length;
    return 0;
}

/* Write a message of the host's as a program would, and read it again: it must say the same. */
static int writes(char *memory, ea_text message) {
    static char method[256], value[ROOM];
    ea_text id = ea_find(message, "id"), params = ea_find(message, "params"), result = ea_find(message, "result");
    ea_text error = ea_find(message, "error"), it = params.length > 0 ? params : result.length > 0 ? result : error;
    seen wanted, found;
    ea_host host;
    ea_begin(&host, memory, ROOM, note, keep, NULL);
    written_length = 0;
    if (it.length >= sizeof value)
        return 0;
    memcpy(value, it.at, it.length);
    value[it.length] = '\0';
    ea_copy(ea_find(message, "method"), method, sizeof method);
    if (error.length > 0) {
        char why[256];
        ea_copy(ea_find(error, "message"), why, sizeof why);
        return ea_refuse(&host, id, (int)ea_number(ea_find(error, "code"), 0), why) == 0;
    }
    if (result.length > 0) {
        if (ea_answer(&host, id, value) != 0)
            return 0;
    } else if (id.length > 0) {
        host.next_id = ea_number(id, 0);
        if (ea_ask(&host, method, value) != ea_number(id, -1))
            return 0;
    } else if (ea_tell(&host, method, value) != 0) {
        return 0;
    }
    wanted = fed(memory, ROOM, message.at, message.length, 0);
    found = fed(memory, ROOM, written, written_length, 0);
    return wanted.count == 1 && found.count == 1 && wanted.sum == found.sum;
}

static unsigned long played;

static int plays(const char *file) {
    static char whole[1 << 20], one[ROOM], line[ROOM];
    FILE *opened = fopen(file, "rb");
    size_t length = opened == NULL ? 0 : fread(whole, 1, sizeof whole - 1, opened), at = 0, cut;
    if (opened != NULL)
        fclose(opened);
    while (at < length) {
        size_t size = strcspn(whole + at, "\n");
        ea_text step = ea_piece(whole + at, whole + at + size), host = ea_find(step, "host"), agent = ea_find(step, "agent");
        at += size + 1;
        if (size >= sizeof line || (host.length > 0 && !writes(one, host)))
            return 0;
        memcpy(line, agent.at == NULL ? "" : agent.at, agent.length);
        for (cut = 0; cut <= agent.length && agent.length > 0; cut++) {
            seen wanted = fed(one, ROOM, line, agent.length, 0), found = fed(one, ROOM, line, agent.length, cut);
            if (wanted.count != 1 || found.count != 1 || wanted.sum != found.sum)
                return 0;
        }
        played += host.length + agent.length > 0;
    }
    return length > 0;
}

/* -- lines of any kind -------------------------------------------------------------------------------------------------- */

static unsigned long chance;

static unsigned long next_chance(unsigned long most) {
    chance = chance * 6364136223846793005ul + 1442695040888963407ul;
    return (chance >> 16 & 0xffff) % most;
}

static size_t any_line(char *into, size_t room) {
    static const char *const words[] = {
        "{\"jsonrpc\":\"2.0\"", "}", "{", "[", "]", ",", ":", "\"id\":", "1", "-0.5e9", "\"a\"", "\"\\ud83d\\ude00\"", "\"\\ud800\"",
        "\"method\":\"_edgeagent/call_tool\"", "\"params\":", "{\"update\":{\"content\":{\"text\":\"", "\"}}}", "\"result\":",
        "\"error\":{\"code\":1}", "null", "true", "\"\\", "\"", "\xff\xfe", "\x01", " ", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
    };
    size_t length = 0, left = next_chance(14);
    while (left-- > 0) {
        const char *word = words[next_chance(sizeof words / sizeof *words)];
        size_t size = strlen(word);
        if (length + size + 1 >= room)
            break;
        memcpy(into + length, word, size);
        length += size;
        if (next_chance(9) == 0)
            into[length++] = (char)next_chance(256);
    }
    into[length++] = '\n';
    return length;
}

static int any(unsigned long lines) {
    char memory[300], line[1024];
    seen whole = {0, 0}, cut = {0, 0};
    ea_host one, other;
    char memory_of_other[300];
    ea_begin(&one, memory, sizeof memory, note, nowhere, &whole);
    ea_begin(&other, memory_of_other, sizeof memory_of_other, note, nowhere, &cut);
    while (lines-- > 0) {
        size_t length = any_line(line, sizeof line), at;
        ea_feed(&one, line, length);
        for (at = 0; at < length; at++)
            ea_feed(&other, line + at, 1);
    }
    return whole.count == cut.count && whole.sum == cut.sum && whole.count > 0;
}

int main(int count, char **arguments) {
    int each;
    if (count > 2 && strcmp(arguments[1], "play") == 0) {
        for (each = 2; each < count; each++) {
            if (!plays(arguments[each])) {
                printf("%s is not read and written as it stands\n", arguments[each]);
                return 1;
            }
        }
        printf("%lu messages\n", played);
        return 0;
    }
    if (count > 3 && strcmp(arguments[1], "any") == 0) {
        chance = strtoul(arguments[3], NULL, 10);
        if (!any(strtoul(arguments[2], NULL, 10))) {
            printf("lines are not read alike\n");
            return 1;
        }
        printf("%s lines\n", arguments[2]);
        return 0;
    }
    return 2;
}
