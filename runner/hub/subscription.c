#include <errno.h>

#include "base/log.h"
#include "hub_internal.h"

#define PUMP_BYTES (16 << 10) /* of the log, in one read */

static const char *job_of(const struct subscription *s)
{
    return s->channel + sizeof(JOB_CHANNEL_PREFIX) - 1;
}

struct subscription *subscription_find(const struct client *c, struct span channel)
{
    struct subscription *s;
    TAILQ_FOREACH(s, &c->subscriptions, link)
    {
        if (span_eq(channel, s->channel))
            return s;
    }
    return NULL;
}

/* Whether there is an event with an id above `after`: 1, 0, or what bus_event_read() answered
 * otherwise as a negative number. */
static int has_event(struct bus *b, const char *job, uint64_t after, bool *ret_end)
{
    struct event_batch batch = {0};
    int r = bus_event_read(b, job, after, 1, &batch);
    if (r != 0)
        return r < 0 ? r : -ENOENT;
    int found = batch.len > 0;
    *ret_end = batch.end;
    event_batch_done(&batch);
    return found;
}

/* The id of the last event. Ids are contiguous, so it is found in some twenty reads of one event
 * each, and a long log costs no more. */
static int log_end(struct bus *b, const char *job, uint64_t *ret)
{
    uint64_t low = 0; /* events up to here exist */
    uint64_t high = 1;
    bool end = false;
    int r;
    while ((r = has_event(b, job, high - 1, &end)) == 1) {
        low = high;
        high *= 2;
    }
    if (r < 0)
        return r;
    while (low + 1 < high) { /* low exists, high does not */
        uint64_t middle = low + (high - low) / 2;
        r = has_event(b, job, middle - 1, &end);
        if (r < 0)
            return r;
        if (r == 1)
            low = middle;
        else
            high = middle;
    }
    *ret = low;
    return 0;
}

/* Where it begins. A job that is gone has no events: that is no error. */
static int place_cursor(struct subscription *s)
{
    struct hub *h = s->client->hub;
    bool has_ended = false;
    int r = has_event(h->bus, job_of(s), UINT64_MAX, &has_ended);
    s->skip_artifacts = has_ended;
    if (r >= 0 && !h->replay)
        r = log_end(h->bus, job_of(s), &s->cursor);
    return r == -ENOENT || r > 0 ? 0 : r;
}

static int watch(struct subscription *s)
{
    struct hub *h = s->client->hub;
    int r = bus_watch_add(h->watcher, job_of(s), BUS_WATCH_EVENTS, s, &s->watch);
    return r == BUS_NOT_FOUND ? 0 : r;
}

int subscription_add(struct client *c, struct span channel)
{
    cleanup_free struct subscription *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->client = c;
    memcpy(s->channel, channel.ptr, channel.len);
    int r = place_cursor(s);
    if (r == 0)
        r = watch(s);
    if (r < 0)
        return r;

    struct subscription *added = ptr_take(&s);
    TAILQ_INSERT_TAIL(&c->subscriptions, added, link);
    c->subscriptions_len++;
    client_send_text(c, message_event(&c->hub->text, "pusher_internal:subscription_succeeded",
                                      added->channel, SPAN_LIT("{}")));
    return 0;
}

static void end(struct subscription *s)
{
    if (s->watch)
        bus_watch_remove(s->watch);
    s->watch = NULL;
}

void subscription_remove(struct subscription *s)
{
    struct client *c = s->client;
    end(s);
    if (s->has_news)
        TAILQ_REMOVE(&c->news, s, news_link);
    TAILQ_REMOVE(&c->subscriptions, s, link);
    c->subscriptions_len--;
    free(s);
}

void subscription_news(struct subscription *s)
{
    if (s->has_news || !s->watch)
        return;
    s->has_news = true;
    TAILQ_INSERT_TAIL(&s->client->news, s, news_link);
}

/* A report is for those who ask for it: the published clients do not know the event. */
static bool is_wanted(const struct subscription *s, const struct event *e)
{
    return e->type != EVENT_REPORT && !(e->type == EVENT_ARTIFACT && s->skip_artifacts);
}

static void send_event(struct subscription *s, const struct event *e)
{
    struct hub *h = s->client->hub;
    buf_clear(&h->payload);
    int r = event_payload(&h->payload, e);
    if (r == 0)
        r = message_event(&h->text, event_type_name(e->type), s->channel, buf_span(&h->payload));
    if (r == -EMSGSIZE) { /* would be so each time: a reconnect does not help */
        buf_clear(&h->text);
        log_warn("hub.event_too_large", LOG_STR("job_id", job_of(s)), LOG_INT("event_id", e->id),
                 LOG_INT("bytes", e->data.len));
        return;
    }
    client_send_text(s->client, r);
}

/* How many of the batch went out before the client had enough. */
static size_t send_batch(struct subscription *s, const struct event_batch *batch)
{
    const struct client *c = s->client;
    size_t i = 0;
    for (; i < batch->len && c->state == CLIENT_OPEN && c->out.len < OUT_HIGH; i++) {
        if (is_wanted(s, &batch->items[i]))
            send_event(s, &batch->items[i]);
        s->cursor = batch->items[i].id;
    }
    return i;
}

void subscription_pump(struct client *c)
{
    struct subscription *s = TAILQ_FIRST(&c->news);
    TAILQ_REMOVE(&c->news, s, news_link);
    s->has_news = false;

    struct event_batch batch = {0};
    int r = bus_event_read(c->hub->bus, job_of(s), s->cursor, PUMP_BYTES, &batch);
    if (r < 0) {
        client_drop(c, "out of memory");
        return;
    }
    if (r > 0) { /* the record has expired */
        end(s);
        return;
    }
    size_t sent = send_batch(s, &batch);
    if (sent == batch.len && batch.end)
        end(s);
    else if (batch.len > 0)
        subscription_news(s);
    event_batch_done(&batch);
}
