#include "feed.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "frames/frames.h"

void feed_init(struct feed *f)
{
    *f = (struct feed){.fd = -1};
    buf_init(&f->queue, FRAME_STDIN_CREDIT);
}

static void close_pipe(struct feed *f)
{
    cleanup_close int fd = fd_take(&f->fd);
    (void)fd; /* closed by its cleanup */
}

void feed_done(struct feed *f)
{
    close_pipe(f);
    buf_done(&f->queue);
}

static void close_after_the_last(struct feed *f)
{
    if (f->has_eof && f->queue.len == 0)
        close_pipe(f);
}

int feed_put(struct feed *f, struct span bytes, struct err *err)
{
    if (f->has_eof)
        return err_say(err, -EPROTO, "STDIN after STDIN_EOF");
    if (bytes.len > FRAME_STDIN_CREDIT - f->outstanding)
        return err_say(err, -EPROTO, "STDIN of %zu bytes past the credit, %u of %u are in use",
                       bytes.len, f->outstanding, FRAME_STDIN_CREDIT);
    if (!f->is_dropping) {
        int r = buf_append(&f->queue, bytes.ptr, bytes.len);
        if (r < 0)
            return err_say(err, r, "hold %zu bytes of stdin", bytes.len);
    } else {
        f->taken += (uint32_t)bytes.len;
    }
    f->outstanding += (uint32_t)bytes.len;
    return 0;
}

void feed_eof(struct feed *f)
{
    f->has_eof = true;
    close_after_the_last(f);
}

void feed_open_take(struct feed *f, int fd)
{
    f->fd = fd;
    close_after_the_last(f);
}

void feed_drop(struct feed *f)
{
    f->is_dropping = true;
    f->taken += (uint32_t)f->queue.len;
    buf_done(&f->queue);
    close_pipe(f);
}

int feed_poll_fd(const struct feed *f)
{
    return f->queue.len > 0 ? f->fd : -1;
}

void feed_write(struct feed *f)
{
    if (f->fd < 0 || f->queue.len == 0)
        return;
    ssize_t n = write(f->fd, f->queue.data, f->queue.len);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            feed_drop(f); /* EPIPE: the program closed its end */
        return;
    }
    buf_consume(&f->queue, (size_t)n);
    f->taken += (uint32_t)n;
    close_after_the_last(f);
}

uint32_t feed_take_count(struct feed *f)
{
    uint32_t n = f->taken;
    f->taken = 0;
    f->outstanding -= n;
    return n;
}
