/* base/buf.h - foreign bytes and growing bytes.
 *
 * struct span   borrowed bytes, may contain NUL, not terminated.
 * struct buf    owned bytes with a maximum fixed at birth; past it every append is -EMSGSIZE and the
 *               contents stay as they were. data is always NUL-terminated once anything was appended
 *               (the terminator is not counted in len).
 * Threads       none of it is locked. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct span {
    const char *ptr;
    size_t len;
};

#define SPAN_LIT(s) ((struct span){(s), sizeof(s) - 1})
struct span span_str(const char *s); /* NULL gives an empty span */
int span_eq(struct span a, const char *s);

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_done(struct buf *b); /* releases; the buffer is empty and usable again */
void buf_clear(struct buf *b);
void buf_consume(struct buf *b, size_t n); /* drops the first n bytes; n <= len */

/* 0, -EMSGSIZE (past the maximum) or -ENOMEM; on failure nothing is appended. */
int buf_append(struct buf *b, const void *bytes, size_t n);
int buf_append_str(struct buf *b, const char *s);
int buf_append_byte(struct buf *b, uint8_t byte);
int buf_append_u32be(struct buf *b, uint32_t v);
int buf_append_u64be(struct buf *b, uint64_t v);
int buf_appendf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for n more bytes and returns where they go (NULL: -EMSGSIZE or -ENOMEM in errno);
 * buf_commit() then says how many were written. */
char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

struct span buf_span(const struct buf *b);

/* Appends bytes as the inside of a JSON string (no quotes): valid UTF-8 stays as it is, invalid bytes
 * become U+FFFD one for each maximal subpart (Unicode 15, section 3.9), control bytes, quote and
 * backslash are escaped. */
int buf_append_json_text(struct buf *b, const char *bytes, size_t n);
int buf_append_base64(struct buf *b, const void *bytes, size_t n);

uint32_t u32be(const void *p);
uint64_t u64be(const void *p);

static inline void buf_done_slot(struct buf *b)
{
    buf_done(b);
}
#define cleanup_buf CLEANUP(buf_done_slot)

#endif
