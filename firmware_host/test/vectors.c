/* Does the board answer every vector of vectors.txt byte for byte? Reads the file it is given; each line once whole, once
 * byte by byte. */
#include "ea_server.h"
#include "thermostat.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LINE_CHARACTERS 8192

static ea_server server;
static uint8_t said[4096];
static size_t said_length;

static void put(void *context, const uint8_t *bytes, size_t count)
{
    (void)context;
    if (said_length + count <= sizeof said)
        memcpy(said + said_length, bytes, count);
    said_length += count;
}

static int digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t bytes_of(const char *text, uint8_t *bytes)
{
    size_t count = 0;
    for (; digit(text[0]) >= 0 && digit(text[1]) >= 0; text += 2)
        bytes[count++] = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
    return count;
}

static void start(void)
{
    thermostat_start();
    ea_server_start(&server, &thermostat, put, NULL);
}

static int run(FILE *file, size_t portion)
{
    static char line[LINE_CHARACTERS], name[LINE_CHARACTERS];
    static uint8_t bytes[LINE_CHARACTERS / 2];
    int wrong = 0, vectors = 0;
    rewind(file);
    start();
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "name ", 5)) {
            strcpy(name, line + 5);
        } else if (!strncmp(line, "ask ", 4)) {
            size_t length = bytes_of(line + 4, bytes);
            said_length = 0;
            for (size_t at = 0; at < length; at += portion)
                ea_server_take(&server, bytes + at, length - at < portion ? length - at : portion);
            vectors++;
        } else if (!strncmp(line, "answer ", 7)) {
            size_t length = bytes_of(line + 7, bytes);
            if (length != said_length || memcmp(bytes, said, length)) {
                printf("%s: answered %zu bytes, other than the %zu expected\n", name, said_length, length);
                wrong++;
            }
        }
        if (server.wants_reset)
            start();
    }
    printf("%d vectors in portions of %zu, %d wrong\n", vectors, portion, wrong);
    return wrong || !vectors;
}

int main(int count, char **names)
{
    FILE *file = count == 2 ? fopen(names[1], "r") : NULL;
    if (!file) {
        fprintf(stderr, "usage: vectors vectors.txt\n");
        return 2;
    }
    start();
    int too_long = ea_server_check(&server);
    if (too_long >= 0)
        printf("the description of tool %d does not fit an answer\n", too_long);
    int wrong = run(file, sizeof said) | run(file, 1) | (too_long >= 0);
    fclose(file);
    return wrong;
}
