/* The wire: framing, pieces, pipelines, slow and greedy clients, upgrades, shutdown. */
#include "http.h"

#include <pthread.h>

#include <curl/curl.h>

static struct server server;

static int setup(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(contract_init(&err), 0);
    struct gateway_options o = {.channel_auth = true};
    server_start(&server, &o, 100000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_stop(&server);
    contract_done();
    return 0;
}

#define BODY    "{\"language\":\"python\"," HELLO_FILES "}"
#define BODY_N  "71" /* strlen(BODY), checked below */
#define HEALTHY "{\"status\":\"ok\"}"
#define EXECUTE "POST /v1/execute HTTP/1.1\r\nHost: x\r\n" JSON
#define DENIED  "{\"error\":\"unauthorized\"}"

static void split_at_every_byte(void **state)
{
    (void)state;
    assert_int_equal(strlen(BODY), strtoul(BODY_N, NULL, 10));
    static const char request[] = EXECUTE "Content-Length: " BODY_N "\r\n\r\n" BODY;
    for (size_t cut = 1; cut < sizeof(request) - 1; cut++) {
        int fd = client_open(&server);
        int on = 1;
        assert_int_equal(setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on)), 0);
        client_send(fd, request, cut);
        client_send(fd, request + cut, sizeof(request) - 1 - cut);
        struct buf in;
        buf_init(&in, 1 << 16);
        struct reply r = reply_read(fd, &in, false);
        if (r.status != 202)
            fail_msg("cut at %zu: %d %s", cut, r.status, reply_text(&r));
        buf_done(&r.body);
        buf_done(&in);
        (void)close(fd);
    }
}

static void chunked_bodies(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1 << 16);
    (void)buf_append_str(&out, EXECUTE "Transfer-Encoding: chunked\r\n\r\n");
    for (const char *p = BODY; *p; p++)
        (void)buf_appendf(&out, "1\r\n%c\r\n", *p);
    (void)buf_append_str(&out, "0\r\nTrailer: x\r\n\r\n");
    struct reply r = raw(&server, out.data, out.len);
    assert_int_equal(r.status, 202);
    buf_done(&r.body);
    buf_done(&out);

    /* An extension on every chunk: nobody sends that, and a newer library takes it for an attack. */
    buf_init(&out, 1 << 16);
    (void)buf_append_str(&out, EXECUTE "Transfer-Encoding: chunked\r\n\r\n");
    for (const char *p = BODY; *p; p++)
        (void)buf_appendf(&out, "1;ext=1\r\n%c\r\n", *p);
    (void)buf_append_str(&out, "0\r\n\r\n");
    r = raw(&server, out.data, out.len);
    assert_true(r.status == 202 || r.status == 400);
    buf_done(&r.body);
    buf_done(&out);

    /* One byte more than the maximum, in chunks: nobody could know at the headers. */
    for (int extra = 0; extra <= 1; extra++) {
        buf_init(&out, 1 << 16);
        (void)buf_append_str(&out, EXECUTE "Transfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 80; i++)
            (void)buf_appendf(&out, "64\r\n%0100d\r\n", 0);
        (void)buf_append_str(&out, extra ? "1\r\n0\r\n0\r\n\r\n" : "0\r\n\r\n");
        r = raw(&server, out.data, out.len);
        assert_int_equal(r.status, extra ? 413 : 400);
        assert_non_null(strstr(reply_text(&r), extra ? "Body too large: the maximum is 8000 bytes"
                                                     : "Invalid JSON"));
        buf_done(&r.body);
        buf_done(&out);
    }
}

/* A body without end is cut off. */
static void endless_bodies(void **state)
{
    (void)state;
    static const char *const heads[] = {
        EXECUTE "Transfer-Encoding: chunked\r\n\r\n",
        "POST /v1/jobs/" NO_JOB "/start HTTP/1.1\r\nHost: x\r\n" AUTH
        "Transfer-Encoding: chunked\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        int fd = client_open(&server);
        client_send(fd, heads[i], strlen(heads[i]));
        char chunk[4096 + 8 + 1];
        (void)snprintf(chunk, sizeof(chunk), "1000\r\n%04096d\r\n", 0);
        ssize_t n = 1;
        size_t sent = 0;
        while (n > 0 && sent < (64 << 20)) {
            n = send(fd, chunk, 4096 + 8, MSG_NOSIGNAL);
            sent += n > 0 ? (size_t)n : 0;
        }
        assert_true(n < 0);
        (void)close(fd);
    }
}

static void framing_in_doubt_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *head, *want;
    } cases[] = {
        {"Content-Length: 2\r\nContent-Length: 2\r\n", "More than one Content-Length"},
        {"Content-Length: 2\r\nContent-Length: 3\r\n", "More than one Content-Length"},
        {"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
         "Content-Length together with Transfer-Encoding"},
        {"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
         "Content-Length together with Transfer-Encoding"},
        {"Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding must be chunked"},
        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
         "Transfer-Encoding must be chunked"},
        {"Transfer-Encoding: identity\r\n", "Transfer-Encoding must be chunked"},
        {"Content-Length: -1\r\n", NULL},
        {"Content-Length: +2\r\n", NULL},
        {"Content-Length: 2, 2\r\n", NULL},
        {"Content-Length: 0x2\r\n", NULL},
        {"Content-Length: 99999999999999999999999\r\n", NULL},
        {"Content-Length : 2\r\n", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char request[512];
        (void)snprintf(request, sizeof(request), EXECUTE "%s\r\n{}", cases[i].head);
        int fd = client_open(&server);
        client_send(fd, request, strlen(request));
        struct buf in;
        buf_init(&in, 1 << 16);
        struct reply r = reply_read(fd, &in, false);
        /* Where the library is the first to refuse, its words are its own. */
        if ((r.status != 400 && !(r.status == 413 && !cases[i].want)) ||
            (cases[i].want && !strstr(reply_text(&r), cases[i].want) &&
             !strstr(reply_text(&r), "<html>")))
            fail_msg("%s: %d %s", cases[i].head, r.status, reply_text(&r));
        assert_false(client_read_until(fd, &in, NULL)); /* and the connection ends */
        /* Its old versions send their own head twice. */
        if (in.len > 0 && (cases[i].want || strstr(in.data, "HTTP/1.1 2")))
            fail_msg("%s: %d %s and then %s", cases[i].head, r.status, reply_text(&r), in.data);
        buf_done(&r.body);
        buf_done(&in);
        (void)close(fd);
    }
}

static void pipelined_requests(void **state)
{
    (void)state;
    static const char requests[] =
        "GET /health HTTP/1.1\r\nHost: x\r\n\r\n" EXECUTE "Content-Length: " BODY_N "\r\n\r\n" BODY
        "POST /v1/execute HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
        "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    static const int want[] = {200, 202, 401, 404, 200};
    int fd = client_open(&server);
    client_send(fd, requests, sizeof(requests) - 1);
    struct buf in;
    buf_init(&in, 1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct reply r = reply_read(fd, &in, false);
        assert_int_equal(r.status, want[i]);
        buf_done(&r.body);
    }
    buf_done(&in);
    (void)close(fd);
}

static void expect_continue(void **state)
{
    (void)state;
    static const char head[] = EXECUTE "Expect: 100-continue\r\nContent-Length: " BODY_N "\r\n\r\n";
    int fd = client_open(&server);
    client_send(fd, head, sizeof(head) - 1);
    struct buf in;
    buf_init(&in, 1 << 16);
    struct reply r = reply_read(fd, &in, false);
    assert_int_equal(r.status, 100);
    buf_done(&r.body);
    client_send(fd, BODY, strlen(BODY));
    r = reply_read(fd, &in, false);
    assert_int_equal(r.status, 202);
    buf_done(&r.body);
    buf_done(&in);
    (void)close(fd);

    /* Refused before the body is sent at all. */
    static const char denied[] = "POST /v1/execute HTTP/1.1\r\nHost: x\r\n"
                                 "Expect: 100-continue\r\nContent-Length: 71\r\n\r\n";
    reply_is(raw(&server, denied, sizeof(denied) - 1), 401, DENIED);
    static const char large[] = EXECUTE "Expect: 100-continue\r\nContent-Length: 8001\r\n\r\n";
    reply_is(raw(&server, large, sizeof(large) - 1), 413,
             "{\"error\":\"Body too large: 8001 bytes, the maximum is 8000\"}");
    static const char long_one[] = "POST /v1/execute HTTP/1.1\r\nHost: x\r\n"
                                   "Content-Length: 99999999\r\n\r\n";
    reply_is(raw(&server, long_one, sizeof(long_one) - 1), 401, DENIED);
    static const char chunked[] = "POST /v1/execute HTTP/1.1\r\nHost: x\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n";
    reply_is(raw(&server, chunked, sizeof(chunked) - 1), 401, DENIED);
}

static void huge_headers(void **state)
{
    (void)state;
    for (size_t n = 1000; n <= 100000; n *= 10) {
        struct buf out;
        buf_init(&out, 1 << 20);
        (void)buf_append_str(&out, "GET /health HTTP/1.1\r\nHost: x\r\nX: ");
        for (size_t i = 0; i < n; i++)
            (void)buf_append_byte(&out, 'x');
        (void)buf_append_str(&out, "\r\n\r\n");
        struct reply r = raw(&server, out.data, out.len);
        if (n <= 10000)
            assert_int_equal(r.status, 200);
        else if (r.status != 431 && r.status != 413 && r.status != 0)
            fail_msg("%zu: %d", n, r.status);
        buf_done(&r.body);
        buf_done(&out);
    }
    struct reply r = ask(&server, "GET", "/health", "", NULL);
    reply_is(r, 200, HEALTHY);
}

static void clients_that_trickle_are_cut_off(void **state)
{
    (void)state;
    struct server s;
    struct gateway_options o = {.request_ms = 100};
    server_start(&s, &o, 10);
    static const char *const heads[] = {
        "", "GET /health HTTP/1.1\r\nHost: x\r\nX: ", EXECUTE "Content-Length: 4000\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        int fd = client_open(&s);
        client_send(fd, heads[i], strlen(heads[i]));
        int64_t deadline = clock_now_ms() + PATIENCE;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        while (poll(&p, 1, 20) == 0) { /* never silent for long */
            assert_true(clock_now_ms() < deadline);
            client_send(fd, i ? "x" : "", i ? 1 : 0);
        }
        char byte;
        assert_true(recv(fd, &byte, 1, 0) <= 0);
        (void)close(fd);
    }
    /* Others are served; a busy machine may take more than 100 ms for it. */
    int64_t deadline = clock_now_ms() + PATIENCE;
    int status = 0;
    while (status == 0 && clock_now_ms() < deadline) {
        struct reply r = ask(&s, "GET", "/health", "", NULL);
        status = r.status;
        buf_done(&r.body);
    }
    assert_int_equal(status, 200);
    server_stop(&s);
}

/* ---- upgrades ---- */

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define WS  "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n"

static int upgraded(const struct server *s, const char *path, struct buf *in)
{
    int fd = client_open(s);
    char request[512];
    (void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n" WS KEY "\r\n", path);
    client_send(fd, request, strlen(request));
    struct reply r = reply_read(fd, in, false);
    assert_int_equal(r.status, 101);
    /* RFC 6455, section 1.3 */
    assert_non_null(strstr(r.head, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert_non_null(strcasestr(r.head, "\r\nUpgrade: websocket\r\n"));
    assert_non_null(strcasestr(r.head, "\r\nConnection: Upgrade\r\n"));
    buf_done(&r.body);
    return fd;
}

static void upgrade(void **state)
{
    (void)state;
    struct buf in;
    buf_init(&in, 1 << 16);
    int fd = upgraded(&server, "/app/" APP_KEY "?protocol=7&client=js", &in);
    assert_true(client_read_until(fd, &in, "pusher:connection_established"));
    (void)close(fd);
    buf_done(&in);
    fd = upgraded(&server, "/app/wrong", &in);
    assert_true(client_read_until(fd, &in, "4001"));
    (void)close(fd);
    buf_done(&in);
}

static void upgrades_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *method, *headers;
        int status;
    } cases[] = {
        {"GET", "", 426},
        {"GET", KEY "Upgrade: websocket\r\nConnection: Upgrade\r\n", 426},
        {"GET", KEY "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\n",
         426},
        {"GET", KEY "Upgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n", 426},
        {"GET", KEY "Upgrade: websocket\r\nConnection: close\r\nSec-WebSocket-Version: 13\r\n",
         426},
        {"HEAD", WS KEY, 426},
        {"POST", WS KEY, 404},
        {"GET", WS, 400},
        {"GET", WS "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=\r\n", 400},
        {"GET", WS "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSE=\r\n", 400},
        {"GET", WS "Sec-WebSocket-Key: !GhlIHNhbXBsZSBub25jZQ==\r\n", 400},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct reply r = ask(&server, cases[i].method, "/app/" APP_KEY, cases[i].headers, NULL);
        if (r.status != cases[i].status)
            fail_msg("case %zu: %d %s", i, r.status, reply_text(&r));
        if (r.status == 426)
            assert_non_null(strstr(r.head, "\r\nSec-WebSocket-Version: 13\r\n"));
        buf_done(&r.body);
    }
}

static void shutdown_with_open_sockets(void **state)
{
    (void)state;
    struct server s;
    struct gateway_options o = {0};
    server_start(&s, &o, 10);
    int sockets[8];
    struct buf in;
    for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
        buf_init(&in, 1 << 16);
        sockets[i] = upgraded(&s, "/app/" APP_KEY, &in);
        buf_done(&in);
    }
    /* An open connection that asks for an upgrade after the hub is out of reach. */
    int late = client_open(&s);
    static const char health[] = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    client_send(late, health, sizeof(health) - 1);
    buf_init(&in, 1 << 16);
    struct reply r = reply_read(late, &in, false);
    buf_done(&r.body);
    gateway_quiesce(s.gateway);
    static const char request[] = "GET /app/" APP_KEY " HTTP/1.1\r\nHost: x\r\n" WS KEY "\r\n";
    client_send(late, request, sizeof(request) - 1);
    r = reply_read(late, &in, false);
    buf_done(&r.body);
    assert_false(client_read_until(late, &in, NULL));
    assert_null(in.data && in.len ? strstr(in.data, "connection_established") : NULL);
    (void)close(late);
    server_stop(&s);
    for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
        assert_false(client_read_until(sockets[i], &in, NULL));
        (void)close(sockets[i]);
    }
    buf_done(&in);
}

/* ---- many ---- */

#define CLIENTS  64
#define REQUESTS 10

static void *one_of_many(void *arg)
{
    unsigned *wrong = arg;
    for (int i = 0; i < REQUESTS; i++) {
        struct reply r = ask(&server, "POST", "/v1/execute", JSON, BODY);
        *wrong += r.status != 202;
        buf_done(&r.body);
    }
    return NULL;
}

static void many_clients(void **state)
{
    (void)state;
    pthread_t threads[CLIENTS];
    unsigned wrong[CLIENTS] = {0};
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, one_of_many, &wrong[i]), 0);
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(wrong[i], 0);
    }
}

/* More connections than the limit: the rest waits in the queue and is served in turn. */
static void connection_limit(void **state)
{
    (void)state;
    struct server s;
    struct gateway_options o = {.connections_max = 4};
    server_start(&s, &o, 10);
    int fds[4];
    struct buf in;
    buf_init(&in, 1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = client_open(&s);
        static const char health[] = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
        client_send(fds[i], health, sizeof(health) - 1);
        struct reply r = reply_read(fds[i], &in, false);
        assert_int_equal(r.status, 200);
        buf_done(&r.body);
    }
    int waiting = client_open(&s);
    static const char health[] = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    client_send(waiting, health, sizeof(health) - 1);
    struct pollfd p = {.fd = waiting, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 50), 0); /* not yet */
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        (void)close(fds[i]);
    struct reply r = reply_read(waiting, &in, false);
    assert_int_equal(r.status, 200);
    buf_done(&r.body);
    buf_done(&in);
    (void)close(waiting);
    server_stop(&s);
}

/* ---- a client of the field ---- */

static size_t curl_body(char *bytes, size_t size, size_t n, void *arg)
{
    return buf_append(arg, bytes, size * n) == 0 ? size * n : 0;
}

static void curl_client(void **state)
{
    (void)state;
    CURL *c = curl_easy_init();
    struct curl_slist *h = curl_slist_append(NULL, "Authorization: Bearer " TOKEN);
    h = curl_slist_append(h, "Content-Type: application/json");
    h = curl_slist_append(h, "Expect: 100-continue");
    char url[128];
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/v1/execute",
                   gateway_port(server.gateway));
    struct buf body;
    buf_init(&body, 1 << 16);
    long status = 0;
    assert_int_equal(curl_easy_setopt(c, CURLOPT_URL, url), CURLE_OK);
    assert_int_equal(curl_easy_setopt(c, CURLOPT_HTTPHEADER, h), CURLE_OK);
    assert_int_equal(curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L), CURLE_OK);
    assert_int_equal(curl_easy_setopt(c, CURLOPT_POSTFIELDS, BODY), CURLE_OK);
    assert_int_equal(curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, curl_body), CURLE_OK);
    assert_int_equal(curl_easy_setopt(c, CURLOPT_WRITEDATA, &body), CURLE_OK);
    for (int i = 0; i < 3; i++) { /* the same connection again */
        buf_clear(&body);
        assert_int_equal(curl_easy_perform(c), CURLE_OK);
        assert_int_equal(curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status), CURLE_OK);
        assert_int_equal(status, 202);
        assert_non_null(strstr(body.data, "\"status\":\"queued\""));
    }
    curl_slist_free_all(h);
    curl_easy_cleanup(c);
    buf_done(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_at_every_byte),
        cmocka_unit_test(chunked_bodies),
        cmocka_unit_test(endless_bodies),
        cmocka_unit_test(framing_in_doubt_is_refused),
        cmocka_unit_test(pipelined_requests),
        cmocka_unit_test(expect_continue),
        cmocka_unit_test(huge_headers),
        cmocka_unit_test(clients_that_trickle_are_cut_off),
        cmocka_unit_test(upgrade),
        cmocka_unit_test(upgrades_that_are_none),
        cmocka_unit_test(shutdown_with_open_sockets),
        cmocka_unit_test(many_clients),
        cmocka_unit_test(connection_limit),
        cmocka_unit_test(curl_client),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
