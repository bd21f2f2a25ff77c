#include <sys/ioctl.h>

#include "hub_test.h"

/* ---- messages that are too long or broken ---- */

static struct frame_shape text_frame(void)
{
    return (struct frame_shape){.head = 0x81};
}

static void test_message_size(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct peer p;
    peer_connect(&w, &p);
    char *text = malloc(HUB_FRAME_MAX + 1);
    assert_non_null(text);
    int n = snprintf(text, HUB_FRAME_MAX + 1, "{\"event\":\"pusher:ping\"}");
    memset(text + n, ' ', HUB_FRAME_MAX + 1 - (size_t)n);
    peer_frame(&p, text_frame(), text, HUB_FRAME_MAX);
    peer_expect(&p, "{\"event\":\"pusher:pong\",\"data\":\"{}\"}");
    peer_frame(&p, text_frame(), text, HUB_FRAME_MAX + 1);
    peer_expect_close(&p, 1009);
    peer_end(&p);

    /* In two frames, each short enough by itself. */
    peer_connect(&w, &p);
    peer_frame(&p, (struct frame_shape){.head = 0x01}, text, HUB_FRAME_MAX);
    peer_frame(&p, (struct frame_shape){.head = 0x80}, " ", 1);
    peer_expect_close(&p, 1009);
    peer_end(&p);
    free(text);
    await_connections(&w, 0);
    world_end(&w);
}

static void test_fragments(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct peer p;
    peer_connect(&w, &p);
    const char *ping = "{\"event\":\"pusher:ping\",\"x\":\"\xe2\x82\xac\"}";
    size_t n = strlen(ping);
    for (size_t i = 0; i < n; i++) { /* one byte each, a ping in between, empty ones too */
        uint8_t head = (uint8_t)((i == 0 ? 0x01 : 0) | (i == n - 1 ? 0x80 : 0));
        peer_frame(&p, (struct frame_shape){.head = head}, ping + i, 1);
        if (i == 3) {
            peer_frame(&p, (struct frame_shape){.head = 0x89}, "mid", 3);
            assert_int_equal(peer_next(&p), WSLAY_PONG);
            assert_string_equal(p.msg.data, "mid");
        }
        if (i == 4)
            peer_frame(&p, (struct frame_shape){.head = 0x00}, "", 0);
    }
    peer_expect(&p, "{\"event\":\"pusher:pong\",\"data\":\"{}\"}");
    peer_sync(&p);
    peer_end(&p);
    world_end(&w);
}

static void test_broken_frames(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct frame_shape shape;
        const char *bytes;
        unsigned code;
    } cases[] = {
        {"not masked", {.head = 0x81, .unmasked = true}, "{}", 1002},
        {"reserved bit", {.head = 0xc1}, "{}", 1002},
        {"unknown opcode", {.head = 0x83}, "{}", 1002},
        {"continues nothing", {.head = 0x80}, "{}", 1002},
        {"binary", {.head = 0x82}, "{}", 1003},
        {"no UTF-8", {.head = 0x81}, "\"\xff\"", 1007},
        {"cut UTF-8", {.head = 0x81}, "\"\xe2\x82", 1007},
        {"surrogate", {.head = 0x81}, "\"\xed\xa0\x80\"", 1007},
        {"huge claim", {.head = 0x81, .claimed_len = UINT64_C(1) << 40}, "{", 1009},
        {"close with a bad code", {.head = 0x88}, "\x03\xed", 1002},
        {"close", {.head = 0x88}, "\x03\xe8 bye", 1000},
    };
    struct world w = world_with(true, 10);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct peer p;
        peer_connect(&w, &p);
        print_message("%s\n", cases[i].name);
        peer_frame(&p, cases[i].shape, cases[i].bytes, strlen(cases[i].bytes));
        peer_expect_close(&p, cases[i].code);
        peer_end(&p);
    }
    /* What cannot be a frame at all is closed without a code. */
    static const struct frame_shape impossible[] = {
        {.head = 0x89, .claimed_len = 126},                     /* a long ping */
        {.head = 0x09},                                         /* a fragmented ping */
        {.head = 0x81, .claimed_len = UINT64_C(1) << 63 | 100}, /* a negative length */
    };
    for (size_t i = 0; i < ARRAY_LEN(impossible); i++) {
        struct peer p;
        peer_connect(&w, &p);
        peer_frame(&p, impossible[i], "", 0);
        assert_int_equal(peer_next(&p), WSLAY_CONNECTION_CLOSE);
        assert_int_equal(peer_next(&p), -1);
        peer_end(&p);
    }
    await_connections(&w, 0);
    world_end(&w);
}

/* ---- slow readers ---- */

/* Waits until the hub writes no more to a peer that does not read. */
static int settled(struct peer *p)
{
    int64_t deadline_ms = clock_now_ms() + PATIENCE;
    int before = -1;
    for (int same = 0; same < 50; (void)poll(NULL, 0, 2)) {
        int n = 0;
        assert_int_equal(ioctl(p->fd, FIONREAD, &n), 0);
        same = n == before && n > 0 ? same + 1 : 0;
        before = n;
        assert_true(clock_now_ms() < deadline_ms);
    }
    return before;
}

static void fill_log(struct bus *b, const struct fence *f, unsigned n)
{
    char text[8001];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (unsigned i = 1; i <= n; i++)
        say(b, f, text, i);
}

static void test_stalled(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct fence f = new_job(w.bus, JOB_A);
    fill_log(w.bus, &f, 500);
    struct peer slow;
    struct peer other;
    peer_connect(&w, &other);
    peer_connect(&w, &slow);
    peer_ask(&w, &slow, JOB_A);
    (void)settled(&slow);
    pass_time(&w, HUB_STALL_MS - 1);
    peer_sync(&other); /* the hub has looked at its clocks: sockets come after them */
    peer_sync(&other);
    assert_int_equal(hub_connections(w.hub), 2);
    pass_time(&w, 1);
    await_connections(&w, 1);
    peer_sync(&other);
    peer_end(&slow);
    peer_end(&other);
    world_end(&w);
}

static void test_slow_but_moving(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct fence f = new_job(w.bus, JOB_A);
    fill_log(w.bus, &f, 500);
    finish(w.bus, &f);
    struct peer p;
    peer_connect(&w, &p);
    peer_subscribe(&w, &p, JOB_A);
    for (int i = 1; i <= 500; i++) {
        json_t *m = peer_json(&p);
        assert_string_equal(field(m, "event"), "stdout");
        json_t *data = NULL;
        const char *text = field(m, "data");
        assert_int_equal(json_parse(text, strlen(text), &data, NULL), 0);
        assert_int_equal(json_integer_value(json_object_get(data, "seq")), i);
        json_decref(data);
        json_decref(m);
        if (i % 100 == 0 && i < 500) {
            (void)settled(&p);
            pass_time(&w, HUB_STALL_MS / 2);
        }
    }
    peer_expect_event(&p, JOB_A, "result", NULL);
    peer_end(&p);
    world_end(&w);
}

/* The hub stops reading from who does not read, so its answers cannot pile up: the socket fills,
 * and the client's own writes block. */
static void flood(uint8_t head, const char *text)
{
    struct world w = world_with(true, 10);
    struct peer p;
    peer_connect(&w, &p);
    assert_int_equal(fd_set_nonblock(p.fd, 1), 0);
    struct buf frame;
    buf_init(&frame, 1 << 20);
    for (int i = 0; i < 64; i++)
        frame_to(&frame, (struct frame_shape){.head = head}, text, strlen(text));
    size_t at = 0;
    size_t total = 0;
    bool is_blocked = false;
    while (!is_blocked && total < (64u << 20)) {
        ssize_t n = send(p.fd, frame.data + at, frame.len - at, MSG_NOSIGNAL);
        if (n > 0) {
            total += (size_t)n;
            at = (at + (size_t)n) % frame.len;
            continue;
        }
        assert_int_equal(errno, EAGAIN);
        struct pollfd pfd = {.fd = p.fd, .events = POLLOUT};
        is_blocked = poll(&pfd, 1, 300) == 0;
    }
    assert_true(is_blocked);
    assert_int_equal(hub_connections(w.hub), 1);
    /* It goes on once it reads. */
    for (int i = 0; i < 1000; i++)
        assert_true(peer_next(&p) > 0);
    pass_time(&w, HUB_STALL_MS / 2);
    assert_true(peer_next(&p) > 0);
    buf_done(&frame);
    peer_end(&p);
    await_connections(&w, 0);
    world_end(&w);
}

static void test_ping_flood(void **state)
{
    (void)state;
    flood(0x89, "");
}

static void test_refusal_flood(void **state)
{
    (void)state;
    flood(0x81, "{}");
}

static size_t resident_bytes(void)
{
    char *text = NULL;
    size_t len = 0;
    assert_int_equal(fd_read_file("/proc/self/statm", 4096, &text, &len), 0);
    char *end = NULL;
    (void)strtoul(text, &end, 10);
    size_t pages = strtoul(end, NULL, 10);
    free(text);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

#define SLOW 40

/* 40 readers of a log of 16 MB who do not read: a queue for each would hold 640 MB. The bound
 * leaves room for what the sanitizers add. */
static void test_slow_readers_cost_little(void **state)
{
    (void)state;
    struct world w = world_with(true, SLOW);
    struct fence f = new_job(w.bus, JOB_A);
    fill_log(w.bus, &f, 2000);
    size_t before = resident_bytes();
    struct peer p[SLOW];
    for (int i = 0; i < SLOW; i++) {
        peer_connect(&w, &p[i]);
        peer_ask(&w, &p[i], JOB_A);
    }
    for (int i = 0; i < SLOW; i++)
        (void)settled(&p[i]);
    size_t after = resident_bytes();
    size_t grown = after > before ? after - before : 0;
    print_message("%zu KiB for %d slow readers\n", grown >> 10, SLOW);
    assert_true(grown < 128u << 20);
    for (int i = 0; i < SLOW; i++)
        peer_end(&p[i]);
    await_connections(&w, 0);
    world_end(&w);
}

static void test_busy_job_starves_nobody(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct fence a = new_job(w.bus, JOB_A);
    struct fence b = new_job(w.bus, JOB_B);
    fill_log(w.bus, &a, 2000);
    say(w.bus, &b, "b", 1);
    struct peer p;
    peer_connect(&w, &p);
    peer_subscribe(&w, &p, JOB_A);
    peer_ask(&w, &p, JOB_B);
    unsigned before = 0;
    for (bool found = false; !found; before++) {
        json_t *m = peer_json(&p);
        found = strstr(field(m, "channel"), JOB_B) && strcmp(field(m, "event"), "stdout") == 0;
        json_decref(m);
    }
    assert_true(before < 1000); /* the short log does not wait for the end of the long one */
    peer_end(&p);
    world_end(&w);
}

/* ---- silence ---- */

static void test_idle(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct peer p;
    peer_connect(&w, &p);
    int64_t idle_ms = hub_times_default.idle_ms;
    pass_time(&w, idle_ms - 1);
    peer_sync(&p); /* no ping, and a new sign of life */
    pass_time(&w, idle_ms - 1);
    peer_sync(&p);
    pass_time(&w, idle_ms);
    peer_expect(&p, "{\"event\":\"pusher:ping\",\"data\":\"{}\"}");
    peer_say(&p, "{\"event\":\"pusher:pong\",\"data\":{}}");
    peer_sync(&p);
    pass_time(&w, hub_times_default.pong_ms);
    peer_sync(&p); /* it was answered */

    pass_time(&w, idle_ms);
    peer_expect(&p, "{\"event\":\"pusher:ping\",\"data\":\"{}\"}");
    pass_time(&w, hub_times_default.pong_ms);
    peer_expect_close(&p, 4201);
    peer_end(&p);
    await_connections(&w, 0);
    world_end(&w);
}

/* Who does not end its side after our close frame is cut off. */
static void test_close_times_out(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct peer p;
    peer_connect(&w, &p);
    peer_frame(&p, (struct frame_shape){.head = 0x82}, "x", 1);
    assert_int_equal(peer_next(&p), WSLAY_CONNECTION_CLOSE);
    assert_int_equal(peer_next(&p), -1);
    peer_say(&p, "{}"); /* is thrown away */
    assert_int_equal(hub_connections(w.hub), 1);
    pass_time(&w, hub_times_default.close_ms);
    await_connections(&w, 0);
    peer_end(&p);
    world_end(&w);
}

/* hub_free() waits for nobody for long, whatever state its sockets are in. */
static void test_free_with_all_kinds(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct fence f = new_job(w.bus, JOB_A);
    fill_log(w.bus, &f, 500);
    struct peer stuck;
    struct peer closing;
    struct peer idle;
    struct peer fresh;
    peer_connect(&w, &stuck);
    peer_ask(&w, &stuck, JOB_A);
    (void)settled(&stuck);
    peer_connect(&w, &closing);
    peer_frame(&closing, (struct frame_shape){.head = 0x82}, "x", 1);
    peer_connect(&w, &idle);
    assert_int_equal(peer_adopt(&w, &fresh, KEY, (struct span){0}), 0);
    released = 0;
    hub_free(w.hub);
    assert_int_equal(released, 4);
    peer_expect_close(&idle, 4200);
    bus_free(w.bus);
    peer_end(&stuck);
    peer_end(&closing);
    peer_end(&idle);
    peer_end(&fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_size),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_broken_frames),
        cmocka_unit_test(test_stalled),
        cmocka_unit_test(test_slow_but_moving),
        cmocka_unit_test(test_ping_flood),
        cmocka_unit_test(test_refusal_flood),
        cmocka_unit_test(test_slow_readers_cost_little),
        cmocka_unit_test(test_busy_job_starves_nobody),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_close_times_out),
        cmocka_unit_test(test_free_with_all_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
