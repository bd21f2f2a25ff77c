#include "memory_internal.h"

#include <errno.h>

#define ITEMS_MIN 4

void control_log_init(struct control_log *log)
{
    *log = (struct control_log){.rate_second = INT64_MIN};
    buf_init(&log->stdin_bytes, BUS_STDIN_PENDING_MAX);
}

void control_log_done(struct control_log *log)
{
    free(log->items);
    buf_done(&log->stdin_bytes);
    control_log_init(log);
}

/* ---- append ---- */

static int make_room(struct control_log *log)
{
    if (log->len < log->cap)
        return 0;
    /* Bounded: start and EOF once, BUS_CONTROL_MAX signals, and joined stdin between them. */
    size_t cap = log->cap ? log->cap * 2 : ITEMS_MIN;
    struct control_item *items = reallocarray(log->items, cap, sizeof(*items));
    if (!items)
        return -ENOMEM;
    log->items = items;
    log->cap = cap;
    return 0;
}

static int append_once(struct control_log *log, enum control_type type, bool *seen)
{
    if (*seen)
        return 0;
    int r = make_room(log);
    if (r < 0)
        return r;
    log->items[log->len++] = (struct control_item){.type = type};
    *seen = true;
    return 0;
}

static int append_signal(struct control_log *log, int signal)
{
    if (log->signals >= BUS_CONTROL_MAX)
        return BUS_CONTROL_FULL;
    int r = make_room(log);
    if (r < 0)
        return r;
    log->items[log->len++] = (struct control_item){.type = CONTROL_SIGNAL, .signal = signal};
    log->signals++;
    return 0;
}

static bool is_too_fast(struct control_log *log, int64_t now_ms)
{
    int64_t second = now_ms / 1000;
    if (log->rate_second != second) {
        log->rate_second = second;
        log->rate_frames = 0;
    }
    if (log->rate_frames >= BUS_STDIN_RATE_MAX)
        return true;
    log->rate_frames++;
    return false;
}

static int append_stdin(struct control_log *log, struct span data, int64_t now_ms)
{
    if (is_too_fast(log, now_ms))
        return BUS_STDIN_RATE;
    if (log->eof)
        return BUS_STDIN_CLOSED;
    if (data.len == 0)
        return 0;
    if (data.len > BUS_STDIN_PENDING_MAX - log->stdin_pending)
        return BUS_STDIN_PENDING;
    int r = make_room(log);
    if (r == 0)
        r = buf_append(&log->stdin_bytes, data.ptr, data.len);
    if (r < 0)
        return r;
    if (log->len == 0 || log->items[log->len - 1].type != CONTROL_STDIN)
        log->items[log->len++] = (struct control_item){.type = CONTROL_STDIN};
    log->items[log->len - 1].len += data.len;
    log->stdin_pending += data.len;
    return 0;
}

static int append_kill(struct memory *m, struct record *r)
{
    if (r->place == PLACE_QUEUED)
        return memory_end_queued_locked(m, r, OUTCOME_KILLED,
                                        "The job was killed before it was started.");
    r->control.kill = true;
    return 0;
}

static int append(struct memory *m, struct record *r, const struct control *c)
{
    switch (c->type) {
    case CONTROL_START:
        return append_once(&r->control, c->type, &r->control.start);
    case CONTROL_STDIN_EOF:
        return append_once(&r->control, c->type, &r->control.eof);
    case CONTROL_SIGNAL:
        return append_signal(&r->control, c->signal);
    case CONTROL_STDIN:
        return append_stdin(&r->control, c->data, m->o.now_ms());
    case CONTROL_KILL:
        return append_kill(m, r);
    }
    return -EINVAL;
}

int memory_control_append(struct bus *b, const char *job, const struct control *c)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    struct record *r = memory_find_status_locked(m, job);
    if (!r)
        return BUS_NOT_FOUND;
    if (r->place == PLACE_FINISHED)
        return BUS_ENDED;
    size_t items = r->control.len;
    size_t bytes = r->control.stdin_bytes.len;
    bool kill = r->control.kill;
    int result = append(m, r, c);
    if (r->control.len > items || r->control.stdin_bytes.len > bytes || r->control.kill != kill)
        memory_dirty_locked(r, BUS_WATCH_CONTROL);
    return result;
}

/* ---- take ---- */

/* How much of the log fits: whole items, then perhaps the beginning of one. */
struct portion {
    size_t items; /* the last one may be a part */
    size_t bytes;
    size_t left; /* bytes of that last item that stay */
};

static struct portion measure(const struct control_log *log, size_t max_bytes)
{
    struct portion p = {0};
    for (size_t i = 0; i < log->len && p.left == 0; i++) {
        size_t len = log->items[i].len;
        size_t room = max_bytes - p.bytes;
        if (len > 0 && room == 0)
            break;
        size_t taken = len < room ? len : room;
        p.items++;
        p.bytes += taken;
        p.left = len - taken;
    }
    return p;
}

static int copy_out(const struct control_log *log, const struct portion *p,
                    struct control_batch *ret)
{
    *ret = (struct control_batch){.kill = log->kill};
    buf_init(&ret->bytes, p->bytes);
    if (p->items == 0)
        return 0;
    ret->items = calloc(p->items, sizeof(*ret->items));
    if (!ret->items)
        return -ENOMEM;
    int r = p->bytes > 0 ? buf_append(&ret->bytes, log->stdin_bytes.data, p->bytes) : 0;
    if (r < 0) {
        free(ptr_take(&ret->items));
        return r;
    }
    const char *at = ret->bytes.data;
    for (size_t i = 0; i < p->items; i++) {
        const struct control_item *from = &log->items[i];
        size_t len = from->len - (i + 1 == p->items ? p->left : 0);
        ret->items[i] = (struct control){.type = from->type, .signal = from->signal};
        if (from->type == CONTROL_STDIN) {
            ret->items[i].data = (struct span){at, len};
            at += len;
        }
    }
    ret->len = p->items;
    return 0;
}

static void forget(struct control_log *log, const struct portion *p)
{
    size_t whole = p->items - (p->left > 0);
    for (size_t i = 0; i < whole; i++)
        log->signals -= log->items[i].type == CONTROL_SIGNAL;
    if (p->left > 0)
        log->items[whole].len = p->left;
    if (whole > 0)
        memmove(log->items, log->items + whole, (log->len - whole) * sizeof(*log->items));
    log->len -= whole;
    if (p->bytes > 0)
        buf_consume(&log->stdin_bytes, p->bytes);
}

int memory_control_take(struct bus *b, const struct fence *f, size_t max_bytes,
                        struct control_batch *ret)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    struct record *r = memory_find_fenced_locked(m, f);
    if (!r)
        return BUS_FENCED;
    const struct portion p = measure(&r->control, max_bytes);
    struct control_batch batch;
    int error = copy_out(&r->control, &p, &batch);
    if (error < 0)
        return error;
    forget(&r->control, &p);
    *ret = batch;
    return 0;
}

void memory_stdin_taken(struct bus *b, const struct fence *f, size_t n)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    struct record *r = memory_find_fenced_locked(m, f);
    if (!r)
        return;
    size_t handed_out = r->control.stdin_pending - r->control.stdin_bytes.len;
    r->control.stdin_pending -= n < handed_out ? n : handed_out;
    if (r->control.len > 0)
        memory_dirty_locked(r, BUS_WATCH_CONTROL);
}
