#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "session_internal.h"
#include "json/json.h"

#define PUBLISH_TRIES   50
#define PUBLISH_WAIT_MS 100

static int64_t between(int64_t from_ms, int64_t to_ms)
{
    return from_ms && to_ms ? to_ms - from_ms : JOB_UNKNOWN;
}

static int64_t known(int64_t v)
{
    return v < 0 ? JOB_UNKNOWN : v;
}

static void report_times(struct session *s)
{
    struct job_report *r = &s->report;
    r->open_ms = between(s->claimed_ms, s->ready_ms);
    r->gate_ms = between(s->ready_ms, s->start_ms);
    r->wall_ms = between(s->start_ms, s->end_ms);
    if (s->compiled)
        r->compile_ms = (int64_t)(s->compile_exit.wall_us / 1000);
    else if (s->stage == FRAME_STAGE_COMPILE)
        r->compile_ms = between(s->start_ms, s->end_ms);
    if (s->run_ms)
        r->run_ms =
            s->exited ? (int64_t)(s->run_exit.wall_us / 1000) : between(s->run_ms, s->end_ms);
    if (s->exited || s->compiled) {
        uint64_t user_us = s->compile_exit.cpu_user_us + s->run_exit.cpu_user_us;
        uint64_t system_us = s->compile_exit.cpu_system_us + s->run_exit.cpu_system_us;
        r->cpu_user_ms = (int64_t)(user_us / 1000);
        r->cpu_system_ms = (int64_t)(system_us / 1000);
    }
}

static void report_end(struct session *s)
{
    struct job_report *r = &s->report;
    const struct frame_exit *e =
        r->outcome == OUTCOME_COMPILE_FAILED ? &s->compile_exit : &s->run_exit;
    if (s->exited || s->compiled) {
        r->exit_code = e->signal ? JOB_NO_EXIT_CODE : e->code;
        r->signal = e->signal ? signal_name(e->signal) : NULL;
    }
    if (r->outcome == OUTCOME_SIGNALED && r->signal && strcmp(r->signal, "SIGXFSZ") == 0)
        r->limit_name = "fileBytes";
}

static void report_output(struct session *s)
{
    struct job_report *r = &s->report;
    if (s->run_ms) {
        r->stdout_bytes = (int64_t)s->output.counts[OUTPUT_STDOUT].bytes;
        r->stdout_kept_bytes = (int64_t)s->output.counts[OUTPUT_STDOUT].kept;
        r->stderr_bytes = (int64_t)s->output.counts[OUTPUT_STDERR].bytes;
        r->stderr_kept_bytes = (int64_t)s->output.counts[OUTPUT_STDERR].kept;
    }
    r->truncated = s->output.truncated;
}

/* The kernel killed something for memory: that is the reason, unless we had one of our own before. */
static void report_memory(struct session *s, const struct verdict *v)
{
    struct job_report *r = &s->report;
    r->memory_peak_bytes = known(v->memory_peak_bytes);
    r->pids_peak = known(v->pids_peak);
    if (!v->out_of_memory || !s->start_ms)
        return;
    if (r->outcome == OUTCOME_EXITED || r->outcome == OUTCOME_SIGNALED ||
        r->outcome == OUTCOME_WORKER_LOST || r->outcome == OUTCOME_COMPILE_FAILED) {
        r->outcome = OUTCOME_OUT_OF_MEMORY;
        r->limit_name = "memoryMb";
        r->limit_value = s->spec->limits.memory_mb;
        (void)snprintf(r->reason, sizeof(r->reason),
                       "The program needed more than its memory limit.");
    }
}

static json_t *compile_json(const struct session *s)
{
    const struct output *o = &s->output;
    const char *signal = s->compile_exit.signal ? signal_name(s->compile_exit.signal) : NULL;
    bool known_end = s->compiled;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:I}", "exitCode",
        known_end && !signal ? json_integer(s->compile_exit.code) : json_null(), "signal",
        signal ? json_string(signal) : json_null(), "stdout",
        json_string_lossy(o->compile_collected[0].data, o->compile_collected[0].len), "stderr",
        json_string_lossy(o->compile_collected[1].data, o->compile_collected[1].len), "output",
        json_string_lossy(o->compile_all.data, o->compile_all.len), "durationMs",
        (json_int_t)(s->report.compile_ms < 0 ? 0 : s->report.compile_ms));
}

/* RunResult: the result event's six fields and the collected texts. */
static int run_result(const struct session *s, const struct job_result *result, struct buf *ret)
{
    json_auto_t *o = job_result_json(result);
    const struct buf *text = s->output.collected;
    int failed = !o;
    failed =
        failed || json_object_set_new(o, "stdout", json_string_lossy(text[0].data, text[0].len));
    failed =
        failed || json_object_set_new(o, "stderr", json_string_lossy(text[1].data, text[1].len));
    if (s->stage == FRAME_STAGE_COMPILE || s->compiled)
        failed = failed || json_object_set_new(o, "compile", compile_json(s));
    failed = failed || json_object_set_new(o, "artifacts", json_array());
    failed = failed || json_object_set_new(o, "artifactsTruncated", json_false());
    return failed ? -ENOMEM : json_print(ret, o);
}

static int publish_once(struct session *s)
{
    cleanup_buf struct buf text;
    buf_init(&text, SIZE_MAX / 2); /* bounded by the output budget */
    struct job_end end = {.report = s->report};
    job_result_from_report(&s->report, &end.result, &end.state);
    if (s->spec->collect_output) {
        int r = run_result(s, &end.result, &text);
        if (r < 0)
            return r;
        end.output_json = buf_span(&text);
    }
    return bus_finish(s->options->bus, s->fence, &end);
}

/* Every job ends with its one result: where memory is short that is worth waiting for. */
static void publish(struct session *s)
{
    int r = -ENOMEM;
    for (int i = 0; r < 0 && i < PUBLISH_TRIES; i++) {
        if (i > 0)
            (void)poll(NULL, 0, PUBLISH_WAIT_MS);
        r = publish_once(s);
    }
    if (r < 0)
        log_error("session.result_lost", LOG_STR("job_id", s->spec->id), LOG_INT("errno", -r));
    else if (r == BUS_FENCED)
        log_warn("session.fenced", LOG_STR("job_id", s->spec->id));
}

void session_finish(struct session *s)
{
    /* First what people watch, then the slow part. */
    if (output_end(&s->output) != 0)
        s->report.output_lost = true;
    struct err err = {0};
    struct verdict v = {.memory_peak_bytes = -1, .cpu_us = -1, .pids_peak = -1};
    if (s->sandbox && sandbox_close(s->sandbox, &v, &err) < 0)
        log_error("session.close_failed", LOG_STR("job_id", s->spec->id), LOG_ERR(&err));
    s->sandbox = NULL;

    report_times(s);
    report_output(s);
    report_end(s);
    report_memory(s, &v);
    (void)snprintf(s->report.backend, sizeof(s->report.backend), "%s",
                   sandbox_backend_name(s->options->backend));
    (void)snprintf(s->report.runtime, sizeof(s->report.runtime), "%s",
                   sandbox_backend_runtime(s->options->backend));
    (void)snprintf(s->report.worker, sizeof(s->report.worker), "%s", s->options->worker_id);
    if (s->report.outcome == OUTCOME_SETUP_FAILED || s->report.outcome == OUTCOME_WORKER_LOST)
        log_warn("session.failed", LOG_STR("job_id", s->spec->id), LOG_ERR(&s->failure));
    publish(s);
    log_info("session.ended", LOG_STR("job_id", s->spec->id),
             LOG_STR("outcome", job_outcome_name(s->report.outcome)),
             LOG_INT("open_ms", s->report.open_ms == JOB_UNKNOWN ? -1 : s->report.open_ms),
             LOG_INT("run_ms", s->report.run_ms == JOB_UNKNOWN ? -1 : s->report.run_ms));
}
