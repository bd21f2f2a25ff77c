/* session/link.h - whole frames over a sandbox's byte stream, both ways, without blocking.
 *
 * Bounded: at most LINK_OUT_MAX bytes wait to be written; what is read is handed out frame by frame. */
#ifndef SESSION_LINK_H
#define SESSION_LINK_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "frames/frames.h"
#include "sandbox/sandbox.h"

#define LINK_OUT_MAX  (FRAME_PAYLOAD_MAX + (1U << 17))
#define LINK_READ_MAX 65536U

struct link {
    struct sandbox *sandbox; /* borrowed */
    struct buf in;
    struct buf out;
    size_t in_at;  /* what of `in` has been handed out */
    size_t out_at; /* what of `out` has been written */
    bool ended;    /* init has ended its side */
};

void link_init(struct link *l, struct sandbox *sandbox);
void link_done(struct link *l);

/* Bytes that still wait to be written. */
size_t link_pending(const struct link *l);
/* Writes what the stream takes now. 0, or a negative errno (-EPIPE: init is gone). */
int link_flush(struct link *l);
/* Reads once. 0 (perhaps nothing was there, perhaps it ended), or a negative errno. */
int link_fill(struct link *l);
/* The next whole frame of what was read: 0, FRAME_INCOMPLETE or -EBADMSG. The payload is borrowed until
 * the next link_fill(). */
int link_next(struct link *l, struct frame *ret, struct err *err);

#endif
