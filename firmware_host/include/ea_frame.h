/* Which bytes on a serial line are an SMP packet, and how does a packet go out? Bytes in, bytes out; knows no meaning.
 *
 *   line    06 09 (first) or 04 14 (further), base64, newline; at most 127 bytes
 *   frame   u16 length of what follows, packet, CRC16/XMODEM of the packet
 *
 * Law: a frame is accepted only when base64, length and checksum are right to the last bit. Whatever comes in between
 * is passed over, and the next frame is found again.
 */
#ifndef EA_FRAME_H
#define EA_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EA_LINE_BYTES 127

#ifndef EA_PACKET_BYTES_MAX
#define EA_PACKET_BYTES_MAX 512 /* A request or an answer; two of these are nearly all the memory the library has. */
#endif
#define EA_FRAME_BYTES_MAX (EA_PACKET_BYTES_MAX + 4)

typedef struct {
    uint8_t frame[EA_FRAME_BYTES_MAX];
    uint16_t length; /* bytes of the frame so far */
    uint8_t state;
    uint8_t characters; /* of the base64 group that is being read */
    uint8_t padding;
    bool open; /* a frame has begun and its last line ended well */
    uint32_t bits;
    uint32_t accepted;
    uint32_t broken;
} ea_reader;

typedef void (*ea_put)(void *context, const uint8_t *bytes, size_t count);

void ea_reader_start(ea_reader *reader);

/* Take one byte. True: with it a frame is complete and right, and its packet can be read until the next byte. */
bool ea_reader_take(ea_reader *reader, uint8_t byte);

const uint8_t *ea_reader_packet(const ea_reader *reader, size_t *length);

/* Send a packet of at most EA_PACKET_BYTES_MAX bytes, line by line. */
void ea_frame_send(const uint8_t *packet, size_t length, ea_put put, void *context);

uint16_t ea_crc16(uint16_t crc, uint8_t byte);

#endif
