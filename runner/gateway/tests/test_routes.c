/* Every route and every error of it, over real sockets, with the memory bus. */
#include "http.h"

static struct server server;

static json_t *fake_checks; /* what /health is told */
static json_t *health(void *arg)
{
    (void)arg;
    return fake_checks ? json_deep_copy(fake_checks) : json_array();
}

static int setup(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(contract_init(&err), 0);
    struct gateway_options o = {
        .channel_auth = true, .limits_max = {.wall_ms = 60000}, .health = health};
    server_start(&server, &o, 1000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_stop(&server);
    contract_done();
    return 0;
}

struct fixed {
    const char *method, *path, *headers, *body;
    int status;
    const char *want;
};

static void run_table(const struct fixed *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct reply r = ask(&server, t[i].method, t[i].path, t[i].headers, t[i].body);
        if (r.status != t[i].status || strcmp(reply_text(&r), t[i].want) != 0)
            fail_msg("%s %s %s: want %d %s\ngot %d %s", t[i].method, t[i].path,
                     t[i].body ? t[i].body : "", t[i].status, t[i].want, r.status, reply_text(&r));
        bool is_json = t[i].want[0] == '{' || t[i].want[0] == '[';
        if (is_json && !strcasestr(r.head, "\r\nContent-Type: application/json\r\n"))
            fail_msg("%s %s: %s", t[i].method, t[i].path, r.head);
        bool later = r.status == 429 || r.status == 503;
        if (later != (strcasestr(r.head, "\r\nRetry-After: ") != NULL))
            fail_msg("%s %s: %s", t[i].method, t[i].path, r.head);
        buf_done(&r.body);
    }
}

#define NOT_FOUND "404 Not Found"
#define DENIED    "{\"error\":\"unauthorized\"}"

static void paths_and_bearer(void **state)
{
    (void)state;
    static const struct fixed t[] = {
        {"GET", "/health", "", NULL, 200, "{\"status\":\"ok\"}"},
        {"GET", "/health?x=1", "", NULL, 200, "{\"status\":\"ok\"}"},
        {"GET", "/ready", "", NULL, 200, "{\"status\":\"ok\"}"},
        {"GET", "/%68ealth", "", NULL, 200, "{\"status\":\"ok\"}"},
        {"GET", "/health/", "", NULL, 404, NOT_FOUND},
        {"GET", "/health%00", "", NULL, 404, NOT_FOUND},
        {"GET", "/health%", "", NULL, 404, NOT_FOUND},
        {"GET", "//health", "", NULL, 404, NOT_FOUND},
        {"GET", "/", "", NULL, 404, NOT_FOUND},
        {"POST", "/health", "", "", 404, NOT_FOUND},
        {"DELETE", "/health", "", NULL, 404, NOT_FOUND},
        {"GET", "/v1", "", NULL, 401, DENIED},
        {"GET", "/v1/", "", NULL, 401, DENIED},
        {"GET", "/%761/languages", "", NULL, 401, DENIED},
        {"GET", "/v1/nothing", "", NULL, 401, DENIED},
        {"GET", "/v1/nothing", AUTH, NULL, 404, NOT_FOUND},
        {"GET", "/v1/a/b/c/d/e/f/g/h/i/j", "", NULL, 401, DENIED},
        {"GET", "/v1/a/b/c/d/e/f/g/h/i/j", AUTH, NULL, 404, NOT_FOUND},
        {"PUT", "/v1/languages", AUTH, "x", 404, NOT_FOUND},
        {"GET", "/v1/languages", "Authorization: bearer " TOKEN "\r\n", NULL, 401, DENIED},
        {"GET", "/v1/languages", "Authorization: Bearer  " TOKEN "\r\n", NULL, 401, DENIED},
        {"GET", "/v1/languages", "Authorization: Bearer\r\n", NULL, 401, DENIED},
        {"GET", "/v1/languages", "Authorization: Bearer " TOKEN "x\r\n", NULL, 401, DENIED},
        {"GET", "/v1/languages", "Authorization: " TOKEN "\r\n", NULL, 401, DENIED},
        {"POST", "/v1/execute", "", "{", 401, DENIED},
        {"GET", "/v1/jobs//status", AUTH, NULL, 404, NOT_FOUND},
        {"GET", "/v1/languages", AUTH, NULL, 200,
         "[{\"language\":\"python\",\"version\":\"3.13\",\"aliases\":[\"py\"],"
         "\"interactive\":true},"
         "{\"language\":\"python\",\"version\":\"3.9\",\"aliases\":[\"py\"],\"interactive\":true},"
         "{\"language\":\"ruby\",\"version\":\"3.3\",\"aliases\":[\"rb\"],\"interactive\":true}]"},
    };
    run_table(t, ARRAY_LEN(t));
    struct reply r = ask(&server, "GET", "/nothing", "", NULL);
    assert_non_null(strcasestr(r.head, "\r\nContent-Type: text/plain; charset=UTF-8\r\n"));
    buf_done(&r.body);
}

static void head_is_get_without_body(void **state)
{
    (void)state;
    struct reply r = ask(&server, "HEAD", "/health", "", NULL);
    assert_int_equal(r.status, 200);
    assert_int_equal(head_length(r.head), strlen("{\"status\":\"ok\"}"));
    buf_done(&r.body);
}

static void metrics(void **state)
{
    (void)state;
    struct reply r = ask(&server, "GET", "/metrics", "", NULL);
    assert_int_equal(r.status, 200);
    assert_non_null(strcasestr(r.head, "\r\nContent-Type: text/plain; version=0.0.4\r\n"));
    assert_non_null(strstr(reply_text(&r), "\ncode_runner_queue_depth "));
    buf_done(&r.body);
}

static void health_and_ready_tell_what_is_wrong(void **state)
{
    (void)state;
    fake_checks = json_pack("[{s:s,s:s,s:s}]", "name", "docker", "status", "warn", "message", "m");
    static const char warn[] = "{\"status\":\"degraded\",\"checks\":[{\"name\":\"docker\","
                               "\"status\":\"warn\",\"message\":\"m\"}]}";
    reply_is(ask(&server, "GET", "/health", "", NULL), 200, warn);
    reply_is(ask(&server, "GET", "/ready", "", NULL), 200, warn);
    json_decref(fake_checks);
    fake_checks = json_pack("[{s:s,s:s,s:s}]", "name", "docker", "status", "error", "message", "m");
    static const char error[] = "{\"status\":\"degraded\",\"checks\":[{\"name\":\"docker\","
                                "\"status\":\"error\",\"message\":\"m\"}]}";
    reply_is(ask(&server, "GET", "/health", "", NULL), 200, error);
    reply_is(ask(&server, "GET", "/ready", "", NULL), 503, error);
    json_decref(fake_checks);
    fake_checks = NULL;
}

#define FILES(f) "{\"language\":\"python\",\"files\":[" f "]}"
#define ERROR(m) "{\"error\":\"" m "\"}"

static void bodies_that_are_wrong(void **state)
{
    (void)state;
    static const char ex[] = "/v1/execute";
    static const struct fixed t[] = {
        {"POST", ex, AUTH, "{}", 400,
         "{\"error\":\"Validation error\",\"details\":[{\"path\":\"\",\"message\":\"Content-Type "
         "must be application/json, and there is none\"}]}"},
        {"POST", ex, AUTH "Content-Type: text/plain\r\n", "{}", 400,
         "{\"error\":\"Validation error\",\"details\":[{\"path\":\"\",\"message\":\"Content-Type "
         "must be application/json, not \\\"text/plain\\\"\"}]}"},
        {"POST", ex, AUTH "Content-Type: application/jsonx\r\n", "{}", 400,
         "{\"error\":\"Validation error\",\"details\":[{\"path\":\"\",\"message\":\"Content-Type "
         "must be application/json, not \\\"application/jsonx\\\"\"}]}"},
        {"POST", ex, JSON, FILES("{\"name\":\"/x\",\"content\":\"\"}"), 400,
         ERROR("Invalid file path: \\\"/x\\\" is not relative")},
        {"POST", ex, JSON, FILES("{\"name\":\"a/../x\",\"content\":\"\"}"), 400,
         ERROR("Invalid file path: \\\"a/../x\\\" leads out of the working folder")},
        {"POST", ex, JSON, FILES("{\"name\":\"./.\",\"content\":\"\"}"), 400,
         ERROR("Invalid file path: \\\"./.\\\" names no file")},
        {"POST", ex, JSON, FILES("{\"name\":\"a\\u0000b\",\"content\":\"\"}"), 400,
         ERROR("Invalid file path: \\\"a\\\" contains a NUL")},
        {"POST", ex, JSON,
         FILES("{\"name\":\"a/b\",\"content\":\"\"},{\"name\":\"./a//b/\",\"content\":\"\"}"), 400,
         ERROR("Invalid file path: \\\"a/b\\\" is there twice")},
        {"POST", ex, JSON,
         FILES("{\"name\":\"a/b\",\"content\":\"\"},{\"name\":\"a!\",\"content\":\"\"},"
               "{\"name\":\"a\",\"content\":\"\"}"),
         400, ERROR("Invalid file path: \\\"a\\\" is a file and a folder")},
        {"POST", ex, JSON, FILES("{\"name\":\"a\"}"), 400,
         ERROR("Invalid file ref: \\\"a\\\" must have exactly one of content and ref")},
        {"POST", ex, JSON, FILES("{\"name\":\"a\",\"content\":\"QQ=\",\"encoding\":\"base64\"}"),
         400, ERROR("Invalid file content: \\\"a\\\" is not standard padded base64")},
        {"POST", ex, JSON, "{\"language\":\"perl\"," HELLO_FILES "}", 400,
         ERROR("Unknown language \\\"perl\\\". GET /v1/languages lists all there are.")},
        {"POST", ex, JSON, "{\"language\":\"python\\u0000\"," HELLO_FILES "}", 400,
         ERROR("Unknown language \\\"python?\\\". GET /v1/languages lists all there are.")},
        {"POST", ex, JSON, "{\"language\":\"py\",\"version\":\"9\"," HELLO_FILES "}", 400,
         ERROR("Unknown version \\\"9\\\" for language \\\"py\\\". GET /v1/languages lists all "
               "there are.")},
        {"POST", ex, JSON, "{\"language\":\"py\",\"version\":\"\"," HELLO_FILES "}", 400,
         ERROR("Unknown version \\\"\\\" for language \\\"py\\\". GET /v1/languages lists all "
               "there are.")},
        {"POST", ex, JSON,
         "{\"language\":\"py\",\"limits\":{\"wallTimeMs\":60001}," HELLO_FILES "}", 400,
         ERROR("Limit wallTimeMs is 60001, the maximum on this server is 60000")},
        {"POST", ex, JSON, "{\"language\":\"py\",\"limits\":{\"memoryMb\":5}," HELLO_FILES "}", 400,
         ERROR("Limit memoryMb is 5, the minimum is 6")},
        {"POST", ex, JSON,
         FILES("{\"name\":\"a\",\"ref\":\"sha256:"
               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}"),
         501, ERROR("blob store not configured: send files with their content")},
        {"POST", "/v1/blobs/check", JSON, "{\"hashes\":[]}", 501,
         ERROR("blob store not configured: send files with their content")},
    };
    run_table(t, ARRAY_LEN(t));
}

static void malformed_json_and_violations(void **state)
{
    (void)state;
    static const char *const malformed[] = {"", "{", "[1,]", "{\"a\":1,\"a\":2}", "\xff", "{}x"};
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
        struct reply r = ask(&server, "POST", "/v1/execute", JSON, malformed[i]);
        assert_int_equal(r.status, 400);
        assert_ptr_equal(strstr(reply_text(&r), "{\"error\":\"Invalid JSON: line 1, column "),
                         reply_text(&r));
        buf_done(&r.body);
    }
    struct reply r = ask(&server, "POST", "/v1/execute", JSON,
                         "{\"language\":\"\",\"files\":[{\"name\":\"\",\"x\":1}]}");
    assert_int_equal(r.status, 400);
    json_t *json = json_loads(reply_text(&r), 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "error")), "Validation error");
    assert_int_equal(json_array_size(json_object_get(json, "details")), 3);
    json_t *details = NULL;
    assert_int_equal(contract_check(CONTRACT_ERROR, json, &details), 0);
    json_decref(json);
    buf_done(&r.body);
}

static void sizes_on_both_sides(void **state)
{
    (void)state;
    struct buf b;
    for (size_t n = 1000; n <= 1001; n++) {
        buf_init(&b, 1 << 20);
        (void)buf_append_str(&b,
                             "{\"language\":\"ruby\",\"files\":[{\"name\":\"a\",\"content\":\"");
        for (size_t i = 0; i < n; i++)
            (void)buf_append_byte(&b, 'x');
        (void)buf_append_str(&b, "\"}]}");
        struct reply r = ask(&server, "POST", "/v1/execute", JSON, b.data);
        if (n == 1000)
            assert_int_equal(r.status, 202);
        else
            assert_string_equal(
                reply_text(&r),
                "{\"error\":\"Input files too large: 1001 bytes, the maximum is 1000\"}");
        buf_done(&r.body);
        buf_done(&b);
    }
    /* The body as a whole: 8000 is parsed, 8001 is not. */
    char *big = calloc(1, 8002);
    memset(big, ' ', 8001);
    struct reply r = ask(&server, "POST", "/v1/execute", JSON, big);
    reply_is(r, 413, "{\"error\":\"Body too large: 8001 bytes, the maximum is 8000\"}");
    big[8000] = '\0';
    r = ask(&server, "POST", "/v1/execute", JSON, big);
    assert_int_equal(r.status, 400);
    buf_done(&r.body);
    free(big);
}

static void a_job_as_the_worker_gets_it(void **state)
{
    (void)state;
    struct claim c;
    while (bus_claim(server.bus, "w", 0, &c, NULL) == 0)
        claim_done(&c);
    struct reply r = ask(
        &server, "POST", "/v1/execute", AUTH "Content-Type: application/json; charset=utf-8\r\n",
        "{\"language\":\"py\",\"version\":\"3.9\",\"collectOutput\":true,\"limits\":{\"pids\":7.0},"
        "\"files\":[{\"name\":\"./d//b\\\\c\",\"content\":\"\\u0000\\u00e9\"},"
        "{\"name\":\"e\",\"content\":\"AAEC\",\"encoding\":\"base64\"}]}");
    assert_int_equal(r.status, 202);
    json_t *json = json_loads(reply_text(&r), 0, NULL);
    json_t *details = NULL;
    assert_int_equal(contract_check(CONTRACT_EXECUTE_ACCEPTED, json, &details), 0);
    assert_int_equal(bus_claim(server.bus, "w", 0, &c, NULL), 0);
    assert_string_equal(c.spec->id, json_string_value(json_object_get(json, "jobId")));
    assert_string_equal(c.spec->language, "python");
    assert_string_equal(c.spec->version, "3.9");
    assert_string_equal(c.spec->image, "img:3.9");
    assert_string_equal(c.spec->entrypoint, "main.py");
    assert_string_equal(c.spec->run[1], "main.py");
    assert_string_equal(c.spec->env[0], "A=1");
    assert_null(c.spec->compile);
    assert_true(c.spec->interactive && c.spec->collect_output);
    assert_int_equal(c.spec->limits.pids, 7);
    assert_int_equal(c.spec->limits.memory_mb, 128);
    assert_true(c.spec->enqueued_at_ms > 1500000000000);
    assert_int_equal(c.spec->files_len, 2);
    assert_string_equal(c.spec->files[0].name, "d/b\\c");
    assert_int_equal(c.spec->files[0].content_len, 3);
    assert_memory_equal(c.spec->files[0].content, "\0\xc3\xa9", 3);
    assert_int_equal(c.spec->files[1].content_len, 3);
    assert_memory_equal(c.spec->files[1].content, "\0\1\2", 3);
    claim_done(&c);
    json_decref(json);
    buf_done(&r.body);
}

static struct reply job(const char *method, const char *id, const char *tail, const char *body)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "/v1/jobs/%s%s", id, tail);
    return ask(&server, method, path, body ? JSON : AUTH, body);
}

static void control_of_an_unknown_job(void **state)
{
    (void)state;
    static const char unknown[] = "{\"error\":\"Job not found: " NO_JOB "\"}";
    reply_is(job("POST", NO_JOB, "/start", NULL), 404, unknown);
    reply_is(job("POST", NO_JOB, "/kill", NULL), 404, unknown);
    reply_is(job("POST", NO_JOB, "/stdin/close", NULL), 404, unknown);
    reply_is(job("POST", NO_JOB, "/stdin", "{\"chunk\":\"x\"}"), 404, unknown);
    reply_is(job("POST", NO_JOB, "/stdin", "{}"), 404, unknown);
    reply_is(job("GET", NO_JOB, "", NULL), 404, unknown);
    reply_is(job("GET", NO_JOB, "/status", NULL), 404, unknown);
    reply_is(job("GET", NO_JOB, "/output", NULL), 404,
             "{\"error\":\"Job output not found: " NO_JOB "\"}");
    reply_is(job("GET", NO_JOB, "/report", NULL), 404,
             "{\"error\":\"Job report not found: " NO_JOB "\"}");
    reply_is(job("GET", "%22%0a%ff", "", NULL), 404,
             "{\"error\":\"Job not found: \\\"?\xef\xbf\xbd\"}");
    char long_id[301] = {0};
    memset(long_id, 'x', 300);
    struct reply r = job("GET", long_id, "", NULL);
    assert_int_equal(r.status, 404);
    assert_true(r.body.len < 200);
    buf_done(&r.body);
}

static void control_of_a_job(void **state)
{
    (void)state;
    static const char ok[] = "{\"ok\":true}";
    char id[JOB_ID_SIZE];
    submit(&server, id);
    struct reply r = job("GET", id, "/status", NULL);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(reply_text(&r), "\"state\":\"queued\""));
    buf_done(&r.body);
    reply_is(job("POST", id, "/start", NULL), 202, ok);
    reply_is(job("POST", id, "/start", "ignored"), 202, ok);
    reply_is(job("POST", id, "/stdin", "{\"chunk\":\"a\"}"), 200, ok);
    reply_is(job("POST", id, "/stdin", "{\"chunk\":\"\"}"), 200, ok);
    reply_is(job("POST", id, "/stdin/close", NULL), 200, ok);
    reply_is(job("POST", id, "/stdin", "{\"chunk\":\"a\"}"), 409,
             "{\"error\":\"Stdin is closed\"}");
    reply_is(job("POST", id, "/kill", NULL), 200, ok);
    /* It was queued: it has ended now, and nothing is an error any more. */
    reply_is(job("POST", id, "/start", NULL), 202, ok);
    reply_is(job("POST", id, "/stdin", "{\"chunk\":\"a\"}"), 200, ok);
    reply_is(job("POST", id, "/stdin/close", NULL), 200, ok);
    reply_is(job("POST", id, "/kill", NULL), 200, ok);
    r = job("GET", id, "", NULL);
    assert_non_null(strstr(reply_text(&r), "\"state\":\"killed\""));
    buf_done(&r.body);
    r = job("GET", id, "/report", NULL);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(reply_text(&r), "\"outcome\":\"killed\""));
    buf_done(&r.body);
}

static void stdin_has_bounds(void **state)
{
    (void)state;
    char id[JOB_ID_SIZE];
    submit(&server, id);
    /* More frames than two seconds allow, half of them invalid: one must be too many. */
    bool limited = false;
    for (int i = 0; i < 4 * BUS_STDIN_RATE_MAX && !limited; i++) {
        struct reply r = job("POST", id, "/stdin", i % 2 ? "{" : "{\"chunk\":\"\"}");
        limited = r.status == 429;
        if (limited) {
            assert_string_equal(reply_text(&r),
                                "{\"error\":\"Too many stdin frames\",\"retryAfterMs\":1000}");
            assert_non_null(strstr(r.head, "\r\nRetry-After: 1\r\n"));
        }
        buf_done(&r.body);
    }
    assert_true(limited);
    char other[JOB_ID_SIZE];
    submit(&server, other);
    char body[7000];
    (void)snprintf(body, sizeof(body), "{\"chunk\":\"%06500d\"}", 0);
    struct reply r = {0};
    for (int i = 0; i < 11; i++) { /* 10 fit into 65536, the 11th does not */
        buf_done(&r.body);
        r = job("POST", other, "/stdin", body);
        assert_int_equal(r.status, i < 10 ? 200 : 429);
    }
    assert_non_null(strstr(reply_text(&r), ",\"capBytes\":65536}"));
    assert_null(strstr(reply_text(&r), "retryAfterMs"));
    buf_done(&r.body);
}

static void channel_auth(void **state)
{
    (void)state;
    static const char form[] = AUTH "Content-Type: application/x-www-form-urlencoded\r\n";
    static const char path[] = "/v1/channel-auth";
    struct reply a = ask(&server, "POST", path, JSON,
                         "{\"socket_id\":\"1.2\",\"channel_name\":\"private-run-x\",\"more\":1}");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(reply_text(&a), "{\"auth\":\"" APP_KEY ":"));
    struct reply b = ask(&server, "POST", path, form,
                         "x=1&socket_id=1%2E2&channel_name=private%2Drun-x&socket_id=9.9");
    assert_int_equal(b.status, 200);
    assert_string_equal(reply_text(&a), reply_text(&b));
    buf_done(&a.body);
    buf_done(&b.body);
    reply_is(ask(&server, "POST", path, JSON, "{"), 400, "{\"error\":\"Invalid JSON body\"}");
    reply_is(ask(&server, "POST", path, "", "{"), 401, DENIED);
    reply_is(ask(&server, "POST", path, form, "socket_id=1.2&channel_name=presence-x"), 403,
             "{\"error\":\"Only channels that start with private-run- can be authorized\"}");
    static const char *const wrong[] = {"",
                                        "&&==&",
                                        "socket_id=1.2",
                                        "socket_id=1&channel_name=x",
                                        "socket_id=1.2&channel_name=private-run-%00",
                                        "socket_id=1.2&channel_name=private-run-a+b"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct reply r = ask(&server, "POST", path, form, wrong[i]);
        if (r.status != 400)
            fail_msg("%s: %d %s", wrong[i], r.status, reply_text(&r));
        buf_done(&r.body);
    }
}

/* Its own server: a queue of two, no channel-auth, then a bus that is closed. */
static void full_and_closed(void **state)
{
    (void)state;
    struct server s;
    struct gateway_options o = {0};
    server_start(&s, &o, 2);
    char id[JOB_ID_SIZE];
    submit(&s, id);
    submit(&s, id);
    struct reply r =
        ask(&s, "POST", "/v1/execute", JSON, "{\"language\":\"python\"," HELLO_FILES "}");
    assert_non_null(strstr(r.head, "\r\nRetry-After: 1\r\n"));
    reply_is(r, 429,
             "{\"error\":\"Executor at capacity (2 jobs are waiting). Try again later.\","
             "\"retryAfterMs\":1000}");
    r = ask(&s, "POST", "/v1/execute", JSON, "{\"language\":\"cobol\"," HELLO_FILES "}");
    assert_int_equal(r.status, 400); /* what is wrong is wrong at any time */
    buf_done(&r.body);
    reply_is(ask(&s, "POST", "/v1/channel-auth", JSON, "{}"), 404, NOT_FOUND);
    bus_close(s.bus);
    reply_is(ask(&s, "POST", "/v1/execute", JSON, "{\"language\":\"python\"," HELLO_FILES "}"), 503,
             "{\"error\":\"The server is shutting down\",\"retryAfterMs\":1000}");
    server_stop(&s);
}

static void addresses(void **state)
{
    (void)state;
    struct err err = {0};
    struct gateway *g = NULL;
    struct gateway_options o = {.host = "localhost",
                                .token = "t",
                                .bus = server.bus,
                                .languages = &server.languages,
                                .max_body_bytes = 1,
                                .connections_max = 1};
    assert_int_equal(gateway_start(&o, &g, &err), -EINVAL);
    assert_string_equal(err.msg, "\"localhost\" is not an IPv4 or IPv6 address");
    o.host = "127.0.0.1";
    o.port = gateway_port(server.gateway);
    assert_int_equal(gateway_start(&o, &g, &err), -EADDRINUSE);
    assert_non_null(strstr(err.msg, "listen on 127.0.0.1 port "));
    o.token = "";
    assert_int_equal(gateway_start(&o, &g, &err), -EINVAL);
    assert_null(g);
    o.token = "t";
    o.host = "::1";
    o.port = 0;
    int r = gateway_start(&o, &g, &err);
    if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT)
        return; /* a machine without IPv6: the address was understood */
    assert_int_equal(r, 0);
    assert_true(gateway_port(g) > 0);
    gateway_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_and_bearer),
        cmocka_unit_test(head_is_get_without_body),
        cmocka_unit_test(metrics),
        cmocka_unit_test(health_and_ready_tell_what_is_wrong),
        cmocka_unit_test(bodies_that_are_wrong),
        cmocka_unit_test(malformed_json_and_violations),
        cmocka_unit_test(sizes_on_both_sides),
        cmocka_unit_test(a_job_as_the_worker_gets_it),
        cmocka_unit_test(control_of_an_unknown_job),
        cmocka_unit_test(control_of_a_job),
        cmocka_unit_test(stdin_has_bounds),
        cmocka_unit_test(channel_auth),
        cmocka_unit_test(full_and_closed),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
