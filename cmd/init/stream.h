/* stream.h - frames over the two descriptors, both non-blocking.
 *
 * Input      at most one frame and what one read brought after it.
 * Output     a queue of INIT_OUTPUT_MAX whose memory is taken at birth, so that queueing never fails
 *            for want of memory. Program output is taken only while stream_has_room(); what is left
 *            above that is for control frames, of which only a bounded number is ever queued.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>

#include "frames/frames.h"

enum { STREAM_END = 1, STREAM_LATER };

struct stream {
    int in;
    int out;
    struct buf input;
    size_t used; /* of input, by frames already handed out */
    struct buf output;
};

/* 0 or a negative errno. The descriptors are borrowed. */
int stream_init(struct stream *s, int in, int out);
void stream_done(struct stream *s);

/* One read. 0, STREAM_END, STREAM_LATER (nothing there), -ENOMEM. */
int stream_fill(struct stream *s);

/* The next whole frame; its payload is valid until stream_fill(). 0, FRAME_INCOMPLETE, -EBADMSG. */
int stream_next(struct stream *s, struct frame *ret, struct err *err);

/* Whether one more frame of FRAME_OUTPUT_CHUNK may be queued. */
bool stream_has_room(const struct stream *s);

/* One read of a program's pipe into a frame; there must be room. 0, STREAM_END or STREAM_LATER. */
int stream_copy(struct stream *s, enum frame_type type, int pipe_fd);

/* Writes what it can. 0, or STREAM_END when nobody can read it any more. */
int stream_flush(struct stream *s);

#endif
