#include <errno.h>

#include "base/digest.h"
#include "base/log.h"
#include "hub_internal.h"

#define AUTH_MAX (HUB_APP_KEY_MAX + 1 + DIGEST_SHA256_HEX)

static void say_error(struct client *c, enum pusher_code code, const char *text)
{
    client_send_text(c, message_error(&c->hub->text, code, text));
}

/* Two answers: the first reaches the channel's own subscribers (pusher-js, soketi's habit), the
 * second is the only one that clients know which follow Pusher's own service. */
static void refuse(struct client *c, const char *channel, const char *reason)
{
    client_send_text(c, message_subscription_error(&c->hub->text, channel, reason));
    say_error(c, PUSHER_NO_CODE, reason);
}

/* 1: the signature is right, 0: it is not, or -ENOMEM, -EMSGSIZE. */
static int is_signed(const struct client *c, const struct message *m)
{
    cleanup_buf struct buf want;
    buf_init(&want, AUTH_MAX);
    int r = hub_sign(c->hub, span_str(c->id), m->channel, &want);
    if (r < 0)
        return r;
    return digest_secret_eq(m->auth.ptr ? m->auth.ptr : "", m->auth.len, want.data, want.len) == 1;
}

static void subscribe(struct client *c, const struct message *m)
{
    if (!channel_is_valid(m->channel)) {
        say_error(c, PUSHER_NO_CODE,
                  "data.channel must be 1 to 200 characters of A-Z a-z 0-9 _ - = @ , . ;");
        return;
    }
    char channel[HUB_CHANNEL_MAX + 1];
    memcpy(channel, m->channel.ptr, m->channel.len);
    channel[m->channel.len] = '\0';
    if (strncmp(channel, JOB_CHANNEL_PREFIX, sizeof(JOB_CHANNEL_PREFIX) - 1) != 0) {
        refuse(c, channel, "data.channel must begin with " JOB_CHANNEL_PREFIX);
        return;
    }
    if (subscription_find(c, m->channel)) {
        say_error(c, PUSHER_NO_CODE, "data.channel: there is a subscription to it already");
        return;
    }
    if (c->subscriptions_len >= HUB_SUBSCRIPTIONS_MAX) {
        refuse(c, channel, "a connection may have at most 256 subscriptions");
        return;
    }
    int r = is_signed(c, m);
    if (r == 0) {
        refuse(c, channel,
               "data.auth must be <app key>:<hex HMAC-SHA256 of \"<socket id>:<channel>\">");
        return;
    }
    if (r > 0)
        r = subscription_add(c, m->channel);
    if (r < 0) {
        log_warn("hub.subscribe_failed", LOG_STR("error", strerrordesc_np(-r)));
        client_close(c, PUSHER_OVER_CAPACITY, "out of memory");
    }
}

static void unsubscribe(struct client *c, const struct message *m)
{
    struct subscription *s = subscription_find(c, m->channel);
    if (s)
        subscription_remove(s); /* the protocol has no answer to it */
}

static void obey(struct client *c, const struct message *m)
{
    switch (m->type) {
    case MESSAGE_PING:
        client_send_text(c, message_pong(&c->hub->text));
        return;
    case MESSAGE_PONG:
        return; /* anything received is a sign of life */
    case MESSAGE_SUBSCRIBE:
        subscribe(c, m);
        return;
    case MESSAGE_UNSUBSCRIBE:
        unsubscribe(c, m);
        return;
    case MESSAGE_CLIENT_EVENT:
        say_error(c, PUSHER_CLIENT_EVENT_REFUSED, "client events are not enabled");
        return;
    case MESSAGE_UNKNOWN:
        say_error(c, PUSHER_NO_CODE, "event is not one of this protocol");
        return;
    }
}

void client_on_message(struct client *c, const char *text, size_t len)
{
    struct err err = {0};
    struct message m = {0};
    int r = message_parse(text, len, &m, &err);
    if (r == -ENOMEM) {
        client_drop(c, "out of memory");
        return;
    }
    if (r < 0) {
        say_error(c, PUSHER_NO_CODE, err.msg);
        return;
    }
    obey(c, &m);
    message_done(&m);
}
