#include "memory_internal.h"

#include <assert.h>
#include <errno.h>

/* A job's log is a list of blocks that double from small (most jobs say one line) to 64 KiB; an
 * event lies in one block as its head and its bytes. Ids are not stored: a block knows its
 * first. */

#define BLOCK_MIN 512
#define BLOCK_MAX 65536

struct log_block {
    struct log_block *next;
    uint64_t first_id;
    size_t events;
    size_t used;
    size_t cap;
    char bytes[];
};

struct head {
    uint64_t seq;
    uint32_t len;
    uint32_t type;
};

void event_log_init(struct event_log *log)
{
    *log = (struct event_log){0};
    log->tail_slot = &log->head;
}

void event_log_done(struct event_log *log)
{
    for (struct log_block *block = log->head, *next; block; block = next) {
        next = block->next;
        log_block_free(block);
    }
    event_log_init(log);
}

void log_block_free(struct log_block *block)
{
    free(block);
}

/* ---- append ---- */

static struct log_block *block_alloc(size_t cap)
{
    struct log_block *block = malloc(sizeof(*block) + cap);
    if (block)
        *block = (struct log_block){.cap = cap};
    return block;
}

static size_t block_size(const struct log_block *block)
{
    return sizeof(*block) + block->cap;
}

static void block_put(struct log_block *block, const struct event *e)
{
    const struct head head = {e->seq, (uint32_t)e->data.len, (uint32_t)e->type};
    assert(block->cap - block->used >= sizeof(head) + e->data.len);
    memcpy(block->bytes + block->used, &head, sizeof(head));
    block->used += sizeof(head);
    if (e->data.len > 0)
        memcpy(block->bytes + block->used, e->data.ptr, e->data.len);
    block->used += e->data.len;
    block->events++;
}

static void link_block(struct event_log *log, struct log_block *block)
{
    if (log->tail)
        log->tail_slot = &log->tail->next;
    *log->tail_slot = block;
    log->tail = block;
    block->first_id = log->last_id + 1;
    log->last_id += block->events;
    log->size += block_size(block);
}

static size_t next_cap(const struct event_log *log, size_t need)
{
    size_t cap = log->tail ? log->tail->cap * 2 : BLOCK_MIN;
    if (cap < BLOCK_MIN)
        cap = BLOCK_MIN;
    if (cap > BLOCK_MAX)
        cap = BLOCK_MAX;
    return cap < need ? need : cap;
}

int event_log_append(struct event_log *log, const struct event *e)
{
    if (e->data.len > BUS_LOG_BYTES_MAX)
        return -ENOSPC;
    size_t need = sizeof(struct head) + e->data.len;
    if (log->tail && log->tail->cap - log->tail->used >= need) {
        block_put(log->tail, e);
        log->last_id++;
        return 0;
    }
    size_t cap = next_cap(log, need);
    if (log->size + sizeof(struct log_block) + cap > BUS_LOG_BYTES_MAX)
        return -ENOSPC;
    struct log_block *block = block_alloc(cap);
    if (!block)
        return -ENOMEM;
    block_put(block, e);
    link_block(log, block);
    return 0;
}

struct log_block *log_block_new(const struct event *events, size_t n)
{
    size_t cap = 0;
    for (size_t i = 0; i < n; i++) {
        if (events[i].data.len > UINT32_MAX)
            return NULL;
        cap += sizeof(struct head) + events[i].data.len;
    }
    struct log_block *block = block_alloc(cap);
    for (size_t i = 0; block && i < n; i++)
        block_put(block, &events[i]);
    return block;
}

/* A finished log is kept for a while and gets no more events: give the unused room back. */
static void trim_tail(struct event_log *log)
{
    struct log_block *tail = log->tail;
    if (!tail || tail->used == tail->cap)
        return;
    size_t unused = tail->cap - tail->used;
    struct log_block *trimmed = realloc(tail, sizeof(*tail) + tail->used);
    if (!trimmed)
        return; /* the block is as good as before */
    trimmed->cap = trimmed->used;
    *log->tail_slot = trimmed;
    log->tail = trimmed;
    log->size -= unused;
}

void event_log_finish(struct event_log *log, struct log_block *last_take)
{
    trim_tail(log);
    link_block(log, last_take);
    log->complete = true;
}

int memory_event_append(struct bus *b, const struct fence *f, const struct event *e,
                        uint64_t *ret_id)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    struct record *r = memory_find_fenced_locked(m, f);
    if (!r)
        return BUS_FENCED;
    size_t before = r->log.size;
    int error = event_log_append(&r->log, e);
    if (error < 0)
        return error;
    m->log_bytes += r->log.size - before;
    if (ret_id)
        *ret_id = r->log.last_id;
    memory_dirty_locked(r, BUS_WATCH_EVENTS);
    return 0;
}

/* ---- read ---- */

struct cursor {
    const struct log_block *block;
    size_t at; /* in block->bytes */
    uint64_t id;
};

/* The event at the cursor, its data inside the block; false: none left. */
static bool cursor_next(struct cursor *c, struct event *ret)
{
    if (c->block && c->at == c->block->used) {
        c->block = c->block->next;
        c->at = 0;
    }
    if (!c->block)
        return false;
    struct head head;
    memcpy(&head, c->block->bytes + c->at, sizeof(head));
    *ret = (struct event){
        .type = (enum event_type)head.type,
        .id = c->id++,
        .seq = head.seq,
        .data = {c->block->bytes + c->at + sizeof(head), head.len},
    };
    c->at += sizeof(head) + head.len;
    return true;
}

/* Stands before the event with id after + 1. Live readers want the tail, so that is tried first. */
static struct cursor cursor_after(const struct event_log *log, uint64_t after)
{
    if (after >= log->last_id)
        return (struct cursor){0};
    const struct log_block *block = log->tail;
    if (after + 1 < block->first_id) {
        block = log->head;
        while (after + 1 >= block->first_id + block->events)
            block = block->next;
    }
    struct cursor c = {.block = block, .id = block->first_id};
    struct event skipped;
    while (c.id <= after)
        (void)cursor_next(&c, &skipped);
    return c;
}

static int copy_events(const struct event_log *log, uint64_t after, size_t max_bytes,
                       struct event_batch *ret)
{
    const struct cursor start = cursor_after(log, after);
    if (!start.block) {
        ret->end = log->complete;
        return 0;
    }
    size_t n = 0;
    size_t bytes = 0;
    size_t cost = 0;
    struct event e;
    for (struct cursor c = start; cursor_next(&c, &e); n++) {
        cost += sizeof(e) + e.data.len;
        if (n > 0 && cost > max_bytes)
            break;
        bytes += e.data.len;
    }

    assert(n > 0);
    buf_init(&ret->bytes, bytes);
    char *to = buf_reserve(&ret->bytes, bytes);
    ret->items = calloc(n, sizeof(*ret->items));
    if (!to || !ret->items)
        return -ENOMEM;
    struct cursor c = start;
    for (; ret->len < n && cursor_next(&c, &e); ret->len++) {
        memcpy(to, e.data.ptr, e.data.len);
        e.data.ptr = to;
        to += e.data.len;
        ret->items[ret->len] = e;
    }
    buf_commit(&ret->bytes, bytes);
    ret->end = log->complete && ret->items[n - 1].id == log->last_id;
    return 0;
}

int memory_event_read(struct bus *b, const char *job, uint64_t after, size_t max_bytes,
                      struct event_batch *ret)
{
    cleanup_unlock struct memory *m = memory_lock(b);
    const struct record *r = memory_find_data_locked(m, job);
    if (!r)
        return BUS_NOT_FOUND;
    struct event_batch batch = {0};
    int error = copy_events(&r->log, after, max_bytes, &batch);
    if (error < 0) {
        event_batch_done(&batch);
        return error;
    }
    *ret = batch;
    return 0;
}
