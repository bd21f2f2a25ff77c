#include "image.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "docker/docker.h"
#include "policy/policy.h"

static void free_list(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

struct image *image_ref(struct image *i)
{
    atomic_fetch_add(&i->refs, 1);
    return i;
}

void image_unref(struct image *i)
{
    if (!i || atomic_fetch_sub(&i->refs, 1) != 1)
        return;
    free_list(i->env);
    free_list(i->volumes);
    free(i->name);
    free(i->id);
    free(i);
}

static int parse_env(const json_t *env, struct image *i, struct err *err)
{
    size_t n = json_array_size(env), kept = 0;
    if (n > IMAGE_ENV_MAX)
        return err_say(err, -ENOTSUP, "image %s defines %zu variables; at most %d are supported",
                       i->name, n, IMAGE_ENV_MAX);
    i->env = calloc(n + 1, sizeof(*i->env));
    if (!i->env)
        return err_set(err, -ENOMEM, "read image %s", i->name);
    for (size_t k = 0; k < n; k++) {
        const char *text = json_string_value(json_array_get(env, k));
        if (!text || text[0] == '=' || !strchr(text, '='))
            continue; /* a name alone unsets what was never set */
        i->env[kept] = strdup(text);
        if (!i->env[kept++])
            return err_set(err, -ENOMEM, "read image %s", i->name);
    }
    return 0;
}

/* Writes path without doubled and trailing slashes; false for one that is relative, the root, or
 * goes through "." or "..". */
static bool clean_path(const char *path, char *out)
{
    size_t n = 0;
    if (path[0] != '/')
        return false;
    for (const char *p = path; *p;) {
        p += strspn(p, "/");
        size_t len = strcspn(p, "/");
        if (len == 0)
            break;
        if ((len == 1 && p[0] == '.') || (len == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        out[n++] = '/';
        memcpy(out + n, p, len);
        n += len;
        p += len;
    }
    out[n] = '\0';
    return n > 0;
}

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static int parse_volumes(json_t *volumes, struct image *i, struct err *err)
{
    static const char *const ours[] = {POLICY_INIT_DIR, "/proc", "/sys", "/dev"};
    size_t n = json_object_size(volumes), kept = 0;
    if (n > IMAGE_VOLUMES_MAX)
        return err_say(err, -ENOTSUP, "image %s declares %zu volumes; at most %d are supported",
                       i->name, n, IMAGE_VOLUMES_MAX);
    i->volumes = calloc(n + 1, sizeof(*i->volumes));
    if (!i->volumes)
        return err_set(err, -ENOMEM, "read image %s", i->name);
    const char *key;
    json_t *unused;
    json_object_foreach(volumes, key, unused)
    {
        char *path = malloc(strlen(key) + 2);
        if (!path)
            return err_set(err, -ENOMEM, "read image %s", i->name);
        bool ok = clean_path(key, path);
        for (size_t k = 0; ok && k < ARRAY_LEN(ours); k++)
            ok = !is_below(path, ours[k]);
        if (!ok) {
            free(path);
            return err_say(err, -ENOTSUP, "image %s declares a volume at \"%.100s\"", i->name, key);
        }
        i->volumes[kept++] = path;
    }
    return 0;
}

int image_parse(const char *name, const json_t *inspect, struct image **ret, struct err *err)
{
    const json_t *config = json_object_get(inspect, "Config");
    const char *id = json_string_value(json_object_get(inspect, "Id"));
    if (!id || !*id || !json_is_object(config))
        return err_say(err, -EBADMSG, "the Docker daemon's answer for image %s has no id or Config",
                       name);

    cleanup_image struct image *i = calloc(1, sizeof(*i));
    if (!i)
        return err_set(err, -ENOMEM, "read image %s", name);
    atomic_init(&i->refs, 1);
    i->fetched_ms = clock_now_ms();
    i->name = strdup(name);
    i->id = strdup(id);
    if (!i->name || !i->id)
        return err_set(err, -ENOMEM, "read image %s", name);
    int r = parse_env(json_object_get(config, "Env"), i, err);
    if (r == 0)
        r = parse_volumes(json_object_get(config, "Volumes"), i, err);
    if (r < 0)
        return r;
    *ret = ptr_take(&i);
    return 0;
}

/* --- cache ----------------------------------------------------------------------------------- */

int image_cache_init(struct image_cache *c, struct err *err)
{
    *c = (struct image_cache){.images = {NULL}};
    return pthread_mutex_init(&c->lock, NULL) == 0 ? 0
                                                   : err_set(err, -ENOMEM, "make an image cache");
}

void image_cache_done(struct image_cache *c)
{
    for (size_t k = 0; k < IMAGE_CACHE_MAX; k++)
        image_unref(c->images[k]);
    (void)pthread_mutex_destroy(&c->lock); /* nobody holds it any more */
}

/* Where name is, or else where it goes: an empty place or the oldest. */
static struct image **place_of_locked(struct image_cache *c, const char *name)
{
    struct image **place = &c->images[0];
    for (size_t k = 0; k < IMAGE_CACHE_MAX; k++) {
        struct image *i = c->images[k];
        if (i && strcmp(i->name, name) == 0)
            return &c->images[k];
        if (*place && (!i || i->fetched_ms < (*place)->fetched_ms))
            place = &c->images[k];
    }
    return place;
}

static struct image *look_up(struct image_cache *c, const char *name)
{
    (void)pthread_mutex_lock(&c->lock);
    struct image *i = *place_of_locked(c, name);
    bool good = i && strcmp(i->name, name) == 0 && clock_now_ms() - i->fetched_ms < IMAGE_FRESH_MS;
    struct image *found = good ? image_ref(i) : NULL;
    (void)pthread_mutex_unlock(&c->lock);
    return found;
}

/* i NULL: forget the name. */
static void keep(struct image_cache *c, const char *name, struct image *i)
{
    struct image *old = NULL;
    (void)pthread_mutex_lock(&c->lock);
    struct image **place = place_of_locked(c, name);
    if (i || (*place && strcmp((*place)->name, name) == 0)) {
        old = *place;
        *place = i ? image_ref(i) : NULL;
    }
    (void)pthread_mutex_unlock(&c->lock);
    image_unref(old);
}

int image_get(struct image_cache *c, struct docker *d, const char *name, bool fresh,
              struct image **ret, struct err *err)
{
    struct image *i = fresh ? NULL : look_up(c, name);
    if (i) {
        *ret = i;
        return 0;
    }
    json_t *inspect = NULL;
    int r = docker_image_inspect(d, name, &inspect, err);
    if (r == 0)
        r = image_parse(name, inspect, &i, err);
    json_decref(inspect);
    keep(c, name, i);
    if (r < 0)
        return r;
    *ret = i;
    return 0;
}
