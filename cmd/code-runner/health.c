#include "health.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define TICK_MS 1000

struct health {
    struct bus *bus;
    struct sandbox_backend *backend;
    const struct languages *languages;
    pthread_t thread;
    int stop_fd;
    pthread_mutex_t lock;
    json_t *checks; /* lock */
    bool swept;     /* thread only: what an earlier run left is gone */
};

static void add(json_t *checks, const char *name, const char *message)
{
    (void)json_array_append_new(
        checks, json_pack("{s:s, s:s, s:s}", "name", name, "status", "error", "message", message));
}

static bool is_first_of_image(const struct languages *l, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(l->items[i].image, l->items[at].image) == 0)
            return false;
    return true;
}

static void check_images(struct health *h, json_t *checks)
{
    for (size_t i = 0; i < h->languages->len; i++) {
        const struct language *l = &h->languages->items[i];
        struct err err = {0};
        if (is_first_of_image(h->languages, i) &&
            sandbox_backend_check_image(h->backend, l->image, &err) < 0)
            add(checks, l->name, err.msg);
    }
}

static void sweep(struct health *h)
{
    struct err err = {0};
    unsigned removed = 0;
    int r = sandbox_backend_sweep(h->backend, &removed, &err);
    h->swept = h->swept || r == 0;
    if (r < 0)
        log_warn("health.sweep_failed", LOG_ERR(&err));
    if (removed > 0)
        log_warn("health.leftovers_removed", LOG_INT("count", removed));
}

/* Says changes, not states: a daemon that is away for an hour is two lines. */
static void keep(struct health *h, json_t *checks)
{
    (void)pthread_mutex_lock(&h->lock);
    json_t *before = h->checks;
    h->checks = checks;
    (void)pthread_mutex_unlock(&h->lock);
    if (!json_equal(before, checks)) {
        size_t i;
        json_t *check;
        json_array_foreach(checks, i, check) log_warn(
            "health.failed", LOG_STR("check", json_string_value(json_object_get(check, "name"))),
            LOG_STR("message", json_string_value(json_object_get(check, "message"))));
        if (json_array_size(checks) == 0)
            log_info("health.ok");
    }
    json_decref(before);
}

static void check(struct health *h)
{
    json_t *checks = json_array();
    if (!checks)
        return; /* what was known stays known */
    struct err err = {0};
    if (sandbox_backend_check(h->backend, &err) < 0) {
        add(checks, sandbox_backend_name(h->backend), err.msg);
    } else {
        check_images(h, checks);
        sweep(h);
    }
    keep(h, checks);
}

static bool is_well(struct health *h)
{
    (void)pthread_mutex_lock(&h->lock);
    bool well = json_array_size(h->checks) == 0;
    (void)pthread_mutex_unlock(&h->lock);
    return well;
}

static void *health_main(void *arg)
{
    struct health *h = arg;
    int64_t checked_ms = clock_now_ms();
    struct pollfd p = {.fd = h->stop_fd, .events = POLLIN};
    while (poll(&p, 1, TICK_MS) <= 0) {
        bus_housekeep(h->bus);
        int64_t every_ms = is_well(h) ? HEALTH_CHECK_MS : HEALTH_RECHECK_MS;
        if (clock_now_ms() - checked_ms >= every_ms) {
            check(h);
            checked_ms = clock_now_ms();
        }
    }
    return NULL;
}

static void destroy(struct health *h)
{
    cleanup_close_slot(&h->stop_fd);
    json_decref(h->checks);
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}

int health_start(struct bus *bus, struct sandbox_backend *backend,
                 const struct languages *languages, struct health **ret, struct err *err)
{
    struct health *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(err, -ENOMEM, "health");
    h->bus = bus;
    h->backend = backend;
    h->languages = languages;
    (void)pthread_mutex_init(&h->lock, NULL); /* cannot fail on Linux */
    h->checks = json_array();
    h->stop_fd = fd_eventfd();
    int r = h->stop_fd < 0 ? h->stop_fd : h->checks ? 0 : -ENOMEM;
    if (r == 0) {
        check(h);
        r = -pthread_create(&h->thread, NULL, health_main, h);
    }
    if (r < 0) {
        destroy(h);
        return err_set(err, r, "start housekeeping");
    }
    *ret = h;
    return 0;
}

void health_stop(struct health *h)
{
    if (!h)
        return;
    fd_notify(h->stop_fd);
    (void)pthread_join(h->thread, NULL);
    destroy(h);
}

json_t *health_checks(void *arg)
{
    struct health *h = arg;
    (void)pthread_mutex_lock(&h->lock);
    json_t *copy = json_deep_copy(h->checks);
    (void)pthread_mutex_unlock(&h->lock);
    return copy;
}
