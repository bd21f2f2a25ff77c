#include "contract/job.h"

/* What the classic result shows of each outcome: the rows of the table in docs/architecture.md. */
enum shown { SHOW_NOTHING, SHOW_EXIT_CODE, SHOW_SIGNAL, SHOW_BOTH, SHOW_SIGKILL, SHOW_KILLED };

static const struct row {
    enum shown shown;
    enum job_state state;
    bool timed_out;
    bool idle_timed_out;
} rows[] = {
    [OUTCOME_EXITED] = {SHOW_EXIT_CODE, JOB_DONE, false, false},
    [OUTCOME_SIGNALED] = {SHOW_SIGNAL, JOB_DONE, false, false},
    [OUTCOME_COMPILE_FAILED] = {SHOW_BOTH, JOB_ERROR, false, false},
    [OUTCOME_WALL_TIMEOUT] = {SHOW_NOTHING, JOB_ERROR, true, false},
    [OUTCOME_IDLE_TIMEOUT] = {SHOW_NOTHING, JOB_ERROR, false, true},
    [OUTCOME_CPU_TIMEOUT] = {SHOW_NOTHING, JOB_ERROR, true, false},
    [OUTCOME_OUT_OF_MEMORY] = {SHOW_SIGKILL, JOB_DONE, false, false},
    [OUTCOME_KILLED] = {SHOW_KILLED, JOB_KILLED, false, false},
    [OUTCOME_START_TIMEOUT] = {SHOW_NOTHING, JOB_ERROR, false, false},
    [OUTCOME_SETUP_FAILED] = {SHOW_NOTHING, JOB_ERROR, false, false},
    [OUTCOME_WORKER_LOST] = {SHOW_NOTHING, JOB_ERROR, false, false},
    [OUTCOME_DRAINED] = {SHOW_NOTHING, JOB_ERROR, false, false},
};

/* The run stage; of a job that never reached it, the compile stage. */
static int64_t duration(const struct job_report *r)
{
    if (r->run_ms != JOB_UNKNOWN)
        return r->run_ms;
    return r->compile_ms != JOB_UNKNOWN ? r->compile_ms : 0;
}

static bool has_started(const struct job_report *r)
{
    return r->gate_ms != JOB_UNKNOWN || r->compile_ms != JOB_UNKNOWN || r->run_ms != JOB_UNKNOWN;
}

void job_result_from_report(const struct job_report *r, struct job_result *ret_result,
                            enum job_state *ret_state)
{
    const struct row *row = &rows[r->outcome];
    struct job_result result = {
        .exit_code = JOB_NO_EXIT_CODE,
        .timed_out = row->timed_out,
        .idle_timed_out = row->idle_timed_out,
        .truncated = r->truncated,
        .duration_ms = duration(r),
    };
    if (row->shown == SHOW_EXIT_CODE || row->shown == SHOW_BOTH)
        result.exit_code = r->exit_code;
    if (row->shown == SHOW_SIGNAL || row->shown == SHOW_BOTH)
        result.signal = r->signal;
    if (row->shown == SHOW_SIGKILL || (row->shown == SHOW_KILLED && has_started(r)))
        result.signal = "SIGKILL";
    *ret_result = result;
    *ret_state = row->state;
}
