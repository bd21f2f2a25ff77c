#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void cleanup_close_slot(int *fd)
{
    if (*fd < 0)
        return;
    int saved = errno;
    (void)close(*fd); /* nothing to be done about a failure here */
    errno = saved;
}

static int or_errno(int r)
{
    return r < 0 ? -errno : r;
}

int fd_pipe(int ret_fds[static 2])
{
    return or_errno(pipe2(ret_fds, O_CLOEXEC));
}

int fd_eventfd(void)
{
    return or_errno(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

int fd_epoll(void)
{
    return or_errno(epoll_create1(EPOLL_CLOEXEC));
}

int fd_socket(int domain, int type, int protocol)
{
    return or_errno(socket(domain, type | SOCK_CLOEXEC, protocol));
}

int fd_socketpair(int ret_fds[static 2])
{
    return or_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds));
}

int fd_accept(int listener)
{
    return or_errno(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int fd_set_nonblock(int fd, int on)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    return or_errno(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

void fd_notify(int eventfd_fd)
{
    const uint64_t one = 1;
    int saved = errno;
    (void)!write(eventfd_fd, &one, sizeof(one)); /* a full counter is a pending notice already */
    errno = saved;
}

void fd_drain(int eventfd_fd)
{
    uint64_t count;
    (void)!read(eventfd_fd, &count, sizeof(count)); /* empty is fine */
}

ssize_t fd_read_full(int fd, void *bytes, size_t n)
{
    size_t at = 0;
    while (at < n) {
        ssize_t got = read(fd, (char *)bytes + at, n - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        at += (size_t)got;
    }
    return (ssize_t)at;
}

int fd_write_full(int fd, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t put = write(fd, (const char *)bytes + at, n - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        at += (size_t)put;
    }
    return 0;
}

int fd_read_file(const char *path, size_t max, char **ret, size_t *ret_len)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    size_t cap = 4096;
    size_t len = 0;
    cleanup_free char *data = malloc(cap);
    if (!data)
        return -ENOMEM;
    for (;;) {
        ssize_t got = fd_read_full(fd, data + len, cap - 1 - len);
        if (got < 0)
            return (int)got;
        len += (size_t)got;
        if (len > max)
            return -EFBIG;
        if (len < cap - 1)
            break;
        char *more = realloc(data, cap * 2);
        if (!more)
            return -ENOMEM;
        data = more;
        cap *= 2;
    }
    data[len] = '\0';
    *ret = ptr_take(&data);
    *ret_len = len;
    return 0;
}
