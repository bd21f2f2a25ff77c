/* The client against a scripted daemon. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "docker_internal.h"
#include "fake_daemon.h"
#include "test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* What the handler answers to everything but /_ping. */
struct script {
    int status;
    const char *json;
    const char *raw; /* instead of both */
    enum fake_then then;
    size_t filler; /* answer with a JSON string of this many bytes */
    unsigned calls;
    char body[4096]; /* of the last request */
};

static void on_request(void *user, const struct fake_request *q, struct fake_answer *a)
{
    struct script *s = user;
    s->calls++;
    size_t n = q->body.len < sizeof(s->body) - 1 ? q->body.len : sizeof(s->body) - 1;
    memcpy(s->body, q->body.ptr, n);
    s->body[n] = '\0';
    a->then = s->then;
    if (s->filler > 0) {
        (void)buf_appendf(&a->bytes, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n\"",
                          s->filler + 2);
        char *room = buf_reserve(&a->bytes, s->filler);
        if (room) {
            memset(room, 'x', s->filler);
            buf_commit(&a->bytes, s->filler);
        }
        (void)buf_append_str(&a->bytes, "\"");
    } else if (s->raw) {
        (void)buf_append_str(&a->bytes, s->raw);
    } else {
        fake_json(a, s->status, s->json);
    }
}

struct world {
    struct script script;
    struct fake_daemon *daemon;
    struct docker *docker;
    struct err err;
};

static void begin(struct world *w, const char *version)
{
    *w = (struct world){.script = {.status = 200, .json = "{}"}};
    w->daemon = fake_start(version, on_request, &w->script);
    assert_int_equal(docker_new(fake_address(w->daemon), &w->docker, &w->err), 0);
}

static void end(struct world *w)
{
    docker_free(w->docker);
    fake_stop(w->daemon);
}

static int inspect(struct world *w)
{
    json_t *json = NULL;
    int r = docker_container_inspect(w->docker, ID, &json, &w->err);
    json_decref(json);
    return r;
}

static void expect_words(const struct world *w, const char *words)
{
    if (!strstr(w->err.msg, words))
        fail_msg("\"%s\" is not in \"%s\"", words, w->err.msg);
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        int want;
        const char *host; /* or words of the error */
    } cases[] = {
        {"unix:///var/run/docker.sock", 0, "docker"},
        {"unix://docker.sock", -EINVAL, "absolute"},
        {"unix://", -EINVAL, "absolute"},
        {"tcp://127.0.0.1:2376", 0, "127.0.0.1:2376"},
        {"tcp://box", 0, "box:2375"},
        {"tcp://[::1]:99", 0, "[::1]:99"},
        {"tcp://", -EINVAL, "host and a port"},
        {"tcp://a:99999", -EINVAL, "host and a port"},
        {"tcp://a:b", -EINVAL, "host and a port"},
        {"tcp://user@a", -EINVAL, "host and a port"},
        {"tcp://a/path", -EINVAL, "host and a port"},
        {"tcp://a?query", -EINVAL, "host and a port"},
        {"ssh://a", -EINVAL, "unix:///path or tcp://"},
        {"", -EINVAL, "unix:///path or tcp://"},
        {"/var/run/docker.sock", -EINVAL, "unix:///path or tcp://"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_docker struct docker *d = NULL;
        struct err err = {0};
        int r = docker_new(cases[i].address, &d, &err);
        if (r != cases[i].want)
            fail_msg("%s: %d %s", cases[i].address, r, err.msg);
        const char *got = r == 0 ? d->host : err.msg;
        if (r == 0 ? strcmp(got, cases[i].host) != 0 : !strstr(got, cases[i].host))
            fail_msg("%s: %s", cases[i].address, got);
    }
    char longest[128] = "unix://";
    memset(longest + 7, '/', 107);
    cleanup_docker struct docker *d = NULL;
    assert_int_equal(docker_new(longest, &d, NULL), 0);
    longest[7 + 107] = '/';
    cleanup_docker struct docker *e = NULL;
    longest[7 + 108] = '\0';
    assert_int_equal(docker_new(longest, &e, NULL), -EINVAL);
}

static void test_statuses(void **state)
{
    (void)state;
    static const struct {
        int status, want;
        const char *json;
        const char *words;
    } cases[] = {
        {200, 0, "{}", ""},
        {304, 0, "", ""},
        {400, -EINVAL, "{\"message\":\"bad thing\"}", "bad thing"},
        {404, -ENOENT, "{\"message\":\"no such box\"}", "no such box"},
        {409, -EEXIST, "{\"message\":\"already so\"}", "already so"},
        {500, -EIO, "{\"message\":\"it broke\"}", "it broke"},
        {500, -EIO, "first\nsecond", ": first (Docker daemon"},
        {500, -EIO, "{\"message\":7}", "status 500"},
        {503, -EIO, "", "no reason given (Docker daemon, status 503)"},
        {301, -EIO, "", "status 301"},
    };
    struct world w;
    begin(&w, "1.41");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w.script.status = cases[i].status;
        w.script.json = cases[i].json;
        w.err = (struct err){0};
        int r = docker_container_start(w.docker, ID, &w.err);
        if (r != cases[i].want)
            fail_msg("%d: %d %s", cases[i].status, r, w.err.msg);
        if (r < 0)
            expect_words(&w, cases[i].words);
    }
    end(&w);
}

static void test_outcomes_that_are_no_errors(void **state)
{
    (void)state;
    struct world w;
    begin(&w, "1.41");
    w.script.status = 409;
    w.script.json = "{\"message\":\"Container is not running\"}";
    assert_int_equal(docker_container_kill(w.docker, ID, &w.err), 0);
    w.script.status = 404;
    assert_int_equal(docker_container_kill(w.docker, ID, &w.err), -ENOENT);
    assert_int_equal(docker_container_remove(w.docker, ID, &w.err), 0);
    assert_int_equal(docker_volume_remove(w.docker, "v", &w.err), 0);
    assert_int_equal(docker_volume_exists(w.docker, "v", &w.err), -ENOENT);
    assert_int_equal(docker_image_exists(w.docker, "i", &w.err), -ENOENT);
    end(&w);
}

/* DELETE says 409 (somebody else does it); the container is gone at the third look. */
static void removal_in_progress(void *user, const struct fake_request *q, struct fake_answer *a)
{
    unsigned *looks = user;
    if (strcmp(q->method, "DELETE") == 0)
        fake_json(a, 409, "{\"message\":\"removal is already in progress\"}");
    else if (++*looks < 3)
        fake_json(a, 200, "{}");
    else
        fake_json(a, 404, "{\"message\":\"No such container\"}");
}

static void test_remove_waits_for_another_removal(void **state)
{
    (void)state;
    unsigned looks = 0;
    struct fake_daemon *f = fake_start("1.41", removal_in_progress, &looks);
    cleanup_docker struct docker *d = NULL;
    assert_int_equal(docker_new(fake_address(f), &d, NULL), 0);
    assert_int_equal(docker_container_remove(d, ID, NULL), 0);
    fake_stop(f);
    assert_int_equal(looks, 3);
}

static void test_requests(void **state)
{
    (void)state;
    struct world w;
    begin(&w, "1.45");
    char id[DOCKER_ID_SIZE] = "untouched";
    json_t *config = json_pack("{s:s}", "Image", "x");
    w.script.status = 201;
    w.script.json = "{\"Id\":\"short\"}";
    assert_int_equal(docker_container_create(w.docker, "a b/\xff", config, id, &w.err), -EBADMSG);
    assert_string_equal(id, "untouched");
    w.script.json = "{\"Id\":\"" ID "\"}";
    assert_int_equal(docker_container_create(w.docker, NULL, config, id, &w.err), 0);
    assert_string_equal(id, ID);
    assert_string_equal(w.script.body, "{\"Image\":\"x\"}");

    w.script.status = 200;
    w.script.json = "[]";
    json_t *list = NULL;
    static const char *const labels[] = {"a=b c", "d", NULL};
    assert_int_equal(docker_container_list(w.docker, labels, &list, &w.err), 0);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    assert_int_equal(docker_container_put_archive(w.docker, ID, "/a b", "tar!", 4, &w.err), 0);
    assert_string_equal(w.script.body, "tar!");

    w.script.json = "{\"Volumes\":null}";
    assert_int_equal(docker_volume_list(w.docker, labels, &list, &w.err), 0);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    w.script.json = "{}";
    assert_int_equal(docker_container_list(w.docker, labels, &list, &w.err), -EBADMSG);
    w.script.json = "[]";
    assert_int_equal(docker_volume_list(w.docker, labels, &list, &w.err), -EBADMSG);

    json_t *image = NULL;
    w.script.json = "{\"Id\":1}";
    assert_int_equal(docker_image_inspect(w.docker, "a/../b:1?x", &image, &w.err), 0);
    json_decref(image);
    json_decref(config);

    cleanup_free char *log = fake_log(w.daemon);
    static const char *const lines[] = {
        "GET /_ping\n",
        "POST /v1.45/containers/create?name=a%20b%2F%FF\n",
        "POST /v1.45/containers/create\n",
        "GET /v1.45/containers/json?all=1&filters=%7B%22label%22%3A%5B%22a%3Db%20c%22%2C%22d%22%5D"
        "%7D\n",
        "PUT /v1.45/containers/" ID "/archive?path=%2Fa%20b\n",
        "GET /v1.45/images/a%2F..%2Fb%3A1%3Fx/json\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!strstr(log, lines[i]))
            fail_msg("no %s in\n%s", lines[i], log);
    assert_int_equal(fake_count(w.daemon, "GET /_ping"), 1);
    end(&w);
}

static void test_broken_answers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *raw;
        enum fake_then then;
        int want;
        const char *words;
    } cases[] = {
        {"no JSON", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", FAKE_KEEP, -EBADMSG,
         "not JSON"},
        {"empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", FAKE_KEEP, -EBADMSG, "not JSON"},
        {"trailing bytes", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{}{}", FAKE_KEEP, -EBADMSG,
         "not JSON"},
        {"hangs up in the body", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", FAKE_CLOSE,
         -EHOSTDOWN, "hung up"},
        {"hangs up in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
         FAKE_CLOSE, -EHOSTDOWN, "hung up"},
        {"not HTTP", "SSH-2.0-OpenSSH\r\n", FAKE_CLOSE, -EIO, "cannot inspect"},
        {"chunks",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
         FAKE_KEEP, 0, ""},
        {"ends with the connection", "HTTP/1.0 200 OK\r\n\r\n{}", FAKE_CLOSE, 0, ""},
    };
    struct world w;
    begin(&w, "1.41");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w.script.raw = cases[i].raw;
        w.script.then = cases[i].then;
        w.err = (struct err){0};
        int r = inspect(&w);
        if (r != cases[i].want)
            fail_msg("%s: %d %s", cases[i].name, r, w.err.msg);
        expect_words(&w, cases[i].words);
    }
    end(&w);
}

static void test_answer_size(void **state)
{
    (void)state;
    struct world w;
    begin(&w, "1.41");
    w.script.filler = DOCKER_ANSWER_MAX - 2;
    assert_int_equal(docker_container_start(w.docker, ID, &w.err), 0);
    w.script.filler = DOCKER_ANSWER_MAX - 1;
    assert_int_equal(docker_container_start(w.docker, ID, &w.err), -EMSGSIZE);
    expect_words(&w, "above 8388608 bytes");
    w.script.filler = 0;
    assert_int_equal(docker_container_start(w.docker, ID, &w.err), 0);
    end(&w);
}

static void test_slow_daemon(void **state)
{
    (void)state;
    struct world w;
    begin(&w, "1.41");
    assert_int_equal(docker_ping(w.docker, &w.err), 0);
    w.docker->timeout_ms_max = 50;
    w.script.raw = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{";
    w.script.then = FAKE_HOLD;
    assert_int_equal(inspect(&w), -ETIMEDOUT);
    expect_words(&w, "does not answer in time");
    w.script.raw = "";
    assert_int_equal(inspect(&w), -ETIMEDOUT);
    struct docker_stream *s = NULL;
    assert_int_equal(docker_container_attach(w.docker, ID, &s, &w.err), -ETIMEDOUT);
    end(&w);
}

static void test_versions(void **state)
{
    (void)state;
    static const struct {
        const char *theirs;
        int want;
        const char *use; /* or words */
    } cases[] = {
        {"1.40", -ENOTSUP, "has API 1.40; at least 1.41"},
        {"1.9", -ENOTSUP, "at least 1.41"},
        {"1.41", 0, "1.41"},
        {"1.47", 0, "1.47"},
        {"1.48", 0, "1.47"},
        {"1.100", 0, "1.47"},
        {"2.0", 0, "1.47"},
        {"new", -EPROTO, "no Docker daemon"},
        {"1.x", -EPROTO, "no Docker daemon"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        begin(&w, cases[i].theirs);
        int r = docker_ping(w.docker, &w.err);
        if (r != cases[i].want)
            fail_msg("%s: %d %s", cases[i].theirs, r, w.err.msg);
        if (r < 0)
            expect_words(&w, cases[i].use);
        else
            assert_string_equal(w.docker->version, cases[i].use);
        assert_int_equal(inspect(&w), cases[i].want);
        end(&w);
    }
}

static void test_ping_without_a_version(void **state)
{
    (void)state;
    struct world w;
    begin(&w, NULL);
    w.script.raw = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK";
    assert_int_equal(docker_ping(w.docker, &w.err), -EPROTO);
    w.script.raw = NULL;
    w.script.status = 500;
    w.script.json = "{\"message\":\"starting\"}";
    assert_int_equal(docker_ping(w.docker, &w.err), -EIO);
    expect_words(&w, "starting");
    end(&w);
}

static void test_no_daemon(void **state)
{
    (void)state;
    struct world w;
    begin(&w, "1.41");
    fake_down(w.daemon);
    assert_int_equal(docker_ping(w.docker, &w.err), -EHOSTDOWN);
    expect_words(&w, "no Docker daemon at unix:///tmp/fake-daemon-");
    expect_words(&w, "No such file or directory");
    struct docker_stream *s = NULL;
    assert_int_equal(docker_container_attach(w.docker, ID, &s, &w.err), -EHOSTDOWN);
    assert_null(s);
    end(&w);

    /* A port that was free a moment ago: the listener is closed before anybody connects. */
    cleanup_docker struct docker *d = NULL;
    struct err err = {0};
    assert_int_equal(docker_new("tcp://127.0.0.1:1", &d, NULL), 0);
    assert_int_equal(docker_ping(d, &err), -EHOSTDOWN);
    assert_non_null(strstr(err.msg, "no Docker daemon at tcp://127.0.0.1:1: Connection refused"));
}

static void test_daemon_restarts(void **state)
{
    (void)state;
    struct world w;
    begin(&w, "1.44");
    assert_int_equal(inspect(&w), 0);
    fake_down(w.daemon); /* the kept connection is dead now */
    fake_up(w.daemon, "1.44");
    assert_int_equal(inspect(&w), 0);

    fake_down(w.daemon);
    assert_int_equal(inspect(&w), -EHOSTDOWN);
    fake_up(w.daemon, "1.42");
    assert_int_equal(inspect(&w), 0); /* negotiated again */
    assert_int_equal(fake_count(w.daemon, "GET /v1.44/"), 2);
    assert_int_equal(fake_count(w.daemon, "GET /v1.42/"), 1);
    end(&w);
}

/* Hangs up on every connection instead of answering its second request. */
static void close_second(void *user, const struct fake_request *q, struct fake_answer *a)
{
    unsigned *last = user;
    if (*last == q->connection) {
        a->then = FAKE_CLOSE;
        return;
    }
    *last = q->connection;
    fake_json(a, 201, "{\"Id\":\"" ID "\"}");
}

static void test_kept_connection_closed(void **state)
{
    (void)state;
    unsigned last = 0;
    struct fake_daemon *f = fake_start("1.41", close_second, &last);
    cleanup_docker struct docker *d = NULL;
    assert_int_equal(docker_new(fake_address(f), &d, NULL), 0);
    for (int i = 0; i < 5; i++) {
        struct err err = {0};
        if (docker_container_start(d, ID, &err) != 0)
            fail_msg("%d: %s", i, err.msg);
    }
    char id[DOCKER_ID_SIZE];
    json_t *config = json_object();
    unsigned before = fake_count(f, "POST /v1.41/containers/create");
    for (int i = 0; i < 5; i++)
        assert_int_equal(docker_container_create(d, NULL, config, id, NULL), 0);
    assert_int_equal(fake_count(f, "POST /v1.41/containers/create") - before, 5);
    json_decref(config);
    fake_stop(f);
}

/* A creation that got no answer is never sent a second time. */
static void test_create_is_sent_once(void **state)
{
    (void)state;
    struct world w;
    begin(&w, "1.41");
    assert_int_equal(inspect(&w), 0);
    w.script.raw = "";
    w.script.then = FAKE_CLOSE;
    char id[DOCKER_ID_SIZE];
    json_t *config = json_object();
    assert_int_equal(docker_container_create(w.docker, NULL, config, id, &w.err), -EHOSTDOWN);
    expect_words(&w, "hung up");
    assert_int_equal(fake_count(w.daemon, "POST "), 1);
    json_decref(config);
    end(&w);
}

/* Was 1.47 when asked, and refuses that from then on. */
static void refuse_version(void *user, const struct fake_request *q, struct fake_answer *a)
{
    bool *refuses = user;
    if (strcmp(q->path, "/_ping") == 0)
        (void)buf_appendf(&a->bytes,
                          "HTTP/1.1 200 OK\r\nApi-Version: %s\r\nContent-Length: 2\r\n\r\nOK",
                          *refuses ? "1.43" : "1.47");
    else if (*refuses && strstr(q->path, "/v1.47/"))
        fake_json(a, 400, "{\"message\":\"client version 1.47 is too new. Maximum is 1.43\"}");
    else if (strstr(q->path, "/attach"))
        (void)buf_append_str(&a->bytes, "HTTP/1.1 101 UPGRADED\r\n\r\n");
    else
        fake_json(a, 200, "{}");
}

static void test_version_changes(void **state)
{
    (void)state;
    bool refuses = false;
    struct fake_daemon *f = fake_start(NULL, refuse_version, &refuses);
    cleanup_docker struct docker *d = NULL;
    assert_int_equal(docker_new(fake_address(f), &d, NULL), 0);
    assert_int_equal(docker_container_start(d, ID, NULL), 0);
    fake_down(f);
    refuses = true;
    fake_up(f, NULL);
    assert_int_equal(docker_container_start(d, ID, NULL), 0);
    assert_string_equal(d->version, "1.43");
    memcpy(d->version, "1.47", sizeof("1.47"));
    cleanup_docker_stream struct docker_stream *s = NULL;
    assert_int_equal(docker_container_attach(d, ID, &s, NULL), 0);
    assert_string_equal(d->version, "1.43");
    fake_stop(f);
}

static void *many_calls(void *arg)
{
    struct world *w = arg;
    for (int i = 0; i < 50; i++) {
        json_t *json = NULL;
        int r = docker_container_inspect(w->docker, ID, &json, NULL);
        json_decref(json);
        if (r < 0)
            return arg;
    }
    return NULL;
}

/* Our ends of connections to the daemon. (curl also keeps a private pair of sockets for each
 * handle, which no option reaches and which leads nowhere.) */
static unsigned connections_to(const char *path, unsigned *ret_inherited)
{
    unsigned n = 0;
    *ret_inherited = 0;
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_un peer;
        socklen_t len = sizeof(peer);
        memset(&peer, 0, sizeof(peer));
        if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0 || strcmp(peer.sun_path, path) != 0)
            continue;
        n++;
        *ret_inherited += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    return n;
}

static void test_threads_share_a_client(void **state)
{
    (void)state;
    struct world w;
    begin(&w, "1.41");
    pthread_t threads[12];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_calls, &w), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(w.script.calls, 50 * ARRAY_LEN(threads));
    assert_true(w.docker->idle_count > 0 && w.docker->idle_count <= DOCKER_POOL_MAX);
    unsigned inherited;
    const char *path = fake_address(w.daemon) + strlen("unix://");
    assert_int_equal(connections_to(path, &inherited), w.docker->idle_count);
    assert_int_equal(inherited, 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_outcomes_that_are_no_errors),
        cmocka_unit_test(test_remove_waits_for_another_removal),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_broken_answers),
        cmocka_unit_test(test_answer_size),
        cmocka_unit_test(test_slow_daemon),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_ping_without_a_version),
        cmocka_unit_test(test_no_daemon),
        cmocka_unit_test(test_daemon_restarts),
        cmocka_unit_test(test_kept_connection_closed),
        cmocka_unit_test(test_create_is_sent_once),
        cmocka_unit_test(test_version_changes),
        cmocka_unit_test(test_threads_share_a_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
