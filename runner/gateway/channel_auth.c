/* POST /v1/channel-auth: signs a subscription for backends that do not sign themselves. pusher-js
 * sends a form, the published SDK JSON; both are taken. */
#include <errno.h>

#include "gateway_internal.h"
#include "json/json.h"

bool channel_auth_is_enabled(const struct gateway_options *o)
{
    return o->channel_auth && o->hub;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int form_decode(struct span in, struct buf *out)
{
    buf_clear(out);
    int e = 0;
    for (size_t i = 0; e == 0 && i < in.len; i++) {
        char c = in.ptr[i];
        int high = c == '%' && in.len - i > 2 ? hex_digit(in.ptr[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(in.ptr[i + 2]) : -1;
        if (low >= 0)
            i += 2;
        e = buf_append_byte(out,
                            low >= 0 ? (uint8_t)(high << 4 | low) : (uint8_t)(c == '+' ? ' ' : c));
    }
    return e;
}

static struct span span_cut(struct span *rest, char divider)
{
    const char *end = rest->len ? memchr(rest->ptr, divider, rest->len) : NULL;
    struct span first = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t used = first.len + (end ? 1 : 0);
    rest->ptr += used;
    rest->len -= used;
    return first;
}

/* The two fields of a form as the object their schema describes; others are none of ours, and of two
 * with one name the first counts. NULL: out of memory. */
static json_t *form_parse(struct span form)
{
    static const char *const fields[] = {"socket_id", "channel_name"};
    json_t *object = json_object();
    cleanup_buf struct buf value;
    buf_init(&value, form.len);
    while (object && form.len > 0) {
        struct span rest = span_cut(&form, '&');
        struct span name = span_cut(&rest, '=');
        for (size_t i = 0; object && i < ARRAY_LEN(fields); i++) {
            if (!span_eq(name, fields[i]) || json_object_get(object, fields[i]))
                continue;
            json_t *text = form_decode(rest, &value) < 0
                               ? NULL
                               : json_string_lossy(value.data ? value.data : "", value.len);
            if (json_object_set_new(object, fields[i], text) < 0) {
                json_decref(object);
                object = NULL;
            }
        }
    }
    return object;
}

/* Sets r->json, or the answer. */
static void body_parse(struct request *r, struct answer *a)
{
    const char *type = request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
    struct span body = {r->body.data ? r->body.data : "", r->body.len};
    int e;
    if (content_type_is(type, "application/x-www-form-urlencoded")) {
        r->json = form_parse(body);
        e = r->json ? 0 : -ENOMEM;
    } else {
        e = json_parse(body.ptr, body.len, &r->json, NULL);
    }
    json_t *details = NULL;
    if (e == 0)
        e = contract_check(CONTRACT_CHANNEL_AUTH_REQUEST, r->json, &details);
    if (e == -EINVAL)
        answer_error(a, MHD_HTTP_BAD_REQUEST, "Invalid JSON body");
    else if (e > 0)
        answer_violations_take(a, details);
    else if (e < 0)
        answer_failure(a, e, NULL);
}

static int sign(struct request *r, struct span socket_id, struct span channel, struct buf *ret)
{
    int e = BUS_CLOSED;
    (void)pthread_mutex_lock(&r->gateway->hub_lock);
    if (!r->gateway->is_quiesced)
        e = hub_sign(r->gateway->options.hub, socket_id, channel, ret);
    (void)pthread_mutex_unlock(&r->gateway->hub_lock);
    return e;
}

void channel_auth_post(struct request *r, struct answer *a)
{
    body_parse(r, a);
    if (a->status)
        return;
    struct span id, channel;
    id.ptr = json_text(json_object_get(r->json, "socket_id"), &id.len);
    channel.ptr = json_text(json_object_get(r->json, "channel_name"), &channel.len);
    size_t prefix_len = sizeof(JOB_CHANNEL_PREFIX) - 1;
    if (channel.len < prefix_len || memcmp(channel.ptr, JOB_CHANNEL_PREFIX, prefix_len) != 0) {
        answer_error(a, MHD_HTTP_FORBIDDEN, "Only channels that start with %s can be authorized",
                     JOB_CHANNEL_PREFIX);
        return;
    }
    cleanup_buf struct buf auth;
    buf_init(&auth, 1024);
    int e = sign(r, id, channel, &auth);
    if (e == 0)
        answer_json_take(a, MHD_HTTP_OK, json_pack("{s:s}", "auth", auth.data));
    else if (e == -EINVAL)
        answer_error(a, MHD_HTTP_BAD_REQUEST, "Channel authorization failed");
    else if (e == BUS_CLOSED)
        answer_error(a, MHD_HTTP_SERVICE_UNAVAILABLE, "The server is shutting down");
    else
        answer_failure(a, e, NULL);
}
