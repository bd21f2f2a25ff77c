#include "docker_backend.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/id.h"

static struct docker_backend *of(struct sandbox_backend *b)
{
    return (struct docker_backend *)b;
}

/* --- boxes ----------------------------------------------------------------------------------- */

int box_new(struct docker_backend *b, bool with_uid, struct box **ret, struct err *err)
{
    cleanup_free struct box *box = calloc(1, sizeof(*box));
    char random[33];
    if (!box)
        return err_set(err, -ENOMEM, "make a sandbox");
    int r = id_hex(16, random);
    if (r < 0)
        return err_set(err, r, "name a container");
    (void)snprintf(box->name, sizeof(box->name), BOX_NAME_PREFIX "%s", random); /* fits */
    if (with_uid) {
        r = uids_take(&b->uids, &box->uid, err);
        if (r < 0)
            return r;
        box->has_uid = true;
    }
    *ret = box;
    (void)pthread_mutex_lock(&b->lock);
    box->next = b->boxes;
    b->boxes = box;
    (void)pthread_mutex_unlock(&b->lock);
    box = NULL;
    return 0;
}

static void forget_box(struct docker_backend *b, struct box *box)
{
    (void)pthread_mutex_lock(&b->lock);
    struct box **at = &b->boxes;
    while (*at != box)
        at = &(*at)->next;
    *at = box->next;
    (void)pthread_mutex_unlock(&b->lock);
    if (box->has_uid)
        uids_give(&b->uids, box->uid);
    free(box);
}

int box_remove(struct docker_backend *b, struct box *box, struct err *err)
{
    int r = docker_container_remove(b->docker, box->name, err);
    if (r == 0) {
        forget_box(b, box);
        return 0;
    }
    (void)pthread_mutex_lock(&b->lock);
    box->state = BOX_LEFT;
    (void)pthread_mutex_unlock(&b->lock);
    return r;
}

/* --- checks ---------------------------------------------------------------------------------- */

static bool is_false(const json_t *info, const char *key)
{
    return json_is_false(json_object_get(info, key));
}

static bool has_seccomp(const json_t *info)
{
    const json_t *options = json_object_get(info, "SecurityOptions");
    size_t n = json_array_size(options);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(options, i));
        if (text && strncmp(text, "name=seccomp", strlen("name=seccomp")) == 0)
            return true;
    }
    return false;
}

/* What is missing here the daemon would leave out of our containers with a warning at most. */
static int judge_daemon(const struct docker_backend *b, const json_t *info, struct err *err)
{
    static const struct {
        const char *key, *words;
    } needs[] = {
        {"MemoryLimit", "limit memory"},
        {"PidsLimit", "limit processes"},
        {"CpuCfsQuota", "limit CPU time"},
    };
    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (is_false(info, needs[i].key))
            return err_say(err, -ENOTSUP, "the Docker daemon cannot %s here (%s is false)",
                           needs[i].words, needs[i].key);
    if (!has_seccomp(info))
        return err_say(err, -ENOTSUP, "the Docker daemon has no seccomp support");
    const json_t *runtimes = json_object_get(info, "Runtimes");
    if (b->runtime[0] && !json_object_get(runtimes, b->runtime))
        return err_say(err, -ENOTSUP, "the Docker daemon has no runtime \"%.100s\"", b->runtime);
    return 0;
}

static int check(struct sandbox_backend *base, struct err *err)
{
    struct docker_backend *b = of(base);
    int r = docker_ping(b->docker, err);
    if (r < 0) {
        atomic_store(&b->checked, false); /* another one may come back */
        return r;
    }
    if (atomic_load(&b->checked))
        return 0;
    json_t *info = NULL;
    r = docker_info(b->docker, &info, err);
    if (r == 0)
        r = judge_daemon(b, json_object_get(info, "info"), err);
    json_decref(info);
    if (r == 0)
        atomic_store(&b->checked, true);
    return r;
}

static int check_image(struct sandbox_backend *base, const char *name, struct err *err)
{
    struct docker_backend *b = of(base);
    cleanup_image struct image *image = NULL;
    return image_get(&b->images, b->docker, name, true, &image, err);
}

static const char *runtime(const struct sandbox_backend *base)
{
    return ((const struct docker_backend *)base)->runtime;
}

/* --- life ------------------------------------------------------------------------------------ */

static void destroy(struct sandbox_backend *base)
{
    struct docker_backend *b = of(base);
    while (b->boxes) {
        struct box *box = b->boxes;
        assert(box->state == BOX_LEFT); /* every sandbox was closed */
        b->boxes = box->next;
        free(box);
    }
    (void)pthread_mutex_destroy(&b->lock);
    uids_done(&b->uids);
    image_cache_done(&b->images);
    init_volume_done(&b->init);
    docker_free(b->docker);
    free(b->runtime);
    free(b->deployment_id);
    free(b->worker_id);
    free(b);
}

const struct sandbox_ops docker_backend_ops = {
    .name = "docker",
    .open = docker_sandbox_open,
    .poll_fd = docker_sandbox_poll_fd,
    .read_pending = docker_sandbox_read_pending,
    .read = docker_sandbox_read,
    .write = docker_sandbox_write,
    .program_uid = docker_sandbox_program_uid,
    .image_env = docker_sandbox_image_env,
    .kill = docker_sandbox_kill,
    .close = docker_sandbox_close,
    .runtime = runtime,
    .check = check,
    .check_image = check_image,
    .sweep = docker_backend_sweep,
    .free = destroy,
};

static int copy_texts(struct docker_backend *b, const struct sandbox_docker_options *o,
                      struct err *err)
{
    if (!o->deployment_id || !*o->deployment_id)
        return err_say(err, -EINVAL, "a sandbox backend needs a deployment id");
    if (!o->seccomp_json || !*o->seccomp_json)
        return err_say(err, -EINVAL, "a sandbox backend needs a seccomp profile");
    b->runtime = strdup(o->runtime ? o->runtime : "");
    b->deployment_id = strdup(o->deployment_id);
    b->worker_id = strdup(o->worker_id ? o->worker_id : "");
    if (!b->runtime || !b->deployment_id || !b->worker_id)
        return err_set(err, -ENOMEM, "make a Docker backend");
    b->owner = (struct container_owner){b->deployment_id, b->worker_id};
    b->settings = (struct policy_settings){
        .seccomp_json = o->seccomp_json,
        .runtime = b->runtime,
        .cpus_milli = o->cpus_milli,
    };
    return 0;
}

/* The parts with locks of their own, each of which is undone alone. */
static int start_parts(struct docker_backend *b, const struct sandbox_docker_options *o,
                       struct err *err)
{
    int r = uids_init(&b->uids, o->uid_base, o->uid_count, err);
    if (r < 0)
        return r;
    r = image_cache_init(&b->images, err);
    if (r < 0)
        goto undo_uids;
    r = init_volume_init(&b->init, o->init_path, err);
    if (r < 0)
        goto undo_images;
    if (pthread_mutex_init(&b->lock, NULL) == 0)
        return 0;
    r = err_set(err, -ENOMEM, "make a Docker backend");
    init_volume_done(&b->init);
undo_images:
    image_cache_done(&b->images);
undo_uids:
    uids_done(&b->uids);
    return r;
}

int sandbox_docker_new(const struct sandbox_docker_options *o, struct sandbox_backend **ret,
                       struct err *err)
{
    struct docker_backend *b = calloc(1, sizeof(*b));
    if (!b)
        return err_set(err, -ENOMEM, "make a Docker backend");
    b->base.ops = &docker_backend_ops;
    int r = copy_texts(b, o, err);
    if (r == 0)
        r = docker_new(o->address, &b->docker, err);
    if (r == 0)
        r = start_parts(b, o, err);
    if (r < 0) {
        docker_free(b->docker);
        free(b->runtime);
        free(b->deployment_id);
        free(b->worker_id);
        free(b);
        return r;
    }
    *ret = &b->base;
    return 0;
}
