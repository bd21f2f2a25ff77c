/* docker/docker.h - client of the Docker Engine API (v1.41 and newer) over libcurl.
 *
 * Address     unix:///path or tcp://host:port (DOCKER_HOST). The API version is negotiated from
 *             GET /_ping: the daemon's own, at most DOCKER_API_MAX; a daemon older than
 *             DOCKER_API_MIN is refused by name.
 * Time-outs   every call has one; -ETIMEDOUT then.
 * Errors      a negative errno and words that carry the daemon's own message: -ENOENT (404),
 *             -EEXIST (409), -EINVAL (400), -EIO (5xx and others); -EHOSTDOWN: no daemon there, or
 *             it hung up; -ETIMEDOUT; -EMSGSIZE: an answer above 8 MiB; -EBADMSG: one we cannot
 *             read; -ENOTSUP: too old; -EPROTO: no Docker daemon.
 * Retries     a call whose kept connection turns out to be closed is sent again on a new one; only
 *             docker_container_create(), which must not happen twice, always takes a new one.
 * Threads     any; each call takes a connection of its own from a small pool. A stream belongs to
 *             one thread at a time.
 * Ownership   ids are 64 hex characters in caller's arrays. */
#ifndef DOCKER_DOCKER_H
#define DOCKER_DOCKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#define DOCKER_API_MIN "1.41"
#define DOCKER_API_MAX "1.47"
#define DOCKER_ID_SIZE 65

struct docker;

/* Does not connect: the daemon may come later. -EINVAL for an address it cannot use. */
int docker_new(const char *address, struct docker **ret, struct err *err);
void docker_free(struct docker *d);
DEFINE_CLEANUP(struct docker *, docker_free)
#define cleanup_docker CLEANUP(docker_free_slot)

/* Is it there? Negotiates the version on the first success; 0 or why not. */
int docker_ping(struct docker *d, struct err *err);

/* {"info": GET /info, "version": GET /version} as the daemon gives them; new reference. */
int docker_info(struct docker *d, json_t **ret, struct err *err);

int docker_image_exists(struct docker *d, const char *name, struct err *err); /* 0 or -ENOENT ... */
int docker_image_inspect(struct docker *d, const char *name, json_t **ret, struct err *err);

/* config is the body of POST /containers/create (borrowed). name NULL: the daemon chooses. */
int docker_container_create(struct docker *d, const char *name, const json_t *config,
                            char ret_id[static DOCKER_ID_SIZE], struct err *err);
int docker_container_start(struct docker *d, const char *id, struct err *err);
int docker_container_kill(struct docker *d, const char *id,
                          struct err *err); /* SIGKILL; not running is 0 */
/* force and volumes; gone already is 0. Returns when the container is gone. */
int docker_container_remove(struct docker *d, const char *id, struct err *err);
int docker_container_inspect(struct docker *d, const char *id, json_t **ret, struct err *err);
/* All containers (any state) that have every one of the labels "key=value"; new array of
 * GET /containers/json rows. */
int docker_container_list(struct docker *d, const char *const *labels, json_t **ret,
                          struct err *err);
/* Unpacks a tar archive at path inside the container (also one that never ran). */
int docker_container_put_archive(struct docker *d, const char *id, const char *path,
                                 const void *tar, size_t n, struct err *err);
/* Appends a tar archive of what is at path to *ret; -ENOENT: no such container or path. */
int docker_container_get_archive(struct docker *d, const char *id, const char *path,
                                 struct buf *ret, struct err *err);

int docker_volume_create(struct docker *d, const json_t *config, struct err *err);
int docker_volume_exists(struct docker *d, const char *name, struct err *err); /* 0 or -ENOENT */
int docker_volume_remove(struct docker *d, const char *name,
                         struct err *err); /* gone already is 0 */
int docker_volume_list(struct docker *d, const char *const *labels, json_t **ret, struct err *err);

/* A hijacked attach: stdin, stdout and stderr of a container in one connection, with the 8-byte
 * multiplex header of POST /containers/{id}/attach. */
struct docker_stream;

int docker_container_attach(struct docker *d, const char *id, struct docker_stream **ret,
                            struct err *err);
void docker_stream_close(struct docker_stream *s);
DEFINE_CLEANUP(struct docker_stream *, docker_stream_close)
#define cleanup_docker_stream CLEANUP(docker_stream_close_slot)

int docker_stream_fd(const struct docker_stream *s); /* borrowed; only to poll */
/* Whether bytes are already here that poll would not report. */
bool docker_stream_pending(const struct docker_stream *s);
/* Bytes of the container's stdout: > 0, 0 at the end, -EAGAIN, -EBADMSG for a broken stream (also
 * one that ends inside a frame), or a socket's error. Bytes of its stderr are kept, first 4 KiB,
 * for docker_stream_stderr(). Never blocks; n > 0. */
ssize_t docker_stream_read(struct docker_stream *s, void *bytes, size_t n);
ssize_t docker_stream_write(struct docker_stream *s, const void *bytes,
                            size_t n);               /* or -EAGAIN, -EPIPE */
int docker_stream_shutdown(struct docker_stream *s); /* no more stdin */
struct span docker_stream_stderr(const struct docker_stream *s);

#endif
