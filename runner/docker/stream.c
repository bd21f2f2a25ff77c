/* An attached container: one connection, taken over from HTTP.
 *
 * libcurl opens it (CURLOPT_CONNECT_ONLY: address, time-out, socket flags are as for every call),
 * the upgrade is spoken here, and from then on the socket is ours until the handle is freed with
 * it. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "demux.h"
#include "docker_internal.h"

#define HEAD_MAX    16384U /* bytes of the answer's status line and headers */
#define REFUSAL_MAX 65536U /* bytes of the daemon's words when it refuses */
#define INPUT_BYTES 16384U
/* One call to docker_stream_read() takes at most this many pieces from the socket, so that a flood
 * of stderr or of empty frames does not keep its thread. */
#define READ_ROUNDS 64U

struct docker_stream {
    CURL *handle; /* owns the socket */
    int fd;
    bool broken;
    bool ended;
    size_t at; /* input[at..end) is not taken yet */
    size_t end;
    uint8_t input[INPUT_BYTES];
    struct demux demux;
};

void docker_stream_close(struct docker_stream *s)
{
    if (!s)
        return;
    curl_easy_cleanup(s->handle);
    free(s);
}

/* --- opening --------------------------------------------------------------------------------- */

struct opening {
    struct docker *d;
    struct docker_stream *s;
    const char *what;
    int64_t deadline_ms;
    struct buf head;
};

static int hung_up(const struct opening *o, struct err *err)
{
    docker_version_forget(o->d);
    return err_say(err, -EHOSTDOWN, "cannot %s: the Docker daemon at %s hung up", o->what,
                   o->d->address);
}

static int wait_for(const struct opening *o, short events, struct err *err)
{
    for (;;) {
        struct pollfd p = {.fd = o->s->fd, .events = events};
        int n = poll(&p, 1, clock_poll_timeout(o->deadline_ms));
        if (n > 0)
            return 0;
        if (n == 0)
            return err_say(err, -ETIMEDOUT,
                           "cannot %s: the Docker daemon at %s does not answer in time", o->what,
                           o->d->address);
        if (errno != EINTR)
            return err_set(err, -errno, "cannot %s", o->what);
    }
}

static int connect_stream(struct opening *o, struct err *err)
{
    int r = docker_handle_take(o->d, &o->s->handle, err);
    if (r < 0)
        return r;
    CURL *h = o->s->handle;
    char url[512];
    int n = snprintf(url, sizeof(url), "http://%s/", o->d->host);
    long timeout_ms = (long)docker_timeout(o->d, DOCKER_ATTACH_MS);
    if (n < 0 || (size_t)n >= sizeof(url) || curl_easy_setopt(h, CURLOPT_URL, url) != CURLE_OK ||
        curl_easy_setopt(h, CURLOPT_CONNECT_ONLY, 1L) != CURLE_OK ||
        curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, 1L) != CURLE_OK ||
        curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms) != CURLE_OK)
        return err_set(err, -ENOMEM, "cannot %s", o->what);

    CURLcode code = curl_easy_perform(h);
    if (code != CURLE_OK)
        return docker_transfer_error(o->d, h, code, o->what, err);
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (curl_easy_getinfo(h, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD)
        return hung_up(o, err);
    r = fd_set_nonblock(fd, 1);
    if (r < 0)
        return err_set(err, r, "cannot %s", o->what);
    o->s->fd = fd;
    return 0;
}

static int send_request(struct opening *o, const char *version, const char *id, struct err *err)
{
    cleanup_buf struct buf request;
    buf_init(&request, DOCKER_URL_MAX);
    int r = buf_appendf(&request, "POST /v%s/containers/", version);
    if (r == 0)
        r = docker_append_encoded(&request, id);
    if (r == 0)
        r = buf_appendf(&request,
                        "/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\nHost: %s\r\n"
                        "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n",
                        o->d->host);
    if (r < 0)
        return err_set(err, r, "cannot %s", o->what);

    for (size_t sent = 0; sent < request.len;) {
        ssize_t n = send(o->s->fd, request.data + sent, request.len - sent, MSG_NOSIGNAL);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN) {
            r = wait_for(o, POLLOUT, err);
            if (r < 0)
                return r;
        } else if (errno != EINTR) {
            return hung_up(o, err);
        }
    }
    return 0;
}

/* Appends what is there, at most max bytes. 0 also at the end of the stream, with *ret_end. */
static int receive(struct opening *o, struct buf *b, size_t max, bool *ret_end, struct err *err)
{
    int r = wait_for(o, POLLIN, err);
    if (r < 0)
        return r;
    char *room = buf_reserve(b, max);
    if (!room)
        return err_set(err, -errno, "cannot %s", o->what);
    ssize_t n = recv(o->s->fd, room, max, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return hung_up(o, err);
    buf_commit(b, (size_t)n);
    *ret_end = n == 0;
    return 0;
}

/* Returns with the whole head in o->head; what came after it goes to the stream's input. */
static int read_head(struct opening *o, size_t *ret_head_len, struct err *err)
{
    for (;;) {
        if (o->head.len >= HEAD_MAX)
            return err_say(err, -EPROTO, "cannot %s: the Docker daemon's headers do not end",
                           o->what);
        bool end = false;
        int r = receive(o, &o->head, HEAD_MAX - o->head.len, &end, err);
        if (r < 0)
            return r;
        if (end)
            return hung_up(o, err);
        const char *stop =
            o->head.len > 0 ? memmem(o->head.data, o->head.len, "\r\n\r\n", 4) : NULL;
        if (stop) {
            *ret_head_len = (size_t)(stop - o->head.data) + 4;
            return 0;
        }
    }
}

/* "HTTP/1.1 101 UPGRADED" -> 101; 0 for what is no status line. */
static long status_of(const struct buf *head)
{
    uint64_t status;
    if (head->len < 12 || strncmp(head->data, "HTTP/1.", 7) != 0 || head->data[8] != ' ' ||
        parse_u64(head->data + 9, 3, 100, 599, &status) < 0)
        return 0;
    return (long)status;
}

/* The value of a header, up to the end of the head; NULL when there is none. */
static const char *header(const struct buf *head, size_t head_len, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i + n < head_len; i++)
        if (strncasecmp(head->data + i, name, n) == 0)
            return head->data + i + n + strspn(head->data + i + n, " ");
    return NULL;
}

/* The daemon's words are in the body, which ends after its length, with its last chunk, or (so API
 * 1.41 says that there is no such container) with the connection. */
static int refused(struct opening *o, size_t head_len, struct docker_answer *answer,
                   struct err *err)
{
    const char *length = header(&o->head, head_len, "\r\ncontent-length:");
    bool chunked = header(&o->head, head_len, "\r\ntransfer-encoding:") != NULL;
    uint64_t whole = REFUSAL_MAX;
    if (length && parse_u64(length, strspn(length, "0123456789"), 0, REFUSAL_MAX, &whole) < 0)
        whole = 0;

    struct buf *body = &answer->body;
    int r = buf_append(body, o->head.data + head_len, o->head.len - head_len);
    for (bool end = false; r == 0 && !end && body->len < whole;) {
        if (chunked && body->len > 0 && memmem(body->data, body->len, "\r\n0\r\n", 5))
            break;
        r = receive(o, body, (size_t)whole - body->len, &end, err);
    }
    if (r < 0)
        return r;
    struct span words = buf_span(body);
    const char *brace = chunked && words.len > 0 ? memchr(words.ptr, '{', words.len) : NULL;
    if (brace) /* the daemon's messages fit one chunk */
        words = (struct span){brace, words.len - (size_t)(brace - words.ptr)};
    return docker_status_error(o->what, answer->status, words, err);
}

static int upgrade(struct opening *o, const char *id, struct docker_answer *answer,
                   char version[static DOCKER_VERSION_MAX], struct err *err)
{
    int r = docker_version(o->d, version, err);
    if (r == 0)
        r = connect_stream(o, err);
    if (r == 0)
        r = send_request(o, version, id, err);
    size_t head_len = 0;
    if (r == 0)
        r = read_head(o, &head_len, err);
    if (r < 0)
        return r;

    answer->status = status_of(&o->head);
    if (answer->status == 0)
        return err_say(err, -EPROTO, "cannot %s: what answers at %s does not speak HTTP", o->what,
                       o->d->address);
    if (answer->status != 101 && answer->status != 200)
        return refused(o, head_len, answer, err);

    static_assert(HEAD_MAX <= INPUT_BYTES, "what follows the headers fits");
    o->s->end = o->head.len - head_len;
    memcpy(o->s->input, o->head.data + head_len, o->s->end);
    return 0;
}

int docker_container_attach(struct docker *d, const char *id, struct docker_stream **ret,
                            struct err *err)
{
    char what[128];
    (void)snprintf(what, sizeof(what), "attach to container %.64s", id); /* cut is fine */
    for (unsigned attempt = 0;; attempt++) {
        cleanup_docker_stream struct docker_stream *s = calloc(1, sizeof(*s));
        if (!s)
            return err_set(err, -ENOMEM, "cannot %s", what);
        s->fd = -1;
        struct opening o = {
            .d = d,
            .s = s,
            .what = what,
            .deadline_ms = clock_now_ms() + docker_timeout(d, DOCKER_ATTACH_MS),
        };
        buf_init(&o.head, HEAD_MAX);
        cleanup_docker_answer struct docker_answer answer = {0};
        buf_init(&answer.body, REFUSAL_MAX + HEAD_MAX);
        char version[DOCKER_VERSION_MAX] = "";
        int r = upgrade(&o, id, &answer, version, err);
        buf_done(&o.head);
        if (r == 0) {
            *ret = ptr_take(&s);
            return 0;
        }
        if (attempt > 0 || !docker_version_changed(d, version, &answer))
            return r;
    }
}

/* --- use ------------------------------------------------------------------------------------- */

int docker_stream_fd(const struct docker_stream *s)
{
    return s->fd;
}

bool docker_stream_pending(const struct docker_stream *s)
{
    return s->at < s->end || s->broken || s->ended;
}

struct span docker_stream_stderr(const struct docker_stream *s)
{
    return (struct span){s->demux.stderr_text, s->demux.stderr_len};
}

/* From the socket: bytes, 0 at the end (which must be between two frames), or an error. */
static ssize_t pull(struct docker_stream *s, void *bytes, size_t n)
{
    ssize_t got;
    do {
        got = recv(s->fd, bytes, n, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    if (got == 0) {
        s->ended = true;
        s->broken = !demux_is_between(&s->demux);
        return s->broken ? -EBADMSG : 0;
    }
    return got;
}

/* Takes from the input what fits into bytes. */
static ssize_t take_input(struct docker_stream *s, void *bytes, size_t n)
{
    struct demux_step step;
    int r = demux_feed(&s->demux, s->input + s->at, s->end - s->at, bytes, n, &step);
    s->at += step.used;
    s->broken = r < 0;
    if (step.made > 0) /* good bytes first; the error is for the next call */
        return (ssize_t)step.made;
    return r;
}

ssize_t docker_stream_read(struct docker_stream *s, void *bytes, size_t n)
{
    if (n == 0)
        return -EINVAL;
    for (unsigned round = 0; round < READ_ROUNDS; round++) {
        if (s->broken)
            return -EBADMSG;
        if (s->at < s->end) {
            ssize_t r = take_input(s, bytes, n);
            if (r != 0)
                return r;
            continue;
        }
        if (s->ended)
            return 0;
        size_t direct = demux_direct(&s->demux);
        if (direct > 0) {
            ssize_t r = pull(s, bytes, direct < n ? direct : n);
            if (r > 0)
                demux_direct_took(&s->demux, (size_t)r);
            return r;
        }
        ssize_t r = pull(s, s->input, sizeof(s->input));
        if (r <= 0)
            return r;
        s->at = 0;
        s->end = (size_t)r;
    }
    return -EAGAIN; /* poll reports the rest */
}

ssize_t docker_stream_write(struct docker_stream *s, const void *bytes, size_t n)
{
    ssize_t r;
    do {
        r = send(s->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (r < 0 && errno == EINTR);
    if (r >= 0)
        return r;
    return errno == ECONNRESET || errno == ENOTCONN ? -EPIPE : -errno;
}

int docker_stream_shutdown(struct docker_stream *s)
{
    return shutdown(s->fd, SHUT_WR) < 0 && errno != ENOTCONN ? -errno : 0;
}
