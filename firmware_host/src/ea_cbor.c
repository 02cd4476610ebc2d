#include "ea_cbor.h"

#include <string.h>

static bool take_value(ea_in *in, unsigned info, uint8_t kind, uint32_t *value)
{
    *value = info;
    if (info < 24)
        return true;
    if (info > 27 || (info == 27 && kind != EA_SIMPLE))
        return false; /* Reserved, or more than 32 bits: nothing here has such a number. */
    size_t count = (size_t)1 << (info - 24);
    if ((size_t)(in->end - in->at) < count)
        return false;
    *value = 0;
    for (size_t i = 0; i < count; i++)
        *value = *value << 8 | *in->at++;
    return true;
}

bool ea_next(ea_in *in, ea_item *item)
{
    if (in->at == in->end)
        return false;
    uint8_t head = *in->at++;
    unsigned info = head & 0x1F;
    item->kind = head >> 5;
    item->bytes = NULL;
    item->value = 0;
    item->open = info == 31;
    if (item->open)
        return item->kind == EA_ARRAY || item->kind == EA_MAP || item->kind == EA_SIMPLE;
    if (!take_value(in, info, item->kind, &item->value))
        return false;
    if (item->kind == EA_SIMPLE && info > 23)
        item->value = info; /* Whether 24 or a float: none of the simple values that we know. */
    if (item->kind == EA_BYTES || item->kind == EA_TEXT) {
        if (item->value > (size_t)(in->end - in->at))
            return false;
        item->bytes = in->at;
        in->at += item->value;
    }
    return item->kind != EA_TAG;
}

bool ea_skip(ea_in *in, unsigned depth_left)
{
    ea_item item;
    if (!ea_next(in, &item) || (item.kind == EA_SIMPLE && item.open))
        return false;
    if (item.kind != EA_ARRAY && item.kind != EA_MAP)
        return true;
    if (!depth_left || (!item.open && item.value > (size_t)(in->end - in->at)))
        return false;
    unsigned each = item.kind == EA_MAP ? 2 : 1;
    while (ea_more(in, &item))
        for (unsigned i = 0; i < each; i++)
            if (!ea_skip(in, depth_left - 1))
                return false;
    return item.value == 0;
}

bool ea_enter(ea_in *in, ea_item *map)
{
    return ea_next(in, map) && map->kind == EA_MAP;
}

bool ea_more(ea_in *in, ea_item *map)
{
    if (!map->open)
        return map->value && map->value--;
    if (in->at == in->end) {
        map->value = 1; /* No break came: that is no whole map, and ea_skip sees it by what is left. */
        return false;
    }
    if (*in->at != 0xFF)
        return true;
    in->at++;
    return false;
}

bool ea_says(const ea_item *item, const char *text)
{
    return item->kind == EA_TEXT && item->value == strlen(text) && !memcmp(item->bytes, text, item->value);
}

int ea_find(ea_in map, const char *key, ea_in *value)
{
    ea_item head, name;
    int found = 0;
    if (!ea_enter(&map, &head))
        return -1;
    while (ea_more(&map, &head)) {
        if (!ea_next(&map, &name) || name.kind > EA_TEXT)
            return -1;
        if (ea_says(&name, key)) {
            if (found++)
                return -1;
            *value = map;
        }
        if (!ea_skip(&map, EA_DEPTH_MAX))
            return -1;
    }
    return found;
}

bool ea_number(const ea_item *item, int32_t *number)
{
    if (item->kind > EA_NEGATIVE || item->value > INT32_MAX)
        return false;
    *number = item->kind == EA_NEGATIVE ? -1 - (int32_t)item->value : (int32_t)item->value;
    return true;
}

static void put_bytes(ea_out *out, const void *bytes, size_t count)
{
    if (out->full || (size_t)(out->end - out->at) < count) {
        out->full = true;
        return;
    }
    memcpy(out->at, bytes, count);
    out->at += count;
}

void ea_put_head(ea_out *out, uint8_t kind, uint32_t value)
{
    uint8_t head[5] = {(uint8_t)(kind << 5)};
    size_t count = value < 24 ? 0 : value < 0x100 ? 1 : value < 0x10000 ? 2 : 4;
    head[0] |= (uint8_t)(count == 0 ? value : count == 1 ? 24 : count == 2 ? 25 : 26);
    for (size_t i = 0; i < count; i++)
        head[count - i] = (uint8_t)(value >> (8 * i));
    put_bytes(out, head, count + 1);
}

void ea_put_text_of(ea_out *out, const char *text, size_t length)
{
    ea_put_head(out, EA_TEXT, (uint32_t)length);
    put_bytes(out, text, length);
}

void ea_put_text(ea_out *out, const char *text)
{
    ea_put_text_of(out, text, strlen(text));
}

void ea_put_number(ea_out *out, int32_t number)
{
    if (number < 0)
        ea_put_head(out, EA_NEGATIVE, (uint32_t)(-1 - number));
    else
        ea_put_head(out, EA_UNSIGNED, (uint32_t)number);
}

void ea_put_truth(ea_out *out, bool truth)
{
    ea_put_head(out, EA_SIMPLE, truth ? EA_TRUE : EA_FALSE);
}

void ea_open_map(ea_out *out)
{
    put_bytes(out, "\xBF", 1);
}

void ea_close_map(ea_out *out)
{
    put_bytes(out, "\xFF", 1);
}
