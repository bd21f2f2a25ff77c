/* tests/http.h - a raw HTTP client of a few lines, and a gateway to talk to. */
#ifndef GATEWAY_TESTS_HTTP_H
#define GATEWAY_TESTS_HTTP_H

#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "contract/contract.h"
#include "gateway/gateway.h"
#include "json/json.h"

#define TOKEN      "a-token-of-tests"
#define APP_KEY    "app-key"
#define APP_SECRET "app-secret"
#define AUTH       "Authorization: Bearer " TOKEN "\r\n"
#define NO_JOB     "00000000-0000-4000-8000-000000000000"
#define PATIENCE   20000 /* ms; a bound for broken code, never waited for */

struct server {
    struct bus *bus;
    struct hub *hub;
    struct languages languages;
    struct language items[3];
    struct gateway *gateway;
};

static inline void language_make(struct language *l, const char *name, const char *version,
                                 const char *alias)
{
    char text[1024];
    (void)snprintf(
        text, sizeof(text),
        "{\"language\":\"%s\",\"version\":\"%s\",\"aliases\":[\"%s\"],\"image\":\"img:%s\","
        "\"entrypoint\":\"main.py\",\"compile\":null,\"run\":[\"python3\",\"main.py\"],"
        "\"interactive\":true,\"preimport\":null,\"env\":{\"A\":\"1\"},\"defaultLimits\":{"
        "\"wallTimeMs\":30000,\"idleMs\":10000,\"cpuMs\":15000,\"memoryMb\":128,\"pids\":64,"
        "\"outputKb\":512,\"maxArtifacts\":20,\"maxArtifactBytes\":4194304}}",
        name, version, alias, version);
    struct err err = {0};
    if (manifest_parse(text, strlen(text), "test", l, &err) != 0)
        fail_msg("%s", err.msg);
}

static inline void server_start(struct server *s, struct gateway_options *o, uint32_t depth)
{
    struct err err = {0};
    memset(s, 0, sizeof(*s));
    language_make(&s->items[0], "python", "3.13", "py");
    language_make(&s->items[1], "python", "3.9", "py");
    language_make(&s->items[2], "ruby", "3.3", "rb");
    s->languages = (struct languages){s->items, 3};
    struct bus_memory_options b = {.queue_depth_max = depth,
                                   .job_ttl_ms = 3600000,
                                   .result_ttl_ms = 600000,
                                   .memory_max_bytes = 64 << 20};
    assert_int_equal(bus_memory_new(&b, &s->bus, &err), 0);
    struct hub_options h = {.bus = s->bus,
                            .app_key = APP_KEY,
                            .app_secret = APP_SECRET,
                            .replay = true,
                            .connections_max = 100};
    assert_int_equal(hub_new(&h, &s->hub, &err), 0);
    o->host = o->host ? o->host : "127.0.0.1";
    o->token = TOKEN;
    o->bus = s->bus;
    o->hub = s->hub;
    o->languages = &s->languages;
    o->max_files_bytes = o->max_files_bytes ? o->max_files_bytes : 1000;
    o->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : 8000;
    o->connections_max = o->connections_max ? o->connections_max : 200;
    if (gateway_start(o, &s->gateway, &err) != 0)
        fail_msg("%s", err.msg);
}

static inline void server_stop(struct server *s)
{
    gateway_quiesce(s->gateway);
    hub_free(s->hub);
    gateway_free(s->gateway);
    bus_free(s->bus);
    for (size_t i = 0; i < 3; i++)
        language_done(&s->items[i]);
}

static inline int client_open(const struct server *s)
{
    int fd = fd_socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(gateway_port(s->gateway)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        fail_msg("connect: errno %d", errno);
    return fd;
}

static inline void client_send(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0)
            return; /* the server may have closed: the answer tells */
        bytes += sent;
        n -= (size_t)sent;
    }
}

/* Appends what comes until the text is in (text NULL: until the end). False: the stream ended. */
static inline bool client_read_until(int fd, struct buf *in, const char *text)
{
    int64_t deadline = clock_now_ms() + PATIENCE;
    for (;;) {
        if (text && in->data && memmem(in->data, in->len, text, strlen(text)))
            return true;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, clock_poll_timeout(deadline)) == 0)
            fail_msg("no answer; so far: %.*s", (int)in->len, in->data ? in->data : "");
        char bytes[4096];
        ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
        if (n <= 0)
            return false;
        assert_int_equal(buf_append(in, bytes, (size_t)n), 0);
    }
}

struct reply {
    int status; /* 0: the connection ended without an answer */
    char head[2048];
    struct buf body;
};

static inline size_t head_length(const char *head)
{
    const char *v = strcasestr(head, "\r\nContent-Length:");
    return v ? strtoul(v + 17, NULL, 10) : 0;
}

/* Takes one answer off the stream; in holds what came beyond. */
static inline struct reply reply_read(int fd, struct buf *in, bool is_head)
{
    struct reply r = {0};
    buf_init(&r.body, 1 << 20);
    if (!client_read_until(fd, in, "\r\n\r\n"))
        return r;
    size_t head = (size_t)((char *)memmem(in->data, in->len, "\r\n\r\n", 4) - in->data) + 4;
    assert_true(head < sizeof(r.head));
    memcpy(r.head, in->data, head);
    buf_consume(in, head);
    r.status = (int)strtol(r.head + 9, NULL, 10);
    size_t n = is_head || r.status < 200 ? 0 : head_length(r.head);
    int64_t deadline = clock_now_ms() + PATIENCE;
    while (in->len < n) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        assert_int_not_equal(poll(&p, 1, clock_poll_timeout(deadline)), 0);
        char bytes[4096];
        ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
        assert_true(got > 0);
        assert_int_equal(buf_append(in, bytes, (size_t)got), 0);
    }
    if (n > 0) {
        assert_int_equal(buf_append(&r.body, in->data, n), 0);
        buf_consume(in, n);
    } else {
        assert_int_equal(buf_append(&r.body, "", 0), 0);
    }
    return r;
}

static inline struct reply raw(const struct server *s, const char *bytes, size_t n)
{
    int fd = client_open(s);
    client_send(fd, bytes, n);
    struct buf in;
    buf_init(&in, 1 << 20);
    struct reply r = reply_read(fd, &in, strncmp(bytes, "HEAD", 4) == 0);
    buf_done(&in);
    (void)close(fd);
    return r;
}

static inline struct reply ask(const struct server *s, const char *method, const char *path,
                               const char *headers, const char *body)
{
    struct buf out;
    buf_init(&out, 1 << 22);
    assert_int_equal(buf_appendf(&out, "%s %s HTTP/1.1\r\nHost: x\r\n%s", method, path, headers),
                     0);
    if (body)
        assert_int_equal(buf_appendf(&out, "Content-Length: %zu\r\n", strlen(body)), 0);
    assert_int_equal(buf_append_str(&out, "\r\n"), 0);
    if (body)
        assert_int_equal(buf_append_str(&out, body), 0);
    struct reply r = raw(s, out.data, out.len);
    buf_done(&out);
    return r;
}

#define JSON AUTH "Content-Type: application/json\r\n"

static inline const char *reply_text(const struct reply *r)
{
    return r->body.data ? r->body.data : "";
}

static inline void reply_is(struct reply r, int status, const char *body)
{
    if (r.status != status || strcmp(reply_text(&r), body) != 0)
        fail_msg("want %d %s, got %d %s", status, body, r.status, reply_text(&r));
    buf_done(&r.body);
}

#define HELLO_FILES "\"files\":[{\"name\":\"main.py\",\"content\":\"print(1)\"}]"

/* Submits a job; its id is in ret. */
static inline void submit(const struct server *s, char ret[static JOB_ID_SIZE])
{
    struct reply r =
        ask(s, "POST", "/v1/execute", JSON, "{\"language\":\"python\"," HELLO_FILES "}");
    assert_int_equal(r.status, 202);
    const char *id = strstr(reply_text(&r), "\"jobId\":\"");
    assert_non_null(id);
    memcpy(ret, id + 9, ID_UUID_LEN);
    ret[ID_UUID_LEN] = '\0';
    buf_done(&r.body);
}

#endif
