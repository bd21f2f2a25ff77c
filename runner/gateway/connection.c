/* One request from its headers to its answer.
 *
 * The library calls connection_access() once when the headers are there, once for each piece of the
 * body, and once more when the body is complete. It accepts an answer in the first and the last
 * call only; an answer in the first ends the connection, and what the client is still sending may
 * then destroy the answer on its way. So a refusal that is known at the headers waits for the end
 * of a short body, and goes out at once when the body is long or the client waits for "100
 * Continue". A body that turns out too long while it arrives is thrown away up to its end. */
#include <errno.h>
#include <strings.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/parse.h"
#include "gateway_internal.h"
#include "json/json.h"

/* A refused body of at most this many bytes is read and thrown away, so that the connection can go
 * on. */
#define REFUSED_BODY_BYTES_MAX 65536
/* Values in one body: a short text can make the parser build a large tree. */
#define JSON_VALUES_MAX 262144

const char *request_header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

bool content_type_is(const char *value, const char *type)
{
    size_t n = strlen(type);
    return value && strncasecmp(value, type, n) == 0 &&
           (value[n] == '\0' || value[n] == ';' || value[n] == ' ' || value[n] == '\t');
}

/* application/json or application/SOMETHING+json */
static bool content_type_is_json(const char *value)
{
    if (content_type_is(value, "application/json"))
        return true;
    static const char tree[] = "application/";
    if (!value || strncasecmp(value, tree, sizeof(tree) - 1) != 0)
        return false;
    size_t len = strcspn(value, "; \t");
    return len >= sizeof(tree) + 5 && strncasecmp(value + len - 5, "+json", 5) == 0;
}

size_t connection_unescape(void *cls, struct MHD_Connection *connection, char *s)
{
    (void)cls; /* the path is decoded segment by segment, and the query is not used */
    (void)connection;
    return strlen(s);
}

/* ---- at the headers ---- */

struct framing {
    unsigned lengths, encodings;
    const char *length, *encoding;
    bool has_bad_name;
};

static enum MHD_Result framing_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    (void)kind;
    struct framing *f = cls;
    if (strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        f->lengths++;
        f->length = value;
    } else if (strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        f->encodings++;
        f->encoding = value;
    }
    f->has_bad_name = f->has_bad_name || strpbrk(key, " \t\r\n\v\f") != NULL;
    return MHD_YES;
}

/* Where a message ends must be beyond doubt (RFC 9112, section 6.3), or a proxy before us may see
 * other requests than we do. Sets refusal if not. */
static struct framing framing_check(struct request *r, const char *version, uint64_t *ret_length)
{
    struct framing f = {0};
    (void)MHD_get_connection_values(r->connection, MHD_HEADER_KIND, framing_header, &f);
    const char *wrong = NULL;
    if (f.has_bad_name)
        wrong = "Malformed header name";
    else if (f.lengths > 1)
        wrong = "More than one Content-Length";
    else if (f.lengths > 0 && f.encodings > 0)
        wrong = "Content-Length together with Transfer-Encoding";
    else if (f.encodings > 1 || (f.encoding && strcasecmp(f.encoding, "chunked") != 0))
        wrong = "Transfer-Encoding must be chunked";
    else if (f.encoding && strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
        wrong = "Transfer-Encoding needs HTTP/1.1";
    else if (f.length && (!f.length[0] || parse_u64(f.length, strlen(f.length), 0, UINT64_MAX,
                                                    ret_length) == -EINVAL))
        wrong = "Content-Length is not a number";
    if (wrong) {
        answer_error(&r->refusal, MHD_HTTP_BAD_REQUEST, "%s", wrong);
        r->refusal.close = true;
    }
    return f;
}

static bool is_authorized(const struct request *r)
{
    static const char scheme[] = "Bearer ";
    const char *value = request_header(r, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!value || strncmp(value, scheme, sizeof(scheme) - 1) != 0)
        return false;
    const char *token = value + sizeof(scheme) - 1;
    return digest_secret_eq(token, strlen(token), r->gateway->token, strlen(r->gateway->token));
}

/* Decides what the headers alone decide; true: the answer must not wait for the body. */
static bool headers_decide(struct request *r, const char *url, const char *version)
{
    uint64_t length = 0;
    struct framing f = framing_check(r, version, &length);
    if (r->refusal.status)
        return true;
    bool is_private = false;
    int found = route_find(r, url, r->method, &is_private);
    if (found < 0)
        answer_failure(&r->refusal, found, NULL);
    else if (is_private && !is_authorized(r))
        answer_error(&r->refusal, MHD_HTTP_UNAUTHORIZED, "unauthorized");
    else if (found == ROUTE_UNKNOWN)
        answer_not_found(&r->refusal);
    else if (length > r->gateway->options.max_body_bytes)
        answer_error(&r->refusal, MHD_HTTP_CONTENT_TOO_LARGE,
                     "Body too large: %llu bytes, the maximum is %llu", (unsigned long long)length,
                     (unsigned long long)r->gateway->options.max_body_bytes);
    bool has_body = length > 0 || f.encodings > 0;
    bool is_long = length > REFUSED_BODY_BYTES_MAX || f.encodings > 0;
    return r->refusal.status != 0 && has_body &&
           (is_long || request_header(r, MHD_HTTP_HEADER_EXPECT));
}

/* ---- the body ---- */

static enum MHD_Result body_piece(struct request *r, const char *bytes, size_t n)
{
    uint64_t max = r->gateway->options.max_body_bytes;
    bool is_wanted = !r->refusal.status && !r->too_large &&
                     (r->route->has_raw_body || r->route->schema != CONTRACT_COUNT);
    if (is_wanted) {
        int e = buf_append(&r->body, bytes, n);
        if (e == 0)
            return MHD_YES;
        if (e == -ENOMEM)
            answer_failure(&r->refusal, e, NULL);
        else
            r->too_large = true;
        buf_done(&r->body);
    }
    r->discarded_bytes += n;
    /* A body that nobody reads may be as long as one that somebody does, and no longer; what has
     * become too long gets that much again to come to its end. */
    if (!r->too_large && !r->refusal.status && r->discarded_bytes > max) {
        r->too_large = true;
        r->discarded_bytes = 0;
    }
    return r->discarded_bytes > max + REFUSED_BODY_BYTES_MAX ? MHD_NO : MHD_YES;
}

/* Every value but the first follows one of these. */
static bool has_too_many_values(const struct buf *body)
{
    size_t values = 0;
    bool in_string = false;
    for (size_t i = 0; i < body->len; i++) {
        char c = body->data[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == ',' || c == '[' || c == '{') && ++values > JSON_VALUES_MAX)
            return true;
    }
    return false;
}

/* Parses and checks the body; on failure the answer is there. */
static void body_check(struct request *r, struct answer *a)
{
    const char *type = request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE);
    if (!content_type_is_json(type)) {
        struct shown t = shown(type ? type : "", type ? strlen(type) : 0);
        if (type)
            answer_violation(a, "", "Content-Type must be application/json, not \"%s\"", t.text);
        else
            answer_violation(a, "", "Content-Type must be application/json, and there is none");
        return;
    }
    struct err err = {0};
    int e = has_too_many_values(&r->body)
                ? err_say(&err, -EINVAL, "more than %d values", JSON_VALUES_MAX)
                : json_parse(r->body.data ? r->body.data : "", r->body.len, &r->json, &err);
    if (e == -EINVAL) {
        answer_error(a, MHD_HTTP_BAD_REQUEST, "Invalid JSON: %s", err.msg);
        return;
    }
    json_t *details = NULL;
    if (e == 0)
        e = contract_check(r->route->schema, r->json, &details);
    if (e > 0)
        answer_violations_take(a, details);
    else if (e < 0)
        answer_failure(a, e, err.code != 0 ? &err : NULL);
}

static void body_complete(struct request *r, struct answer *a)
{
    if (r->too_large) {
        answer_error(a, MHD_HTTP_CONTENT_TOO_LARGE, "Body too large: the maximum is %llu bytes",
                     (unsigned long long)r->gateway->options.max_body_bytes);
        return;
    }
    if (r->route->schema != CONTRACT_COUNT) {
        body_check(r, a);
        buf_done(&r->body);
        if (a->status && r->route->refused)
            r->route->refused(r, a);
    }
    if (!a->status)
        r->route->handle(r, a);
}

/* ---- what the library calls ---- */

static struct peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void request_free(struct request *r)
{
    free(r->path);
    buf_done(&r->body);
    json_decref(r->json);
    answer_done(&r->refusal);
    free(r);
}

static enum MHD_Result request_answer(struct request *r, struct answer *a)
{
    r->answered = true;
    keeper_set(r->gateway, peer_of(r->connection), DEADLINE_NEVER);
    log_debug("gateway.request", LOG_STR("method", r->method),
              LOG_STR("route", r->route ? r->route->path : ""), LOG_INT("status", a->status));
    return answer_send(a, r->connection);
}

static enum MHD_Result request_begin(struct gateway *g, struct MHD_Connection *connection,
                                     const char *url, const char *method, const char *version,
                                     void **con_cls)
{
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        return MHD_NO;
    r->gateway = g;
    r->connection = connection;
    r->method = method;
    buf_init(&r->body, (size_t)g->options.max_body_bytes);
    answer_init(&r->refusal);
    *con_cls = r;
    atomic_fetch_add(&g->requests, 1);
    keeper_set(g, peer_of(connection), clock_now_ms() + g->options.request_ms);
    return headers_decide(r, url, version) ? request_answer(r, &r->refusal) : MHD_YES;
}

enum MHD_Result connection_access(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **con_cls)
{
    struct request *r = *con_cls;
    if (!r)
        return request_begin(cls, connection, url, method, version, con_cls);
    if (*upload_data_size > 0) {
        size_t n = *upload_data_size;
        *upload_data_size = 0;
        return body_piece(r, upload_data, n);
    }
    if (r->answered)
        return MHD_YES;
    if (r->refusal.status)
        return request_answer(r, &r->refusal);
    cleanup_answer struct answer a;
    answer_init(&a);
    body_complete(r, &a);
    return request_answer(r, &a);
}

void connection_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                          enum MHD_RequestTerminationCode why)
{
    (void)why;
    struct gateway *g = cls;
    struct request *r = *con_cls;
    if (!r)
        return;
    *con_cls = NULL;
    if (!r->is_upgraded) {
        keeper_set(g, peer_of(connection), clock_now_ms() + g->options.request_ms);
        atomic_fetch_sub(&g->requests, 1);
    }
    request_free(r);
}

void connection_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
                       enum MHD_ConnectionNotificationCode what)
{
    struct gateway *g = cls;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        keeper_remove(g, *socket_context);
        *socket_context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *socket_context = info ? keeper_add(g, info->connect_fd) : NULL;
}
