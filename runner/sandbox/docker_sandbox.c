/* One sandbox as a container: create, attach, start; and the way back. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "docker_backend.h"
#include "frames/frames.h"

/* After the stream's end the daemon needs a moment to note how the container ended. */
#define END_WAIT_MS     2000
#define END_POLL_MS_MIN 2
#define END_POLL_MS_MAX 50

struct docker_sandbox {
    struct sandbox base;
    struct docker_backend *backend;
    struct box *box;
    struct image *image;
    struct docker_stream *stream;
    uint32_t program_uid;
    bool stream_ended;
    atomic_bool killed;
};

static struct docker_sandbox *of(struct sandbox *s)
{
    return (struct docker_sandbox *)s;
}

static const struct docker_sandbox *of_const(const struct sandbox *s)
{
    return (const struct docker_sandbox *)s;
}

/* --- init's volume --------------------------------------------------------------------------- */

struct filling {
    struct docker_backend *backend;
    const struct image *image;
};

static int fill_init_volume(void *user, struct err *err)
{
    const struct filling *f = user;
    struct docker_backend *b = f->backend;
    int r = init_volume_create(&b->init, b->docker, err);
    if (r < 0)
        return r;
    json_t *config = NULL;
    r = container_config_make_helper(f->image, b->init.name, &b->owner, &config, err);
    if (r < 0)
        return r;
    struct box *box = NULL;
    r = box_new(b, false, &box, err);
    if (r < 0) {
        json_decref(config);
        return r;
    }
    char id[DOCKER_ID_SIZE];
    r = docker_container_create(b->docker, box->name, config, id, err);
    json_decref(config);
    if (r == 0)
        r = init_volume_fill(&b->init, b->docker, id, err);

    struct err why = {0};
    if (box_remove(b, box, &why) < 0) /* never ran; the next sweep tries again */
        log_warn("sandbox.helper_left", LOG_ERR(&why));
    return r;
}

/* --- open ------------------------------------------------------------------------------------ */

/* Ends what was begun. The caller's error is the one that counts, so this one is logged. */
static void give_up(struct docker_sandbox *s)
{
    docker_stream_close(s->stream);
    struct err why = {0};
    if (s->box && box_remove(s->backend, s->box, &why) < 0)
        log_warn("sandbox.removal_failed", LOG_STR("container", "of a failed start"),
                 LOG_ERR(&why));
    image_unref(s->image);
    free(s);
}
DEFINE_CLEANUP(struct docker_sandbox *, give_up)
#define cleanup_giving_up CLEANUP(give_up_slot)

/* What the daemon says about our own requests is never the caller's doing. */
static int not_yours(int r)
{
    return r == -EINVAL || r == -ENOENT || r == -EEXIST ? -EIO : r;
}

static int make_config(struct docker_sandbox *s, const struct sandbox_request *req, json_t **ret,
                       struct err *err)
{
    struct docker_backend *b = s->backend;
    struct policy policy;
    int r = policy_make(req->limits, &b->settings, s->box->uid, &policy, err);
    if (r < 0)
        return r;
    s->program_uid = container_init_is_root(&policy) ? s->box->uid : FRAME_KEEP_ID;
    return container_config_make(&policy, s->image, b->init.name, &b->owner, req, ret, err);
}

enum { TRY_AGAIN = 1 }; /* something we remembered is not true any more */

static int start_container(struct docker_sandbox *s, const char *id, struct err *err)
{
    struct docker_backend *b = s->backend;
    struct err why = {0};
    int r = docker_container_attach(b->docker, id, &s->stream, &why);
    if (r == 0)
        r = docker_container_start(b->docker, id, &why);
    if (r == 0)
        return 0;
    if (err)
        *err = why;
    if (!strstr(why.msg, POLICY_INIT_PATH))
        return not_yours(r);
    init_volume_suspect(&b->init); /* the runtime found no init to start */
    return TRY_AGAIN;
}

static int try_open(struct docker_backend *b, const struct sandbox_request *req, bool fresh,
                    struct docker_sandbox **ret, struct err *err)
{
    cleanup_giving_up struct docker_sandbox *s = calloc(1, sizeof(*s));
    if (!s)
        return err_set(err, -ENOMEM, "make a sandbox");
    s->base.ops = &docker_backend_ops;
    s->backend = b;
    int r = image_get(&b->images, b->docker, req->image, fresh, &s->image, err);
    if (r < 0)
        return r;
    r = init_volume_ensure(&b->init, fill_init_volume, &(struct filling){b, s->image}, err);
    if (r == -ENOENT) /* the image is gone, as below */
        return fresh ? r : TRY_AGAIN;
    if (r < 0)
        return not_yours(r);
    r = box_new(b, true, &s->box, err);
    if (r < 0)
        return r;

    json_t *config = NULL;
    r = make_config(s, req, &config, err);
    if (r < 0)
        return r;
    char id[DOCKER_ID_SIZE];
    r = docker_container_create(b->docker, s->box->name, config, id, err);
    json_decref(config);
    if (r == -ENOENT) /* the image, by the id that was remembered */
        return fresh ? r : TRY_AGAIN;
    if (r < 0)
        return not_yours(r);
    r = start_container(s, id, err);
    if (r == 0)
        *ret = ptr_take(&s);
    return r;
}

int docker_sandbox_open(struct sandbox_backend *b, const struct sandbox_request *req,
                        struct sandbox **ret, struct err *err)
{
    struct docker_sandbox *s = NULL;
    int r = try_open((struct docker_backend *)b, req, false, &s, err);
    if (r == TRY_AGAIN)
        r = try_open((struct docker_backend *)b, req, true, &s, err);
    if (r == TRY_AGAIN)
        return -EIO; /* with the words of the second failure */
    if (r == 0)
        *ret = &s->base;
    return r;
}

/* --- use ------------------------------------------------------------------------------------- */

int docker_sandbox_poll_fd(const struct sandbox *s)
{
    return docker_stream_fd(of_const(s)->stream);
}

bool docker_sandbox_read_pending(const struct sandbox *s)
{
    return docker_stream_pending(of_const(s)->stream);
}

ssize_t docker_sandbox_read(struct sandbox *base, void *bytes, size_t n)
{
    struct docker_sandbox *s = of(base);
    ssize_t r = docker_stream_read(s->stream, bytes, n);
    if (r == 0)
        s->stream_ended = true;
    return r;
}

ssize_t docker_sandbox_write(struct sandbox *s, const void *bytes, size_t n)
{
    return docker_stream_write(of(s)->stream, bytes, n);
}

uint32_t docker_sandbox_program_uid(const struct sandbox *s)
{
    return of_const(s)->program_uid;
}

char *const *docker_sandbox_image_env(const struct sandbox *s)
{
    return of_const(s)->image->env;
}

int docker_sandbox_kill(struct sandbox *base, struct err *err)
{
    struct docker_sandbox *s = of(base);
    atomic_store(&s->killed, true);
    int r = docker_container_kill(s->backend->docker, s->box->name, err);
    return r == -ENOENT ? 0 : r; /* gone: nothing of it is alive */
}

/* --- close ----------------------------------------------------------------------------------- */

/* One look at the container's state; *ret_running is whether it still runs. */
static int look(const struct docker_sandbox *s, bool *ret_running, bool *ret_oom, struct err *err)
{
    json_t *answer = NULL;
    int r = docker_container_inspect(s->backend->docker, s->box->name, &answer, err);
    if (r < 0)
        return r;
    const json_t *state = json_object_get(answer, "State");
    *ret_running = json_is_true(json_object_get(state, "Running"));
    *ret_oom = json_is_true(json_object_get(state, "OOMKilled"));
    json_decref(answer);
    return 0;
}

/* Reads what is there, of which nobody has use any more; true at the end of the stream. */
static bool discard(struct docker_sandbox *s, int64_t deadline_ms)
{
    char bytes[4096];
    ssize_t n;
    do {
        n = docker_stream_read(s->stream, bytes, sizeof(bytes));
    } while (n > 0 && clock_now_ms() < deadline_ms);
    s->stream_ended = n <= 0 && n != -EAGAIN;
    return s->stream_ended;
}

/* Init ends when its stream does. Waiting for that costs nothing: the daemon would have to wait for
 * the end of a container that it killed just as well, and only of one that has ended it says
 * whether the kernel killed something in it for memory. Returns whether init had to be asked. */
static bool end_init(struct docker_sandbox *s)
{
    int64_t deadline_ms = clock_now_ms() + END_WAIT_MS;
    if (s->stream_ended || atomic_load(&s->killed) || discard(s, deadline_ms))
        return false;
    if (docker_stream_shutdown(s->stream) < 0)
        return true;
    while (!discard(s, deadline_ms)) {
        struct pollfd p = {.fd = docker_stream_fd(s->stream), .events = POLLIN};
        if (clock_now_ms() >= deadline_ms ||
            (poll(&p, 1, clock_poll_timeout(deadline_ms)) < 0 && errno != EINTR))
            break;
    }
    return true;
}

/* After the end of the stream, waits until the daemon knows the end as well. */
static void judge(const struct docker_sandbox *s, bool asked, struct verdict *v)
{
    *v = (struct verdict){.memory_peak_bytes = -1, .cpu_us = -1, .pids_peak = -1};
    bool killed = atomic_load(&s->killed);
    int64_t deadline_ms = clock_now_ms() + END_WAIT_MS;
    for (long pause_ms = END_POLL_MS_MIN;; pause_ms *= 2) {
        bool running = false;
        struct err why = {0};
        if (look(s, &running, &v->out_of_memory, &why) < 0) {
            log_warn("sandbox.verdict_unknown", LOG_ERR(&why));
            return;
        }
        v->ended_by_itself = !running && !killed && !asked;
        if (!running || !(s->stream_ended || killed) || clock_now_ms() >= deadline_ms)
            return;
        if (pause_ms > END_POLL_MS_MAX)
            pause_ms = END_POLL_MS_MAX;
        const struct timespec pause = {0, pause_ms * 1000000};
        (void)nanosleep(&pause, NULL); /* shorter is fine */
    }
}

int docker_sandbox_close(struct sandbox *base, struct verdict *ret, struct err *err)
{
    struct docker_sandbox *s = of(base);
    struct verdict verdict;
    bool asked = end_init(s);
    judge(s, asked, &verdict);
    if (ret)
        *ret = verdict;
    docker_stream_close(s->stream);
    int r = box_remove(s->backend, s->box, err);
    image_unref(s->image);
    free(s);
    return r;
}
