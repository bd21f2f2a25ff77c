#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "hub_internal.h"

#define READ_BUDGET (64 << 10) /* of one client in one turn */

/* ---- wslay's callbacks ---- */

static ssize_t would_block(wslay_event_context_ptr ws)
{
    wslay_event_set_error(ws, WSLAY_ERR_WOULDBLOCK);
    return -1;
}

static size_t take_extra(struct client *c, void *to, size_t n)
{
    n = n < c->extra.len ? n : c->extra.len;
    memcpy(to, c->extra.data, n);
    buf_consume(&c->extra, n);
    if (c->extra.len == 0)
        buf_done(&c->extra);
    return n;
}

static ssize_t on_recv(wslay_event_context_ptr ws, uint8_t *to, size_t n, int flags, void *arg)
{
    struct client *c = arg;
    (void)flags; /* wslay defines none */
    n = n < c->read_budget ? n : c->read_budget;
    if (n == 0 || c->state != CLIENT_OPEN || c->out.len >= OUT_HIGH)
        return would_block(ws);
    if (c->extra.len > 0)
        return (ssize_t)take_extra(c, to, n);

    ssize_t got = recv(c->socket.fd, to, n, MSG_DONTWAIT);
    if (got > 0) {
        c->read_budget -= (size_t)got;
        c->received_ms = c->hub->times.now_ms();
        c->pinged_ms = 0;
        return got;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return would_block(ws);
    client_drop(c, got == 0 ? "end of stream" : "read error");
    wslay_event_set_error(ws, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static ssize_t on_send(wslay_event_context_ptr ws, const uint8_t *data, size_t n, int flags,
                       void *arg)
{
    struct client *c = arg;
    (void)flags;
    if (buf_append(&c->out, data, n) == 0)
        return (ssize_t)n;
    client_drop(c, "out of memory");
    wslay_event_set_error(ws, WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static void on_frame_start(wslay_event_context_ptr ws,
                           const struct wslay_event_on_frame_recv_start_arg *arg, void *user)
{
    struct client *c = user;
    (void)ws;
    c->is_frame_control = wslay_is_ctrl_frame(arg->opcode);
}

/* wslay would allocate each fragment of a message by itself, so that 64 KiB of them cost a hundred
 * times as much: we collect them. */
static void on_frame_chunk(wslay_event_context_ptr ws,
                           const struct wslay_event_on_frame_recv_chunk_arg *arg, void *user)
{
    struct client *c = user;
    (void)ws;
    if (c->is_frame_control || c->state != CLIENT_OPEN)
        return;
    int r = buf_append(&c->message, arg->data, arg->data_length);
    if (r == -EMSGSIZE)
        client_close(c, WSLAY_CODE_MESSAGE_TOO_BIG, "a message has at most 65536 bytes");
    else if (r < 0)
        client_drop(c, "out of memory");
}

static void on_message(wslay_event_context_ptr ws, const struct wslay_event_on_msg_recv_arg *arg,
                       void *user)
{
    struct client *c = user;
    (void)ws;
    if (wslay_is_ctrl_frame(arg->opcode) || c->state != CLIENT_OPEN)
        return;
    if (arg->opcode == WSLAY_TEXT_FRAME)
        client_on_message(c, c->message.data ? c->message.data : "", c->message.len);
    else
        client_close(c, WSLAY_CODE_UNSUPPORTED_DATA, "messages are text");
    buf_done(&c->message);
}

/* ---- life ---- */

static int open_ws(struct client *c)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .on_frame_recv_start_callback = on_frame_start,
        .on_frame_recv_chunk_callback = on_frame_chunk,
        .on_msg_recv_callback = on_message,
    };
    if (wslay_event_context_server_init(&c->ws, &callbacks, c) != 0) {
        c->ws = NULL; /* wslay has freed what it had */
        return -ENOMEM;
    }
    wslay_event_config_set_no_buffering(c->ws, 1);
    wslay_event_config_set_max_recv_msg_length(c->ws, HUB_FRAME_MAX);
    return 0;
}

static int fill(struct client *c, struct err *err)
{
    uint64_t id[2];
    int r = id_random(id, sizeof(id));
    if (r < 0)
        return err_set(err, r, "socket id");
    (void)snprintf(c->id, sizeof(c->id), "%" PRIu64 ".%" PRIu64, id[0], id[1]);
    if (c->socket.extra.len > 0)
        r = buf_append(&c->extra, c->socket.extra.ptr, c->socket.extra.len);
    if (r == 0)
        r = open_ws(c);
    if (r < 0)
        return err_set(err, r, "connection");
    c->socket.extra = (struct span){0};
    r = fd_set_nonblock(c->socket.fd, 1);
    return r < 0 ? err_set(err, r, "connection: non-blocking socket") : 0;
}

int client_new(struct hub *h, const struct hub_socket *socket, struct client **ret, struct err *err)
{
    struct client *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, -ENOMEM, "connection");
    c->hub = h;
    c->socket = *socket;
    buf_init(&c->extra, socket->extra.len);
    buf_init(&c->message, HUB_FRAME_MAX);
    buf_init(&c->out, OUT_MAX);
    TAILQ_INIT(&c->subscriptions);
    TAILQ_INIT(&c->news);
    int r = fill(c, err);
    if (r < 0) {
        client_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void client_free(struct client *c)
{
    struct subscription *s;
    while ((s = TAILQ_FIRST(&c->subscriptions)))
        subscription_remove(s);
    if (c->ws)
        wslay_event_context_free(c->ws);
    buf_done(&c->extra);
    buf_done(&c->message);
    buf_done(&c->out);
    free(c);
}

void client_drop(struct client *c, const char *reason)
{
    struct hub *h = c->hub;
    if (c->state == CLIENT_DEAD)
        return;
    log_debug("hub.dropped", LOG_STR("socket_id", c->id), LOG_STR("reason", reason));
    c->state = CLIENT_DEAD;
    if (c->is_ready)
        TAILQ_REMOVE(&h->ready, c, ready_link);
    c->is_ready = false;
    TAILQ_REMOVE(&h->clients, c, link);
    TAILQ_INSERT_TAIL(&h->dead, c, link);
}

/* ---- writing ---- */

static void frame_all(struct client *c)
{
    bool was_empty = c->out.len == 0;
    if (wslay_event_send(c->ws) != 0)
        client_drop(c, "out of memory");
    if (was_empty)
        c->progress_ms = c->hub->times.now_ms();
}

void client_send_text(struct client *c, int r)
{
    struct buf *text = &c->hub->text;
    if (r == 0 && c->state == CLIENT_OPEN) {
        const struct wslay_event_msg msg = {
            .opcode = WSLAY_TEXT_FRAME,
            .msg = (const uint8_t *)text->data,
            .msg_length = text->len,
        };
        r = wslay_event_queue_msg(c->ws, &msg);
    }
    buf_clear(text);
    if (r != 0)
        client_drop(c, "out of memory");
    else
        frame_all(c);
}

static void enter_closing(struct client *c)
{
    if (c->state != CLIENT_OPEN)
        return;
    c->state = CLIENT_CLOSING;
    c->close_deadline_ms = c->hub->times.now_ms() + c->hub->times.close_ms;
    wslay_event_shutdown_read(c->ws);
    frame_all(c);
}

void client_close(struct client *c, uint16_t code, const char *reason)
{
    if (c->state != CLIENT_OPEN)
        return;
    log_debug("hub.closing", LOG_STR("socket_id", c->id), LOG_INT("code", code),
              LOG_STR("reason", reason));
    int r = wslay_event_queue_close(c->ws, code, (const uint8_t *)reason, strlen(reason));
    if (r != 0 && r != WSLAY_ERR_NO_MORE_MSG)
        client_drop(c, "out of memory");
    else
        enter_closing(c);
}

static void write_out(struct client *c)
{
    while (c->out.len > 0) {
        ssize_t sent = send(c->socket.fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return;
        if (sent < 0) {
            client_drop(c, "write error");
            return;
        }
        buf_consume(&c->out, (size_t)sent);
        c->progress_ms = c->hub->times.now_ms();
    }
    buf_done(&c->out); /* an idle client holds no buffer */
}

/* ---- reading ---- */

static void read_messages(struct client *c)
{
    c->read_budget = READ_BUDGET;
    int r = wslay_event_recv(c->ws);
    if (c->state == CLIENT_DEAD)
        return;
    if (r != 0) {
        /* A broken frame: wslay has queued a close frame without a code. */
        log_debug("hub.protocol_error", LOG_STR("socket_id", c->id));
    }
    if (!wslay_event_get_read_enabled(c->ws)) /* it wants to close, or the client does */
        enter_closing(c);
    else
        frame_all(c); /* pongs */
}

/* No descriptor tells of these bytes: what a full `out` left there is taken up when that has
 * drained. */
static void read_extra(struct client *c)
{
    while (c->extra.len > 0 && c->state == CLIENT_OPEN && c->out.len < OUT_HIGH) {
        read_messages(c);
        if (c->state != CLIENT_DEAD)
            write_out(c);
    }
}

static void discard_input(struct client *c)
{
    char waste[4096];
    for (size_t n = 0; n < READ_BUDGET; n += sizeof(waste)) {
        ssize_t got = recv(c->socket.fd, waste, sizeof(waste), MSG_DONTWAIT);
        if (got > 0)
            continue;
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            client_drop(c, "closed");
        return;
    }
}

/* ---- turns ---- */

/* All is written. We end our side and wait for the other's end, so that a reset (which unread
 * input would cause) does not overtake the close frame. */
static void finish_closing(struct client *c)
{
    if (wslay_event_get_close_received(c->ws)) {
        client_drop(c, "closed");
        return;
    }
    if (!c->is_write_shut && shutdown(c->socket.fd, SHUT_WR) < 0)
        client_drop(c, "shutdown error");
    c->is_write_shut = true;
}

static void update_interest(struct client *c)
{
    struct epoll_event want = {.data.ptr = c};
    if (c->state == CLIENT_CLOSING || c->out.len < OUT_HIGH)
        want.events |= EPOLLIN;
    if (c->out.len > 0)
        want.events |= EPOLLOUT;
    if (want.events == c->interest)
        return;
    if (epoll_ctl(c->hub->epoll_fd, EPOLL_CTL_MOD, c->socket.fd, &want) < 0)
        client_drop(c, "epoll error");
    c->interest = want.events;
}

void client_schedule(struct client *c)
{
    if (c->state != CLIENT_OPEN || c->is_ready || c->out.len > OUT_LOW || TAILQ_EMPTY(&c->news))
        return;
    c->is_ready = true;
    TAILQ_INSERT_TAIL(&c->hub->ready, c, ready_link);
}

void client_flush(struct client *c)
{
    if (c->state != CLIENT_DEAD)
        write_out(c);
    read_extra(c);
    if (c->state == CLIENT_CLOSING && c->out.len == 0)
        finish_closing(c);
    if (c->state != CLIENT_DEAD)
        update_interest(c);
    client_schedule(c);
}

void client_on_epoll(struct client *c, uint32_t events)
{
    if (c->state == CLIENT_DEAD)
        return;
    if (events & EPOLLIN && c->state == CLIENT_OPEN)
        read_messages(c);
    else if (events & EPOLLIN)
        discard_input(c);
    else if (events & (EPOLLERR | EPOLLHUP))
        client_drop(c, "hung up");
    client_flush(c);
}

void client_start(struct client *c)
{
    struct hub *h = c->hub;
    c->received_ms = c->progress_ms = h->times.now_ms();
    if (!c->is_app_known) {
        const char *reason = "there is no app with this key";
        client_send_text(c, message_error(&h->text, PUSHER_UNKNOWN_APP, reason));
        client_close(c, PUSHER_UNKNOWN_APP, reason);
    } else {
        client_send_text(c, message_established(&h->text, c->id, HUB_ACTIVITY_TIMEOUT_S));
    }
    client_flush(c);
}

/* ---- clocks ---- */

void client_check_clocks(struct client *c, int64_t now_ms)
{
    const struct hub_times *t = &c->hub->times;
    if (c->state == CLIENT_CLOSING) {
        if (now_ms >= c->close_deadline_ms)
            client_drop(c, "close handshake timed out");
        return;
    }
    if (c->out.len > 0) {
        if (now_ms - c->progress_ms >= t->stall_ms)
            client_drop(c, "stalled");
    } else if (c->pinged_ms != 0) {
        if (now_ms - c->pinged_ms >= t->pong_ms)
            client_close(c, PUSHER_NO_PONG, "no answer to pusher:ping");
    } else if (now_ms - c->received_ms >= t->idle_ms) {
        c->pinged_ms = now_ms;
        client_send_text(c, message_ping(&c->hub->text));
    }
    client_flush(c);
}
