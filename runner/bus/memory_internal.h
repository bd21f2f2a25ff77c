/* bus/memory_internal.h - the memory implementation, shared by its four files.
 *
 * One lock guards everything below struct memory; nothing blocks under it, and what is copied under
 * it is bounded by the caller's max_bytes or by BUS_STDIN_PENDING_MAX. Functions named
 * memory_*_locked expect it held.
 *
 *     memory.c          records: table, expiry, eviction, status, output, report
 *     memory_queue.c    submit, claim, finish, drain: how a record moves on
 *     memory_control.c  control log of a record
 *     memory_log.c      event log of a record
 *     memory_watch.c    watchers
 *
 * A record is queued, active or finished, in this order, and goes away some time after its end. */
#ifndef BUS_MEMORY_INTERNAL_H
#define BUS_MEMORY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "bus_internal.h"

/* ---- circular lists with a head; an unlinked link points to itself ---- */

struct link {
    struct link *prev, *next;
};

#define link_owner(l, type, field) ((type *)(void *)((char *)(l)-offsetof(type, field)))

static inline void link_init(struct link *l)
{
    l->prev = l->next = l;
}

static inline bool link_is_empty(const struct link *l)
{
    return l->next == l;
}

static inline void link_append(struct link *head, struct link *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

static inline void link_remove(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    link_init(l);
}

/* ---- bytes that are read outside the lock while the record may go away ---- */

struct text {
    atomic_uint refs;
    size_t len;
    char bytes[];
};
struct text *text_new(size_t len); /* one reference; NULL: out of memory */
struct text *text_from_json(json_t *value_consume);
struct text *text_ref(struct text *t);
void text_unref(struct text *t); /* NULL is fine */
DEFINE_CLEANUP(struct text *, text_unref)
#define cleanup_text CLEANUP(text_unref_slot)
size_t text_size(const struct text *t); /* bytes of memory; 0 for NULL */

/* ---- event log ---- */

struct log_block;
struct event_log {
    struct log_block *head;
    struct log_block *tail;
    struct log_block **tail_slot; /* what points to tail */
    uint64_t last_id;
    size_t size; /* bytes of memory of all blocks */
    bool complete;
};
void event_log_init(struct event_log *log);
void event_log_done(struct event_log *log);
int event_log_append(struct event_log *log, const struct event *e); /* 0, -ENOMEM, -ENOSPC */

/* A block made ahead for events whose bytes are known, so that linking it cannot fail. */
struct log_block *log_block_new(const struct event *events, size_t n); /* NULL: out of memory */
void log_block_free(struct log_block *block);
void event_log_finish(struct event_log *log, struct log_block *last_take);

/* ---- control log ---- */

struct control_item {
    enum control_type type;
    int signal;
    size_t len; /* CONTROL_STDIN: how many of the waiting bytes */
};
struct control_log {
    struct control_item *items;
    size_t len, cap;
    struct buf stdin_bytes; /* accepted, not handed out yet */
    size_t stdin_pending;   /* accepted, not taken by the program yet */
    size_t signals;         /* among items */
    int64_t rate_second;
    int rate_frames;
    bool start, eof, kill;
};
void control_log_init(struct control_log *log);
void control_log_done(struct control_log *log);

/* ---- records ---- */

enum place { PLACE_QUEUED, PLACE_ACTIVE, PLACE_FINISHED };

struct record {
    struct record *hash_next;
    struct link place_link; /* in memory.queue or memory.finished */
    struct link
        data_link; /* in memory.with_data once finished, while log, output, report are there */
    struct link watches;
    enum place place;
    struct job_status status;
    uint64_t token; /* of the one fence that is valid; 0: none */
    int64_t accepted_ms;
    int64_t ended_ms;
    struct job_spec *spec; /* until it is claimed */
    struct control_log control;
    struct event_log log;
    struct text *output;
    struct text *report;
    bool data_gone;
};

struct memory {
    struct bus bus;
    struct bus_memory_options o;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* queue has one more, or closed */
    bool closed;
    struct record **buckets;
    size_t buckets_len; /* a power of two */
    size_t records_len;
    struct link queue;     /* oldest first */
    struct link finished;  /* by their end, oldest first */
    struct link with_data; /* the same, those that still have their data */
    uint64_t queued, active, ended;
    uint64_t log_bytes;      /* data of all records */
    uint64_t finished_bytes; /* data of finished records */
    uint64_t last_token;
};

/* cleanup_unlock struct memory *m = memory_lock(b); */
struct memory *memory_lock(struct bus *b);
static inline void memory_unlock_slot(struct memory **m)
{
    (void)pthread_mutex_unlock(&(*m)->lock); /* fails only for a mutex that is not ours */
}
/* unused: some callers need the lock only. */
#define cleanup_unlock CLEANUP(memory_unlock_slot) __attribute__((unused))

struct record *record_new(void); /* NULL: out of memory */
void record_free(struct record *r);
DEFINE_CLEANUP(struct record *, record_free)
#define cleanup_record CLEANUP(record_free_slot)
size_t record_data_size(const struct record *r);

/* NULL: unknown. The second also when the status has expired, the third when the data has, the
 * fourth when the fence is not valid. */
struct record *memory_find_locked(struct memory *m, const char *job);
struct record *memory_find_status_locked(struct memory *m, const char *job);
struct record *memory_find_data_locked(struct memory *m, const char *job);
struct record *memory_find_fenced_locked(struct memory *m, const struct fence *f);
void memory_insert_locked(struct memory *m, struct record *r_take);
void memory_evict_locked(struct memory *m); /* down to memory_max_bytes */
void memory_stamp(struct record *r, enum job_state state);

/* Marks the watches of that kind; they get their turn in bus_watcher_next(). */
void memory_dirty_locked(struct record *r, enum bus_watch_kind kind);
/* The record goes away: its watches stay with their watcher, dirty. */
void memory_orphan_locked(struct record *r);

/* Ends a job no worker has claimed. 0, -ENOMEM (then nothing happened). */
int memory_end_queued_locked(struct memory *m, struct record *r, enum job_outcome outcome,
                             const char *reason);

/* The entries of the ops table that are not in memory.c. */
int memory_submit_take(struct bus *b, struct job_spec *spec, struct err *err);
int memory_claim(struct bus *b, const char *worker_id, int64_t deadline_ms, struct claim *ret,
                 struct err *err);
int memory_finish(struct bus *b, const struct fence *f, const struct job_end *end);
int memory_drain(struct bus *b);
int memory_control_append(struct bus *b, const char *job, const struct control *c);
int memory_control_take(struct bus *b, const struct fence *f, size_t max_bytes,
                        struct control_batch *ret);
void memory_stdin_taken(struct bus *b, const struct fence *f, size_t n);
int memory_event_append(struct bus *b, const struct fence *f, const struct event *e,
                        uint64_t *ret_id);
int memory_event_read(struct bus *b, const char *job, uint64_t after, size_t max_bytes,
                      struct event_batch *ret);
int memory_watcher_new(struct bus *b, struct bus_watcher **ret, struct err *err);
void memory_watcher_free(struct bus_watcher *w);
int memory_watch_add(struct bus_watcher *w, const char *job, enum bus_watch_kind kind, void *tag,
                     struct bus_watch **ret);
void memory_watch_remove(struct bus_watch *watch);
bool memory_watcher_next(struct bus_watcher *w, void **ret_tag);

#endif
