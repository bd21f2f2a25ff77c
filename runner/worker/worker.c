/* One thread claims; each job gets a detached thread of its own, counted in `busy`. Lock order: only
 * w->lock, never held while calling the bus or a session. */
#include "worker/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "session/session.h"

#define CLAIM_WAIT_MS    60000
#define CLAIM_BACKOFF_MS 200
#define SESSION_STACK    (1U << 20) /* buffers are on the heap */

struct worker {
    struct worker_options o;
    struct session_options session;
    int drain_fd;
    pthread_t claimer;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* busy or stopping */
    uint32_t busy;          /* lock: slots taken */
    bool stopping;          /* lock */
};

struct assignment {
    struct worker *worker;
    struct claim claim;
};

static void give_slot_back(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->busy--;
    (void)pthread_cond_broadcast(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
}

static void *session_main(void *arg)
{
    struct assignment *a = arg;
    struct worker *w = a->worker;
    session_run(&w->session, &a->claim);
    free(a);
    give_slot_back(w);
    return NULL;
}

/* Waits for a free slot and takes it; false: stop. */
static bool take_slot(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stopping && w->busy >= w->o.max_sandboxes)
        (void)pthread_cond_wait(&w->changed, &w->lock);
    bool ok = !w->stopping;
    if (ok)
        w->busy++;
    (void)pthread_mutex_unlock(&w->lock);
    return ok;
}

static int start_session(struct assignment *a)
{
    pthread_attr_t attr;
    int r = -pthread_attr_init(&attr);
    if (r < 0)
        return r;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, SESSION_STACK);
    pthread_t thread;
    r = -pthread_create(&thread, &attr, session_main, a);
    (void)pthread_attr_destroy(&attr);
    return r;
}

/* A pause that worker_stop() ends early. */
static void back_off(struct worker *w)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t at_ns = until.tv_nsec + CLAIM_BACKOFF_MS * 1000000LL;
    until.tv_sec += at_ns / 1000000000;
    until.tv_nsec = at_ns % 1000000000;
    (void)pthread_mutex_lock(&w->lock);
    int r = 0;
    while (!w->stopping && r == 0)
        r = pthread_cond_timedwait(&w->changed, &w->lock, &until);
    (void)pthread_mutex_unlock(&w->lock);
}

/* One job from the bus to a thread of its own; the slot is taken. false: the bus is closed. */
static bool claim_one(struct worker *w)
{
    struct assignment *a = calloc(1, sizeof(*a));
    struct err err = {0};
    int r = a ? bus_claim(w->o.bus, w->o.worker_id, clock_now_ms() + CLAIM_WAIT_MS, &a->claim, &err)
              : -ENOMEM;
    if (r != 0) {
        free(a);
        give_slot_back(w);
        if (r < 0) {
            log_error("worker.claim_failed", LOG_INT("errno", -r), LOG_ERR(&err));
            back_off(w);
        }
        return r != BUS_CLOSED;
    }
    a->worker = w;
    r = start_session(a);
    if (r < 0) {
        /* No thread to be had: run it here. Other jobs wait, none is lost. */
        log_warn("worker.no_thread", LOG_STR("job_id", a->claim.fence.job), LOG_INT("errno", -r));
        (void)session_main(a);
    }
    return true;
}

static void *claim_main(void *arg)
{
    struct worker *w = arg;
    while (take_slot(w) && claim_one(w))
        ;
    return NULL;
}

static int init_sync(struct worker *w)
{
    pthread_condattr_t attr;
    int r = -pthread_mutex_init(&w->lock, NULL);
    if (r < 0)
        return r;
    r = -pthread_condattr_init(&attr);
    if (r == 0) {
        (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        r = -pthread_cond_init(&w->changed, &attr);
        (void)pthread_condattr_destroy(&attr);
    }
    if (r < 0)
        (void)pthread_mutex_destroy(&w->lock);
    return r;
}

int worker_start(const struct worker_options *o, struct worker **ret, struct err *err)
{
    struct worker *w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(err, -ENOMEM, "worker");
    w->o = *o;
    int r = init_sync(w);
    if (r < 0) {
        free(w);
        return err_set(err, r, "worker lock");
    }
    w->drain_fd = fd_eventfd();
    w->session = (struct session_options){.bus = o->bus,
                                          .backend = o->backend,
                                          .worker_id = o->worker_id,
                                          .warmup_ms = o->warmup_ms,
                                          .drain_fd = w->drain_fd};
    r = w->drain_fd < 0 ? w->drain_fd : -pthread_create(&w->claimer, NULL, claim_main, w);
    if (r < 0) {
        cleanup_close_slot(&w->drain_fd);
        (void)pthread_cond_destroy(&w->changed);
        (void)pthread_mutex_destroy(&w->lock);
        free(w);
        return err_set(err, r, "start the worker");
    }
    *ret = w;
    return 0;
}

/* Waits until no session is left or deadline_ms; true: none is left. */
static bool wait_idle(struct worker *w, int64_t deadline_ms)
{
    struct timespec until = {deadline_ms / 1000, deadline_ms % 1000 * 1000000};
    (void)pthread_mutex_lock(&w->lock);
    int r = 0;
    while (w->busy > 0 && r == 0)
        r = deadline_ms == DEADLINE_NEVER ? pthread_cond_wait(&w->changed, &w->lock)
                                          : pthread_cond_timedwait(&w->changed, &w->lock, &until);
    bool idle = w->busy == 0;
    (void)pthread_mutex_unlock(&w->lock);
    return idle;
}

void worker_stop(struct worker *w, int64_t drain_ms)
{
    (void)pthread_mutex_lock(&w->lock);
    w->stopping = true;
    (void)pthread_cond_broadcast(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->claimer, NULL);
    if (wait_idle(w, clock_now_ms() + drain_ms))
        return;
    worker_hurry(w);
    (void)wait_idle(w, DEADLINE_NEVER);
}

void worker_hurry(struct worker *w)
{
    fd_notify(w->drain_fd);
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    cleanup_close_slot(&w->drain_fd);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}
