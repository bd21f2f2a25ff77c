#include "init_volume.h"

#include <errno.h>
#include <string.h>

#include "base/digest.h"
#include "base/fd.h"
#include "container_config.h"
#include "docker/docker.h"
#include "policy/policy.h"
#include "tar.h"

#define INIT_NAME   "init" /* POLICY_INIT_PATH below POLICY_INIT_DIR */
#define INIT_MODE   0555U
#define ARCHIVE_MAX (8U << 20)

int init_volume_init(struct init_volume *v, const char *path, struct err *err)
{
    *v = (struct init_volume){.state = INIT_VOLUME_UNKNOWN};
    int r = fd_read_file(path, INIT_BYTES_MAX, &v->binary, &v->binary_len);
    if (r < 0)
        return err_set(err, r, "read init's binary %s", path);
    if (v->binary_len < 4 || memcmp(v->binary, "\177ELF", 4) != 0) {
        free(v->binary);
        return err_say(err, -ENOEXEC, "init's binary %s is no ELF file", path);
    }
    char hash[DIGEST_SHA256_HEX + 1];
    r = digest_sha256_hex(v->binary, v->binary_len, hash);
    if (r < 0 || pthread_mutex_init(&v->lock, NULL) != 0) {
        free(v->binary);
        return err_set(err, -ENOMEM, "read init's binary %s", path);
    }
    if (pthread_cond_init(&v->changed, NULL) != 0) {
        (void)pthread_mutex_destroy(&v->lock);
        free(v->binary);
        return err_set(err, -ENOMEM, "read init's binary %s", path);
    }
    memcpy(v->hash, hash, INIT_VOLUME_HASH);
    (void)snprintf(v->name, sizeof(v->name), INIT_VOLUME_PREFIX "%s", v->hash); /* fits */
    return 0;
}

void init_volume_done(struct init_volume *v)
{
    (void)pthread_cond_destroy(&v->changed); /* nobody waits any more */
    (void)pthread_mutex_destroy(&v->lock);
    free(v->binary);
}

int init_volume_ensure(struct init_volume *v, init_volume_filler fill, void *user, struct err *err)
{
    (void)pthread_mutex_lock(&v->lock);
    /* Bounded by the filler's own time-outs. */
    while (v->state == INIT_VOLUME_FILLING)
        (void)pthread_cond_wait(&v->changed, &v->lock);
    bool ready = v->state == INIT_VOLUME_READY;
    if (!ready)
        v->state = INIT_VOLUME_FILLING;
    (void)pthread_mutex_unlock(&v->lock);
    if (ready)
        return 0;

    int r = fill(user, err);

    (void)pthread_mutex_lock(&v->lock);
    v->state = r == 0 ? INIT_VOLUME_READY : INIT_VOLUME_UNKNOWN;
    (void)pthread_cond_broadcast(&v->changed);
    (void)pthread_mutex_unlock(&v->lock);
    return r;
}

void init_volume_suspect(struct init_volume *v)
{
    (void)pthread_mutex_lock(&v->lock);
    if (v->state == INIT_VOLUME_READY)
        v->state = INIT_VOLUME_UNKNOWN;
    (void)pthread_mutex_unlock(&v->lock);
}

int init_volume_create(const struct init_volume *v, struct docker *d, struct err *err)
{
    json_t *config = json_pack("{s:s, s:{s:s}}", "Name", v->name, "Labels", LABEL_INIT, v->hash);
    if (!config)
        return err_set(err, -ENOMEM, "describe init's volume");
    int r = docker_volume_create(d, config, err);
    json_decref(config);
    return r;
}

/* 0: the very same file is there; 1: it is not. */
static int compare(const struct init_volume *v, struct docker *d, const char *container,
                   struct err *err)
{
    cleanup_buf struct buf tar;
    buf_init(&tar, ARCHIVE_MAX);
    int r = docker_container_get_archive(d, container, POLICY_INIT_PATH, &tar, err);
    if (r == -ENOENT || r == -EMSGSIZE)
        return 1;
    if (r < 0)
        return r;
    uint32_t mode;
    struct span file;
    if (tar_first_file(buf_span(&tar), &mode, &file) < 0)
        return 1;
    bool same = mode == INIT_MODE && file.len == v->binary_len &&
                memcmp(file.ptr, v->binary, file.len) == 0;
    return same ? 0 : 1;
}

int init_volume_fill(const struct init_volume *v, struct docker *d, const char *container,
                     struct err *err)
{
    int r = compare(v, d, container, err);
    if (r <= 0)
        return r;

    cleanup_buf struct buf tar;
    buf_init(&tar, ARCHIVE_MAX);
    r = tar_add_file(&tar, INIT_NAME, INIT_MODE, (struct span){v->binary, v->binary_len});
    if (r == 0)
        r = tar_end(&tar);
    if (r < 0)
        return err_set(err, r, "pack init for its volume");
    r = docker_container_put_archive(d, container, POLICY_INIT_DIR, tar.data, tar.len, err);
    if (r == 0)
        r = compare(v, d, container, err);
    return r > 0 ? err_say(err, -EIO, "volume %s does not keep what is put into it", v->name) : r;
}
