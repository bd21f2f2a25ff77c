#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "gateway_internal.h"

#define IDLE_MS_DEFAULT    60000
#define REQUEST_MS_DEFAULT 120000
#define DRAIN_MS           2000
#define DRAIN_STEP_MS      5
#define LISTEN_BACKLOG     511
/* Request line and headers of one connection, and the pieces its body is read in. */
#define CONNECTION_BYTES_MAX 32768

static int listen_on(const char *host, uint16_t port, uint16_t *ret_port, struct err *err)
{
    char service[8];
    (void)snprintf(service, sizeof(service), "%u", port); /* always fits */
    struct addrinfo *list = NULL;
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    int r = getaddrinfo(host, service, &hints, &list);
    if (r != 0)
        return err_set(err, -EINVAL, "\"%s\" is not an IPv4 or IPv6 address", host);
    struct sockaddr_storage address = {0};
    socklen_t len = list->ai_addrlen;
    memcpy(&address, list->ai_addr, len);
    freeaddrinfo(list);

    cleanup_close int fd = fd_socket(address.ss_family, SOCK_STREAM, 0);
    if (fd < 0)
        return err_set(err, fd, "socket for %s", host);
    int on = 1, off = 0; /* "::" takes IPv4 too */
    bool is_v6 = address.ss_family == AF_INET6;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (is_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
        return err_set(err, -errno, "listen on %s%s%s port %u", is_v6 ? "[" : "", host,
                       is_v6 ? "]" : "", port);
    len = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return err_set(err, -errno, "address of the listening socket");
    r = fd_set_nonblock(fd, 1);
    if (r < 0)
        return err_set(err, r, "listening socket");
    *ret_port = ntohs(is_v6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                            : ((struct sockaddr_in *)&address)->sin_port);
    return fd_take(&fd);
}

static void library_log(void *cls, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));
static void library_log(void *cls, const char *fmt, va_list args)
{
    (void)cls;
    char text[256];
    if (vsnprintf(text, sizeof(text), fmt, args) > 0)
        log_debug("gateway.http", LOG_STR("message", text));
}

static int options_check(const struct gateway_options *o, struct err *err)
{
    if (!o->host || !o->host[0])
        return err_set(err, -EINVAL, "the gateway's address is empty");
    if (!o->token || !o->token[0])
        return err_set(err, -EINVAL, "the gateway's token is empty");
    if (!o->bus || !o->languages)
        return err_set(err, -EINVAL, "the gateway has no %s", o->bus ? "languages" : "bus");
    if (o->connections_max == 0 || o->max_body_bytes == 0 || o->max_body_bytes > SIZE_MAX / 4)
        return err_set(err, -EINVAL, "the gateway's bounds are out of range");
    return 0;
}

static struct MHD_Daemon *daemon_start(struct gateway *g, int listen_fd)
{
    const struct gateway_options *o = &g->options;
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_UPGRADE | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    unsigned idle_s = (unsigned)((o->idle_ms + 999) / 1000);
    return MHD_start_daemon(
        flags, 0, NULL, NULL, connection_access, g, MHD_OPTION_EXTERNAL_LOGGER, library_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT, o->connections_max,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
        connection_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, connection_completed, g,
        MHD_OPTION_NOTIFY_CONNECTION, connection_notify, g, MHD_OPTION_END);
}

static int gateway_listen(struct gateway *g, struct err *err)
{
    cleanup_close int fd = listen_on(g->options.host, g->options.port, &g->port, err);
    if (fd < 0)
        return fd_take(&fd);
    g->daemon = daemon_start(g, fd);
    if (!g->daemon)
        return err_set(err, -EIO, "start the HTTP server");
    (void)fd_take(&fd); /* the library closes it */
    return 0;
}

int gateway_start(const struct gateway_options *o, struct gateway **ret, struct err *err)
{
    int r = options_check(o, err);
    if (r < 0)
        return r;
    cleanup_gateway struct gateway *g = calloc(1, sizeof(*g));
    if (!g)
        return err_set(err, -ENOMEM, "gateway");
    g->options = *o;
    g->options.idle_ms = o->idle_ms > 0 ? o->idle_ms : IDLE_MS_DEFAULT;
    g->options.request_ms = o->request_ms > 0 ? o->request_ms : REQUEST_MS_DEFAULT;
    g->quiesced_fd = -1;
    g->keeper_stop = -1;
    g->peers.next = g->peers.prev = &g->peers;
    (void)pthread_mutex_init(&g->hub_lock, NULL); /* cannot fail on Linux */
    (void)pthread_mutex_init(&g->peers_lock, NULL);
    atomic_init(&g->requests, 0);
    g->token = strdup(o->token);
    if (!g->token)
        return err_set(err, -ENOMEM, "gateway");
    r = keeper_start(g, err);
    if (r == 0)
        r = gateway_listen(g, err);
    if (r < 0)
        return r;
    g->options.host = NULL; /* borrowed for the call only */
    g->options.token = NULL;
    *ret = ptr_take(&g);
    return 0;
}

uint16_t gateway_port(const struct gateway *g)
{
    return g->port;
}

void gateway_quiesce(struct gateway *g)
{
    (void)pthread_mutex_lock(&g->hub_lock);
    bool was_quiesced = g->is_quiesced;
    g->is_quiesced = true;
    (void)pthread_mutex_unlock(&g->hub_lock);
    if (was_quiesced || !g->daemon)
        return;
    /* The library may still look at it, so it is only closed when that has stopped; until then
     * clients should be refused and not wait for us. */
    g->quiesced_fd = MHD_quiesce_daemon(g->daemon);
    if (g->quiesced_fd >= 0)
        (void)shutdown(g->quiesced_fd, SHUT_RDWR); /* best effort */
}

void gateway_free(struct gateway *g)
{
    if (!g)
        return;
    int saved = errno;
    gateway_quiesce(g);
    int64_t deadline_ms = clock_now_ms() + DRAIN_MS;
    while (g->daemon && atomic_load(&g->requests) > 0 && clock_now_ms() < deadline_ms)
        (void)usleep(DRAIN_STEP_MS * 1000);
    if (g->daemon)
        MHD_stop_daemon(g->daemon);
    if (g->quiesced_fd >= 0)
        (void)close(g->quiesced_fd);
    keeper_stop(g);
    (void)pthread_mutex_destroy(&g->hub_lock);
    (void)pthread_mutex_destroy(&g->peers_lock);
    free(g->token);
    free(g);
    errno = saved;
}
