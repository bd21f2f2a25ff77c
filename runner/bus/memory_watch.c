#include "memory_internal.h"

#include <errno.h>

#include "base/fd.h"

/* A watch is in three lists: its watcher's, its record's (until that goes away), and, while it is
 * dirty, the watcher's queue of dirty ones. All of them, and the descriptor's state, belong to the
 * bus's lock: the descriptor is readable exactly while that queue has one. */

struct watcher {
    struct bus_watcher base;
    struct memory *memory;
    struct link watches;
    struct link dirty;
};

struct watch {
    struct bus_watch base;
    struct watcher *watcher;
    struct link watcher_link;
    struct link record_link;
    struct link dirty_link;
    enum bus_watch_kind kind;
    void *tag;
};

static struct watcher *watcher_of(struct bus_watcher *w)
{
    return (struct watcher *)(void *)w;
}

static void mark(struct watch *watch)
{
    struct watcher *w = watch->watcher;
    if (!link_is_empty(&watch->dirty_link))
        return;
    /* Does not block, and the lock is what keeps the watcher from going away meanwhile. */
    if (link_is_empty(&w->dirty))
        fd_notify(w->base.fd);
    link_append(&w->dirty, &watch->dirty_link);
}

static void unmark(struct watch *watch)
{
    if (link_is_empty(&watch->dirty_link))
        return;
    link_remove(&watch->dirty_link);
    if (link_is_empty(&watch->watcher->dirty))
        fd_drain(watch->watcher->base.fd);
}

void memory_dirty_locked(struct record *r, enum bus_watch_kind kind)
{
    for (struct link *l = r->watches.next; l != &r->watches; l = l->next) {
        struct watch *watch = link_owner(l, struct watch, record_link);
        if (watch->kind == kind)
            mark(watch);
    }
}

void memory_orphan_locked(struct record *r)
{
    while (!link_is_empty(&r->watches)) {
        struct watch *watch = link_owner(r->watches.next, struct watch, record_link);
        link_remove(&watch->record_link);
        mark(watch);
    }
}

int memory_watcher_new(struct bus *b, struct bus_watcher **ret, struct err *err)
{
    cleanup_free struct watcher *w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(err, -ENOMEM, "watcher");
    w->base.fd = fd_eventfd();
    if (w->base.fd < 0)
        return err_set(err, w->base.fd, "watcher: eventfd");
    w->base.ops = b->ops;
    w->memory = (struct memory *)(void *)b;
    link_init(&w->watches);
    link_init(&w->dirty);
    *ret = &ptr_take(&w)->base;
    return 0;
}

static void watch_free(struct watch *watch)
{
    unmark(watch);
    link_remove(&watch->record_link);
    link_remove(&watch->watcher_link);
    free(watch);
}

static void remove_all(struct watcher *w)
{
    cleanup_unlock struct memory *m = memory_lock(&w->memory->bus);
    for (struct link *l = w->watches.next, *next; l != &w->watches; l = next) {
        next = l->next;
        watch_free(link_owner(l, struct watch, watcher_link));
    }
}

void memory_watcher_free(struct bus_watcher *base)
{
    struct watcher *w = watcher_of(base);
    remove_all(w);
    cleanup_close_slot(&w->base.fd);
    free(w);
}

int memory_watch_add(struct bus_watcher *base, const char *job, enum bus_watch_kind kind, void *tag,
                     struct bus_watch **ret)
{
    struct watcher *w = watcher_of(base);
    cleanup_free struct watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return -ENOMEM;
    cleanup_unlock struct memory *m = memory_lock(&w->memory->bus);
    struct record *r = kind == BUS_WATCH_EVENTS ? memory_find_data_locked(m, job)
                                                : memory_find_status_locked(m, job);
    if (!r)
        return BUS_NOT_FOUND;
    watch->base.ops = w->base.ops;
    watch->watcher = w;
    watch->kind = kind;
    watch->tag = tag;
    link_init(&watch->dirty_link);
    link_append(&w->watches, &watch->watcher_link);
    link_append(&r->watches, &watch->record_link);
    mark(watch);
    *ret = &ptr_take(&watch)->base;
    return 0;
}

void memory_watch_remove(struct bus_watch *base)
{
    struct watch *watch = (struct watch *)(void *)base;
    cleanup_unlock struct memory *m = memory_lock(&watch->watcher->memory->bus);
    watch_free(watch);
}

bool memory_watcher_next(struct bus_watcher *base, void **ret_tag)
{
    struct watcher *w = watcher_of(base);
    cleanup_unlock struct memory *m = memory_lock(&w->memory->bus);
    if (link_is_empty(&w->dirty))
        return false;
    struct watch *watch = link_owner(w->dirty.next, struct watch, dirty_link);
    unmark(watch);
    *ret_tag = watch->tag;
    return true;
}
