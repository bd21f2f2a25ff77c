#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

#define LOG_VALUE_MAX 512

static atomic_int minimum = LOG_LEVEL_INFO;
static atomic_uint_fast64_t dropped;

static const char *const level_names[] = {"debug", "info", "warn", "error", "off"};

void log_set_level(enum log_level level)
{
    atomic_store(&minimum, (int)level);
}

int log_level_parse(const char *name, enum log_level *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (strcmp(name, level_names[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    return -EINVAL;
}

static int append_field(struct buf *line, const struct log_field *f)
{
    if (!f->text)
        return buf_appendf(line, ",\"%s\":%lld", f->key, (long long)f->number);
    size_t before = line->len;
    int r = buf_appendf(line, ",\"%s\":\"", f->key);
    if (r == 0)
        r = buf_append_json_text(line, f->text, strnlen(f->text, LOG_VALUE_MAX));
    if (r == 0)
        r = buf_append_str(line, "\"");
    if (r < 0)
        line->len = before; /* this field does not fit; the next, shorter one may */
    return r;
}

/* A pipe that is writable takes PIPE_BUF bytes at once (pipe(7)), so this decides for blocking
 * descriptors too. */
static int would_block(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) == 0;
}

void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t n)
{
    if ((int)level < atomic_load(&minimum))
        return;
    int saved = errno;
    cleanup_buf struct buf line;
    buf_init(&line, PIPE_BUF - 2); /* room for the closing brace and the newline */
    int64_t now = clock_realtime_ms();
    uint64_t lost = atomic_exchange(&dropped, 0);
    int r = buf_appendf(&line, "{\"time_ms\":%lld,\"level\":\"%s\",\"event\":\"%s\"",
                        (long long)now, level_names[level], event);
    if (lost > 0)
        (void)append_field(&line,
                           &LOG_INT("log_lines_dropped", lost)); /* cannot fail: still short */
    for (size_t i = 0; r == 0 && i < n; i++)
        (void)append_field(&line, &fields[i]); /* what does not fit is left out */
    struct iovec parts[] = {{line.data, line.len}, {(char[]){'}', '\n'}, 2}};
    if (r < 0 || would_block() || writev(STDERR_FILENO, parts, 2) < 0)
        atomic_fetch_add(&dropped, lost + 1);
    errno = saved;
}
