#include "ea_server.h"

#include <string.h>

#define HEADER_BYTES 8

enum { READ, READ_ANSWER, WRITE, WRITE_ANSWER };
enum { OS = 0, STATISTICS = 2 };
enum { INVALID = 3, TOO_LONG = 7, NOT_SUPPORTED = 8 };

typedef bool (*answer_to)(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal);

static bool invalid(ea_refusal *refusal)
{
    refusal->code = INVALID;
    return false;
}

static void put_count(ea_out *out, const char *key, uint32_t number)
{
    ea_put_text(out, key);
    ea_put_head(out, EA_UNSIGNED, number);
}

static bool echo(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal)
{
    ea_in value;
    ea_item text;
    (void)server;
    if (ea_find(body, "d", &value) != 1 || !ea_next(&value, &text) || text.kind != EA_TEXT)
        return invalid(refusal);
    ea_put_head(out, EA_MAP, 1);
    ea_put_text(out, "r");
    ea_put_text_of(out, (const char *)text.bytes, text.value);
    return true;
}

static bool reset(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal)
{
    (void)body;
    (void)refusal;
    ea_put_head(out, EA_MAP, 0);
    server->wants_reset = true;
    return true;
}

static bool parameters(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal)
{
    (void)server;
    (void)body;
    (void)refusal;
    ea_put_head(out, EA_MAP, 2);
    put_count(out, "buf_size", EA_FRAME_BYTES_MAX);
    put_count(out, "buf_count", 1);
    return true;
}

static bool statistics(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal)
{
    ea_in value;
    ea_item name;
    if (ea_find(body, "name", &value) != 1 || !ea_next(&value, &name) || !ea_says(&name, "link"))
        return invalid(refusal);
    ea_put_head(out, EA_MAP, 2);
    ea_put_text(out, "name");
    ea_put_text(out, "link");
    ea_put_text(out, "fields");
    ea_put_head(out, EA_MAP, 4);
    put_count(out, "frames", server->reader.accepted);
    put_count(out, "broken", server->reader.broken);
    put_count(out, "requests", server->requests);
    put_count(out, "refused", server->refused);
    return true;
}

static bool statistics_list(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal)
{
    (void)server;
    (void)body;
    (void)refusal;
    ea_put_head(out, EA_MAP, 1);
    ea_put_text(out, "stat_list");
    ea_put_head(out, EA_ARRAY, 1);
    ea_put_text(out, "link");
    return true;
}

static bool tools_list(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal)
{
    return ea_tools_list(server->board, body, out, refusal);
}

static bool tools_describe(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal)
{
    return ea_tools_describe(server->board, body, out, refusal);
}

static bool tools_call(ea_server *server, ea_in body, ea_out *out, ea_refusal *refusal)
{
    return ea_tools_call(server->board, body, out, refusal);
}

static const struct {
    uint16_t group;
    uint8_t command;
    uint8_t op;
    answer_to answer;
} COMMANDS[] = {
    {OS, 0, WRITE, echo},
    {OS, 0, READ, echo}, /* Zephyr takes it either way. */
    {OS, 5, WRITE, reset},
    {OS, 6, READ, parameters},
    {STATISTICS, 0, READ, statistics},
    {STATISTICS, 1, READ, statistics_list},
    {EA_GROUP_TOOLS, 0, READ, tools_list},
    {EA_GROUP_TOOLS, 1, READ, tools_describe},
    {EA_GROUP_TOOLS, 2, WRITE, tools_call},
};

static answer_to find_command(uint16_t group, uint8_t command, uint8_t op)
{
    for (size_t i = 0; i < sizeof COMMANDS / sizeof COMMANDS[0]; i++)
        if (COMMANDS[i].group == group && COMMANDS[i].command == command && COMMANDS[i].op == op)
            return COMMANDS[i].answer;
    return NULL;
}

/* In the words of either version: the first knows only `rc`, the second names the group. */
static void put_refusal(ea_out *out, const ea_refusal *refusal, unsigned version)
{
    ea_open_map(out);
    if (refusal->group && version) {
        ea_put_text(out, "err");
        ea_put_head(out, EA_MAP, 2);
        put_count(out, "group", refusal->group);
    }
    put_count(out, "rc", refusal->code);
    if (refusal->reason) {
        ea_put_text(out, "rsn");
        ea_put_text(out, refusal->reason);
    }
    if (refusal->about) {
        ea_put_text(out, "arg");
        ea_put_text(out, refusal->about);
    }
    ea_close_map(out);
}

static bool body_is_a_map(ea_in body)
{
    return body.at != body.end && *body.at >> 5 == EA_MAP && ea_skip(&body, EA_DEPTH_MAX) && body.at == body.end;
}

static bool answered(ea_server *server, const uint8_t *packet, ea_in body, ea_out *out, ea_refusal *refusal)
{
    uint8_t *begin = out->at;
    answer_to answer = find_command((uint16_t)(packet[4] << 8 | packet[5]), packet[7], packet[0] & 7);
    if (!answer || packet[0] >> 3 > 1) {
        refusal->code = NOT_SUPPORTED;
        return false;
    }
    if ((packet[2] << 8 | packet[3]) != body.end - body.at || !body_is_a_map(body))
        return invalid(refusal);
    if (!answer(server, body, out, refusal)) {
        out->at = begin;
        return false;
    }
    if (out->full)
        refusal->code = TOO_LONG;
    return !out->full;
}

static void send_answer(ea_server *server, const uint8_t *packet, size_t length)
{
    ea_out out = {server->answer + HEADER_BYTES, server->answer + EA_PACKET_BYTES_MAX, false};
    ea_in body = {packet + HEADER_BYTES, packet + length};
    ea_refusal refusal = {0, 0, NULL, NULL};
    unsigned version = packet[0] >> 3 ? 1 : 0;
    server->requests++;
    if (!answered(server, packet, body, &out, &refusal)) {
        server->refused++;
        out.at = server->answer + HEADER_BYTES;
        out.full = false;
        put_refusal(&out, &refusal, version);
    }
    size_t said = (size_t)(out.at - server->answer) - HEADER_BYTES;
    memcpy(server->answer, packet, HEADER_BYTES);
    server->answer[0] = (uint8_t)(version << 3 | ((packet[0] & 7) + 1));
    server->answer[1] = 0;
    server->answer[2] = (uint8_t)(said >> 8);
    server->answer[3] = (uint8_t)said;
    ea_frame_send(server->answer, said + HEADER_BYTES, server->put, server->context);
}

void ea_server_start(ea_server *server, const ea_board *board, ea_put put, void *context)
{
    ea_reader_start(&server->reader);
    server->board = board;
    server->put = put;
    server->context = context;
    server->requests = server->refused = 0;
    server->wants_reset = false;
}

void ea_server_take(ea_server *server, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count && !server->wants_reset; i++) {
        size_t length;
        if (!ea_reader_take(&server->reader, bytes[i]))
            continue;
        const uint8_t *packet = ea_reader_packet(&server->reader, &length);
        uint8_t op = packet[0] & 7;
        if (op == READ || op == WRITE) /* An answer is never answered: two servers would talk for ever. */
            send_answer(server, packet, length);
    }
}

int ea_server_check(ea_server *server)
{
    for (uint8_t i = 0; i < server->board->count; i++) {
        uint8_t body[] = {0xA1, 0x64, 't', 'o', 'o', 'l', 0x18, i};
        ea_in in = {body, body + sizeof body};
        ea_out out = {server->answer + HEADER_BYTES, server->answer + EA_PACKET_BYTES_MAX, false};
        ea_refusal refusal = {0, 0, NULL, NULL};
        if (!ea_tools_describe(server->board, in, &out, &refusal) || out.full)
            return i;
    }
    return -1;
}
