#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "docker_internal.h"

#define WHAT_MAX         160 /* bytes of the words for a call */
#define GONE_POLL_MS_MIN 5   /* between two looks at a container that is being removed */
#define GONE_POLL_MS_MAX 200

/* path is "/containers/<id><tail>"; tail is a constant of ours or already encoded. */
static int container_path(struct buf *path, const char *id, const char *tail, struct err *err)
{
    buf_init(path, DOCKER_URL_MAX);
    int r = buf_append_str(path, "/containers/");
    if (r == 0)
        r = docker_append_encoded(path, id);
    if (r == 0)
        r = buf_append_str(path, tail);
    return r < 0 ? err_set(err, r, "write the path of a container's URL") : 0;
}

/* Cut is fine: it is only read by people. */
static const char *words(char out[static WHAT_MAX], const char *verb, const char *id)
{
    (void)snprintf(out, WHAT_MAX, "%s %.64s", verb, id);
    return out;
}

static bool is_id(const char *s)
{
    return s && strlen(s) == DOCKER_ID_SIZE - 1 &&
           strspn(s, "0123456789abcdef") == DOCKER_ID_SIZE - 1;
}

int docker_container_create(struct docker *d, const char *name, const json_t *config,
                            char ret_id[static DOCKER_ID_SIZE], struct err *err)
{
    static const char what[] = "create a container";
    cleanup_buf struct buf path;
    buf_init(&path, DOCKER_URL_MAX);
    int r = buf_append_str(&path, "/containers/create");
    if (r == 0 && name)
        r = buf_append_str(&path, "?name=");
    if (r == 0 && name)
        r = docker_append_encoded(&path, name);
    cleanup_free char *body = json_dumps(config, JSON_COMPACT);
    if (r < 0 || !body)
        return err_set(err, -ENOMEM, "cannot %s", what);

    json_t *answer = NULL;
    r = docker_request(d,
                       &(struct docker_call){
                           .method = "POST",
                           .path = path.data,
                           .what = what,
                           .timeout_ms = DOCKER_WORK_MS,
                           .body = body,
                           .body_len = strlen(body),
                           .content_type = "application/json",
                           .once = true, /* a second one would be nobody's */
                       },
                       &answer, err);
    if (r < 0)
        return r;
    const char *id = json_string_value(json_object_get(answer, "Id"));
    if (is_id(id))
        memcpy(ret_id, id, DOCKER_ID_SIZE);
    else
        r = err_say(err, -EBADMSG, "cannot %s: the Docker daemon's answer has no id", what);
    json_decref(answer);
    return r;
}

int docker_container_start(struct docker *d, const char *id, struct err *err)
{
    char what[WHAT_MAX];
    cleanup_buf struct buf path;
    int r = container_path(&path, id, "/start", err);
    if (r < 0)
        return r;
    return docker_request(d,
                          &(struct docker_call){
                              .method = "POST",
                              .path = path.data,
                              .what = words(what, "start container", id),
                              .timeout_ms = DOCKER_WORK_MS,
                          },
                          NULL, err);
}

int docker_container_kill(struct docker *d, const char *id, struct err *err)
{
    char what[WHAT_MAX];
    cleanup_buf struct buf path;
    int r = container_path(&path, id, "/kill?signal=KILL", err);
    if (r < 0)
        return r;
    r = docker_request(d,
                       &(struct docker_call){
                           .method = "POST",
                           .path = path.data,
                           .what = words(what, "kill container", id),
                           .timeout_ms = DOCKER_KILL_MS,
                       },
                       NULL, err);
    return r == -EEXIST ? 0 : r; /* 409: it does not run */
}

/* Somebody else removes it: the daemon answers 409 at once, long before it is gone. */
static int wait_until_gone(struct docker *d, const char *id, struct err *err)
{
    int64_t deadline_ms = clock_now_ms() + docker_timeout(d, DOCKER_WORK_MS);
    long pause_ms = GONE_POLL_MS_MIN;
    for (;;) {
        json_t *state = NULL;
        int r = docker_container_inspect(d, id, &state, err);
        json_decref(state);
        if (r < 0)
            return r == -ENOENT ? 0 : r;
        if (clock_now_ms() >= deadline_ms)
            return err_say(err, -ETIMEDOUT,
                           "cannot remove container %.64s: its removal does not end", id);
        const struct timespec pause = {0, pause_ms * 1000000};
        (void)nanosleep(&pause, NULL); /* shorter is fine */
        pause_ms = pause_ms * 2 < GONE_POLL_MS_MAX ? pause_ms * 2 : GONE_POLL_MS_MAX;
    }
}

int docker_container_remove(struct docker *d, const char *id, struct err *err)
{
    char what[WHAT_MAX];
    cleanup_buf struct buf path;
    int r = container_path(&path, id, "?force=1&v=1", err);
    if (r < 0)
        return r;
    r = docker_request(d,
                       &(struct docker_call){
                           .method = "DELETE",
                           .path = path.data,
                           .what = words(what, "remove container", id),
                           .timeout_ms = DOCKER_WORK_MS,
                       },
                       NULL, err);
    if (r == -ENOENT)
        return 0;
    return r == -EEXIST ? wait_until_gone(d, id, err) : r;
}

int docker_container_inspect(struct docker *d, const char *id, json_t **ret, struct err *err)
{
    char what[WHAT_MAX];
    cleanup_buf struct buf path;
    int r = container_path(&path, id, "/json", err);
    if (r < 0)
        return r;
    return docker_request(d,
                          &(struct docker_call){
                              .method = "GET",
                              .path = path.data,
                              .what = words(what, "inspect container", id),
                              .timeout_ms = DOCKER_READ_MS,
                          },
                          ret, err);
}

int docker_container_list(struct docker *d, const char *const *labels, json_t **ret,
                          struct err *err)
{
    static const char what[] = "list containers";
    cleanup_buf struct buf path;
    buf_init(&path, DOCKER_URL_MAX);
    int r = buf_append_str(&path, "/containers/json?all=1&");
    if (r == 0)
        r = docker_append_label_filter(&path, labels);
    if (r < 0)
        return err_set(err, r, "cannot %s", what);

    json_t *list = NULL;
    r = docker_request(d,
                       &(struct docker_call){
                           .method = "GET",
                           .path = path.data,
                           .what = what,
                           .timeout_ms = DOCKER_READ_MS,
                       },
                       &list, err);
    if (r < 0)
        return r;
    if (!json_is_array(list)) {
        json_decref(list);
        return err_say(err, -EBADMSG, "cannot %s: the Docker daemon's answer is no list", what);
    }
    *ret = list;
    return 0;
}

static int archive_path(struct buf *b, const char *id, const char *path, struct err *err)
{
    int r = container_path(b, id, "/archive?path=", err);
    if (r == 0)
        r = docker_append_encoded(b, path) < 0 ? err_set(err, -ENOMEM, "write an archive's URL")
                                               : 0;
    return r;
}

int docker_container_put_archive(struct docker *d, const char *id, const char *path,
                                 const void *tar, size_t n, struct err *err)
{
    char what[WHAT_MAX];
    cleanup_buf struct buf url;
    int r = archive_path(&url, id, path, err);
    if (r < 0)
        return r;
    return docker_request(d,
                          &(struct docker_call){
                              .method = "PUT",
                              .path = url.data,
                              .what = words(what, "put files into container", id),
                              .timeout_ms = DOCKER_WORK_MS,
                              .body = tar,
                              .body_len = n,
                              .content_type = "application/x-tar",
                          },
                          NULL, err);
}

int docker_container_get_archive(struct docker *d, const char *id, const char *path,
                                 struct buf *ret, struct err *err)
{
    char what[WHAT_MAX];
    cleanup_buf struct buf url;
    int r = archive_path(&url, id, path, err);
    if (r < 0)
        return r;
    const struct docker_call call = {
        .method = "GET",
        .path = url.data,
        .what = words(what, "get files from container", id),
        .timeout_ms = DOCKER_WORK_MS,
    };
    cleanup_docker_answer struct docker_answer answer;
    r = docker_exchange(d, &call, &answer, err);
    if (r < 0)
        return r;
    if (answer.status != 200)
        return docker_status_error(call.what, answer.status, buf_span(&answer.body), err);
    r = buf_append(ret, answer.body.data, answer.body.len);
    return r < 0 ? err_set(err, r, "cannot %s", call.what) : 0;
}
