#include "message.h"

#include <errno.h>
#include <stdbool.h>

#include "json/json.h"

/* ---- from the client ---- */

static bool starts_with(struct span s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

static enum message_type type_of(struct span event)
{
    static const struct {
        const char *name;
        enum message_type type;
    } names[] = {
        {"pusher:ping", MESSAGE_PING},
        {"pusher:pong", MESSAGE_PONG},
        {"pusher:subscribe", MESSAGE_SUBSCRIBE},
        {"pusher:unsubscribe", MESSAGE_UNSUBSCRIBE},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (span_eq(event, names[i].name))
            return names[i].type;
    return starts_with(event, "client-") ? MESSAGE_CLIENT_EVENT : MESSAGE_UNKNOWN;
}

static int data_of(struct message *m, const json_t **ret, struct err *err)
{
    const json_t *data = json_object_get(m->root, "data");
    size_t len = 0;
    const char *text = json_text(data, &len);
    if (text) {
        int r = json_parse(text, len, &m->data, err);
        if (r < 0)
            return err_wrap(err, r, "data is no JSON");
        data = m->data;
    }
    if (!json_is_object(data))
        return err_set(err, -EINVAL, "data must be an object");
    *ret = data;
    return 0;
}

static int read_channel(struct message *m, struct err *err)
{
    const json_t *data = NULL;
    int r = data_of(m, &data, err);
    if (r < 0)
        return r;
    m->channel.ptr = json_text(json_object_get(data, "channel"), &m->channel.len);
    if (!m->channel.ptr)
        return err_set(err, -EINVAL, "data.channel must be a string");

    const json_t *auth = json_object_get(data, "auth");
    if (m->type != MESSAGE_SUBSCRIBE || !auth || json_is_null(auth))
        return 0;
    m->auth.ptr = json_text(auth, &m->auth.len);
    return m->auth.ptr ? 0 : err_set(err, -EINVAL, "data.auth must be a string");
}

static int parse(const char *text, size_t len, struct message *m, struct err *err)
{
    int r = json_parse(text, len, &m->root, err);
    if (r < 0)
        return err_wrap(err, r, "message is no JSON");
    if (!json_is_object(m->root))
        return err_set(err, -EINVAL, "message must be an object");
    m->event.ptr = json_text(json_object_get(m->root, "event"), &m->event.len);
    if (!m->event.ptr)
        return err_set(err, -EINVAL, "event must be a string");
    m->type = type_of(m->event);
    if (m->type == MESSAGE_SUBSCRIBE || m->type == MESSAGE_UNSUBSCRIBE)
        return read_channel(m, err);
    return 0;
}

int message_parse(const char *text, size_t len, struct message *ret, struct err *err)
{
    struct message m = {0};
    int r = parse(text, len, &m, err);
    if (r < 0) {
        message_done(&m);
        return r;
    }
    *ret = m;
    return 0;
}

void message_done(struct message *m)
{
    json_decref(m->data);
    json_decref(m->root);
    *m = (struct message){0};
}

/* ---- to the client ---- */

static int append_string(struct buf *out, struct span s)
{
    int r = buf_append_byte(out, '"');
    if (r == 0)
        r = buf_append_json_text(out, s.ptr, s.len);
    if (r == 0)
        r = buf_append_byte(out, '"');
    return r;
}

int message_established(struct buf *out, const char *socket_id, int activity_timeout_s)
{
    return buf_appendf(out,
                       "{\"event\":\"pusher:connection_established\",\"data\":\"{\\\"socket_id\\\":"
                       "\\\"%s\\\",\\\"activity_timeout\\\":%d}\"}",
                       socket_id, activity_timeout_s);
}

int message_ping(struct buf *out)
{
    return buf_append_str(out, "{\"event\":\"pusher:ping\",\"data\":\"{}\"}");
}

int message_pong(struct buf *out)
{
    return buf_append_str(out, "{\"event\":\"pusher:pong\",\"data\":\"{}\"}");
}

int message_error(struct buf *out, enum pusher_code code, const char *text)
{
    int r = buf_append_str(out, "{\"event\":\"pusher:error\",\"data\":{\"code\":");
    if (r == 0)
        r = code == PUSHER_NO_CODE ? buf_append_str(out, "null")
                                   : buf_appendf(out, "%u", (unsigned)code);
    if (r == 0)
        r = buf_append_str(out, ",\"message\":");
    if (r == 0)
        r = append_string(out, span_str(text));
    if (r == 0)
        r = buf_append_str(out, "}}");
    return r;
}

int message_subscription_error(struct buf *out, const char *channel, const char *text)
{
    int r = buf_append_str(out, "{\"event\":\"pusher:subscription_error\",\"channel\":");
    if (r == 0)
        r = append_string(out, span_str(channel));
    if (r == 0)
        r = buf_append_str(out, ",\"data\":{\"type\":\"AuthError\",\"error\":");
    if (r == 0)
        r = append_string(out, span_str(text));
    if (r == 0)
        r = buf_append_str(out, ",\"status\":401}}");
    return r;
}

int message_event(struct buf *out, const char *event, const char *channel, struct span data)
{
    int r = buf_append_str(out, "{\"event\":");
    if (r == 0)
        r = append_string(out, span_str(event));
    if (r == 0)
        r = buf_append_str(out, ",\"channel\":");
    if (r == 0)
        r = append_string(out, span_str(channel));
    if (r == 0)
        r = buf_append_str(out, ",\"data\":");
    if (r == 0)
        r = append_string(out, data);
    if (r == 0)
        r = buf_append_byte(out, '}');
    return r;
}
