/* stage.h - one stage of a job: its main process, its output, its end.
 *
 *     IDLE ─ start ─► STARTING ─ exec ─► RUNNING ─ main ends ─► DYING ─ ECHILD ─► DRAINING ─► DONE
 *
 * STARTING   forked; whether exec works is not known and no output is read, so that STAGE is queued
 *            before all of it
 * DYING      the main process was reaped; what it left behind is being killed and reaped
 * DRAINING   nobody is left who could write; what the pipes hold goes out as there is room
 */
#ifndef STAGE_H
#define STAGE_H

#include "process.h"
#include "stream.h"

enum stage_state {
    STAGE_IDLE,
    STAGE_STARTING,
    STAGE_RUNNING,
    STAGE_DYING,
    STAGE_DRAINING,
    STAGE_DONE,
};

struct stage {
    enum stage_state state;
    enum frame_stage which;
    const struct frame_spec *spec;
    struct process process;
    int64_t started_us;
    struct frame_exit end; /* whole once DONE */
    unsigned turn;         /* which pipe is read first */
    bool has_more_to_reap; /* the last stage_reap() stopped before the end */
};

void stage_init(struct stage *s);
void stage_done(struct stage *s);

/* All return 0 or a negative errno; where there is no err they cannot fail. */
int stage_start(struct stage *s, enum frame_stage which, const struct frame_spec *spec,
                struct err *err);
int stage_check_exec(struct stage *s, struct stream *out, struct err *err);
int stage_reap(struct stage *s, struct stream *out, struct err *err);

/* Moves output while there is room; ends DRAINING. */
void stage_move_output(struct stage *s, struct stream *out);

/* To the process group of the main process, if it runs. */
void stage_signal(const struct stage *s, int signal);

bool stage_reads_output(const struct stage *s); /* stdout and stderr are to be polled */

#endif
