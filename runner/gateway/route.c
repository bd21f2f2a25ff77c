#include <errno.h>

#include "gateway_internal.h"

#define SEGMENTS_MAX 8
#define NO_SCHEMA    CONTRACT_COUNT

static const struct route routes[] = {
    {"GET", "/health", health_get, NULL, NULL, NO_SCHEMA, false},
    {"GET", "/ready", ready_get, NULL, NULL, NO_SCHEMA, false},
    {"GET", "/metrics", metrics_get, NULL, NULL, NO_SCHEMA, false},
    {"GET", "/app/:key", app_get, NULL, app_is_enabled, NO_SCHEMA, false},
    {"GET", "/v1/languages", languages_get, NULL, NULL, NO_SCHEMA, false},
    {"POST", "/v1/execute", execute_post, NULL, NULL, CONTRACT_EXECUTE_REQUEST, false},
    {"GET", "/v1/jobs/:id", job_status_get, NULL, NULL, NO_SCHEMA, false},
    {"GET", "/v1/jobs/:id/status", job_status_get, NULL, NULL, NO_SCHEMA, false},
    {"GET", "/v1/jobs/:id/output", job_output_get, NULL, NULL, NO_SCHEMA, false},
    {"GET", "/v1/jobs/:id/report", job_report_get, NULL, NULL, NO_SCHEMA, false},
    {"POST", "/v1/jobs/:id/start", job_start, NULL, NULL, NO_SCHEMA, false},
    {"POST", "/v1/jobs/:id/stdin", job_stdin, job_stdin_refused, NULL, CONTRACT_STDIN_REQUEST,
     false},
    {"POST", "/v1/jobs/:id/stdin/close", job_stdin_close, NULL, NULL, NO_SCHEMA, false},
    {"POST", "/v1/jobs/:id/kill", job_kill, NULL, NULL, NO_SCHEMA, false},
    {"POST", "/v1/blobs/check", blobs_post, NULL, NULL, CONTRACT_BLOBS_REQUEST, false},
    {"POST", "/v1/blobs/finalize", blobs_post, NULL, NULL, CONTRACT_BLOBS_REQUEST, false},
    {"POST", "/v1/channel-auth", channel_auth_post, NULL, channel_auth_is_enabled, NO_SCHEMA, true},
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Percent-decodes in place; what is no %XX stays as it is. Returns the new length. */
static size_t segment_decode(char *s)
{
    char *out = s;
    for (const char *in = s; *in; out++) {
        int high = in[0] == '%' ? hex_digit(in[1]) : -1;
        int low = high >= 0 ? hex_digit(in[2]) : -1;
        *out = (char)(low >= 0 ? high * 16 + low : *in);
        in += low >= 0 ? 3 : 1;
    }
    *out = '\0';
    return (size_t)(out - s);
}

/* The path's segments, decoded one by one: a %2F is never a divider. How many, SEGMENTS_MAX + 1 when
 * there are more, 0 when it is no path. */
static size_t segments_split(char *path, struct span segments[static SEGMENTS_MAX])
{
    size_t n = 0;
    if (path[0] != '/')
        return 0;
    for (char *p = path; p;) {
        char *segment = p + 1;
        p = strchr(segment, '/');
        if (p)
            *p = '\0';
        if (n == SEGMENTS_MAX)
            return SEGMENTS_MAX + 1;
        segments[n++] = (struct span){segment, segment_decode(segment)};
    }
    return n;
}

static bool route_matches(const struct route *route, const struct span *segments, size_t n,
                          struct span *ret_param)
{
    size_t i = 0;
    for (const char *p = route->path; *p; i++) {
        p++; /* the slash */
        size_t len = strcspn(p, "/");
        if (i == n)
            return false;
        if (*p == ':' ? segments[i].len == 0
                      : segments[i].len != len || memcmp(segments[i].ptr, p, len) != 0)
            return false;
        if (*p == ':')
            *ret_param = segments[i];
        p += len;
    }
    return i == n;
}

int route_find(struct request *r, const char *url, const char *method, bool *ret_is_private)
{
    r->path = strdup(url);
    if (!r->path)
        return -ENOMEM;
    struct span segments[SEGMENTS_MAX];
    size_t n = segments_split(r->path, segments);
    *ret_is_private = n > 0 && span_eq(segments[0], "v1");
    if (n > SEGMENTS_MAX)
        return ROUTE_UNKNOWN;
    if (strcmp(method, MHD_HTTP_METHOD_HEAD) == 0)
        method = MHD_HTTP_METHOD_GET;
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        const struct route *route = &routes[i];
        struct span param = {NULL, 0};
        if (strcmp(route->method, method) != 0 || !route_matches(route, segments, n, &param))
            continue;
        if (route->is_enabled && !route->is_enabled(&r->gateway->options))
            continue;
        r->route = route;
        r->param = param;
        return ROUTE_FOUND;
    }
    return ROUTE_UNKNOWN;
}
