/* First line: a schema. Rest: a value. Whatever is accepted prints and parses back to the same, and
 * a check ends with violations that are whole. */
#include <assert.h>
#include <stdint.h>

#include "json/json.h"
#include "json/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const json_t *value)
{
    cleanup_buf struct buf text;
    buf_init(&text, 1 << 24);
    assert(json_print(&text, value) == 0);
    json_auto_t *again = NULL;
    assert(json_parse(text.data, text.len, &again, NULL) == 0);
    assert(json_equal(value, again));
}

static void check_details(int r, const json_t *details)
{
    size_t n = json_array_size(details);
    assert(r == (n > 0) && n <= SCHEMA_VIOLATIONS_MAX);
    for (size_t i = 0; i < n; i++) {
        const json_t *d = json_array_get(details, i);
        assert(json_object_size(d) == 2);
        assert(json_text(json_object_get(d, "path"), NULL));
        assert(json_string_length(json_object_get(d, "message")) > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *line_end = size > 0 ? memchr(text, '\n', size) : NULL;
    size_t schema_len = line_end ? (size_t)(line_end - text) : size;
    char *schema_text = strndup(text ? text : "", schema_len);
    assert(schema_text);

    json_auto_t *value = NULL;
    struct err err = {0};
    const char *rest = line_end ? line_end + 1 : NULL;
    int r = json_parse(rest, rest ? size - schema_len - 1 : 0, &value, &err);
    assert(r == 0 || strncmp(err.msg, "line ", 5) == 0);
    if (r == 0)
        check_round_trip(value);

    cleanup_schema struct schema *s = NULL;
    /* Patterns are ours alone, and the C library's compiler needs no bound for them. */
    if (!strstr(schema_text, "pattern") && schema_compile(schema_text, &s, NULL) == 0 && value) {
        json_auto_t *details = NULL;
        r = schema_check(s, value, &details);
        check_details(r, details);
    }
    free(schema_text);
    return 0;
}
