/* bus/bus.h - what gateway and worker share: queue, control, events and job records.
 *
 * They meet only here. Every record has a TTL; every write of a worker carries the fence it got
 * with its claim, so that a worker that was given up cannot disturb its successor. `memory` is the
 * first implementation: records live as long as the process, and a job that is queued or active
 * never expires.
 *
 * Results    0, a negative errno, or one of the outcomes below.
 * Ownership  what goes in is copied unless the name says _take; what comes out is the caller's.
 * Threads    any function from any thread; none blocks but bus_claim().
 */
#ifndef BUS_BUS_H
#define BUS_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "contract/job.h"

struct bus;

enum bus_outcome {
    BUS_FULL = 1,      /* the queue is at its depth */
    BUS_NOT_FOUND,     /* no such job, or its record has expired */
    BUS_ENDED,         /* the job has its result already: nothing was stored, which is no error */
    BUS_STDIN_CLOSED,  /* stdin after EOF */
    BUS_STDIN_PENDING, /* more than BUS_STDIN_PENDING_MAX bytes not yet taken by the program */
    BUS_STDIN_RATE,    /* more than BUS_STDIN_RATE_MAX frames this second */
    BUS_CONTROL_FULL,  /* more than BUS_CONTROL_MAX signals waiting */
    BUS_TIMEOUT,
    BUS_CLOSED,         /* bus_close() was called */
    BUS_FENCED,         /* the job is no longer this worker's */
    BUS_OUTPUT_MISSING, /* no stored output: not collected, not finished, or expired */
};

#define BUS_STDIN_PENDING_MAX 65536
#define BUS_STDIN_RATE_MAX    30
#define BUS_CONTROL_MAX       256
/* What one job's log may occupy, whatever its output budget is. */
#define BUS_LOG_BYTES_MAX (64 << 20)

struct bus_memory_options {
    uint32_t queue_depth_max; /* MAX_QUEUE_DEPTH */
    int64_t job_ttl_ms;       /* JOB_TTL: status; from the end of the job, its last write */
    int64_t result_ttl_ms; /* RUN_RESULT_TTL: output, report, event log; from the end of the job */
    /* BUS_MEMORY_MAX_BYTES over all finished jobs: log, report and output of the oldest go first
     * (but never those of the newest, which nobody can have read yet), then whole records. */
    uint64_t memory_max_bytes;
    int64_t (*now_ms)(void); /* monotonic; NULL = clock_now_ms (tests inject theirs) */
};
/* 0, -EINVAL (a bound below 1), -ENOMEM. */
int bus_memory_new(const struct bus_memory_options *o, struct bus **ret, struct err *err);
/* Wakes every bus_claim() with BUS_CLOSED, also when jobs are queued; later submits get BUS_CLOSED;
 * everything else goes on. What is queued stays so until bus_drain(). */
void bus_close(struct bus *b);
/* After bus_close(): ends every job that is still queued with the outcome `drained`. How many, or
 * -ENOMEM (then some may still be queued; call again). */
int bus_drain(struct bus *b);
void bus_free(struct bus *b); /* after every user has stopped; NULL is fine */
DEFINE_CLEANUP(struct bus *, bus_free)
#define cleanup_bus CLEANUP(bus_free_slot)

/* Drops what has expired; call it every second or so. */
void bus_housekeep(struct bus *b);

/* ---- queue ---- */

/* One step: the job is queued with status `queued`, or nothing happened. Owns *spec on 0 only.
 * 0, BUS_FULL, BUS_CLOSED, -ENOMEM, -EEXIST (the id is taken). */
int bus_submit_take(struct bus *b, struct job_spec *spec, struct err *err);

struct fence {
    char job[JOB_ID_SIZE];
    uint64_t token;
};
struct claim {
    struct fence fence;
    struct job_spec *spec; /* owned by the claim */
    int64_t queue_ms;      /* accepted -> claimed */
};
/* Waits until deadline_ms (CLOCK_MONOTONIC; 0 polls). 0, BUS_TIMEOUT, BUS_CLOSED. Oldest first. */
int bus_claim(struct bus *b, const char *worker_id, int64_t deadline_ms, struct claim *ret,
              struct err *err);
void claim_done(struct claim *c);

struct bus_counts {
    uint64_t queued;    /* waiting in the queue */
    uint64_t active;    /* claimed, not ended */
    uint64_t finished;  /* records kept */
    uint64_t log_bytes; /* all logs, reports and outputs, of active jobs too */
};
void bus_counts(struct bus *b, struct bus_counts *ret);

/* ---- records ---- */

int bus_status(struct bus *b, const char *job, struct job_status *ret); /* 0, BUS_NOT_FOUND */
/* State changes before the end: JOB_QUEUED, JOB_STARTING, JOB_RUNNING. 0, BUS_FENCED. */
int bus_status_set(struct bus *b, const struct fence *f, enum job_state state);
/* Stored RunResult / report as JSON text, appended. 0, BUS_NOT_FOUND, BUS_OUTPUT_MISSING, -ENOMEM,
 * -EMSGSIZE (ret's maximum). */
int bus_output(struct bus *b, const char *job, struct buf *ret);
int bus_report(struct bus *b, const char *job, struct buf *ret);

/* ---- control: gateway -> session ---- */

enum control_type { CONTROL_START, CONTROL_STDIN, CONTROL_STDIN_EOF, CONTROL_SIGNAL, CONTROL_KILL };
struct control {
    enum control_type type;
    int signal;       /* CONTROL_SIGNAL */
    struct span data; /* CONTROL_STDIN; borrowed */
};
/* Held in order until the session takes it, from before the claim on; stdin chunks that follow each
 * other are joined. A second start, EOF or kill has no effect (0). An empty stdin chunk counts
 * against the rate and is dropped (0). Stdin is checked in this order: job, rate, EOF, pending; a
 * frame that is refused counts against the rate all the same, and more than BUS_STDIN_PENDING_MAX
 * pending bytes are refused whole. A kill of a job that is still queued ends it at once with the
 * outcome `killed`. 0, BUS_NOT_FOUND, BUS_ENDED, BUS_STDIN_CLOSED, BUS_STDIN_PENDING,
 * BUS_STDIN_RATE, BUS_CONTROL_FULL, -ENOMEM. */
int bus_control_append(struct bus *b, const char *job, const struct control *c);

struct control_batch {
    struct control *items; /* in order, CONTROL_KILL left out */
    size_t len;
    bool kill;        /* a kill has been asked for, ever: it overtakes everything */
    struct buf bytes; /* what items[].data points into */
};
/* Takes everything that is waiting, at most max_bytes of stdin (a chunk may be split), and forgets
 * it. What stands behind stdin that did not fit waits too; with BUS_STDIN_PENDING_MAX all fits,
 * always. 0, BUS_FENCED, -ENOMEM (nothing is taken). */
int bus_control_take(struct bus *b, const struct fence *f, size_t max_bytes,
                     struct control_batch *ret);
void control_batch_done(struct control_batch *batch);
/* n bytes of the stdin handed out have reached the program: frees that much of
 * BUS_STDIN_PENDING_MAX. Control watches become dirty if something is still waiting. */
void bus_stdin_taken(struct bus *b, const struct fence *f, size_t n);

/* ---- events: session -> everybody ---- */

/* Appends to the job's log; e->id is ignored and *ret_id (may be NULL) set. 0, BUS_FENCED, -ENOMEM,
 * -ENOSPC: the log occupies BUS_LOG_BYTES_MAX, which is an end of the output budget like any other
 * (the end of the job always finds room). */
int bus_event_append(struct bus *b, const struct fence *f, const struct event *e, uint64_t *ret_id);

struct event_batch {
    struct event *items;
    size_t len;
    bool end;         /* the log is complete and items reach its end */
    struct buf bytes; /* what items[].data points into */
};
/* Events with id > after, in order, at most max_bytes of them (each counts its data and a struct
 * event) but at least one. 0 (possibly with len 0, also for a cursor past the end), BUS_NOT_FOUND
 * (unknown or expired, also when only the log has expired), -ENOMEM. */
int bus_event_read(struct bus *b, const char *job, uint64_t after, size_t max_bytes,
                   struct event_batch *ret);
void event_batch_done(struct event_batch *batch);

/* The end of a job, in one step: status, output and report are stored, then `report`, `result` and
 * artifacts are appended to the log and the log is complete. Once (after it the fence is void); 0,
 * BUS_FENCED, -ENOMEM (then nothing happened). */
struct job_end {
    enum job_state state;
    struct job_result result;
    struct job_report report;
    struct span output_json;      /* RunResult text; ptr NULL: not collected */
    const struct span *artifacts; /* JSON text of each `artifact` event; clients want them last */
    size_t artifacts_len;
};
int bus_finish(struct bus *b, const struct fence *f, const struct job_end *end);

/* ---- watching ---- */

enum bus_watch_kind { BUS_WATCH_CONTROL, BUS_WATCH_EVENTS };

/* A watcher belongs to one thread (or epoll loop) and tells which of its watches have news. */
struct bus_watcher;
struct bus_watch;
/* 0, -ENOMEM or what eventfd(2) answered. A watcher is freed before its bus. */
int bus_watcher_new(struct bus *b, struct bus_watcher **ret, struct err *err);
void bus_watcher_free(struct bus_watcher *w); /* removes its watches */
DEFINE_CLEANUP(struct bus_watcher *, bus_watcher_free)
#define cleanup_bus_watcher CLEANUP(bus_watcher_free_slot)
/* Borrowed; readable while bus_watcher_next() has one. */
int bus_watcher_fd(const struct bus_watcher *w);

/* A watch starts dirty, so that nothing between "read" and "watch" is missed. 0, BUS_NOT_FOUND,
 * -ENOMEM. Also dirty when the job's record or its log goes away (reading then answers
 * BUS_NOT_FOUND). */
int bus_watch_add(struct bus_watcher *w, const char *job, enum bus_watch_kind kind, void *tag,
                  struct bus_watch **ret);
void bus_watch_remove(struct bus_watch *watch);
/* The tag of one watch that has become dirty since it was last returned; false: none. Clears the
 * descriptor when there is none left. */
bool bus_watcher_next(struct bus_watcher *w, void **ret_tag);

#endif
