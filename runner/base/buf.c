#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "base/utf8.h"

#define BUF_MIN_CAP 64

struct span span_str(const char *s)
{
    return (struct span){s, s ? strlen(s) : 0};
}

int span_eq(struct span a, const char *s)
{
    return a.len == strlen(s) && (a.len == 0 || memcmp(a.ptr, s, a.len) == 0);
}

struct span buf_span(const struct buf *b)
{
    return (struct span){b->data, b->len};
}

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = (struct buf){.max = max_bytes};
}

void buf_done(struct buf *b)
{
    free(b->data);
    buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

static int make_room(struct buf *b, size_t n)
{
    size_t need;
    if (__builtin_add_overflow(b->len, n, &need) || need > b->max)
        return -EMSGSIZE;
    if (need < b->cap)
        return 0;
    size_t cap = b->cap ? b->cap : BUF_MIN_CAP;
    while (cap <= need)
        cap = cap > SIZE_MAX / 2 ? need + 1 : cap * 2;
    char *data = realloc(b->data, cap);
    if (!data)
        return -ENOMEM;
    b->data = data;
    b->cap = cap;
    return 0;
}

char *buf_reserve(struct buf *b, size_t n)
{
    int r = make_room(b, n);
    if (r < 0) {
        errno = -r;
        return NULL;
    }
    return b->data + b->len;
}

void buf_commit(struct buf *b, size_t n)
{
    assert(b->len + n < b->cap);
    b->len += n;
    b->data[b->len] = '\0';
}

int buf_append(struct buf *b, const void *bytes, size_t n)
{
    int r = make_room(b, n);
    if (r < 0)
        return r;
    if (n > 0)
        memcpy(b->data + b->len, bytes, n);
    buf_commit(b, n);
    return 0;
}

int buf_append_str(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_append_byte(struct buf *b, uint8_t byte)
{
    return buf_append(b, &byte, 1);
}

int buf_append_u32be(struct buf *b, uint32_t v)
{
    const uint8_t bytes[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
                              (uint8_t)v};
    return buf_append(b, bytes, sizeof(bytes));
}

int buf_append_u64be(struct buf *b, uint64_t v)
{
    int r = buf_append_u32be(b, (uint32_t)(v >> 32));
    if (r < 0)
        return r;
    r = buf_append_u32be(b, (uint32_t)v);
    if (r < 0)
        b->len -= 4;
    return r;
}

uint32_t u32be(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

uint64_t u64be(const void *p)
{
    const uint8_t *b = p;
    return (uint64_t)u32be(b) << 32 | u32be(b + 4);
}

int buf_appendf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    int r = n < 0 ? -EINVAL : make_room(b, (size_t)n);
    if (r == 0) {
        (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again); /* measured above */
        b->len += (size_t)n;
    }
    va_end(again);
    return r;
}

/* One unit of JSON text; returns the length of its escaped form, at most 6. */
static size_t json_escape(uint32_t cp, const char *bytes, size_t n, char out[static 6])
{
    static const char hex[] = "0123456789abcdef";
    static const char short_escapes[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (cp == '"' || cp == '\\') {
        out[0] = '\\';
        out[1] = (char)cp;
        return 2;
    }
    if (cp >= 0x20 && cp != 0x7f) {
        memcpy(out, bytes, n);
        return n;
    }
    out[0] = '\\';
    if (cp < 0x20 && short_escapes[cp]) {
        out[1] = short_escapes[cp];
        return 2;
    }
    out[1] = 'u';
    out[2] = '0';
    out[3] = '0';
    out[4] = hex[cp >> 4];
    out[5] = hex[cp & 15];
    return 6;
}

int buf_append_json_text(struct buf *b, const char *bytes, size_t n)
{
    size_t before = b->len;
    for (size_t at = 0; at < n;) {
        uint32_t cp = 0;
        char out[6] = "\xef\xbf\xbd";
        size_t out_len = 3;
        int k = utf8_next(bytes + at, n - at, &cp);
        if (k > 0)
            out_len = json_escape(cp, bytes + at, (size_t)k, out);
        at += k > 0 ? (size_t)k : k < 0 ? (size_t)-k : n - at;
        int r = buf_append(b, out, out_len);
        if (r < 0) {
            b->len = before;
            return r;
        }
    }
    return 0;
}

int buf_append_base64(struct buf *b, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = bytes;
    size_t out_len;
    if (__builtin_mul_overflow((n + 2) / 3, (size_t)4, &out_len))
        return -EMSGSIZE;
    int r = make_room(b, out_len);
    if (r < 0)
        return r;
    char *out = b->data + b->len;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;
        if (i + 1 < n)
            v |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < n)
            v |= p[i + 2];
        *out++ = digits[v >> 18];
        *out++ = digits[v >> 12 & 63];
        out[0] = out[1] = '='; /* padding, unless there are bytes */
        if (i + 1 < n)
            out[0] = digits[v >> 6 & 63];
        if (i + 2 < n)
            out[1] = digits[v & 63];
        out += 2;
    }
    buf_commit(b, out_len);
    return 0;
}
