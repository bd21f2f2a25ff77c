/* contract/job.h - the records of a job and their JSON shapes.
 *
 * Wire shapes are those of contract/NAME.schema.json at the top of the tree. Everything here is
 * plain data: no I/O, no locks. *_json functions return a new reference, or NULL when out of
 * memory. */
#ifndef CONTRACT_JOB_H
#define CONTRACT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/id.h"
#include "contract/limits.h"

#define JOB_CHANNEL_PREFIX "private-run-"
#define JOB_ID_SIZE        (ID_UUID_LEN + 1)

enum job_state { JOB_QUEUED, JOB_STARTING, JOB_RUNNING, JOB_DONE, JOB_KILLED, JOB_ERROR };
const char *job_state_name(enum job_state s);
bool job_state_is_final(enum job_state s);

enum job_outcome {
    OUTCOME_EXITED,
    OUTCOME_SIGNALED,
    OUTCOME_COMPILE_FAILED,
    OUTCOME_WALL_TIMEOUT,
    OUTCOME_IDLE_TIMEOUT,
    OUTCOME_CPU_TIMEOUT,
    OUTCOME_OUT_OF_MEMORY,
    OUTCOME_KILLED,
    OUTCOME_START_TIMEOUT,
    OUTCOME_SETUP_FAILED,
    OUTCOME_WORKER_LOST,
    OUTCOME_DRAINED,
};
const char *job_outcome_name(enum job_outcome o);

struct job_file {
    char *name;    /* relative, no NUL, no empty, "." or ".." segment */
    char *content; /* decoded bytes */
    size_t content_len;
};

/* What a worker needs to run a job. Owned strings; string lists end with NULL. */
struct job_spec {
    char id[JOB_ID_SIZE];
    char *language;
    char *version;
    char *image;
    char *entrypoint;
    char **compile; /* NULL: no compile stage */
    char **run;
    char **env; /* NAME=VALUE, the manifest's then the request's */
    bool interactive;
    bool collect_output;
    struct job_file *files;
    size_t files_len;
    struct limits limits;
    int64_t enqueued_at_ms; /* since the epoch */
};
void job_spec_free(struct job_spec *spec); /* NULL is fine */
DEFINE_CLEANUP(struct job_spec *, job_spec_free)
#define cleanup_job_spec CLEANUP(job_spec_free_slot)

/* Copies of NULL-terminated string lists; NULL when out of memory (and for NULL). */
char **strings_dup(char *const *list);
void strings_free(char **list);
/* From a JSON array of strings; NULL when out of memory, for anything else and when an item has a
 * NUL. */
char **strings_from_json(const json_t *array);

/* {jobId, channel, language, version, state, updatedAtMs} */
struct job_status {
    char id[JOB_ID_SIZE];
    char language[128];
    char version[64];
    enum job_state state;
    int64_t updated_at_ms;
};
json_t *job_status_json(const struct job_status *s);

/* The classic result event: exactly exitCode, signal, timedOut, idleTimedOut, truncated,
 * durationMs. */
#define JOB_NO_EXIT_CODE (-1)
struct job_result {
    int exit_code;      /* JOB_NO_EXIT_CODE: null */
    const char *signal; /* static name such as "SIGKILL"; NULL: null */
    bool timed_out;
    bool idle_timed_out;
    bool truncated;
    int64_t duration_ms;
};
json_t *job_result_json(const struct job_result *r);

/* Everything else there is to say; every key is always present, null when unknown.
 * A number that is unknown is JOB_UNKNOWN. Sizes in bytes, times in milliseconds. */
#define JOB_UNKNOWN INT64_MIN
struct job_report {
    enum job_outcome outcome;
    char reason[256]; /* one sentence for a person; "" is null */
    int exit_code;
    const char *signal;
    int64_t wall_ms, cpu_user_ms, cpu_system_ms;
    int64_t memory_peak_bytes, memory_file_bytes, pids_peak;
    int64_t stdout_bytes, stdout_kept_bytes, stderr_bytes, stderr_kept_bytes;
    bool truncated;
    bool output_lost;
    int64_t queue_ms; /* accepted -> claimed */
    int64_t open_ms;  /* claimed -> READY */
    int64_t gate_ms;  /* READY -> start */
    int64_t compile_ms, run_ms;
    const char *limit_name; /* JSON name of the limit that ended the job, or NULL */
    int64_t limit_value;
    char backend[16];
    char runtime[64]; /* "" is null */
    char worker[33];
    int64_t artifacts_omitted;
};
void job_report_init(struct job_report *r); /* everything unknown */
json_t *job_report_json(const struct job_report *r);

/* Derives the classic result and final state from a report, by the one table of
 * docs/architecture.md ("Results"): exit_code and signal of the report count only for the outcomes
 * that show them; a killed job shows SIGKILL once it has started (gate_ms, compile_ms or run_ms is
 * known). durationMs is the run stage, else the compile stage, else 0. job_report_json() applies
 * the same table to exitCode and signal. */
void job_result_from_report(const struct job_report *r, struct job_result *ret_result,
                            enum job_state *ret_state);

/* "SIGKILL" for 9; 34 is "SIGRTMIN", 35 "SIGRTMIN+1" ...; 32 and 33, which the C library keeps for
 * itself, are "SIG32" and "SIG33"; NULL outside 1..64. */
const char *signal_name(int number);

/* One entry of a job's event log. */
enum event_type {
    EVENT_STAGE,
    EVENT_STDOUT,
    EVENT_STDERR,
    EVENT_COMPILE_OUTPUT,
    EVENT_REPORT,
    EVENT_RESULT,
    EVENT_ARTIFACT,
};
const char *event_type_name(enum event_type t); /* "stage", "stdout", ... */
static inline bool event_is_output(enum event_type t)
{
    return t == EVENT_STDOUT || t == EVENT_STDERR || t == EVENT_COMPILE_OUTPUT;
}

struct event {
    enum event_type type;
    uint64_t id;      /* 1, 2, 3 ... per job; set by the bus */
    uint64_t seq;     /* output events only: 1, 2, 3 ... per job */
    struct span data; /* output: raw bytes; others: the payload's JSON text. Borrowed. */
};

#define EVENT_PAYLOAD_MAX 8192 /* serialised bytes of an output payload; Pusher stops at 10 KB */
/* How many of the n bytes (at least one code point, 0 only for n = 0) make a payload of at most
 * EVENT_PAYLOAD_MAX serialised bytes with this seq, not cutting a code point. A code point that is
 * incomplete at the end counts as U+FFFD: hold it back (utf8_incomplete_tail) if more may come. */
size_t event_fit(const char *bytes, size_t n, uint64_t seq);
/* Appends {"chunk":"...","seq":n} or the JSON text. 0, -EMSGSIZE, -ENOMEM; on failure nothing is
 * appended. */
int event_payload(struct buf *out, const struct event *e);

#endif
