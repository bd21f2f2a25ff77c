/* feed.h - the program's stdin: held before the run stage, then written as the program reads.
 *
 * Every byte that came is told to the worker once as taken: when it was written to the pipe, or when
 * it was thrown away because the program closed its end, ended or will never start.
 */
#ifndef FEED_H
#define FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct feed {
    int fd; /* the pipe's writing end, owned; -1 before the run stage and after its end */
    bool has_eof;
    bool is_dropping;
    struct buf queue;
    uint32_t taken;       /* not told to the worker yet */
    uint32_t outstanding; /* came and was not told as taken; at most FRAME_STDIN_CREDIT */
};

void feed_init(struct feed *f);
void feed_done(struct feed *f);

/* 0; -EPROTO past the credit or after the end; -ENOMEM. */
int feed_put(struct feed *f, struct span bytes, struct err *err);
void feed_eof(struct feed *f);

void feed_open_take(struct feed *f, int fd); /* the run stage started */
void feed_drop(struct feed *f);  /* nobody will read: throws away what is and what comes */
void feed_write(struct feed *f); /* as much as the pipe takes */

/* The pipe to wait for, or -1. */
int feed_poll_fd(const struct feed *f);

/* How many bytes to tell as taken; counts them as told. */
uint32_t feed_take_count(struct feed *f);

#endif
