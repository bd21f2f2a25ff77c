/* bus/bus_internal.h - what an implementation of bus.h provides.
 *
 * bus.c does nothing but call through this table; each entry means what bus.h says of the function
 * of its name. An implementation embeds the three structs as first members of its own. */
#ifndef BUS_INTERNAL_H
#define BUS_INTERNAL_H

#include "bus/bus.h"

struct bus_ops {
    void (*close)(struct bus *b);
    int (*drain)(struct bus *b);
    void (*free)(struct bus *b);
    void (*housekeep)(struct bus *b);

    int (*submit_take)(struct bus *b, struct job_spec *spec, struct err *err);
    int (*claim)(struct bus *b, const char *worker_id, int64_t deadline_ms, struct claim *ret,
                 struct err *err);
    void (*counts)(struct bus *b, struct bus_counts *ret);

    int (*status)(struct bus *b, const char *job, struct job_status *ret);
    int (*status_set)(struct bus *b, const struct fence *f, enum job_state state);
    int (*output)(struct bus *b, const char *job, struct buf *ret);
    int (*report)(struct bus *b, const char *job, struct buf *ret);

    int (*control_append)(struct bus *b, const char *job, const struct control *c);
    int (*control_take)(struct bus *b, const struct fence *f, size_t max_bytes,
                        struct control_batch *ret);
    void (*stdin_taken)(struct bus *b, const struct fence *f, size_t n);

    int (*event_append)(struct bus *b, const struct fence *f, const struct event *e,
                        uint64_t *ret_id);
    int (*event_read)(struct bus *b, const char *job, uint64_t after, size_t max_bytes,
                      struct event_batch *ret);
    int (*finish)(struct bus *b, const struct fence *f, const struct job_end *end);

    int (*watcher_new)(struct bus *b, struct bus_watcher **ret, struct err *err);
    void (*watcher_free)(struct bus_watcher *w);
    int (*watch_add)(struct bus_watcher *w, const char *job, enum bus_watch_kind kind, void *tag,
                     struct bus_watch **ret);
    void (*watch_remove)(struct bus_watch *watch);
    bool (*watcher_next)(struct bus_watcher *w, void **ret_tag);
};

struct bus {
    const struct bus_ops *ops;
};

struct bus_watcher {
    const struct bus_ops *ops;
    int fd;
};

struct bus_watch {
    const struct bus_ops *ops;
};

#endif
