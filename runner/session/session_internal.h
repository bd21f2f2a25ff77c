/* session/session_internal.h - what the files of session/ share: one job's working state. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include "link.h"
#include "output.h"
#include "session/session.h"

#define SESSION_READY_TIMEOUT_MS                                                                   \
    30000 /* from connected to READY: a slow daemon, not a slow program */
#define SESSION_SETUP_TIMEOUT_MS 60000 /* sending the files */
#define SESSION_KILL_QUIET_MS    250   /* without a byte from init after KILL */
#define SESSION_KILL_TOTAL_MS    2000

struct session {
    const struct session_options *options;
    struct claim *claim;
    const struct job_spec *spec;
    const struct fence *fence;
    struct bus_watcher *watcher;
    struct sandbox *sandbox;
    struct link link;
    struct output output;

    /* what has been seen so far */
    bool ready, started, compiled, exited, link_down, drain, kill_requested;
    bool heard;             /* bytes came from init in the last step */
    bool eof_held;          /* EOF was taken before init had its spec */
    bool control_waits;     /* look at control again without waiting for news */
    enum frame_stage stage; /* 0: none yet */
    struct frame_exit compile_exit, run_exit;
    bool fault;
    struct err failure; /* words for whatever went wrong on our side */

    uint32_t stdin_credit; /* bytes init still takes */

    /* times, monotonic milliseconds; 0: not yet */
    int64_t claimed_ms, ready_ms, start_ms, run_ms, active_ms, end_ms;
    int64_t kill_sent_ms, last_heard_ms;

    bool decided; /* the outcome is known: the first reason wins */
    struct job_report report;
};

/* session.c: one step of waiting. Moves bytes both ways, takes frames and control, until something
 * happened or deadline_ms. 0, or a negative errno: the session cannot go on (link_down and failure say
 * why). */
int session_step(struct session *s, int64_t deadline_ms);

/* Records why the job ends; only the first call counts. reason may be NULL. */
void session_decide(struct session *s, enum job_outcome outcome, const char *reason);

/* setup.c: opens the sandbox, waits for READY, sends SPEC and files. */
int session_setup(struct session *s);

/* clocks.c: the next moment at which a limit has to be looked at, and the look. */
int64_t clocks_deadline_ms(const struct session *s);
void clocks_check(struct session *s);

/* finish.c: closes the sandbox, completes the report, publishes. */
void session_finish(struct session *s);

#endif
