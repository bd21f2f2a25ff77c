/* image.h - what a sandbox needs to know of its image, and a short memory of it.
 *
 * Ownership  an image is counted: image_get() and image_parse() give a reference, image_unref()
 *            ends it. Nothing in it changes after its birth.
 * Threads    a cache serves any threads; it holds no lock while it asks the daemon. */
#ifndef SANDBOX_IMAGE_H
#define SANDBOX_IMAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/err.h"

struct docker;

#define IMAGE_CACHE_MAX   64
#define IMAGE_FRESH_MS    30000 /* so long a name keeps its meaning without asking again */
#define IMAGE_VOLUMES_MAX 16
#define IMAGE_ENV_MAX     1024

struct image {
    atomic_uint refs;
    char *name;     /* as asked for */
    char *id;       /* sha256:... */
    char **env;     /* NAME=VALUE, NULL-terminated */
    char **volumes; /* clean absolute paths the image declares as VOLUME, NULL-terminated */
    int64_t fetched_ms;
};

/* From the answer of GET /images/{name}/json. -EBADMSG for what is no such answer, -ENOTSUP for an
 * image that a sandbox cannot be made of (a VOLUME at a path we need, too many of them). */
int image_parse(const char *name, const json_t *inspect, struct image **ret, struct err *err);
struct image *image_ref(struct image *i);
void image_unref(struct image *i);
DEFINE_CLEANUP(struct image *, image_unref)
#define cleanup_image CLEANUP(image_unref_slot)

struct image_cache {
    pthread_mutex_t lock; /* guards what follows */
    struct image *images[IMAGE_CACHE_MAX];
};

int image_cache_init(struct image_cache *c, struct err *err);
void image_cache_done(struct image_cache *c);

/* fresh: ask the daemon in any case. Errors of docker_image_inspect() and image_parse(). */
int image_get(struct image_cache *c, struct docker *d, const char *name, bool fresh,
              struct image **ret, struct err *err);

#endif
