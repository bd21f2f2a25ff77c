/* init_volume.h - how init gets into containers of any image: a volume with one file.
 *
 * The volume's name carries the hash of the binary, so that another build of init is another volume
 * and a running sandbox never sees its init change. It is filled through the archive call on a
 * container that is created from the job's image, never started, and removed. Before that the file
 * is read back and compared: a volume that is whole is left alone, and one that a dead server left
 * half filled is filled again (the daemon unlinks and creates, so nobody's running init is written
 * to).
 *
 * Once per backend this is made sure of; again after init_volume_suspect(), for instance because
 * somebody pruned volumes. It is never removed: other servers may use it.
 *
 * Two servers that fill it for the first time in the same milliseconds can make a start fail; that
 * start is tried again by the caller.
 *
 * Threads    any; while one fills, the others wait. */
#ifndef SANDBOX_INIT_VOLUME_H
#define SANDBOX_INIT_VOLUME_H

#include <pthread.h>

#include "base/buf.h"
#include "base/err.h"

struct docker;

#define INIT_VOLUME_PREFIX   "code-runner-init-"
#define INIT_VOLUME_HASH     16U        /* hex digits of the binary's SHA-256 */
#define INIT_BYTES_MAX       (4U << 20) /* well below what the daemon client reads as one answer */
#define INIT_VOLUME_NAME_MAX 48U

struct init_volume {
    char name[INIT_VOLUME_NAME_MAX];
    char hash[INIT_VOLUME_HASH + 1];
    char *binary;
    size_t binary_len;
    pthread_mutex_t lock; /* guards state */
    pthread_cond_t changed;
    enum { INIT_VOLUME_UNKNOWN, INIT_VOLUME_FILLING, INIT_VOLUME_READY } state;
};

/* Reads the binary. -EFBIG, -ENOEXEC (no ELF file), or why it cannot be read. */
int init_volume_init(struct init_volume *v, const char *path, struct err *err);
void init_volume_done(struct init_volume *v);

/* Makes sure that it is there and whole. fill is called, by one thread at a time, when that is not
 * known; the caller knows how to make a container. */
typedef int (*init_volume_filler)(void *user, struct err *err);
int init_volume_ensure(struct init_volume *v, init_volume_filler fill, void *user, struct err *err);
void init_volume_suspect(struct init_volume *v);

/* Compares, and fills where needed, through a container that has the volume writable. */
int init_volume_fill(const struct init_volume *v, struct docker *d, const char *container,
                     struct err *err);
int init_volume_create(const struct init_volume *v, struct docker *d, struct err *err);

#endif
