#include "memory_internal.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"

#define BUCKETS_MIN 64

/* ---- text ---- */

struct text *text_new(size_t len)
{
    size_t size;
    if (__builtin_add_overflow(sizeof(struct text), len, &size))
        return NULL;
    struct text *t = malloc(size);
    if (!t)
        return NULL;
    atomic_init(&t->refs, 1);
    t->len = len;
    return t;
}

struct text *text_from_json(json_t *value_consume)
{
    if (!value_consume)
        return NULL;
    struct text *t = NULL;
    size_t len = json_dumpb(value_consume, NULL, 0, JSON_COMPACT); /* 0: out of memory */
    if (len > 0)
        t = text_new(len);
    if (t && json_dumpb(value_consume, t->bytes, len, JSON_COMPACT) != len) {
        text_unref(t);
        t = NULL;
    }
    json_decref(value_consume);
    return t;
}

struct text *text_ref(struct text *t)
{
    (void)atomic_fetch_add(&t->refs, 1);
    return t;
}

void text_unref(struct text *t)
{
    if (t && atomic_fetch_sub(&t->refs, 1) == 1)
        free(t);
}

size_t text_size(const struct text *t)
{
    return t ? sizeof(*t) + t->len : 0;
}

/* ---- records ---- */

struct memory *memory_lock(struct bus *b)
{
    struct memory *m = (struct memory *)(void *)b;
    int r = pthread_mutex_lock(&m->lock);
    assert(r == 0);
    (void)r;
    return m;
}

struct record *record_new(void)
{
    struct record *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    link_init(&r->place_link);
    link_init(&r->data_link);
    link_init(&r->watches);
    control_log_init(&r->control);
    event_log_init(&r->log);
    return r;
}

void record_free(struct record *r)
{
    if (!r)
        return;
    assert(link_is_empty(&r->watches));
    job_spec_free(r->spec);
    control_log_done(&r->control);
    event_log_done(&r->log);
    text_unref(r->output);
    text_unref(r->report);
    free(r);
}

size_t record_data_size(const struct record *r)
{
    return r->log.size + text_size(r->output) + text_size(r->report);
}

void memory_stamp(struct record *r, enum job_state state)
{
    r->status.state = state;
    r->status.updated_at_ms = clock_realtime_ms();
}

/* FNV-1a; the ids stored are our own random ones, so nobody can choose them to collide. */
static struct record **bucket_of(const struct memory *m, const char *job)
{
    uint64_t h = 14695981039346656037U;
    for (const char *p = job; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211U;
    return &m->buckets[(h ^ h >> 32) & (m->buckets_len - 1)];
}

/* Without memory the chains just become longer. */
static void grow(struct memory *m)
{
    size_t old_len = m->buckets_len;
    struct record **old = m->buckets;
    struct record **buckets = calloc(old_len * 2, sizeof(struct record *));
    if (!buckets)
        return;
    m->buckets = buckets;
    m->buckets_len = old_len * 2;
    for (size_t i = 0; i < old_len; i++) {
        for (struct record *r = old[i], *next; r; r = next) {
            next = r->hash_next;
            struct record **bucket = bucket_of(m, r->status.id);
            r->hash_next = *bucket;
            *bucket = r;
        }
    }
    free((void *)old);
}

void memory_insert_locked(struct memory *m, struct record *r_take)
{
    if (m->records_len >= m->buckets_len)
        grow(m);
    struct record **bucket = bucket_of(m, r_take->status.id);
    r_take->hash_next = *bucket;
    *bucket = r_take;
    m->records_len++;
}

struct record *memory_find_locked(struct memory *m, const char *job)
{
    struct record *r = *bucket_of(m, job);
    while (r && strcmp(r->status.id, job) != 0)
        r = r->hash_next;
    return r;
}

static bool is_over(const struct memory *m, const struct record *r, int64_t ttl_ms)
{
    return r->place == PLACE_FINISHED && m->o.now_ms() - r->ended_ms >= ttl_ms;
}

struct record *memory_find_status_locked(struct memory *m, const char *job)
{
    struct record *r = memory_find_locked(m, job);
    return r && !is_over(m, r, m->o.job_ttl_ms) ? r : NULL;
}

static bool has_data(const struct memory *m, const struct record *r)
{
    return !r->data_gone && !is_over(m, r, m->o.result_ttl_ms);
}

struct record *memory_find_data_locked(struct memory *m, const char *job)
{
    struct record *r = memory_find_locked(m, job);
    return r && has_data(m, r) ? r : NULL;
}

struct record *memory_find_fenced_locked(struct memory *m, const struct fence *f)
{
    struct record *r = f->token != 0 ? memory_find_locked(m, f->job) : NULL;
    return r && r->token == f->token ? r : NULL;
}

/* ---- expiry and eviction ---- */

static void drop_data(struct memory *m, struct record *r)
{
    m->finished_bytes -= record_data_size(r);
    m->log_bytes -= record_data_size(r);
    event_log_done(&r->log);
    text_unref(ptr_take(&r->output));
    text_unref(ptr_take(&r->report));
    link_remove(&r->data_link);
    r->data_gone = true;
    memory_dirty_locked(r, BUS_WATCH_EVENTS);
}

static void drop_record(struct memory *m, struct record *r)
{
    if (!r->data_gone)
        drop_data(m, r);
    memory_orphan_locked(r);
    struct record **at = bucket_of(m, r->status.id);
    while (*at != r)
        at = &(*at)->hash_next;
    *at = r->hash_next;
    m->records_len--;
    m->ended--;
    link_remove(&r->place_link);
    record_free(r);
}

static bool is_too_much(const struct memory *m)
{
    return m->finished_bytes + m->ended * sizeof(struct record) > m->o.memory_max_bytes;
}

void memory_evict_locked(struct memory *m)
{
    while (is_too_much(m) && m->with_data.next != m->with_data.prev)
        drop_data(m, link_owner(m->with_data.next, struct record, data_link));
    while (m->ended > 1 && m->ended * sizeof(struct record) > m->o.memory_max_bytes)
        drop_record(m, link_owner(m->finished.next, struct record, place_link));
}

static void memory_housekeep(struct bus *b)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    for (struct link *l = m->with_data.next, *next; l != &m->with_data; l = next) {
        next = l->next;
        struct record *r = link_owner(l, struct record, data_link);
        if (!is_over(m, r, m->o.result_ttl_ms))
            break;
        drop_data(m, r);
    }
    for (struct link *l = m->finished.next, *next; l != &m->finished; l = next) {
        next = l->next;
        struct record *r = link_owner(l, struct record, place_link);
        if (!r->data_gone || !is_over(m, r, m->o.job_ttl_ms))
            break;
        drop_record(m, r);
    }
}

static void memory_counts(struct bus *b, struct bus_counts *ret)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    *ret = (struct bus_counts){
        .queued = m->queued,
        .active = m->active,
        .finished = m->ended,
        .log_bytes = m->log_bytes,
    };
}

/* ---- status, output, report ---- */

static int memory_status(struct bus *b, const char *job, struct job_status *ret)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    const struct record *r = memory_find_status_locked(m, job);
    if (!r)
        return BUS_NOT_FOUND;
    *ret = r->status;
    return 0;
}

static int memory_status_set(struct bus *b, const struct fence *f, enum job_state state)
{
    assert(!job_state_is_final(state)); /* only bus_finish() ends a job */
    cleanup_unlock struct memory *m = memory_lock(b);
    struct record *r = memory_find_fenced_locked(m, f);
    if (!r)
        return BUS_FENCED;
    memory_stamp(r, state);
    return 0;
}

static int find_text(struct bus *b, const char *job, size_t offset, struct text **ret)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    struct record *r = memory_find_locked(m, job);
    bool here = r && has_data(m, r);
    if (!r || (!here && is_over(m, r, m->o.job_ttl_ms)))
        return BUS_NOT_FOUND;
    struct text *t = here ? *(struct text **)(void *)((char *)r + offset) : NULL;
    if (!t)
        return BUS_OUTPUT_MISSING;
    *ret = text_ref(t);
    return 0;
}

/* The lock is not held while megabytes are copied. */
static int copy_text(struct bus *b, const char *job, size_t offset, struct buf *ret)
{
    cleanup_text struct text *t = NULL;
    int r = find_text(b, job, offset, &t);
    return r != 0 ? r : buf_append(ret, t->bytes, t->len);
}

static int memory_output(struct bus *b, const char *job, struct buf *ret)
{
    return copy_text(b, job, offsetof(struct record, output), ret);
}

static int memory_report(struct bus *b, const char *job, struct buf *ret)
{
    return copy_text(b, job, offsetof(struct record, report), ret);
}

/* ---- life ---- */

static void memory_close(struct bus *b)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    m->closed = true;
    (void)pthread_cond_broadcast(&m->changed); /* cannot fail for one that was initialised */
}

static void memory_free(struct bus *b)
{
    struct memory *m = (struct memory *)(void *)b;
    for (size_t i = 0; i < m->buckets_len; i++) {
        for (struct record *r = m->buckets[i], *next; r; r = next) {
            next = r->hash_next;
            memory_orphan_locked(r);
            record_free(r);
        }
    }
    free((void *)m->buckets);
    (void)pthread_cond_destroy(&m->changed); /* nobody uses either any more */
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

static const struct bus_ops ops = {
    .close = memory_close,
    .drain = memory_drain,
    .free = memory_free,
    .housekeep = memory_housekeep,
    .submit_take = memory_submit_take,
    .claim = memory_claim,
    .counts = memory_counts,
    .status = memory_status,
    .status_set = memory_status_set,
    .output = memory_output,
    .report = memory_report,
    .control_append = memory_control_append,
    .control_take = memory_control_take,
    .stdin_taken = memory_stdin_taken,
    .event_append = memory_event_append,
    .event_read = memory_event_read,
    .finish = memory_finish,
    .watcher_new = memory_watcher_new,
    .watcher_free = memory_watcher_free,
    .watch_add = memory_watch_add,
    .watch_remove = memory_watch_remove,
    .watcher_next = memory_watcher_next,
};

static int check_options(const struct bus_memory_options *o, struct err *err)
{
    if (o->queue_depth_max < 1)
        return err_set(err, -EINVAL, "queue_depth_max must be at least 1");
    if (o->job_ttl_ms < 1)
        return err_set(err, -EINVAL, "job_ttl_ms is %lld, must be at least 1",
                       (long long)o->job_ttl_ms);
    if (o->result_ttl_ms < 1)
        return err_set(err, -EINVAL, "result_ttl_ms is %lld, must be at least 1",
                       (long long)o->result_ttl_ms);
    if (o->memory_max_bytes < 1)
        return err_set(err, -EINVAL, "memory_max_bytes must be at least 1");
    return 0;
}

static int init_changed(struct memory *m)
{
    pthread_condattr_t attr;
    int r = pthread_condattr_init(&attr);
    if (r != 0)
        return -r;
    r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (r == 0)
        r = pthread_cond_init(&m->changed, &attr);
    (void)pthread_condattr_destroy(&attr); /* nothing to be done about a failure here */
    return -r;
}

int bus_memory_new(const struct bus_memory_options *o, struct bus **ret, struct err *err)
{
    int r = check_options(o, err);
    if (r < 0)
        return r;
    cleanup_free struct memory *m = calloc(1, sizeof(*m));
    cleanup_free struct record **buckets = calloc(BUCKETS_MIN, sizeof(struct record *));
    if (!m || !buckets)
        return err_set(err, -ENOMEM, "memory bus");
    r = init_changed(m);
    if (r < 0)
        return err_set(err, r, "memory bus: condition variable");
    r = -pthread_mutex_init(&m->lock, NULL);
    if (r < 0) {
        (void)pthread_cond_destroy(&m->changed);
        return err_set(err, r, "memory bus: mutex");
    }
    m->bus.ops = &ops;
    m->o = *o;
    if (!m->o.now_ms)
        m->o.now_ms = clock_now_ms;
    m->buckets = ptr_take(&buckets);
    m->buckets_len = BUCKETS_MIN;
    link_init(&m->queue);
    link_init(&m->finished);
    link_init(&m->with_data);
    *ret = &ptr_take(&m)->bus;
    return 0;
}
