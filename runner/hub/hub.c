#include "hub_internal.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define SCAN_MS     1000        /* how often the clocks are looked at */
#define EVENTS_MAX  64          /* of one epoll_wait */
#define WATCHES_MAX 1024        /* taken from the watcher in one turn */
#define TEXT_MAX    (128 << 10) /* an output payload is at most 8 KiB, and twice that as a string */

const struct hub_times hub_times_default = {
    .now_ms = clock_now_ms,
    .stall_ms = HUB_STALL_MS,
    .idle_ms = (HUB_ACTIVITY_TIMEOUT_S + 30) * INT64_C(1000),
    .pong_ms = 30000,
    .close_ms = 5000,
    .free_ms = 1000,
};

/* ---- the thread ---- */

static void release(struct client *c)
{
    struct hub *h = c->hub;
    struct hub_socket socket = c->socket;
    client_free(c);
    socket.release(socket.arg);
    (void)pthread_mutex_lock(&h->lock);
    h->connections--;
    (void)pthread_mutex_unlock(&h->lock);
}

static void bury(struct hub *h)
{
    struct client *c;
    while ((c = TAILQ_FIRST(&h->dead))) {
        TAILQ_REMOVE(&h->dead, c, link);
        (void)epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, c->socket.fd, NULL); /* the owner may keep it */
        release(c);
    }
}

static void greet(struct client *c)
{
    struct hub *h = c->hub;
    TAILQ_INSERT_TAIL(&h->clients, c, link);
    c->interest = EPOLLIN;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, c->socket.fd, &event) < 0) {
        log_warn("hub.epoll_failed", LOG_STR("socket_id", c->id), LOG_INT("errno", errno));
        client_drop(c, "epoll error");
        return;
    }
    client_start(c);
}

/* Whether the hub is to end. */
static bool take_incoming(struct hub *h)
{
    struct client_list taken;
    TAILQ_INIT(&taken);
    (void)pthread_mutex_lock(&h->lock);
    TAILQ_CONCAT(&taken, &h->incoming, link);
    bool is_stopping = h->is_stopping;
    (void)pthread_mutex_unlock(&h->lock);

    struct client *c;
    while ((c = TAILQ_FIRST(&taken))) {
        TAILQ_REMOVE(&taken, c, link);
        greet(c);
    }
    return is_stopping;
}

static void take_news(struct hub *h)
{
    void *tag = NULL;
    for (int i = 0; i < WATCHES_MAX && bus_watcher_next(h->watcher, &tag); i++) {
        struct subscription *s = tag;
        subscription_news(s);
        client_schedule(s->client);
    }
}

/* Each once: who comes back into the queue waits for the next turn. Serving one drops no other, so
 * that none leaves the local list behind our back. */
static void serve_ready(struct hub *h)
{
    struct client_list turn;
    TAILQ_INIT(&turn);
    TAILQ_CONCAT(&turn, &h->ready, ready_link);
    struct client *c;
    while ((c = TAILQ_FIRST(&turn))) {
        TAILQ_REMOVE(&turn, c, ready_link);
        c->is_ready = false;
        if (!TAILQ_EMPTY(&c->news)) /* it may have unsubscribed */
            subscription_pump(c);
        client_flush(c);
    }
}

static void check_clocks(struct hub *h)
{
    int64_t now_ms = h->times.now_ms();
    struct client *next;
    for (struct client *c = TAILQ_FIRST(&h->clients); c; c = next) {
        next = TAILQ_NEXT(c, link);
        client_check_clocks(c, now_ms);
    }
}

/* One turn; whether the hub was woken. */
static bool turn(struct hub *h, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    bool woken = false;
    int n = epoll_wait(h->epoll_fd, events, EVENTS_MAX, TAILQ_EMPTY(&h->ready) ? timeout_ms : 0);
    for (int i = 0; i < n; i++) {
        void *who = events[i].data.ptr;
        if (who == &h->wake_fd) {
            fd_drain(h->wake_fd);
            woken = true;
        } else if (who == &h->watcher) {
            take_news(h);
        } else {
            client_on_epoll(who, events[i].events);
        }
    }
    serve_ready(h);
    return woken;
}

static void say_goodbye(struct hub *h)
{
    struct client *next;
    for (struct client *c = TAILQ_FIRST(&h->clients); c; c = next) {
        next = TAILQ_NEXT(c, link);
        client_close(c, PUSHER_RECONNECT, "the server is going away");
        client_flush(c);
    }
    bury(h);
    int64_t deadline_ms = clock_now_ms() + h->times.free_ms;
    while (!TAILQ_EMPTY(&h->clients) && clock_now_ms() < deadline_ms) {
        (void)turn(h, clock_poll_timeout(deadline_ms));
        bury(h);
    }
    while (!TAILQ_EMPTY(&h->clients))
        client_drop(TAILQ_FIRST(&h->clients), "the server is going away");
    bury(h);
}

static void *run(void *arg)
{
    struct hub *h = arg;
    int64_t scan_ms = clock_now_ms() + SCAN_MS;
    bool is_stopping = false;
    while (!is_stopping) {
        bool woken = turn(h, clock_poll_timeout(scan_ms));
        if (woken)
            is_stopping = take_incoming(h);
        if (woken || clock_now_ms() >= scan_ms) {
            check_clocks(h);
            scan_ms = clock_now_ms() + SCAN_MS;
        }
        bury(h);
    }
    say_goodbye(h);
    return NULL;
}

/* ---- from any thread ---- */

static int add_fd(const struct hub *h, int fd, void *who, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = who};
    if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return err_set(err, -errno, "hub: epoll_ctl");
    return 0;
}

static int open_all(struct hub *h, struct err *err)
{
    h->epoll_fd = fd_epoll();
    if (h->epoll_fd < 0)
        return err_set(err, h->epoll_fd, "hub: epoll");
    h->wake_fd = fd_eventfd();
    if (h->wake_fd < 0)
        return err_set(err, h->wake_fd, "hub: eventfd");
    int r = bus_watcher_new(h->bus, &h->watcher, err);
    if (r < 0)
        return err_wrap(err, r, "hub");
    r = add_fd(h, h->wake_fd, &h->wake_fd, err);
    if (r == 0)
        r = add_fd(h, bus_watcher_fd(h->watcher), &h->watcher, err);
    return r;
}

static void done(struct hub *h)
{
    if (h->watcher)
        bus_watcher_free(h->watcher);
    cleanup_close_slot(&h->wake_fd);
    cleanup_close_slot(&h->epoll_fd);
    (void)pthread_mutex_destroy(&h->lock);
    buf_done(&h->payload);
    buf_done(&h->text);
    if (h->app_secret)
        explicit_bzero(h->app_secret, strlen(h->app_secret));
    free(h->app_secret);
    free(h->app_key);
    free(h);
}

static struct hub *allocate(const struct hub_options *o, const struct hub_times *times)
{
    struct hub *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->bus = o->bus;
    h->replay = o->replay;
    h->connections_max = o->connections_max;
    h->times = *times;
    h->epoll_fd = h->wake_fd = -1;
    TAILQ_INIT(&h->incoming);
    TAILQ_INIT(&h->clients);
    TAILQ_INIT(&h->ready);
    TAILQ_INIT(&h->dead);
    buf_init(&h->payload, TEXT_MAX);
    buf_init(&h->text, TEXT_MAX);
    (void)pthread_mutex_init(&h->lock, NULL); /* glibc's never fails without attributes */
    h->app_key = strdup(o->app_key);
    h->app_secret = strdup(o->app_secret);
    return h;
}

int hub_new_with(const struct hub_options *o, const struct hub_times *times, struct hub **ret,
                 struct err *err)
{
    if (!o->bus || !o->app_key || !o->app_key[0] || !o->app_secret || !o->app_secret[0])
        return err_set(err, -EINVAL, "hub: bus, app key and app secret must be given");
    if (strlen(o->app_key) > HUB_APP_KEY_MAX)
        return err_set(err, -EINVAL, "hub: app key: at most %d bytes", HUB_APP_KEY_MAX);
    if (o->connections_max < 1)
        return err_set(err, -EINVAL, "hub: connections_max: at least 1");

    struct hub *h = allocate(o, times);
    if (!h)
        return err_set(err, -ENOMEM, "hub");
    int r = h->app_key && h->app_secret ? open_all(h, err) : err_set(err, -ENOMEM, "hub");
    if (r == 0) {
        r = -pthread_create(&h->thread, NULL, run, h);
        if (r < 0)
            (void)err_set(err, r, "hub: thread");
    }
    if (r < 0) {
        done(h);
        return r;
    }
    *ret = h;
    return 0;
}

int hub_new(const struct hub_options *o, struct hub **ret, struct err *err)
{
    return hub_new_with(o, &hub_times_default, ret, err);
}

void hub_free(struct hub *h)
{
    if (!h)
        return;
    (void)pthread_mutex_lock(&h->lock);
    h->is_stopping = true;
    (void)pthread_mutex_unlock(&h->lock);
    hub_wake(h);
    (void)pthread_join(h->thread, NULL);
    done(h);
}

void hub_wake(struct hub *h)
{
    fd_notify(h->wake_fd);
}

static bool enqueue(struct hub *h, struct client *c)
{
    (void)pthread_mutex_lock(&h->lock);
    bool has_room = !h->is_stopping && h->connections < h->connections_max;
    if (has_room) {
        TAILQ_INSERT_TAIL(&h->incoming, c, link);
        h->connections++;
    }
    (void)pthread_mutex_unlock(&h->lock);
    return has_room;
}

int hub_adopt(struct hub *h, const struct hub_socket *socket, struct span app_key, struct err *err)
{
    struct client *c = NULL;
    int r = client_new(h, socket, &c, err);
    if (r < 0)
        return r;
    c->is_app_known = span_eq(app_key, h->app_key);
    if (!enqueue(h, c)) {
        client_free(c);
        return err_say(err, -EBUSY, "the hub has as many connections as it may: %u",
                       h->connections_max);
    }
    hub_wake(h);
    return 0;
}

uint32_t hub_connections(struct hub *h)
{
    (void)pthread_mutex_lock(&h->lock);
    uint32_t n = h->connections;
    (void)pthread_mutex_unlock(&h->lock);
    return n;
}
