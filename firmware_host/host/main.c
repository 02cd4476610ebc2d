/* The demonstration board on a pseudo-terminal: prints where its line is, then serves until it is ended. */
#define _XOPEN_SOURCE 600

#include "ea_server.h"
#include "thermostat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

static ea_server server;

static void put(void *context, const uint8_t *bytes, size_t count)
{
    const int *line = context;
    while (count) {
        ssize_t sent = write(*line, bytes, count);
        if (sent <= 0)
            exit(1);
        bytes += sent;
        count -= (size_t)sent;
    }
}

/* Open a pseudo-terminal without echo or line editing. Its other end stays open here, so that clients may come and go. */
static int open_line(void)
{
    struct termios raw;
    int line = posix_openpt(O_RDWR | O_NOCTTY);
    if (line < 0 || grantpt(line) || unlockpt(line))
        return -1;
    const char *name = ptsname(line);
    int other = name ? open(name, O_RDWR | O_NOCTTY) : -1;
    if (other < 0 || tcgetattr(other, &raw))
        return -1;
    raw.c_iflag = raw.c_oflag = raw.c_lflag = 0;
    raw.c_cflag |= CS8 | CREAD | CLOCAL;
    if (tcsetattr(other, TCSANOW, &raw))
        return -1;
    printf("%s\n", name);
    fflush(stdout);
    return line;
}

int main(void)
{
    int line = open_line();
    if (line < 0) {
        perror("no pseudo-terminal");
        return 1;
    }
    for (;;) {
        thermostat_start();
        ea_server_start(&server, &thermostat, put, &line);
        while (!server.wants_reset) {
            uint8_t heard[256];
            ssize_t count = read(line, heard, sizeof heard);
            if (count <= 0)
                return 1;
            ea_server_take(&server, heard, (size_t)count);
        }
    }
}
