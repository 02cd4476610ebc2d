#include "ea_tools.h"

#include <string.h>

#define DESCRIPTION_VERSION 1

static const char *const TYPES[] = {"integer", "number", "boolean", "choice", "text"};
static const char *const EFFECTS[] = {"read", "write", "irreversible"};

static bool refuse(ea_refusal *refusal, uint8_t code, const char *reason, const char *about)
{
    refusal->group = EA_GROUP_TOOLS;
    refusal->code = code;
    refusal->reason = reason;
    refusal->about = about;
    return false;
}

static void put_pair(ea_out *out, const char *key, const char *text)
{
    if (!text)
        return;
    ea_put_text(out, key);
    ea_put_text(out, text);
}

static void put_count(ea_out *out, const char *key, int32_t number)
{
    ea_put_text(out, key);
    ea_put_number(out, number);
}

bool ea_tools_list(const ea_board *board, ea_in body, ea_out *out, ea_refusal *refusal)
{
    (void)body;
    (void)refusal;
    ea_open_map(out);
    put_count(out, "version", DESCRIPTION_VERSION);
    put_pair(out, "board", board->name);
    put_count(out, "tools", board->count);
    ea_close_map(out);
    return true;
}

static void put_field(ea_out *out, const ea_field *field)
{
    ea_open_map(out);
    put_pair(out, "name", field->name);
    put_pair(out, "type", TYPES[field->type]);
    put_pair(out, "help", field->help);
    put_pair(out, "unit", field->unit);
    if (field->type == EA_A_NUMBER)
        put_count(out, "decimals", field->decimals);
    if (field->type == EA_A_CHOICE) {
        uint32_t count = 0;
        while (field->choices[count])
            count++;
        ea_put_text(out, "choices");
        ea_put_head(out, EA_ARRAY, count);
        for (uint32_t i = 0; i < count; i++)
            ea_put_text(out, field->choices[i]);
    } else if (field->type != EA_A_BOOLEAN) {
        put_count(out, "min", field->least);
        put_count(out, "max", field->most);
    }
    ea_close_map(out);
}

static void put_fields(ea_out *out, const char *key, const ea_field *fields, uint8_t count)
{
    ea_put_text(out, key);
    ea_put_head(out, EA_ARRAY, count);
    for (uint8_t i = 0; i < count; i++)
        put_field(out, &fields[i]);
}

bool ea_tools_describe(const ea_board *board, ea_in body, ea_out *out, ea_refusal *refusal)
{
    ea_in value;
    ea_item item;
    int32_t which;
    if (ea_find(body, "tool", &value) != 1 || !ea_next(&value, &item) || !ea_number(&item, &which))
        return refuse(refusal, EA_WRONG_ARGUMENTS, NULL, "tool");
    if (which < 0 || which >= board->count)
        return refuse(refusal, EA_NO_SUCH_TOOL, NULL, NULL);
    const ea_tool *tool = &board->tools[which];
    ea_open_map(out);
    put_pair(out, "name", tool->name);
    put_pair(out, "help", tool->help);
    put_pair(out, "effect", EFFECTS[tool->effect]);
    ea_put_text(out, "idempotent");
    ea_put_truth(out, tool->idempotent);
    put_count(out, "ms", tool->timeout_ms);
    put_fields(out, "args", tool->arguments, tool->argument_count);
    put_fields(out, "results", tool->results, tool->result_count);
    ea_close_map(out);
    return true;
}

/* Return why this is no value for the field, or NULL when it is one. */
static const char *read_value(const ea_field *field, const ea_item *item, ea_value *value)
{
    switch (field->type) {
    case EA_AN_INTEGER:
    case EA_A_NUMBER:
        if (!ea_number(item, &value->number))
            return "not a whole number of its smallest steps";
        return value->number < field->least || value->number > field->most ? "out of bounds" : NULL;
    case EA_A_BOOLEAN:
        value->number = item->value == EA_TRUE;
        return item->kind == EA_SIMPLE && (item->value == EA_TRUE || item->value == EA_FALSE) ? NULL : "not a boolean";
    case EA_A_CHOICE:
        for (value->number = 0; field->choices[value->number]; value->number++)
            if (ea_says(item, field->choices[value->number]))
                return NULL;
        return "not one of its choices";
    default:
        if (item->kind != EA_TEXT)
            return "not a text";
        if (item->value > 255 || (int32_t)item->value < field->least || (int32_t)item->value > field->most)
            return "too short or too long";
        for (uint32_t i = 0; i < item->value; i++)
            if (item->bytes[i] < 0x20 || item->bytes[i] > 0x7E)
                return "not printable ASCII";
        value->text = (const char *)item->bytes;
        value->length = (uint8_t)item->value;
        return NULL;
    }
}

static bool read_arguments(const ea_tool *tool, ea_in in, ea_value *values, ea_refusal *refusal)
{
    ea_item head, name, item;
    unsigned given = 0;
    if (!ea_enter(&in, &head))
        return refuse(refusal, EA_WRONG_ARGUMENTS, "not a map", NULL);
    while (ea_more(&in, &head)) {
        uint8_t which = 0;
        if (!ea_next(&in, &name))
            return refuse(refusal, EA_WRONG_ARGUMENTS, "a key that is no name", NULL);
        while (which < tool->argument_count && !ea_says(&name, tool->arguments[which].name))
            which++;
        if (which == tool->argument_count || given >> which & 1)
            return refuse(refusal, EA_WRONG_ARGUMENTS, "a name that is unknown or there twice", NULL);
        const ea_field *field = &tool->arguments[which];
        const char *wrong = ea_next(&in, &item) ? read_value(field, &item, &values[which]) : "not readable";
        if (wrong)
            return refuse(refusal, EA_WRONG_ARGUMENTS, wrong, field->name);
        given |= 1u << which;
    }
    for (uint8_t i = 0; i < tool->argument_count; i++)
        if (!(given >> i & 1))
            return refuse(refusal, EA_WRONG_ARGUMENTS, "missing", tool->arguments[i].name);
    return true;
}

static void put_value(ea_out *out, const ea_field *field, const ea_value *value)
{
    ea_put_text(out, field->name);
    switch (field->type) {
    case EA_A_BOOLEAN:
        ea_put_truth(out, value->number != 0);
        break;
    case EA_A_CHOICE:
        ea_put_text(out, field->choices[value->number]);
        break;
    case EA_A_TEXT:
        ea_put_text_of(out, value->text, value->length);
        break;
    default:
        ea_put_number(out, value->number);
    }
}

static const ea_tool *find_tool(const ea_board *board, ea_in body)
{
    ea_in value;
    ea_item name;
    if (ea_find(body, "tool", &value) != 1 || !ea_next(&value, &name))
        return NULL;
    for (uint8_t i = 0; i < board->count; i++)
        if (ea_says(&name, board->tools[i].name))
            return &board->tools[i];
    return NULL;
}

bool ea_tools_call(const ea_board *board, ea_in body, ea_out *out, ea_refusal *refusal)
{
    ea_value arguments[EA_FIELDS_MAX], results[EA_FIELDS_MAX];
    ea_in given;
    const ea_tool *tool = find_tool(board, body);
    if (!tool || tool->argument_count > EA_FIELDS_MAX || tool->result_count > EA_FIELDS_MAX)
        return refuse(refusal, EA_NO_SUCH_TOOL, NULL, NULL);
    if (ea_find(body, "args", &given) != 1)
        return refuse(refusal, EA_WRONG_ARGUMENTS, "missing", "args");
    memset(arguments, 0, sizeof arguments);
    memset(results, 0, sizeof results);
    if (!read_arguments(tool, given, arguments, refusal))
        return false;
    const char *failed = tool->call(board->state, arguments, results);
    if (failed)
        return refuse(refusal, EA_TOOL_FAILED, failed, NULL);
    ea_open_map(out);
    ea_put_text(out, "results");
    ea_put_head(out, EA_MAP, tool->result_count);
    for (uint8_t i = 0; i < tool->result_count; i++)
        put_value(out, &tool->results[i], &results[i]);
    ea_close_map(out);
    if (out->full) /* It is done: to answer "failed" would have it done twice. */
        return refuse(refusal, EA_DONE_BUT_TOO_LONG, "done, but its results do not fit an answer", NULL);
    return true;
}
