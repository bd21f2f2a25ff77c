/* hub/tests/hub_test.h - a hub on a memory bus, and a WebSocket client that can also misbehave. */
#ifndef HUB_TEST_H
#define HUB_TEST_H

#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "bus/bus.h"
#include "hub_internal.h"
#include "json/json.h"

#define KEY      "app-key"
#define SECRET   "app-secret"
#define PATIENCE 30000 /* ms until a test gives up */

#define JOB_A "6b1f4c2e-0000-4000-8000-00000000000a"
#define JOB_B "6b1f4c2e-0000-4000-8000-00000000000b"

/* ---- the world ---- */

static _Atomic int64_t test_now_ms = 1000000;
static _Atomic unsigned released;

static inline int64_t test_now(void)
{
    return test_now_ms;
}

struct world {
    struct bus *bus;
    struct hub *hub;
};

static inline struct world world_with(bool replay, uint32_t connections_max)
{
    const struct bus_memory_options bo = {
        .queue_depth_max = 100,
        .job_ttl_ms = 3600000,
        .result_ttl_ms = 600000,
        .memory_max_bytes = 256 << 20,
    };
    struct hub_times times = hub_times_default;
    times.now_ms = test_now;
    struct world w = {0};
    struct err err = {0};
    if (bus_memory_new(&bo, &w.bus, &err) != 0)
        fail_msg("%s", err.msg);
    const struct hub_options ho = {
        .bus = w.bus,
        .app_key = KEY,
        .app_secret = SECRET,
        .replay = replay,
        .connections_max = connections_max,
    };
    if (hub_new_with(&ho, &times, &w.hub, &err) != 0)
        fail_msg("%s", err.msg);
    released = 0;
    return w;
}

static inline void world_end(struct world *w)
{
    hub_free(w->hub);
    bus_free(w->bus);
}

static inline void pass_time(struct world *w, int64_t ms)
{
    test_now_ms += ms;
    hub_wake(w->hub);
}

static inline void await_connections(struct world *w, uint32_t n)
{
    int64_t deadline_ms = clock_now_ms() + PATIENCE;
    while (hub_connections(w->hub) != n) {
        if (clock_now_ms() > deadline_ms)
            fail_msg("%u connections, not %u", hub_connections(w->hub), n);
        (void)poll(NULL, 0, 1);
    }
}

/* ---- jobs ---- */

static inline struct fence new_job(struct bus *b, const char *id)
{
    struct job_spec *spec = calloc(1, sizeof(*spec));
    assert_non_null(spec);
    (void)snprintf(spec->id, sizeof(spec->id), "%s", id);
    spec->language = strdup("python");
    spec->version = strdup("3.13");
    assert_int_equal(bus_submit_take(b, spec, NULL), 0);
    struct claim c = {0};
    assert_int_equal(bus_claim(b, "w", 0, &c, NULL), 0);
    struct fence f = c.fence;
    claim_done(&c);
    return f;
}

static inline void append(struct bus *b, const struct fence *f, enum event_type type,
                          struct span data, uint64_t seq)
{
    const struct event e = {.type = type, .seq = seq, .data = data};
    assert_int_equal(bus_event_append(b, f, &e, NULL), 0);
}

static inline void say(struct bus *b, const struct fence *f, const char *text, uint64_t seq)
{
    append(b, f, EVENT_STDOUT, span_str(text), seq);
}

static inline void finish(struct bus *b, const struct fence *f)
{
    const struct span artifact = SPAN_LIT("{\"name\":\"plot.png\"}");
    struct job_end end = {.artifacts = &artifact, .artifacts_len = 1};
    job_report_init(&end.report);
    end.report.outcome = OUTCOME_EXITED;
    end.report.exit_code = 0;
    job_result_from_report(&end.report, &end.result, &end.state);
    assert_int_equal(bus_finish(b, f, &end), 0);
}

/* ---- the client ---- */

struct peer {
    int fd;
    char id[64];
    struct buf in;  /* bytes not yet framed */
    struct buf msg; /* the last payload */
};

struct held {
    int fd;
};

static inline void release_held(void *arg)
{
    struct held *held = arg;
    (void)close(held->fd);
    free(held);
    released++;
}

static inline int peer_adopt(struct world *w, struct peer *p, const char *key, struct span extra)
{
    int fds[2];
    assert_int_equal(fd_socketpair(fds), 0);
    struct held *held = malloc(sizeof(*held));
    assert_non_null(held);
    held->fd = fds[1];
    const struct hub_socket socket = {
        .fd = fds[1], .release = release_held, .arg = held, .extra = extra};
    *p = (struct peer){.fd = fds[0]};
    buf_init(&p->in, 1 << 20);
    buf_init(&p->msg, 1 << 20);
    struct err err = {0};
    int r = hub_adopt(w->hub, &socket, span_str(key), &err);
    if (r < 0) {
        assert_int_equal(err.code, r);
        release_held(held);
    }
    return r;
}

static inline void peer_end(struct peer *p)
{
    (void)close(p->fd);
    buf_done(&p->in);
    buf_done(&p->msg);
}

struct frame_shape {
    uint8_t head; /* FIN, RSV and opcode */
    bool unmasked;
    uint64_t claimed_len; /* 0: the true one */
};

static inline void frame_to(struct buf *to, struct frame_shape shape, const void *bytes, size_t n)
{
    uint64_t len = shape.claimed_len ? shape.claimed_len : n;
    uint8_t mask_bit = shape.unmasked ? 0 : 0x80;
    int r = buf_append_byte(to, shape.head);
    if (len < 126) {
        r |= buf_append_byte(to, (uint8_t)(mask_bit | len));
    } else if (len < 65536) {
        r |= buf_append_byte(to, mask_bit | 126);
        r |= buf_append_byte(to, (uint8_t)(len >> 8));
        r |= buf_append_byte(to, (uint8_t)len);
    } else {
        r |= buf_append_byte(to, mask_bit | 127);
        r |= buf_append_u64be(to, len);
    }
    static const uint8_t mask[4] = {0x12, 0x34, 0x56, 0x78};
    if (!shape.unmasked)
        r |= buf_append(to, mask, sizeof(mask));
    for (size_t i = 0; i < n; i++)
        r |= buf_append_byte(
            to, (uint8_t)(((const uint8_t *)bytes)[i] ^ (shape.unmasked ? 0 : mask[i % 4])));
    assert_int_equal(r, 0);
}

static inline void peer_frame(struct peer *p, struct frame_shape shape, const void *bytes, size_t n)
{
    cleanup_buf struct buf frame;
    buf_init(&frame, 1 << 20);
    frame_to(&frame, shape, bytes, n);
    for (size_t at = 0; at < frame.len;) {
        ssize_t sent = send(p->fd, frame.data + at, frame.len - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the hub may have had enough; what it answered is what the test looks at */
        at += (size_t)sent;
    }
}

static inline void peer_say(struct peer *p, const char *text)
{
    peer_frame(p, (struct frame_shape){.head = 0x81}, text, strlen(text));
}

/* Reads more bytes; false at the end of the stream. */
static inline bool peer_fill(struct peer *p)
{
    struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
    if (poll(&pfd, 1, PATIENCE) != 1)
        fail_msg("nothing came");
    char bytes[65536];
    ssize_t n = recv(p->fd, bytes, sizeof(bytes), 0);
    if (n <= 0)
        return false;
    assert_int_equal(buf_append(&p->in, bytes, (size_t)n), 0);
    return true;
}

/* The opcode of the next frame, its payload in p->msg; -1: end of stream. */
static inline int peer_next(struct peer *p)
{
    for (;;) {
        const uint8_t *b = (const uint8_t *)p->in.data;
        size_t head = 2;
        uint64_t len = 0;
        if (p->in.len >= 2) {
            head += (b[1] & 0x7f) == 126 ? 2 : (b[1] & 0x7f) == 127 ? 8 : 0;
            assert_int_equal(b[1] & 0x80, 0); /* servers do not mask */
            assert_int_equal(b[0] & 0xf0, 0x80);
        }
        if (p->in.len >= head) {
            len = head == 2 ? b[1] : head == 4 ? ((uint64_t)b[2] << 8 | b[3]) : u64be(b + 2);
            if (p->in.len >= head + len) {
                int opcode = b[0] & 0x0f;
                buf_clear(&p->msg);
                assert_int_equal(buf_append(&p->msg, b + head, len), 0);
                buf_consume(&p->in, head + len);
                return opcode;
            }
        }
        if (!peer_fill(p))
            return -1;
    }
}

/* The next message, parsed. */
static inline json_t *peer_json(struct peer *p)
{
    assert_int_equal(peer_next(p), WSLAY_TEXT_FRAME);
    json_t *root = NULL;
    struct err err = {0};
    if (json_parse(p->msg.data, p->msg.len, &root, &err) != 0)
        fail_msg("%s: %s", p->msg.data, err.msg);
    return root;
}

static inline void peer_expect(struct peer *p, const char *text)
{
    assert_int_equal(peer_next(p), WSLAY_TEXT_FRAME);
    assert_string_equal(p->msg.data, text);
}

static inline void peer_expect_close(struct peer *p, unsigned code)
{
    int opcode = peer_next(p);
    if (opcode != WSLAY_CONNECTION_CLOSE)
        fail_msg("opcode %d, not a close frame: %s", opcode, p->msg.data ? p->msg.data : "");
    assert_true(p->msg.len >= 2);
    const uint8_t *b = (const uint8_t *)p->msg.data;
    assert_int_equal(b[0] << 8 | b[1], code);
    assert_int_equal(peer_next(p), -1);
}

static inline const char *field(const json_t *object, const char *key)
{
    const char *text = json_text(json_object_get(object, key), NULL);
    return text ? text : "";
}

static inline void peer_connect_with(struct world *w, struct peer *p, struct span extra)
{
    assert_int_equal(peer_adopt(w, p, KEY, extra), 0);
    json_t *m = peer_json(p);
    assert_string_equal(field(m, "event"), "pusher:connection_established");
    json_t *data = NULL;
    const char *text = field(m, "data"); /* a string with JSON inside */
    assert_int_equal(json_parse(text, strlen(text), &data, NULL), 0);
    assert_int_equal(json_integer_value(json_object_get(data, "activity_timeout")), 120);
    (void)snprintf(p->id, sizeof(p->id), "%s", field(data, "socket_id"));
    assert_true(socket_id_is_valid(span_str(p->id)));
    json_decref(data);
    json_decref(m);
}

static inline void peer_connect(struct world *w, struct peer *p)
{
    peer_connect_with(w, p, (struct span){0});
}

static inline void peer_ask(struct world *w, struct peer *p, const char *job)
{
    char channel[300];
    (void)snprintf(channel, sizeof(channel), JOB_CHANNEL_PREFIX "%s", job);
    cleanup_buf struct buf auth;
    buf_init(&auth, 1024);
    assert_int_equal(hub_sign(w->hub, span_str(p->id), span_str(channel), &auth), 0);
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "{\"event\":\"pusher:subscribe\",\"data\":{\"auth\":\"%s\",\"channel\":\"%s\"}}",
                   auth.data, channel);
    peer_say(p, text);
}

static inline void peer_subscribe(struct world *w, struct peer *p, const char *job)
{
    peer_ask(w, p, job);
    char want[512];
    (void)snprintf(want, sizeof(want),
                   "{\"event\":\"pusher_internal:subscription_succeeded\",\"channel\":"
                   "\"" JOB_CHANNEL_PREFIX "%s\",\"data\":\"{}\"}",
                   job);
    peer_expect(p, want);
}

/* A round trip: what was sent before has been handled. */
static inline void peer_sync(struct peer *p)
{
    peer_say(p, "{\"event\":\"pusher:ping\",\"data\":{}}");
    peer_expect(p, "{\"event\":\"pusher:pong\",\"data\":\"{}\"}");
}

/* The next event must be this one. */
static inline void peer_expect_event(struct peer *p, const char *job, const char *event,
                                     const char *data)
{
    char channel[300];
    (void)snprintf(channel, sizeof(channel), JOB_CHANNEL_PREFIX "%s", job);
    json_t *m = peer_json(p);
    assert_string_equal(field(m, "event"), event);
    assert_string_equal(field(m, "channel"), channel);
    if (data)
        assert_string_equal(field(m, "data"), data);
    json_decref(m);
}

#endif
