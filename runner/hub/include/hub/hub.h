/* hub/hub.h - fan-out of job events to WebSocket subscribers (the Pusher protocol, version 7).
 *
 * One epoll thread owns every upgraded socket. A subscription is a cursor into the job's event log,
 * not a queue: a slow reader costs a cursor, and is closed after HUB_STALL_MS without progress.
 *
 * Channels   private-run-<job id>, signed. A new subscriber gets every event of the job in order
 *            but `report`; of a job that had ended before, no artifacts (they would be a replay). A
 *            job that is gone is no error: the subscription succeeds and nothing comes.
 * Refused    one message: pusher:error with code null, for a channel also pusher:subscription_error
 *            on it; client events (4301). The connection goes on.
 * Closed     4001 unknown app key, 4100 out of memory, 4200 hub_free(), 4201 silence (after an
 *            unanswered pusher:ping); 1002, 1003 (binary), 1007 and 1009 for broken messages.
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
#define HUB_STALL_MS           30000
#define HUB_FRAME_MAX          65536 /* bytes of one message from a client */

struct hub;

struct hub_options {
    struct bus *bus;
    const char *app_key;
    const char *app_secret;
    bool replay; /* a new subscriber first gets stage, output and result from the log */
    uint32_t connections_max;
};
/* Starts the thread. 0, -EINVAL (something is not given; the app key is longer than 256 bytes),
 * -ENOMEM, or what the kernel answered. The bus outlives the hub. */
int hub_new(const struct hub_options *o, struct hub **ret, struct err *err);
/* Closes every socket (4200: clients come back at once), ends the thread, within about a second.
 * NULL is fine. */
void hub_free(struct hub *h);
DEFINE_CLEANUP(struct hub *, hub_free)
#define cleanup_hub CLEANUP(hub_free_slot)

struct hub_socket {
    int fd; /* non-blocking after this call; read and written by the hub until release */
    void (*release)(void *arg); /* closes it */
    void *arg;
    struct span extra; /* bytes that came with the upgrade request; borrowed */
};
/* app_key: the path segment after /app/; an unknown one is answered by the protocol (4001).
 * 0, -ENOMEM, -EBUSY (connections_max, or the hub is ending), or what fcntl(2) or getrandom(2)
 * answered; on failure the socket is still the caller's. */
int hub_adopt(struct hub *h, const struct hub_socket *socket, struct span app_key, struct err *err);

uint32_t hub_connections(struct hub *h); /* adopted, not yet released */

/* Appends "<app_key>:<hex hmac>" for a private channel. -EINVAL: socket id or channel name is not
 * well-formed (socket id digits.digits, at most 64; channel of A-Z a-z 0-9 _ - = @ , . ; and at
 * most 200). -EMSGSIZE (ret's maximum), -ENOMEM. The channel's prefix is the caller's to judge. */
int hub_sign(const struct hub *h, struct span socket_id, struct span channel, struct buf *ret);

#endif
