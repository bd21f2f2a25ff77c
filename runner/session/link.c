#include "link.h"

#include <errno.h>

void link_init(struct link *l, struct sandbox *sandbox)
{
    *l = (struct link){.sandbox = sandbox};
    buf_init(&l->in, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX + LINK_READ_MAX);
    buf_init(&l->out, LINK_OUT_MAX);
}

void link_done(struct link *l)
{
    buf_done(&l->in);
    buf_done(&l->out);
}

size_t link_pending(const struct link *l)
{
    return l->out.len - l->out_at;
}

int link_flush(struct link *l)
{
    while (link_pending(l) > 0) {
        ssize_t n = sandbox_write(l->sandbox, l->out.data + l->out_at, link_pending(l));
        if (n == -EAGAIN || n == -EINTR)
            break;
        if (n < 0)
            return (int)n;
        l->out_at += (size_t)n;
    }
    if (link_pending(l) == 0)
        buf_clear(&l->out);
    else
        buf_consume(&l->out, l->out_at);
    l->out_at = 0;
    return 0;
}

int link_fill(struct link *l)
{
    buf_consume(&l->in, l->in_at);
    l->in_at = 0;
    char *room = buf_reserve(&l->in, LINK_READ_MAX);
    if (!room)
        return -errno;
    ssize_t n = sandbox_read(l->sandbox, room, LINK_READ_MAX);
    if (n == -EAGAIN || n == -EINTR)
        return 0;
    if (n < 0)
        return (int)n;
    if (n == 0)
        l->ended = true;
    buf_commit(&l->in, (size_t)n);
    return 0;
}

int link_next(struct link *l, struct frame *ret, struct err *err)
{
    struct span rest = {l->in.data ? l->in.data + l->in_at : NULL, l->in.len - l->in_at};
    size_t used = 0;
    int r = frame_decode(rest, FRAME_FROM_INIT, ret, &used, err);
    if (r == 0)
        l->in_at += used;
    return r;
}
