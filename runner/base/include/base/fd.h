/* base/fd.h - descriptors that are close-on-exec from birth.
 *
 * The only place that calls socket, accept4, eventfd, pipe2 and epoll_create1, so that none of them
 * can forget the flag. All return a descriptor or 0, or a negative errno. */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

int fd_pipe(int ret_fds[static 2]);
int fd_eventfd(void); /* non-blocking counter */
int fd_epoll(void);
int fd_socket(int domain, int type, int protocol);
int fd_socketpair(int ret_fds[static 2]); /* AF_UNIX stream */
int fd_accept(int listener);              /* non-blocking */
int fd_set_nonblock(int fd, int on);

/* Signals and drains an eventfd; neither blocks. */
void fd_notify(int eventfd_fd);
void fd_drain(int eventfd_fd);

/* Whole transfers on blocking descriptors; EINTR never escapes. fd_read_full() returns the bytes read,
 * less than n only at the end of the file. */
ssize_t fd_read_full(int fd, void *bytes, size_t n);
int fd_write_full(int fd, const void *bytes, size_t n);

/* The whole of a small file; -EFBIG past max. *ret is NUL-terminated and the caller frees it. */
int fd_read_file(const char *path, size_t max, char **ret, size_t *ret_len);

#endif
