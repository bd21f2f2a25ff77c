#include "memory_internal.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"

/* ---- submit and claim ---- */

static struct record *record_for(const struct job_spec *spec)
{
    struct record *r = record_new();
    if (!r)
        return NULL;
    /* Names that long do not exist; the status would show their beginning. */
    (void)snprintf(r->status.id, sizeof(r->status.id), "%s", spec->id);
    (void)snprintf(r->status.language, sizeof(r->status.language), "%s", spec->language);
    (void)snprintf(r->status.version, sizeof(r->status.version), "%s", spec->version);
    memory_stamp(r, JOB_QUEUED);
    return r;
}

int memory_submit_take(struct bus *b, struct job_spec *spec, struct err *err)
{
    cleanup_record struct record *r = record_for(spec);
    if (!r)
        return err_set(err, -ENOMEM, "job %s", spec->id);

    cleanup_unlock struct memory *m = memory_lock(b);
    if (m->closed)
        return BUS_CLOSED;
    if (memory_find_locked(m, spec->id))
        return err_set(err, -EEXIST, "job %s", spec->id);
    if (m->queued >= m->o.queue_depth_max)
        return BUS_FULL;
    r->spec = spec;
    r->place = PLACE_QUEUED;
    r->accepted_ms = m->o.now_ms();
    link_append(&m->queue, &r->place_link);
    m->queued++;
    memory_insert_locked(m, ptr_take(&r));
    (void)pthread_cond_signal(&m->changed); /* cannot fail for one that was initialised */
    return 0;
}

/* Waits for a first record in the queue; NULL when the deadline has passed or the bus is closed. */
static struct record *wait_for_job(struct memory *m, int64_t deadline_ms)
{
    if (deadline_ms < 0)
        deadline_ms = 0;
    const struct timespec until = {
        .tv_sec = (time_t)(deadline_ms / 1000),
        .tv_nsec = (long)(deadline_ms % 1000) * 1000000,
    };
    while (!m->closed && link_is_empty(&m->queue)) {
        if (deadline_ms == DEADLINE_NEVER)
            (void)pthread_cond_wait(&m->changed,
                                    &m->lock); /* the loop looks again whatever it is */
        else if (pthread_cond_timedwait(&m->changed, &m->lock, &until) != 0)
            break;
    }
    if (m->closed || link_is_empty(&m->queue))
        return NULL;
    return link_owner(m->queue.next, struct record, place_link);
}

int memory_claim(struct bus *b, const char *worker_id, int64_t deadline_ms, struct claim *ret,
                 struct err *err)
{
    /* Here a worker dies with the records, so nobody needs to know whose they were. */
    (void)worker_id;
    (void)err;
    cleanup_unlock struct memory *m = memory_lock(b);
    struct record *r = wait_for_job(m, deadline_ms);
    if (!r)
        return m->closed ? BUS_CLOSED : BUS_TIMEOUT;
    link_remove(&r->place_link);
    m->queued--;
    m->active++;
    r->place = PLACE_ACTIVE;
    r->token = ++m->last_token;
    *ret = (struct claim){
        .fence.token = r->token,
        .spec = ptr_take(&r->spec),
        .queue_ms = m->o.now_ms() - r->accepted_ms,
    };
    memcpy(ret->fence.job, r->status.id, sizeof(ret->fence.job));
    return 0;
}

/* ---- the end ---- */

/* What the end of a job stores, made before anything is changed. */
struct ending {
    enum job_state state;
    struct text *output; /* NULL: not collected */
    struct text *report;
    struct log_block *last; /* report, result, artifacts */
};

static void ending_done(struct ending *e)
{
    text_unref(e->output);
    text_unref(e->report);
    log_block_free(e->last);
}
#define cleanup_ending CLEANUP(ending_done)

static struct log_block *last_block(const struct job_end *end, const struct text *report,
                                    const struct text *result)
{
    size_t n = 2 + end->artifacts_len;
    cleanup_free struct event *events = calloc(n, sizeof(*events));
    if (!events)
        return NULL;
    events[0] = (struct event){.type = EVENT_REPORT, .data = {report->bytes, report->len}};
    events[1] = (struct event){.type = EVENT_RESULT, .data = {result->bytes, result->len}};
    for (size_t i = 0; i < end->artifacts_len; i++)
        events[2 + i] = (struct event){.type = EVENT_ARTIFACT, .data = end->artifacts[i]};
    return log_block_new(events, n);
}

static int ending_make(const struct job_end *end, struct ending *ret)
{
    assert(job_state_is_final(end->state));
    ret->state = end->state;
    if (end->output_json.ptr) {
        ret->output = text_new(end->output_json.len);
        if (!ret->output)
            return -ENOMEM;
        memcpy(ret->output->bytes, end->output_json.ptr, end->output_json.len);
    }
    ret->report = text_from_json(job_report_json(&end->report));
    cleanup_text struct text *result = text_from_json(job_result_json(&end->result));
    if (!ret->report || !result)
        return -ENOMEM;
    ret->last = last_block(end, ret->report, result);
    return ret->last ? 0 : -ENOMEM;
}

/* Cannot fail: all that was needed is in e. */
static void end_record(struct memory *m, struct record *r, struct ending *e)
{
    m->log_bytes -= record_data_size(r);
    event_log_finish(&r->log, ptr_take(&e->last));
    r->output = ptr_take(&e->output);
    r->report = ptr_take(&e->report);
    m->log_bytes += record_data_size(r);
    m->finished_bytes += record_data_size(r);

    control_log_done(&r->control);
    job_spec_free(ptr_take(&r->spec));
    link_remove(&r->place_link);
    if (r->place == PLACE_QUEUED)
        m->queued--;
    else
        m->active--;
    r->place = PLACE_FINISHED;
    r->token = 0;
    r->ended_ms = m->o.now_ms();
    m->ended++;
    link_append(&m->finished, &r->place_link);
    link_append(&m->with_data, &r->data_link);
    memory_stamp(r, e->state);
    memory_dirty_locked(r, BUS_WATCH_EVENTS);
    memory_evict_locked(m);
}

int memory_finish(struct bus *b, const struct fence *f, const struct job_end *end)
{
    cleanup_ending struct ending e = {0};
    int error = ending_make(end, &e);
    if (error < 0)
        return error;
    cleanup_unlock struct memory *m = memory_lock(b);
    struct record *r = memory_find_fenced_locked(m, f);
    if (!r)
        return BUS_FENCED;
    end_record(m, r, &e);
    return 0;
}

/* ---- jobs nobody claimed ---- */

/* The RunResult of a job that never ran. */
static struct text *empty_output(const struct job_result *result)
{
    json_auto_t *o = job_result_json(result);
    if (!o || json_object_set_new(o, "stdout", json_string("")) < 0 ||
        json_object_set_new(o, "stderr", json_string("")) < 0 ||
        json_object_set_new(o, "artifacts", json_array()) < 0 ||
        json_object_set_new(o, "artifactsTruncated", json_false()) < 0)
        return NULL;
    return text_from_json(json_incref(o));
}

int memory_end_queued_locked(struct memory *m, struct record *r, enum job_outcome outcome,
                             const char *reason)
{
    struct job_end end = {0};
    job_report_init(&end.report);
    end.report.outcome = outcome;
    (void)snprintf(end.report.reason, sizeof(end.report.reason), "%s", reason); /* ours, short */
    job_result_from_report(&end.report, &end.result, &end.state);

    cleanup_ending struct ending e = {0};
    int error = ending_make(&end, &e);
    if (error < 0)
        return error;
    if (r->spec->collect_output) {
        e.output = empty_output(&end.result);
        if (!e.output)
            return -ENOMEM;
    }
    end_record(m, r, &e);
    return 0;
}

static int drain_one(struct bus *b)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    if (link_is_empty(&m->queue))
        return 0;
    struct record *r = link_owner(m->queue.next, struct record, place_link);
    int error = memory_end_queued_locked(m, r, OUTCOME_DRAINED,
                                         "The server stopped before the job was started.");
    return error < 0 ? error : 1;
}

int memory_drain(struct bus *b)
{
    int drained = 0;
    for (;;) {
        int r = drain_one(b); /* the lock is free in between */
        if (r <= 0)
            return r < 0 ? r : drained;
        drained++;
    }
}
