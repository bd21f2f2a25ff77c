/* The daemon itself, images and volumes: calls that are one request each. */
#include <errno.h>

#include "docker_internal.h"

static int get(struct docker *d, const char *path, const char *what, int64_t timeout_ms,
               json_t **ret, struct err *err)
{
    return docker_request(d,
                          &(struct docker_call){
                              .method = "GET",
                              .path = path,
                              .what = what,
                              .timeout_ms = timeout_ms,
                          },
                          ret, err);
}

int docker_info(struct docker *d, json_t **ret, struct err *err)
{
    json_t *info = NULL, *version = NULL, *both = NULL;
    int r = get(d, "/info", "ask the daemon about itself", DOCKER_INFO_MS, &info, err);
    if (r == 0)
        r = get(d, "/version", "ask the daemon for its version", DOCKER_READ_MS, &version, err);
    if (r == 0) {
        both = json_pack("{s:O, s:O}", "info", info, "version", version);
        r = both ? 0 : err_set(err, -ENOMEM, "ask the daemon about itself");
    }
    json_decref(info);
    json_decref(version);
    if (r == 0)
        *ret = both;
    return r;
}

int docker_image_inspect(struct docker *d, const char *name, json_t **ret, struct err *err)
{
    char what[320];
    (void)snprintf(what, sizeof(what), "inspect image %.255s", name); /* cut is fine */
    cleanup_buf struct buf path;
    buf_init(&path, DOCKER_URL_MAX);
    int r = buf_append_str(&path, "/images/");
    if (r == 0)
        r = docker_append_encoded(&path, name);
    if (r == 0)
        r = buf_append_str(&path, "/json");
    if (r < 0)
        return err_set(err, r, "cannot %s", what);
    return get(d, path.data, what, DOCKER_READ_MS, ret, err);
}

int docker_image_exists(struct docker *d, const char *name, struct err *err)
{
    json_t *image = NULL;
    int r = docker_image_inspect(d, name, &image, err);
    json_decref(image);
    return r;
}

static int volume_path(struct buf *path, const char *name, struct err *err)
{
    buf_init(path, DOCKER_URL_MAX);
    int r = buf_append_str(path, "/volumes/");
    if (r == 0)
        r = docker_append_encoded(path, name);
    return r < 0 ? err_set(err, r, "write the path of a volume's URL") : 0;
}

int docker_volume_create(struct docker *d, const json_t *config, struct err *err)
{
    cleanup_free char *body = json_dumps(config, JSON_COMPACT);
    if (!body)
        return err_set(err, -ENOMEM, "create a volume");
    return docker_request(d,
                          &(struct docker_call){
                              .method = "POST",
                              .path = "/volumes/create",
                              .what = "create a volume",
                              .timeout_ms = DOCKER_WORK_MS,
                              .body = body,
                              .body_len = strlen(body),
                              .content_type = "application/json",
                          },
                          NULL, err);
}

int docker_volume_exists(struct docker *d, const char *name, struct err *err)
{
    cleanup_buf struct buf path;
    int r = volume_path(&path, name, err);
    return r < 0 ? r : get(d, path.data, "inspect a volume", DOCKER_READ_MS, NULL, err);
}

int docker_volume_remove(struct docker *d, const char *name, struct err *err)
{
    cleanup_buf struct buf path;
    int r = volume_path(&path, name, err);
    if (r < 0)
        return r;
    r = docker_request(d,
                       &(struct docker_call){
                           .method = "DELETE",
                           .path = path.data,
                           .what = "remove a volume",
                           .timeout_ms = DOCKER_WORK_MS,
                       },
                       NULL, err);
    return r == -ENOENT ? 0 : r;
}

int docker_volume_list(struct docker *d, const char *const *labels, json_t **ret, struct err *err)
{
    static const char what[] = "list volumes";
    cleanup_buf struct buf path;
    buf_init(&path, DOCKER_URL_MAX);
    int r = buf_append_str(&path, "/volumes?");
    if (r == 0)
        r = docker_append_label_filter(&path, labels);
    if (r < 0)
        return err_set(err, r, "cannot %s", what);

    json_t *answer = NULL;
    r = get(d, path.data, what, DOCKER_READ_MS, &answer, err);
    if (r < 0)
        return r;
    json_t *list = json_object_get(answer, "Volumes"); /* null when there are none */
    json_t *rows = json_is_array(list) ? json_incref(list) : json_array();
    bool ok = json_is_object(answer) && (!list || json_is_null(list) || json_is_array(list));
    json_decref(answer);
    if (!ok || !rows) {
        json_decref(rows);
        return err_say(err, -EBADMSG, "cannot %s: the Docker daemon's answer is no list", what);
    }
    *ret = rows;
    return 0;
}
