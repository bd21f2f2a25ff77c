#include "fake_daemon.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "test.h"

#define CONNECTIONS_MAX 32
#define REQUEST_MAX     (32U << 20)
#define DRAIN_MS        20000 /* generous: the client is a thread of this program */

struct connection {
    int fd;
    unsigned number;
    enum fake_then mode;
    struct buf in;
};

struct fake_daemon {
    char folder[32];
    char path[64];
    char address[80];
    fake_handler handler;
    void *user;

    pthread_t thread;
    bool running;
    int stop_fd; /* eventfd */
    int listener;
    unsigned accepted;
    struct connection connections[CONNECTIONS_MAX];

    pthread_mutex_t lock; /* guards what follows */
    char version[16];
    struct buf log;
};

void fake_json(struct fake_answer *a, int status, const char *json)
{
    /* Too long is cut: the test that did it sees a broken answer. */
    (void)buf_appendf(&a->bytes,
                      "HTTP/1.1 %d X\r\nApi-Version: 9.99\r\n"
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                      status, strlen(json), json);
}

static void hang_up(struct connection *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    buf_done(&c->in);
    c->fd = -1;
}

/* Waits until the other side has taken all that was sent. */
static void drain(int fd)
{
    int64_t deadline_ms = clock_now_ms() + DRAIN_MS;
    for (int left = 1; left > 0 && clock_now_ms() < deadline_ms;) {
        if (ioctl(fd, SIOCOUTQ, &left) < 0)
            return;
        struct pollfd p = {.fd = fd, .events = POLLHUP};
        if (left > 0 && poll(&p, 1, 1) > 0)
            return;
    }
}

static bool send_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false; /* hung up; the test sees that on its own side */
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

static void send_answer(struct connection *c, const struct fake_answer *a)
{
    size_t first = a->split_at > 0 && a->split_at < a->bytes.len ? a->split_at : a->bytes.len;
    bool ok = send_all(c->fd, a->bytes.data, first);
    if (ok && first < a->bytes.len) {
        drain(c->fd);
        ok = send_all(c->fd, a->bytes.data + first, a->bytes.len - first);
    }
    c->mode = a->then;
    if (!ok || a->then == FAKE_CLOSE)
        hang_up(c);
}

static void answer_request(struct fake_daemon *f, struct connection *c, struct fake_request *q)
{
    char version[sizeof(f->version)];
    (void)pthread_mutex_lock(&f->lock);
    (void)buf_appendf(&f->log, "%s %s\n", q->method, q->path);
    memcpy(version, f->version, sizeof(version));
    (void)pthread_mutex_unlock(&f->lock);

    struct fake_answer a = {.then = FAKE_KEEP};
    buf_init(&a.bytes, REQUEST_MAX);
    if (version[0] && strcmp(q->path, "/_ping") == 0)
        (void)buf_appendf(
            &a.bytes, "HTTP/1.1 200 OK\r\nApi-Version: %s\r\nContent-Length: 2\r\n\r\nOK", version);
    else
        f->handler(f->user, q, &a);
    send_answer(c, &a);
    buf_done(&a.bytes);
}

/* Takes one whole request from the connection's input, if one is there. */
static bool serve_one(struct fake_daemon *f, struct connection *c)
{
    char *end = c->in.len ? memmem(c->in.data, c->in.len, "\r\n\r\n", 4) : NULL;
    if (!end)
        return false;
    *end = '\0';
    uint64_t body_len = 0;
    const char *length = strcasestr(c->in.data, "content-length: ");
    if (length)
        (void)parse_u64(length + 16, strspn(length + 16, "0123456789"), 0, REQUEST_MAX, &body_len);
    size_t head_len = (size_t)(end - c->in.data) + 4;
    if (c->in.len < head_len + body_len) {
        *end = '\r';
        return false;
    }
    char *method = c->in.data;
    char *path = strchr(method, ' ');
    char *path_end = path ? strchr(path + 1, ' ') : NULL;
    if (!path_end) {
        hang_up(c);
        return false;
    }
    *path = '\0';
    *path_end = '\0';
    struct fake_request q = {
        .method = method,
        .path = path + 1,
        .body = {c->in.data + head_len, (size_t)body_len},
        .connection = c->number,
    };
    answer_request(f, c, &q);
    if (c->fd < 0)
        return false;
    buf_consume(&c->in, head_len + (size_t)body_len);
    return c->mode == FAKE_KEEP;
}

static void echo(struct connection *c)
{
    uint8_t header[8] = {1, 0, 0, 0};
    header[4] = (uint8_t)(c->in.len >> 24);
    header[5] = (uint8_t)(c->in.len >> 16);
    header[6] = (uint8_t)(c->in.len >> 8);
    header[7] = (uint8_t)c->in.len;
    if (c->in.len == 0)
        return;
    if (!send_all(c->fd, (const char *)header, sizeof(header)) ||
        !send_all(c->fd, c->in.data, c->in.len))
        hang_up(c);
    else
        buf_clear(&c->in);
}

static void serve_connection(struct fake_daemon *f, struct connection *c)
{
    char *room = buf_reserve(&c->in, 65536);
    ssize_t n = room ? recv(c->fd, room, 65536, MSG_DONTWAIT) : -1;
    if (n < 0 && room && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(c);
        return;
    }
    buf_commit(&c->in, (size_t)n);
    while (c->mode == FAKE_KEEP && serve_one(f, c))
        ;
    if (c->fd >= 0 && c->mode == FAKE_ECHO)
        echo(c);
}

static void accept_connection(struct fake_daemon *f)
{
    int fd = fd_accept(f->listener);
    if (fd < 0)
        return;
    (void)fd_set_nonblock(fd, 0);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &f->connections[i];
        if (c->fd >= 0)
            continue;
        *c = (struct connection){.fd = fd, .number = ++f->accepted};
        buf_init(&c->in, REQUEST_MAX);
        return;
    }
    (void)close(fd);
}

static void *serve(void *arg)
{
    struct fake_daemon *f = arg;
    for (;;) {
        struct pollfd p[CONNECTIONS_MAX + 2] = {
            {.fd = f->stop_fd, .events = POLLIN},
            {.fd = f->listener, .events = POLLIN},
        };
        for (size_t i = 0; i < CONNECTIONS_MAX; i++)
            p[i + 2] = (struct pollfd){.fd = f->connections[i].fd, .events = POLLIN};
        if (poll(p, ARRAY_LEN(p), -1) < 0)
            continue;
        if (p[0].revents)
            return NULL;
        for (size_t i = 0; i < CONNECTIONS_MAX; i++)
            if (p[i + 2].revents && f->connections[i].fd >= 0)
                serve_connection(f, &f->connections[i]);
        if (p[1].revents)
            accept_connection(f);
    }
}

void fake_up(struct fake_daemon *f, const char *version)
{
    (void)pthread_mutex_lock(&f->lock);
    (void)snprintf(f->version, sizeof(f->version), "%s", version ? version : "");
    (void)pthread_mutex_unlock(&f->lock);

    struct sockaddr_un a = {.sun_family = AF_UNIX};
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", f->path);
    f->listener = fd_socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(f->listener >= 0);
    assert_int_equal(bind(f->listener, (const struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(f->listener, 64), 0);
    (void)fd_set_nonblock(f->listener, 1);
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
    f->running = true;
}

void fake_down(struct fake_daemon *f)
{
    if (!f->running)
        return;
    fd_notify(f->stop_fd);
    assert_int_equal(pthread_join(f->thread, NULL), 0);
    fd_drain(f->stop_fd);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        hang_up(&f->connections[i]);
    (void)close(f->listener);
    (void)unlink(f->path);
    f->running = false;
}

struct fake_daemon *fake_start(const char *version, fake_handler handler, void *user)
{
    struct fake_daemon *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->handler = handler;
    f->user = user;
    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/fake-daemon-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    (void)snprintf(f->path, sizeof(f->path), "%s/docker.sock", f->folder);
    (void)snprintf(f->address, sizeof(f->address), "unix://%s", f->path);
    f->stop_fd = fd_eventfd();
    assert_true(f->stop_fd >= 0);
    assert_int_equal(pthread_mutex_init(&f->lock, NULL), 0);
    buf_init(&f->log, 1U << 20);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        f->connections[i].fd = -1;
    fake_up(f, version);
    return f;
}

const char *fake_address(const struct fake_daemon *f)
{
    return f->address;
}

void fake_stop(struct fake_daemon *f)
{
    fake_down(f);
    (void)close(f->stop_fd);
    (void)rmdir(f->folder);
    (void)pthread_mutex_destroy(&f->lock);
    buf_done(&f->log);
    free(f);
}

char *fake_log(struct fake_daemon *f)
{
    (void)pthread_mutex_lock(&f->lock);
    char *copy = strdup(f->log.len ? f->log.data : "");
    (void)pthread_mutex_unlock(&f->lock);
    assert_non_null(copy);
    return copy;
}

unsigned fake_count(struct fake_daemon *f, const char *line_start)
{
    cleanup_free char *log = fake_log(f);
    unsigned n = 0;
    for (const char *line = log; *line; line = strchr(line, '\n') + 1)
        n += strncmp(line, line_start, strlen(line_start)) == 0;
    return n;
}
