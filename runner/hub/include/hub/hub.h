/* hub/hub.h - fan-out of job events to WebSocket subscribers that speak the Pusher protocol, version 7.
 *
 * One epoll thread owns every upgraded socket. A subscription is a cursor into the job's event log, not
 * a queue: a slow reader costs a cursor, and is closed after HUB_STALL_MS without progress.
 *
 * Ownership  the gateway does the HTTP upgrade and hands the socket over; the hub gives it back by
 *            calling release, once, from its own thread.
 * Threads    any function from any thread. */
#ifndef HUB_HUB_H
#define HUB_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "bus/bus.h"

#define HUB_ACTIVITY_TIMEOUT_S 120 /* what clients are told; they ping after this much silence */
#define HUB_STALL_MS 30000
#define HUB_FRAME_MAX 65536        /* bytes of one message from a client */

struct hub;

struct hub_options {
    struct bus *bus;
    const char *app_key;
    const char *app_secret;
    bool replay;            /* a new subscriber first gets stage, output and result from the log */
    uint32_t connections_max;
};
int hub_new(const struct hub_options *o, struct hub **ret, struct err *err); /* starts the thread */
void hub_free(struct hub *h); /* closes every socket, ends the thread; NULL is fine */
DEFINE_CLEANUP(struct hub *, hub_free)
#define cleanup_hub CLEANUP(hub_free_slot)

struct hub_socket {
    int fd; /* non-blocking after this call; read and written by the hub until release */
    void (*release)(void *arg); /* closes it */
    void *arg;
    struct span extra; /* bytes that came with the upgrade request; borrowed */
};
/* app_key: the path segment after /app/; an unknown one is answered by the protocol (4001).
 * 0, -ENOMEM, -EBUSY (connections_max); on failure the socket is still the caller's. */
int hub_adopt(struct hub *h, const struct hub_socket *socket, struct span app_key, struct err *err);

uint32_t hub_connections(struct hub *h);

/* Appends "<app_key>:<hex hmac>" for a private channel. -EINVAL: socket id or channel name is not
 * well-formed (socket id digits.digits; channel of A-Z a-z 0-9 _ - = @ , . ; and at most 200). */
int hub_sign(const struct hub *h, struct span socket_id, struct span channel, struct buf *ret);

#endif
