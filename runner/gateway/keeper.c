/* The library closes a connection that is silent, but not one that trickles. This thread looks once
 * in a while for connections that have been at one request for too long and shuts their sockets
 * down; the library then sees the end of the stream. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "gateway_internal.h"

#define SWEEP_MS 500

struct peer *keeper_add(struct gateway *g, int fd)
{
    struct peer *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->fd = fd;
    p->deadline_ms = clock_now_ms() + g->options.request_ms;
    (void)pthread_mutex_lock(&g->peers_lock);
    p->next = g->peers.next;
    p->prev = &g->peers;
    p->next->prev = p;
    g->peers.next = p;
    (void)pthread_mutex_unlock(&g->peers_lock);
    return p;
}

void keeper_remove(struct gateway *g, struct peer *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&g->peers_lock);
    p->prev->next = p->next;
    p->next->prev = p->prev;
    (void)pthread_mutex_unlock(&g->peers_lock);
    free(p);
}

void keeper_set(struct gateway *g, struct peer *p, int64_t deadline_ms)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&g->peers_lock);
    p->deadline_ms = deadline_ms;
    (void)pthread_mutex_unlock(&g->peers_lock);
}

static unsigned sweep(struct gateway *g)
{
    unsigned cut = 0;
    int64_t now = clock_now_ms();
    (void)pthread_mutex_lock(&g->peers_lock);
    for (struct peer *p = g->peers.next; p != &g->peers; p = p->next) {
        if (p->deadline_ms > now || p->is_cut)
            continue;
        p->is_cut = true;
        (void)shutdown(p->fd, SHUT_RDWR); /* already gone is as good */
        cut++;
    }
    (void)pthread_mutex_unlock(&g->peers_lock);
    return cut;
}

static void *keeper_main(void *arg)
{
    struct gateway *g = arg;
    struct pollfd stop = {.fd = g->keeper_stop, .events = POLLIN};
    int r;
    while ((r = poll(&stop, 1, SWEEP_MS)) == 0 || (r < 0 && errno == EINTR)) {
        unsigned cut = sweep(g);
        if (cut > 0)
            log_debug("gateway.slow_cut", LOG_INT("connections", cut));
    }
    return NULL;
}

int keeper_start(struct gateway *g, struct err *err)
{
    g->keeper_stop = fd_eventfd();
    if (g->keeper_stop < 0)
        return err_set(err, g->keeper_stop, "eventfd");
    int r = pthread_create(&g->keeper, NULL, keeper_main, g);
    if (r != 0)
        return err_set(err, -r, "thread of the gateway");
    g->has_keeper = true;
    return 0;
}

void keeper_stop(struct gateway *g)
{
    if (g->has_keeper) {
        fd_notify(g->keeper_stop);
        (void)pthread_join(g->keeper, NULL);
        g->has_keeper = false;
    }
    if (g->keeper_stop >= 0)
        (void)close(g->keeper_stop);
    g->keeper_stop = -1;
}
