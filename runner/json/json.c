#include "json/json.h"

#include <errno.h>
#include <math.h>

#include "base/utf8.h"

/* The parser quotes up to 20 bytes of the input; control bytes in it would break a one-line
 * message. */
static void scrub(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

int json_parse(const char *text, size_t len, json_t **ret, struct err *err)
{
    json_error_t where;
    json_t *value = json_loadb(text ? text : "", text ? len : 0,
                               JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &where);
    if (value) {
        *ret = value;
        return 0;
    }
    /* Out of memory mostly leaves no words at all. */
    if (json_error_code(&where) == json_error_out_of_memory || where.text[0] == '\0')
        return err_set(err, -ENOMEM, "parse JSON");
    scrub(where.text);
    return err_set(err, -EINVAL, "line %d, column %d: %s", where.line > 0 ? where.line : 1,
                   where.column > 0 ? where.column : 0, where.text);
}

struct print {
    struct buf *out;
    int error;
};

static int print_part(const char *bytes, size_t n, void *arg)
{
    struct print *p = arg;
    p->error = buf_append(p->out, bytes, n);
    return p->error < 0 ? -1 : 0;
}

int json_print(struct buf *out, const json_t *value)
{
    struct print p = {.out = out};
    size_t before = out->len;
    if (json_dump_callback(value, print_part, &p, JSON_COMPACT | JSON_ENCODE_ANY) == 0)
        return 0;
    if (out->data) {
        out->len = before;
        out->data[before] = '\0';
    }
    return p.error < 0 ? p.error : -ENOMEM;
}

const char *json_text(const json_t *value, size_t *ret_len)
{
    if (!json_is_string(value))
        return NULL;
    if (ret_len)
        *ret_len = json_string_length(value);
    return json_string_value(value);
}

int json_int(const json_t *value, int64_t *ret)
{
    if (json_is_integer(value)) {
        json_int_t v = json_integer_value(value);
        if (v > JSON_SAFE_INT_MAX || v < -JSON_SAFE_INT_MAX)
            return -ERANGE;
        *ret = v;
        return 0;
    }
    if (!json_is_real(value))
        return -EINVAL;
    double v = json_real_value(value);
    if (v != floor(v))
        return -EINVAL;
    if (v > (double)JSON_SAFE_INT_MAX || v < -(double)JSON_SAFE_INT_MAX)
        return -ERANGE;
    *ret = (int64_t)v;
    return 0;
}

json_t *json_string_lossy(const char *bytes, size_t n)
{
    if (n == 0)
        return json_stringn_nocheck("", 0);
    if (utf8_is_valid(bytes, n))
        return json_stringn_nocheck(bytes, n);

    cleanup_buf struct buf text;
    buf_init(&text, SIZE_MAX / 4);
    for (size_t at = 0; at < n;) {
        uint32_t cp;
        int k = utf8_next(bytes + at, n - at, &cp);
        int r = k > 0 ? buf_append(&text, bytes + at, (size_t)k)
                      : buf_append_str(&text, "\xef\xbf\xbd");
        if (r < 0)
            return NULL;
        at += k > 0 ? (size_t)k : k < 0 ? (size_t)-k : n - at;
    }
    return json_stringn_nocheck(text.data, text.len);
}
