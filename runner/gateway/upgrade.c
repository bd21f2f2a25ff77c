/* GET /app/:key: the WebSocket handshake (RFC 6455, section 4.2), after which the socket is the
 * hub's. */
#include <errno.h>
#include <strings.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/parse.h"
#include "gateway_internal.h"

#define WEBSOCKET_VERSION   "13"
#define WEBSOCKET_KEY_LEN   24 /* base64 of 16 bytes */
#define WEBSOCKET_KEY_BYTES 16

bool app_is_enabled(const struct gateway_options *o)
{
    return o->hub != NULL;
}

struct token_search {
    const char *name, *token;
    bool found;
};

static enum MHD_Result token_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    (void)kind;
    struct token_search *s = cls;
    if (strcasecmp(key, s->name) != 0)
        return MHD_YES;
    for (const char *p = value; *p;) {
        p += strspn(p, ", \t");
        size_t len = strcspn(p, ", \t");
        s->found = s->found || (len == strlen(s->token) && strncasecmp(p, s->token, len) == 0);
        p += len;
    }
    return MHD_YES;
}

static bool has_token(const struct request *r, const char *name, const char *token)
{
    struct token_search s = {name, token, false};
    (void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, token_header, &s);
    return s.found;
}

static int accept_value(const char *key, struct buf *ret)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455, 1.3 */
    char text[WEBSOCKET_KEY_LEN + sizeof(guid)];
    (void)snprintf(text, sizeof(text), "%s%s", key, guid); /* always fits */
    uint8_t digest[DIGEST_SHA1_BYTES];
    int e = digest_sha1(text, strlen(text), digest);
    return e < 0 ? e : buf_append_base64(ret, digest, sizeof(digest));
}

static void socket_release(void *arg)
{
    (void)MHD_upgrade_action(arg, MHD_UPGRADE_ACTION_CLOSE); /* nothing to do about a failure */
}

static void socket_upgraded(void *cls, struct MHD_Connection *connection, void *con_cls,
                            const char *extra_in, size_t extra_in_size, MHD_socket sock,
                            struct MHD_UpgradeResponseHandle *urh)
{
    (void)connection;
    struct gateway *g = cls;
    struct request *r = con_cls;
    r->is_upgraded = true;
    atomic_fetch_sub(&g->requests, 1);
    struct hub_socket s = {
        .fd = sock, .release = socket_release, .arg = urh, .extra = {extra_in, extra_in_size}};
    struct err err = {0};
    int e = -ESHUTDOWN;
    (void)pthread_mutex_lock(&g->hub_lock);
    if (!g->is_quiesced)
        e = hub_adopt(g->options.hub, &s, r->param, &err);
    (void)pthread_mutex_unlock(&g->hub_lock);
    if (e == 0)
        return;
    if (err.code == 0)
        (void)err_set(&err, e, "adopt a WebSocket");
    /* Anybody can bring this about, as often as they like: no line for everybody to read. */
    log_debug("gateway.socket_refused", LOG_ERR(&err));
    socket_release(urh);
}

/* False: the answer says what is missing. */
static bool handshake_check(struct request *r, struct answer *a, const char *key)
{
    const char *version = request_header(r, MHD_HTTP_HEADER_SEC_WEBSOCKET_VERSION);
    if (strcmp(r->method, MHD_HTTP_METHOD_GET) != 0 ||
        !has_token(r, MHD_HTTP_HEADER_UPGRADE, "websocket") ||
        !has_token(r, MHD_HTTP_HEADER_CONNECTION, "upgrade"))
        answer_error(a, MHD_HTTP_UPGRADE_REQUIRED, "This is a WebSocket address");
    else if (!version || strcmp(version, WEBSOCKET_VERSION) != 0)
        answer_error(a, MHD_HTTP_UPGRADE_REQUIRED, "Sec-WebSocket-Version must be %s",
                     WEBSOCKET_VERSION);
    else if (!key || strlen(key) != WEBSOCKET_KEY_LEN ||
             parse_base64(key, WEBSOCKET_KEY_LEN, NULL) != WEBSOCKET_KEY_BYTES)
        answer_error(a, MHD_HTTP_BAD_REQUEST, "Sec-WebSocket-Key must be 16 bytes in base64");
    if (a->status == MHD_HTTP_UPGRADE_REQUIRED) {
        answer_header(a, MHD_HTTP_HEADER_UPGRADE, "websocket");
        answer_header(a, MHD_HTTP_HEADER_SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION);
    }
    return a->status == 0;
}

void app_get(struct request *r, struct answer *a)
{
    const char *key = request_header(r, MHD_HTTP_HEADER_SEC_WEBSOCKET_KEY);
    if (!handshake_check(r, a, key))
        return;
    cleanup_buf struct buf accept;
    buf_init(&accept, 64);
    int e = accept_value(key, &accept);
    a->switching = e == 0 ? MHD_create_response_for_upgrade(socket_upgraded, r->gateway) : NULL;
    if (!a->switching ||
        MHD_add_response_header(a->switching, MHD_HTTP_HEADER_UPGRADE, "websocket") != MHD_YES ||
        MHD_add_response_header(a->switching, MHD_HTTP_HEADER_SEC_WEBSOCKET_ACCEPT, accept.data) !=
            MHD_YES) {
        answer_done(a);
        answer_failure(a, e < 0 ? e : -ENOMEM, NULL);
        return;
    }
    a->status = MHD_HTTP_SWITCHING_PROTOCOLS;
}
