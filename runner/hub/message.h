/* message.h - the text of the Pusher protocol, version 7: what a client says and what we answer.
 *
 * Source: https://pusher.com/docs/channels/library_auth_reference/pusher-websockets-protocol/
 * Pure: bytes in, struct or bytes out. */
#ifndef HUB_MESSAGE_H
#define HUB_MESSAGE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

#define MESSAGE_SOCKET_ID_SIZE 42 /* two 64-bit numbers, a dot and the terminator */

/* Error and close codes of the protocol. 4000-4099: the client gives up; 4100-4199: it comes back
 * after a second; 4200-4299: at once. */
enum pusher_code {
    PUSHER_NO_CODE = 0, /* null: about one message, the connection goes on */
    PUSHER_UNKNOWN_APP = 4001,
    PUSHER_OVER_CAPACITY = 4100,
    PUSHER_RECONNECT = 4200,
    PUSHER_NO_PONG = 4201,
    PUSHER_CLIENT_EVENT_REFUSED = 4301,
};

enum message_type {
    MESSAGE_PING,
    MESSAGE_PONG,
    MESSAGE_SUBSCRIBE,
    MESSAGE_UNSUBSCRIBE,
    MESSAGE_CLIENT_EVENT, /* client-... */
    MESSAGE_UNKNOWN,
};

struct message {
    enum message_type type;
    struct span event;
    struct span channel; /* subscribe, unsubscribe */
    struct span auth;    /* subscribe; empty when there is none */
    json_t *root;        /* what the spans point into */
    json_t *data;        /* the same, when data came as a string */
};

/* {"event": "...", "data": {...} or the same as a JSON string}; keys we do not know are the
 * protocol's and ignored. 0, -EINVAL with the reason in err, -ENOMEM. */
int message_parse(const char *text, size_t len, struct message *ret, struct err *err);
void message_done(struct message *m);

/* Each appends one whole message. 0, -EMSGSIZE, -ENOMEM; on failure out may hold a part of it. */
int message_established(struct buf *out, const char *socket_id, int activity_timeout_s);
int message_ping(struct buf *out);
int message_pong(struct buf *out);
int message_error(struct buf *out, enum pusher_code code, const char *text);
/* What a channel of pusher-js tells its subscribers when the signature was not accepted. */
int message_subscription_error(struct buf *out, const char *channel, const char *text);
/* data goes out as a JSON string, as the protocol wants it. */
int message_event(struct buf *out, const char *event, const char *channel, struct span data);

#endif
