/* Attached streams against a scripted daemon. */
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "docker_internal.h"
#include "fake_daemon.h"
#include "test.h"

#define ID          "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DEADLINE_MS 20000

#define UPGRADED "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
#define PLAIN    "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n"

struct script {
    const char *bytes;
    size_t len;
    size_t split_at;
    enum fake_then then;
};

static void on_request(void *user, const struct fake_request *q, struct fake_answer *a)
{
    (void)q;
    const struct script *s = user;
    (void)buf_append(&a->bytes, s->bytes, s->len);
    a->split_at = s->split_at;
    a->then = s->then;
}

/* Reads to the end or to an error, which is returned; -ETIME when nothing comes for too long. */
static ssize_t read_all(struct docker_stream *s, size_t piece, struct buf *out)
{
    int64_t deadline_ms = clock_now_ms() + DEADLINE_MS;
    for (;;) {
        char bytes[4096];
        ssize_t n = docker_stream_read(s, bytes, piece);
        if (n == -EAGAIN) {
            struct pollfd p = {.fd = docker_stream_fd(s), .events = POLLIN};
            if (poll(&p, 1, clock_poll_timeout(deadline_ms)) == 0)
                return -ETIME;
            continue;
        }
        if (n <= 0)
            return n;
        assert_int_equal(buf_append(out, bytes, (size_t)n), 0);
    }
}

static int attach(struct fake_daemon *f, struct docker **ret_d, struct docker_stream **ret,
                  struct err *err)
{
    assert_int_equal(docker_new(fake_address(f), ret_d, err), 0);
    return docker_container_attach(*ret_d, ID, ret, err);
}

static void test_frames_split_at_every_byte(void **state)
{
    (void)state;
    static const char answer[] = UPGRADED "\1\0\0\0\0\0\0\5hello"
                                          "\2\0\0\0\0\0\0\3err"
                                          "\1\0\0\0\0\0\0\6 world";
    struct script script = {answer, sizeof(answer) - 1, 0, FAKE_CLOSE};
    struct fake_daemon *f = fake_start("1.41", on_request, &script);
    for (size_t at = 0; at < script.len; at++) {
        script.split_at = at;
        cleanup_docker struct docker *d = NULL;
        cleanup_docker_stream struct docker_stream *s = NULL;
        assert_int_equal(attach(f, &d, &s, NULL), 0);
        cleanup_buf struct buf out;
        buf_init(&out, 100);
        assert_int_equal(read_all(s, at % 7 + 1, &out), 0);
        assert_int_equal(out.len, 11);
        assert_memory_equal(out.data, "hello world", 11);
        assert_true(span_eq(docker_stream_stderr(s), "err"));
        assert_int_equal(docker_stream_read(s, out.data, 1), 0); /* still at the end */
    }
    assert_int_equal(
        fake_count(f, "POST /v1.41/containers/" ID "/attach?stream=1&stdin=1&stdout=1&stderr=1\n"),
        script.len);
    fake_stop(f);
}

static void test_ends(void **state)
{
    (void)state;
#define CASE(name, text, then, attached, at_end, words)                                            \
    {                                                                                              \
        name, {text, sizeof(text) - 1, 0, then}, attached, at_end, words                           \
    }
    static const struct {
        const char *name;
        struct script script;
        int attached;
        int at_end;
        const char *words;
    } cases[] = {
        CASE("200", PLAIN "\1\0\0\0\0\0\0\2ok", FAKE_CLOSE, 0, 0, ""),
        CASE("no bytes", UPGRADED, FAKE_CLOSE, 0, 0, ""),
        CASE("inside a header", UPGRADED "\1\0\0", FAKE_CLOSE, 0, -EBADMSG, ""),
        CASE("inside a frame", UPGRADED "\1\0\0\0\0\0\0\5he", FAKE_CLOSE, 0, -EBADMSG, ""),
        CASE("inside the largest frame", UPGRADED "\1\0\0\0\xff\xff\xff\xffhe", FAKE_CLOSE, 0,
             -EBADMSG, ""),
        CASE("unknown type", UPGRADED "\3\0\0\0\0\0\0\1x", FAKE_KEEP, 0, -EBADMSG, ""),
        CASE("no multiplexing", UPGRADED "hello world", FAKE_KEEP, 0, -EBADMSG, ""),
        CASE("404", "HTTP/1.1 404 X\r\nContent-Length: 18\r\n\r\n{\"message\":\"gone\"}", FAKE_KEEP,
             -ENOENT, 0, "gone"),
        CASE("409", "HTTP/1.1 409 X\r\ncontent-length:18\r\n\r\n{\"message\":\"busy\"}", FAKE_KEEP,
             -EEXIST, 0, "busy"),
        CASE("500 in a chunk",
             "HTTP/1.1 500 X\r\nTransfer-Encoding: "
             "chunked\r\n\r\n12\r\n{\"message\":\"fell\"}\r\n0\r\n"
             "\r\n",
             FAKE_KEEP, -EIO, 0, "fell (Docker daemon, status 500)"),
        CASE("404 as text", "HTTP/1.1 404 X\r\n\r\nNo such thing\r\n", FAKE_CLOSE, -ENOENT, 0,
             "No such thing (Docker daemon"),
        CASE("500 cut", "HTTP/1.1 500 X\r\nContent-Length: 500\r\n\r\n{", FAKE_CLOSE, -EIO, 0,
             "status 500"),
        CASE("not HTTP", "SSH-2.0-OpenSSH_9\r\n\r\n", FAKE_KEEP, -EPROTO, 0, "does not speak HTTP"),
        CASE("hangs up", "", FAKE_CLOSE, -EHOSTDOWN, 0, "hung up"),
        CASE("hangs up in the head", "HTTP/1.1 101 UPG", FAKE_CLOSE, -EHOSTDOWN, 0, "hung up"),
    };
#undef CASE
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int split = 0; split < 2; split++) {
            struct script script = cases[i].script;
            script.split_at = split ? script.len / 2 : 0;
            struct fake_daemon *f = fake_start("1.41", on_request, &script);
            cleanup_docker struct docker *d = NULL;
            cleanup_docker_stream struct docker_stream *s = NULL;
            struct err err = {0};
            int r = attach(f, &d, &s, &err);
            if (r != cases[i].attached || !strstr(err.msg, cases[i].words))
                fail_msg("%s: %d %s", cases[i].name, r, err.msg);
            if (r == 0) {
                cleanup_buf struct buf out;
                buf_init(&out, 100);
                r = (int)read_all(s, 3, &out);
                if (r != cases[i].at_end)
                    fail_msg("%s: ends with %d", cases[i].name, r);
                char byte;
                assert_int_equal(docker_stream_read(s, &byte, 1), r); /* and stays so */
                assert_true(docker_stream_pending(s));
            }
            fake_stop(f);
        }
    }
}

static void test_endless_head(void **state)
{
    (void)state;
    cleanup_buf struct buf head;
    buf_init(&head, 1U << 17);
    (void)buf_append_str(&head, "HTTP/1.1 101 UPGRADED\r\n");
    while (head.len < 65536)
        (void)buf_append_str(&head, "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
    struct script script = {head.data, head.len, 0, FAKE_HOLD};
    struct fake_daemon *f = fake_start("1.41", on_request, &script);
    cleanup_docker struct docker *d = NULL;
    cleanup_docker_stream struct docker_stream *s = NULL;
    struct err err = {0};
    assert_int_equal(attach(f, &d, &s, &err), -EPROTO);
    assert_non_null(strstr(err.msg, "do not end"));
    fake_stop(f);
}

/* What is written comes back; after the end of our side comes the end of theirs. */
static void test_write_and_shutdown(void **state)
{
    (void)state;
    struct script script = {UPGRADED, sizeof(UPGRADED) - 1, 0, FAKE_ECHO};
    struct fake_daemon *f = fake_start("1.41", on_request, &script);
    cleanup_docker struct docker *d = NULL;
    cleanup_docker_stream struct docker_stream *s = NULL;
    assert_int_equal(attach(f, &d, &s, NULL), 0);
    char byte;
    assert_int_equal(docker_stream_read(s, &byte, 1), -EAGAIN);
    assert_false(docker_stream_pending(s));

    enum { TOTAL = 1 << 20 };
    static char sent[TOTAL];
    for (size_t i = 0; i < TOTAL; i++)
        sent[i] = (char)(i * 31 >> 3);
    cleanup_buf struct buf out;
    buf_init(&out, TOTAL);
    size_t at = 0;
    int64_t deadline_ms = clock_now_ms() + DEADLINE_MS;
    while (out.len < TOTAL) {
        short events = POLLIN;
        if (at < TOTAL) {
            ssize_t n = docker_stream_write(s, sent + at, TOTAL - at);
            assert_true(n > 0 || n == -EAGAIN);
            at += n > 0 ? (size_t)n : 0;
            events = at < TOTAL ? POLLIN | POLLOUT : POLLIN;
        }
        char bytes[5000];
        ssize_t n = docker_stream_read(s, bytes, sizeof(bytes));
        if (n > 0)
            assert_int_equal(buf_append(&out, bytes, (size_t)n), 0);
        else
            assert_int_equal(n, -EAGAIN);
        struct pollfd p = {.fd = docker_stream_fd(s), .events = events};
        if (out.len < TOTAL && !docker_stream_pending(s))
            assert_true(poll(&p, 1, clock_poll_timeout(deadline_ms)) > 0);
    }
    assert_memory_equal(out.data, sent, TOTAL);
    assert_int_equal(docker_stream_shutdown(s), 0);
    assert_int_equal(read_all(s, 10, &out), 0);
    assert_int_equal(docker_stream_write(s, "x", 1), -EPIPE);
    fake_stop(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_split_at_every_byte),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_endless_head),
        cmocka_unit_test(test_write_and_shutdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
