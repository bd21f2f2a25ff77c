#include "contract/job.h"

#include "json/json.h"

const char *job_state_name(enum job_state s)
{
    switch (s) {
    case JOB_QUEUED:
        return "queued";
    case JOB_STARTING:
        return "starting";
    case JOB_RUNNING:
        return "running";
    case JOB_DONE:
        return "done";
    case JOB_KILLED:
        return "killed";
    case JOB_ERROR:
        return "error";
    }
    return NULL;
}

bool job_state_is_final(enum job_state s)
{
    return s == JOB_DONE || s == JOB_KILLED || s == JOB_ERROR;
}

const char *job_outcome_name(enum job_outcome o)
{
    switch (o) {
    case OUTCOME_EXITED:
        return "exited";
    case OUTCOME_SIGNALED:
        return "signaled";
    case OUTCOME_COMPILE_FAILED:
        return "compile_failed";
    case OUTCOME_WALL_TIMEOUT:
        return "wall_timeout";
    case OUTCOME_IDLE_TIMEOUT:
        return "idle_timeout";
    case OUTCOME_CPU_TIMEOUT:
        return "cpu_timeout";
    case OUTCOME_OUT_OF_MEMORY:
        return "out_of_memory";
    case OUTCOME_KILLED:
        return "killed";
    case OUTCOME_START_TIMEOUT:
        return "start_timeout";
    case OUTCOME_SETUP_FAILED:
        return "setup_failed";
    case OUTCOME_WORKER_LOST:
        return "worker_lost";
    case OUTCOME_DRAINED:
        return "drained";
    }
    return NULL;
}

/* Sets *object[key] and takes value; once something failed *object is NULL and stays so. */
static void put(json_t **object, const char *key, json_t *value)
{
    if (*object && value && json_object_set_new_nocheck(*object, key, value) == 0)
        return;
    if (!*object)
        json_decref(value);
    json_decref(*object);
    *object = NULL;
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string_lossy(text, strlen(text)) : json_null();
}

static json_t *number_or_null(int64_t v)
{
    return v == JOB_UNKNOWN ? json_null() : json_integer(v);
}

static json_t *exit_code_json(int exit_code)
{
    return exit_code == JOB_NO_EXIT_CODE ? json_null() : json_integer(exit_code);
}

json_t *job_status_json(const struct job_status *s)
{
    char channel[sizeof(JOB_CHANNEL_PREFIX) + sizeof(s->id)];
    (void)snprintf(channel, sizeof(channel), JOB_CHANNEL_PREFIX "%s", s->id); /* it fits */
    json_t *o = json_object();
    put(&o, "jobId", json_string_lossy(s->id, strlen(s->id)));
    put(&o, "channel", json_string_lossy(channel, strlen(channel)));
    put(&o, "language", json_string_lossy(s->language, strlen(s->language)));
    put(&o, "version", json_string_lossy(s->version, strlen(s->version)));
    put(&o, "state", json_string(job_state_name(s->state)));
    put(&o, "updatedAtMs", json_integer(s->updated_at_ms));
    return o;
}

json_t *job_result_json(const struct job_result *r)
{
    json_t *o = json_object();
    put(&o, "exitCode", exit_code_json(r->exit_code));
    put(&o, "signal", text_or_null(r->signal));
    put(&o, "timedOut", json_boolean(r->timed_out));
    put(&o, "idleTimedOut", json_boolean(r->idle_timed_out));
    put(&o, "truncated", json_boolean(r->truncated));
    put(&o, "durationMs", json_integer(r->duration_ms));
    return o;
}

void job_report_init(struct job_report *r)
{
    *r = (struct job_report){
        .exit_code = JOB_NO_EXIT_CODE,
        .wall_ms = JOB_UNKNOWN,
        .cpu_user_ms = JOB_UNKNOWN,
        .cpu_system_ms = JOB_UNKNOWN,
        .memory_peak_bytes = JOB_UNKNOWN,
        .memory_file_bytes = JOB_UNKNOWN,
        .pids_peak = JOB_UNKNOWN,
        .stdout_bytes = JOB_UNKNOWN,
        .stdout_kept_bytes = JOB_UNKNOWN,
        .stderr_bytes = JOB_UNKNOWN,
        .stderr_kept_bytes = JOB_UNKNOWN,
        .queue_ms = JOB_UNKNOWN,
        .open_ms = JOB_UNKNOWN,
        .gate_ms = JOB_UNKNOWN,
        .compile_ms = JOB_UNKNOWN,
        .run_ms = JOB_UNKNOWN,
        .limit_value = JOB_UNKNOWN,
        .artifacts_omitted = JOB_UNKNOWN,
    };
}

static json_t *limit_or_null(const struct job_report *r)
{
    if (!r->limit_name)
        return json_null();
    json_t *o = json_object();
    put(&o, "name", json_string_lossy(r->limit_name, strlen(r->limit_name)));
    put(&o, "value", number_or_null(r->limit_value));
    return o;
}

json_t *job_report_json(const struct job_report *r)
{
    struct job_result result;
    enum job_state state;
    job_result_from_report(r, &result, &state);

    json_t *o = json_object();
    put(&o, "outcome", json_string(job_outcome_name(r->outcome)));
    put(&o, "reason", text_or_null(r->reason));
    put(&o, "exitCode", exit_code_json(result.exit_code));
    put(&o, "signal", text_or_null(result.signal));
    put(&o, "wallMs", number_or_null(r->wall_ms));
    put(&o, "cpuUserMs", number_or_null(r->cpu_user_ms));
    put(&o, "cpuSystemMs", number_or_null(r->cpu_system_ms));
    put(&o, "memoryPeakBytes", number_or_null(r->memory_peak_bytes));
    put(&o, "memoryFileBytes", number_or_null(r->memory_file_bytes));
    put(&o, "pidsPeak", number_or_null(r->pids_peak));
    put(&o, "stdoutBytes", number_or_null(r->stdout_bytes));
    put(&o, "stdoutKeptBytes", number_or_null(r->stdout_kept_bytes));
    put(&o, "stderrBytes", number_or_null(r->stderr_bytes));
    put(&o, "stderrKeptBytes", number_or_null(r->stderr_kept_bytes));
    put(&o, "truncated", json_boolean(r->truncated));
    put(&o, "outputLost", json_boolean(r->output_lost));
    put(&o, "queueMs", number_or_null(r->queue_ms));
    put(&o, "openMs", number_or_null(r->open_ms));
    put(&o, "gateMs", number_or_null(r->gate_ms));
    put(&o, "compileMs", number_or_null(r->compile_ms));
    put(&o, "runMs", number_or_null(r->run_ms));
    put(&o, "limit", limit_or_null(r));
    put(&o, "backend", text_or_null(r->backend));
    put(&o, "runtime", text_or_null(r->runtime));
    put(&o, "worker", text_or_null(r->worker));
    put(&o, "artifactsOmitted", number_or_null(r->artifacts_omitted));
    return o;
}
