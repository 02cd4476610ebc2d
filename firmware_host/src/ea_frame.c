#include "ea_frame.h"

enum { TEXT, FIRST_MARKED, FURTHER_MARKED, LINE };

#define HEADER_BYTES 8
#define PORTION_BYTES ((EA_LINE_BYTES - 3) / 4 * 3)

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

uint16_t ea_crc16(uint16_t crc, uint8_t byte)
{
    crc ^= (uint16_t)(byte << 8);
    for (int bit = 0; bit < 8; bit++)
        crc = (uint16_t)((crc & 0x8000) ? (crc << 1) ^ 0x1021 : crc << 1);
    return crc;
}

void ea_reader_start(ea_reader *reader)
{
    reader->length = 0;
    reader->state = TEXT;
    reader->open = false;
    reader->accepted = reader->broken = 0;
}

const uint8_t *ea_reader_packet(const ea_reader *reader, size_t *length)
{
    *length = reader->length - 4u;
    return reader->frame + 2;
}

static void drop(ea_reader *reader, uint8_t state)
{
    reader->state = state;
    reader->open = false;
    reader->length = 0;
    reader->broken++;
}

static void begin_line(ea_reader *reader)
{
    reader->state = LINE;
    reader->bits = 0;
    reader->characters = reader->padding = 0;
}

static int value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Take one character of base64. The bits that padding leaves over must be zero, or two texts would mean one frame. */
static bool add_character(ea_reader *reader, uint8_t c)
{
    int value = value_of(c);
    if (c == '=' && reader->characters >= 2) {
        reader->padding++;
        value = 0;
    } else if (value < 0 || reader->padding) {
        return false; /* Nothing may follow padding, in the same group or after it. */
    }
    reader->bits = reader->bits << 6 | (uint32_t)value;
    if (++reader->characters < 4)
        return true;
    unsigned count = 3u - reader->padding;
    if (reader->length + count > EA_FRAME_BYTES_MAX)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        uint8_t byte = (uint8_t)(reader->bits >> (16 - 8 * i));
        if (i < count)
            reader->frame[reader->length++] = byte;
        else if (byte)
            return false;
    }
    reader->bits = 0;
    reader->characters = 0;
    return true;
}

static bool end_line(ea_reader *reader)
{
    size_t wanted = 0;
    if (reader->length >= 2)
        wanted = 2u + (size_t)(reader->frame[0] << 8 | reader->frame[1]);
    if (reader->characters || wanted < 4 + HEADER_BYTES || wanted > EA_FRAME_BYTES_MAX || reader->length > wanted) {
        drop(reader, TEXT);
        return false;
    }
    reader->state = TEXT;
    reader->open = reader->length < wanted;
    if (reader->open)
        return false;
    uint16_t crc = 0;
    for (size_t i = 2; i < wanted; i++) /* Over the checksum too: what is left is zero. */
        crc = ea_crc16(crc, reader->frame[i]);
    if (crc) {
        drop(reader, TEXT);
        return false;
    }
    reader->accepted++;
    return true;
}

static bool take_in_line(ea_reader *reader, uint8_t byte)
{
    if (byte == '\n')
        return end_line(reader);
    if (byte == 0x06 || byte == 0x04) /* The newline was lost: a new line begins inside this one. */
        drop(reader, byte == 0x06 ? FIRST_MARKED : FURTHER_MARKED);
    else if (!add_character(reader, byte)) /* A return too: no client sends one, and a frame has one form only. */
        drop(reader, TEXT);
    return false;
}

bool ea_reader_take(ea_reader *reader, uint8_t byte)
{
    if (reader->state == LINE)
        return take_in_line(reader, byte);
    if (reader->state == FIRST_MARKED && byte == 0x09) {
        if (reader->open)
            reader->broken++; /* The frame before did not end. */
        reader->open = false;
        reader->length = 0;
        begin_line(reader);
    } else if (reader->state == FURTHER_MARKED && byte == 0x14 && reader->open) {
        begin_line(reader);
    } else {
        reader->state = byte == 0x06 ? FIRST_MARKED : byte == 0x04 ? FURTHER_MARKED : TEXT;
    }
    return false;
}

typedef struct {
    const uint8_t *packet;
    size_t length;
    uint16_t crc;
} frame;

static uint8_t byte_of(const frame *sent, size_t at)
{
    size_t said = sent->length + 2;
    if (at < 2)
        return (uint8_t)(at ? said : said >> 8);
    if (at < said)
        return sent->packet[at - 2];
    return (uint8_t)(at == said ? sent->crc >> 8 : sent->crc);
}

static size_t write_group(const frame *sent, size_t at, size_t end, uint8_t *line)
{
    size_t count = end - at < 3 ? end - at : 3;
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; i++)
        bits = bits << 8 | (i < count ? byte_of(sent, at + i) : 0u);
    for (size_t i = 0; i < 4; i++)
        line[i] = (uint8_t)(i <= count ? ALPHABET[bits >> (18 - 6 * i) & 63] : '=');
    return count;
}

void ea_frame_send(const uint8_t *packet, size_t length, ea_put put, void *context)
{
    uint8_t line[EA_LINE_BYTES];
    frame sent = {packet, length, 0};
    for (size_t i = 0; i < length; i++)
        sent.crc = ea_crc16(sent.crc, packet[i]);
    for (size_t at = 0; at < length + 4;) {
        size_t end = at + PORTION_BYTES < length + 4 ? at + PORTION_BYTES : length + 4;
        size_t used = 2;
        line[0] = at ? 0x04 : 0x06;
        line[1] = at ? 0x14 : 0x09;
        while (at < end) {
            at += write_group(&sent, at, end, line + used);
            used += 4;
        }
        line[used++] = '\n';
        put(context, line, used);
    }
}
