/* session/output.h - from a program's bytes to events: budget, code points, joining, collecting.
 *
 * Budget     the first `budget` bytes of both streams together are kept; what comes after is counted and
 *            thrown away. A code point that the budget cuts is left out whole.
 * Events     code points are never cut: the beginning of one at the end of a write waits for its rest.
 *            Writes that follow each other within OUTPUT_JOIN_MS become one event; the first after a
 *            pause goes out at once. One seq counts the events of both stages.
 * Threads    one. */
#ifndef SESSION_OUTPUT_H
#define SESSION_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "bus/bus.h"

#define OUTPUT_JOIN_MS    5
#define OUTPUT_JOIN_BYTES 7168U /* more than this goes out without waiting */

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR };

struct output_counts {
    uint64_t bytes; /* what the program wrote */
    uint64_t kept;  /* what of it went into events */
};

struct output {
    struct bus *bus;           /* borrowed */
    const struct fence *fence; /* borrowed */
    bool collect;
    bool compile;      /* the stage whose output this is now */
    uint64_t budget;   /* bytes of this stage that may still be kept */
    bool truncated;    /* of the run stage */
    uint64_t seq;      /* of the last event */
    struct buf joined; /* bytes of `joined_stream` that wait to become an event */
    enum output_stream joined_stream;
    int64_t last_event_ms;
    char tail[2][4]; /* the incomplete code point at the end of each stream */
    size_t tail_len[2];
    struct output_counts counts[2]; /* of the run stage */
    struct buf collected[2];        /* whole texts of the run stage, if asked for */
    struct buf compile_collected[2];
    struct buf compile_all; /* both of the compile stage, in order of arrival */
};

void output_init(struct output *o, struct bus *bus, const struct fence *fence, bool collect,
                 uint64_t budget_bytes);
void output_done(struct output *o);

/* Ends a stage's output and begins the next one with a budget of its own. 0 or a negative errno. */
int output_stage(struct output *o, bool compile, uint64_t budget_bytes);
/* *ret_kept: whether any of it was within the budget. 0, BUS_FENCED or a negative errno. */
int output_add(struct output *o, enum output_stream stream, struct span bytes, bool *ret_kept);
/* When output_flush() has to be called, DEADLINE_NEVER while nothing waits. */
int64_t output_deadline_ms(const struct output *o);
int output_flush(struct output *o);
/* As flush, and incomplete code points too. */
int output_end(struct output *o);

#endif
