/* docker_backend.h - the docker backend's parts: the registry of its containers, and what they
 * share.
 *
 * Every container of ours has a record (struct box) from before its creation is asked for until its
 * removal has succeeded. So a sweep, which removes what has our label and no record, never meets a
 * container that is just being made; a container whose creation got no answer is removed by name;
 * and the uid is given back only when nothing runs under it. */
#ifndef SANDBOX_DOCKER_BACKEND_H
#define SANDBOX_DOCKER_BACKEND_H

#include "container_config.h"
#include "docker/docker.h"
#include "image.h"
#include "init_volume.h"
#include "policy/policy.h"
#include "sandbox_internal.h"
#include "uids.h"

#define BOX_NAME_PREFIX "code-runner-"
#define BOX_NAME_SIZE   (sizeof(BOX_NAME_PREFIX) + 32)

enum box_state {
    BOX_USED,     /* somebody holds it */
    BOX_LEFT,     /* its removal failed; the next sweep tries again */
    BOX_RETRYING, /* a sweep is at it */
};

struct box {
    struct box *next;
    char name[BOX_NAME_SIZE]; /* of the container; random */
    enum box_state state;
    bool has_uid;
    uint32_t uid;
};

struct docker_backend {
    struct sandbox_backend base;
    struct docker *docker;
    char *runtime;
    char *deployment_id;
    char *worker_id;
    struct container_owner owner; /* borrows both */
    struct policy_settings settings;
    struct init_volume init;
    struct image_cache images;
    struct uids uids;
    atomic_bool checked; /* the daemon was asked what it can do, and it can */

    pthread_mutex_t lock; /* guards boxes and every box's state */
    struct box *boxes;
};

/* A new record, with a uid for sandboxes. -EAGAIN when there is none left. */
int box_new(struct docker_backend *b, bool with_uid, struct box **ret, struct err *err);
/* Removes the container, whether or not it was created, and then the record. When that fails the
 * record stays for the next sweep. The caller has no box any more in either case. */
int box_remove(struct docker_backend *b, struct box *box, struct err *err);

extern const struct sandbox_ops docker_backend_ops;

/* docker_sandbox.c */
int docker_sandbox_open(struct sandbox_backend *b, const struct sandbox_request *req,
                        struct sandbox **ret, struct err *err);
int docker_sandbox_poll_fd(const struct sandbox *s);
bool docker_sandbox_read_pending(const struct sandbox *s);
ssize_t docker_sandbox_read(struct sandbox *s, void *bytes, size_t n);
ssize_t docker_sandbox_write(struct sandbox *s, const void *bytes, size_t n);
uint32_t docker_sandbox_program_uid(const struct sandbox *s);
char *const *docker_sandbox_image_env(const struct sandbox *s);
int docker_sandbox_kill(struct sandbox *s, struct err *err);
int docker_sandbox_close(struct sandbox *s, struct verdict *ret, struct err *err);

/* docker_sweep.c */
int docker_backend_sweep(struct sandbox_backend *b, unsigned *ret_removed, struct err *err);

#endif
