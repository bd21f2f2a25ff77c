/* hub_internal.h - the hub's thread and what it owns.
 *
 * Theory of operation. One thread waits in epoll for its sockets, for an eventfd (sockets handed
 * over, the end) and for the bus's watcher (jobs with news). A client is one socket; a subscription
 * is one channel of it: a cursor into a job's log. A subscription with news stands in its client's
 * queue `news`; a client that has one and whose output has drained stands in the hub's queue
 * `ready`. Each turn of the loop serves every client in `ready` once, with one read of the log for
 * one of its subscriptions, so that neither a busy job nor a busy client keeps the others waiting.
 *
 * wslay frames into and out of memory only: its output goes to client.out, which is all that ever
 * waits for a slow reader. Above OUT_HIGH nothing is read from the client either, so its own
 * messages cannot make answers pile up.
 *
 * Threads    hub.lock guards what its struct says; everything else belongs to the hub's thread, and
 *            a client to whoever calls hub_adopt() until it is in the list `incoming`. */
#ifndef HUB_INTERNAL_H
#define HUB_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include <wslay/wslay.h>

#include "hub/hub.h"
#include "message.h"

#define HUB_CHANNEL_MAX       200 /* bytes of a channel's name; Pusher's own limit */
#define HUB_SOCKET_ID_MAX     64
#define HUB_APP_KEY_MAX       256
#define HUB_SUBSCRIPTIONS_MAX 256         /* of one socket */
#define OUT_LOW               (16 << 10)  /* the log is read again when this little is waiting */
#define OUT_HIGH              (64 << 10)  /* no more is read from the log or from the client */
#define OUT_MAX               (256 << 10) /* OUT_HIGH and the answers to one wslay buffer (4 KiB) */

/* Tests shorten the waits and turn the clock. */
struct hub_times {
    int64_t (*now_ms)(void);
    int64_t stall_ms; /* output waiting, nothing written: dropped */
    int64_t idle_ms;  /* nothing received: asked for a pong */
    int64_t pong_ms;  /* and then for this long: closed */
    int64_t close_ms; /* from our close frame to the end of the socket */
    int64_t free_ms;  /* hub_free(): all of them */
};
extern const struct hub_times hub_times_default;
int hub_new_with(const struct hub_options *o, const struct hub_times *times, struct hub **ret,
                 struct err *err);
void hub_wake(struct hub *h); /* looks at the clocks now */

struct client;

struct subscription {
    TAILQ_ENTRY(subscription) link;
    TAILQ_ENTRY(subscription) news_link;
    struct client *client;
    struct bus_watch *watch; /* NULL: nothing more will come */
    uint64_t cursor;         /* the last event that was sent or left out */
    bool has_news;           /* is in client.news */
    bool skip_artifacts;     /* the job had ended before: its artifacts would be a replay */
    char channel[HUB_CHANNEL_MAX + 1];
};
TAILQ_HEAD(subscription_list, subscription);

enum client_state {
    CLIENT_OPEN,
    CLIENT_CLOSING, /* our close frame is in `out`; what comes in is thrown away */
    CLIENT_DEAD,    /* released at the end of this turn */
};

struct client {
    TAILQ_ENTRY(client) link; /* hub.incoming, then hub.clients or hub.dead */
    TAILQ_ENTRY(client) ready_link;
    struct hub *hub;
    struct hub_socket socket;
    enum client_state state;
    bool is_ready; /* is in hub.ready */
    bool is_app_known;
    bool is_frame_control;
    bool is_write_shut;
    uint32_t interest; /* what epoll has been told */
    wslay_event_context_ptr ws;
    struct buf extra;   /* came with the upgrade request */
    struct buf message; /* a message so far */
    struct buf out;     /* framed, not yet taken by the kernel */
    size_t read_budget; /* of this turn */
    struct subscription_list subscriptions;
    struct subscription_list news;
    unsigned subscriptions_len;
    int64_t received_ms; /* last sign of life */
    int64_t pinged_ms;   /* 0: not waiting for a pong */
    int64_t progress_ms; /* output was written, or began to wait */
    int64_t close_deadline_ms;
    char id[MESSAGE_SOCKET_ID_SIZE];
};
TAILQ_HEAD(client_list, client);

struct hub {
    struct bus *bus;
    char *app_key;
    char *app_secret;
    bool replay;
    uint32_t connections_max;
    struct hub_times times;
    pthread_t thread;
    int epoll_fd;
    int wake_fd;

    pthread_mutex_t lock; /* guards these three */
    struct client_list incoming;
    uint32_t connections; /* adopted, not yet released */
    bool is_stopping;

    struct bus_watcher *watcher;
    struct client_list clients;
    struct client_list ready;
    struct client_list dead;
    struct buf payload; /* scratch */
    struct buf text;    /* scratch */
};

/* client.c */
int client_new(struct hub *h, const struct hub_socket *socket, struct client **ret,
               struct err *err);
void client_free(struct client *c);  /* does not release the socket */
void client_start(struct client *c); /* in the hub's thread, when epoll knows it */
void client_on_epoll(struct client *c, uint32_t events);
void client_check_clocks(struct client *c, int64_t now_ms);
/* Frames hub.text (and clears it); r is what filling it answered. A client that cannot be told
 * is dropped. */
void client_send_text(struct client *c, int r);
void client_close(struct client *c, uint16_t code, const char *reason);
void client_drop(struct client *c, const char *reason);
/* Writes what is there, then tells epoll and the queue `ready` what to expect. */
void client_flush(struct client *c);
void client_schedule(struct client *c); /* into the queue `ready`, if it may be served */

/* protocol.c */
void client_on_message(struct client *c, const char *text, size_t len);

/* subscription.c */
struct subscription *subscription_find(const struct client *c, struct span channel);
int subscription_add(struct client *c, struct span channel); /* 0, -ENOMEM */
void subscription_remove(struct subscription *s);
void subscription_news(struct subscription *s);
void subscription_pump(struct client *c); /* one read of the log for the first that has news */

/* sign.c */
bool channel_is_valid(struct span channel);
bool socket_id_is_valid(struct span id);

#endif
