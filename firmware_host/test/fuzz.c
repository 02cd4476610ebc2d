/* Whatever is heard: no crash, no undefined behaviour, and only frames that a reader takes back come out.
 *
 * With clang: a libFuzzer target. With EA_FUZZ_FILES: a program that takes in the files it is given.
 */
#include "ea_server.h"
#include "thermostat.h"

#include <stdlib.h>

static ea_server server;
static ea_reader listener;

/* What the server sends must itself be lines and frames of its own kind. */
static void put(void *context, const uint8_t *bytes, size_t count)
{
    (void)context;
    if (count > EA_LINE_BYTES || count < 3 || bytes[count - 1] != '\n')
        abort();
    for (size_t i = 0; i < count; i++)
        ea_reader_take(&listener, bytes[i]);
    if (listener.broken)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* The first byte chooses what is fuzzed: the line, or the body behind a frame that is always right. */
    thermostat_start();
    ea_server_start(&server, &thermostat, put, NULL);
    ea_reader_start(&listener);
    if (!size)
        return 0;
    if (data[0] & 1) {
        ea_server_take(&server, data + 1, size - 1);
    } else {
        uint8_t line[2048];
        size_t used = 0;
        extern void ea_fuzz_frame(const uint8_t *, size_t, uint8_t *, size_t *);
        ea_fuzz_frame(data + 1, size - 1, line, &used);
        ea_server_take(&server, line, used);
    }
    if (listener.accepted != server.requests)
        abort();
    return 0;
}

typedef struct {
    uint8_t *at;
    size_t *used;
} copy;

static void keep(void *context, const uint8_t *bytes, size_t count)
{
    copy *to = context;
    for (size_t i = 0; i < count; i++)
        to->at[(*to->used)++] = bytes[i];
}

void ea_fuzz_frame(const uint8_t *packet, size_t length, uint8_t *line, size_t *used);

void ea_fuzz_frame(const uint8_t *packet, size_t length, uint8_t *line, size_t *used)
{
    copy to = {line, used};
    ea_frame_send(packet, length < EA_PACKET_BYTES_MAX ? length : EA_PACKET_BYTES_MAX, keep, &to);
}

#ifdef EA_FUZZ_FILES
#include <stdio.h>

int main(int count, char **names)
{
    static uint8_t content[1 << 16];
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(names[i], "rb");
        if (!file) {
            perror(names[i]);
            return 1;
        }
        size_t size = fread(content, 1, sizeof content, file);
        fclose(file);
        LLVMFuzzerTestOneInput(content, size);
    }
    printf("%d files taken in\n", count - 1);
    return 0;
}
#endif
