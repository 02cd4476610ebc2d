/* A host with one lamp: `lamp "Switch the lamp on." edgeagent host AGENT.py --model smollm2`. POSIX; the agent is its child. */

#define _POSIX_C_SOURCE 200809L
#define EDGEAGENT_HOST_IMPLEMENTATION
#include "edgeagent_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char lamp[] =
    "{\"tools\":[{\"name\":\"set_lamp\",\"description\":\"Switch a lamp.\",\"idempotent\":true,\"inputSchema\":{\"type\":"
    "\"object\",\"properties\":{\"on\":{\"type\":\"boolean\"}},\"required\":[\"on\"]}}]}";

typedef struct {
    ea_host host;
    int to_agent, is_over;
    long opened, asked;
    const char *words;
} app;

static int to_agent(void *self, const char *bytes, size_t length) {
    app *mine = self;
    while (length > 0) {
        ssize_t taken = write(mine->to_agent, bytes, length);
        if (taken < 0)
            return -1;
        bytes += taken;
        length -= (size_t)taken;
    }
    return 0;
}

static void say(app *mine, ea_text session) {
    char params[4096], words[2048];
    if (ea_quote(mine->words, words, sizeof words) == 0)
        return;
    snprintf(params, sizeof params, "{\"sessionId\":%.*s,\"prompt\":[{\"type\":\"text\",\"text\":%s}]}", (int)session.length,
             session.at, words);
    mine->asked = ea_ask(&mine->host, "session/prompt", params);
}

static void take(void *self, const ea_message *message) {
    app *mine = self;
    char text[4096];
    if (message->kind == EA_REQUEST && ea_is(message->method, "_edgeagent/call_tool")) {
        printf("lamp: %s\n", ea_is(ea_find(message->value, "arguments.on"), "true") ? "on" : "off");
        ea_answer(&mine->host, message->id, "\"switched\"");
    } else if (message->kind == EA_REQUEST) {
        ea_refuse(&mine->host, message->id, -32601, "this host knows no such method");
    } else if (message->kind == EA_NOTICE && ea_is(ea_find(message->value, "update.sessionUpdate"), "agent_message_chunk")) {
        ea_copy(ea_find(message->value, "update.content.text"), text, sizeof text);
        printf("%s\n", text);
    } else if (message->kind == EA_ANSWER && ea_number(message->id, 0) == mine->opened) {
        say(mine, ea_find(message->value, "sessionId"));
    } else if (message->kind == EA_ANSWER && ea_number(message->id, 0) == mine->asked) {
        mine->is_over = 1;
    } else if (message->kind == EA_FAULT) {
        ea_copy(ea_find(message->value, "message"), text, sizeof text);
        fprintf(stderr, "%s\n", text);
        mine->is_over = 1;
    }
}

int main(int count, char **arguments) {
    static char memory[1 << 16];
    char chunk[4096];
    int down[2], up[2];
    pid_t child;
    ssize_t length;
    app mine = {0};
    if (count < 3 || pipe(down) != 0 || pipe(up) != 0 || (child = fork()) < 0)
        return 2;
    if (child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execvp(arguments[2], arguments + 2);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    mine.to_agent = down[1];
    mine.words = arguments[1];
    ea_begin(&mine.host, memory, sizeof memory, take, to_agent, &mine);
    ea_ask(&mine.host, "initialize", "{\"protocolVersion\":1,\"clientCapabilities\":{}}");
    ea_ask(&mine.host, "_edgeagent/declare_tools", lamp);
    mine.opened = ea_ask(&mine.host, "session/new", "{\"cwd\":\"/\",\"mcpServers\":[]}");
    while (!mine.is_over && (length = read(up[0], chunk, sizeof chunk)) > 0)
        ea_feed(&mine.host, chunk, (size_t)length);
    close(down[1]);
    waitpid(child, NULL, 0);
    return mine.is_over ? 0 : 1;
}
