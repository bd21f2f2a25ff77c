#include "stream.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/init.h"

#define READ_BYTES    65536U
#define CONTROL_BYTES 8192U /* kept free for control frames; a FAULT is the largest, 1 KiB */

int stream_init(struct stream *s, int in, int out)
{
    *s = (struct stream){.in = in, .out = out};
    buf_init(&s->input, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX + READ_BYTES);
    buf_init(&s->output, INIT_OUTPUT_MAX);
    if (!buf_reserve(&s->output, INIT_OUTPUT_MAX))
        return -errno;
    int r = fd_set_nonblock(in, 1);
    return r < 0 ? r : fd_set_nonblock(out, 1);
}

void stream_done(struct stream *s)
{
    buf_done(&s->input);
    buf_done(&s->output);
}

static bool is_later(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

int stream_fill(struct stream *s)
{
    buf_consume(&s->input, s->used);
    s->used = 0;
    if (s->input.len == 0 && s->input.cap > 2 * (size_t)READ_BYTES)
        buf_done(&s->input); /* after the files: the memory belongs to the program */
    char *room = buf_reserve(&s->input, READ_BYTES);
    if (!room)
        return -errno;
    ssize_t n = read(s->in, room, READ_BYTES);
    if (n < 0)
        return is_later(errno) ? STREAM_LATER : STREAM_END;
    if (n == 0)
        return STREAM_END;
    buf_commit(&s->input, (size_t)n);
    return 0;
}

int stream_next(struct stream *s, struct frame *ret, struct err *err)
{
    if (s->used == s->input.len)
        return FRAME_INCOMPLETE;
    struct span rest = {s->input.data + s->used, s->input.len - s->used};
    size_t n = 0;
    int r = frame_decode(rest, FRAME_TO_INIT, ret, &n, err);
    if (r == 0)
        s->used += n;
    return r;
}

bool stream_has_room(const struct stream *s)
{
    return s->output.len + FRAME_HEADER_BYTES + FRAME_OUTPUT_CHUNK + CONTROL_BYTES <=
           INIT_OUTPUT_MAX;
}

int stream_copy(struct stream *s, enum frame_type type, int pipe_fd)
{
    char *frame = buf_reserve(&s->output, FRAME_HEADER_BYTES + FRAME_OUTPUT_CHUNK);
    if (!frame)
        return STREAM_LATER;
    ssize_t n = read(pipe_fd, frame + FRAME_HEADER_BYTES, FRAME_OUTPUT_CHUNK);
    if (n < 0)
        return is_later(errno) ? STREAM_LATER : STREAM_END;
    if (n == 0)
        return STREAM_END;
    uint8_t header[FRAME_HEADER_BYTES];
    frame_header(type, (uint32_t)n, header);
    memcpy(frame, header, sizeof(header));
    buf_commit(&s->output, sizeof(header) + (size_t)n);
    return 0;
}

int stream_flush(struct stream *s)
{
    if (s->output.len == 0)
        return 0;
    ssize_t n = write(s->out, s->output.data, s->output.len);
    if (n < 0)
        return is_later(errno) ? 0 : STREAM_END;
    buf_consume(&s->output, (size_t)n);
    return 0;
}
