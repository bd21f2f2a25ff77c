#include "bus/bus.h"

#include "bus_internal.h"

void bus_close(struct bus *b)
{
    b->ops->close(b);
}

int bus_drain(struct bus *b)
{
    return b->ops->drain(b);
}

void bus_free(struct bus *b)
{
    if (b)
        b->ops->free(b);
}

void bus_housekeep(struct bus *b)
{
    b->ops->housekeep(b);
}

int bus_submit_take(struct bus *b, struct job_spec *spec, struct err *err)
{
    return b->ops->submit_take(b, spec, err);
}

int bus_claim(struct bus *b, const char *worker_id, int64_t deadline_ms, struct claim *ret,
              struct err *err)
{
    return b->ops->claim(b, worker_id, deadline_ms, ret, err);
}

void claim_done(struct claim *c)
{
    job_spec_free(c->spec);
    *c = (struct claim){0};
}

void bus_counts(struct bus *b, struct bus_counts *ret)
{
    b->ops->counts(b, ret);
}

int bus_status(struct bus *b, const char *job, struct job_status *ret)
{
    return b->ops->status(b, job, ret);
}

int bus_status_set(struct bus *b, const struct fence *f, enum job_state state)
{
    return b->ops->status_set(b, f, state);
}

int bus_output(struct bus *b, const char *job, struct buf *ret)
{
    return b->ops->output(b, job, ret);
}

int bus_report(struct bus *b, const char *job, struct buf *ret)
{
    return b->ops->report(b, job, ret);
}

int bus_control_append(struct bus *b, const char *job, const struct control *c)
{
    return b->ops->control_append(b, job, c);
}

int bus_control_take(struct bus *b, const struct fence *f, size_t max_bytes,
                     struct control_batch *ret)
{
    return b->ops->control_take(b, f, max_bytes, ret);
}

void control_batch_done(struct control_batch *batch)
{
    free(batch->items);
    buf_done(&batch->bytes);
    *batch = (struct control_batch){0};
}

void bus_stdin_taken(struct bus *b, const struct fence *f, size_t n)
{
    b->ops->stdin_taken(b, f, n);
}

int bus_event_append(struct bus *b, const struct fence *f, const struct event *e, uint64_t *ret_id)
{
    return b->ops->event_append(b, f, e, ret_id);
}

int bus_event_read(struct bus *b, const char *job, uint64_t after, size_t max_bytes,
                   struct event_batch *ret)
{
    return b->ops->event_read(b, job, after, max_bytes, ret);
}

void event_batch_done(struct event_batch *batch)
{
    free(batch->items);
    buf_done(&batch->bytes);
    *batch = (struct event_batch){0};
}

int bus_finish(struct bus *b, const struct fence *f, const struct job_end *end)
{
    return b->ops->finish(b, f, end);
}

int bus_watcher_new(struct bus *b, struct bus_watcher **ret, struct err *err)
{
    return b->ops->watcher_new(b, ret, err);
}

void bus_watcher_free(struct bus_watcher *w)
{
    if (w)
        w->ops->watcher_free(w);
}

int bus_watcher_fd(const struct bus_watcher *w)
{
    return w->fd;
}

int bus_watch_add(struct bus_watcher *w, const char *job, enum bus_watch_kind kind, void *tag,
                  struct bus_watch **ret)
{
    return w->ops->watch_add(w, job, kind, tag, ret);
}

void bus_watch_remove(struct bus_watch *watch)
{
    if (watch)
        watch->ops->watch_remove(watch);
}

bool bus_watcher_next(struct bus_watcher *w, void **ret_tag)
{
    return w->ops->watcher_next(w, ret_tag);
}
