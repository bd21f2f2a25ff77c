#include <errno.h>

#include "base/clock.h"
#include "policy/policy.h"
#include "session_internal.h"

#define FILE_MODE  0644
#define FILE_CHUNK 65536U
#define ENV_MAX    4096U /* variables */

static size_t name_len(const char *variable)
{
    const char *equals = strchr(variable, '=');
    return equals ? (size_t)(equals - variable) : strlen(variable);
}

/* Adds a borrowed variable; one of the same name is replaced. */
static int env_put(const char **env, size_t *len, const char *variable)
{
    size_t n = name_len(variable);
    for (size_t i = 0; i < *len; i++)
        if (name_len(env[i]) == n && strncmp(env[i], variable, n) == 0) {
            env[i] = variable;
            return 0;
        }
    if (*len == ENV_MAX)
        return -E2BIG;
    env[(*len)++] = variable;
    return 0;
}

static int env_put_all(const char **env, size_t *len, const char *const *list)
{
    for (; list && *list; list++) {
        int r = env_put(env, len, *list);
        if (r < 0)
            return r;
    }
    return 0;
}

/* From nothing: ours, then the image's, then the job's; the last one of a name wins. */
static int send_spec(struct session *s)
{
    cleanup_free const char **env = calloc(ENV_MAX + 1, sizeof(*env));
    if (!env)
        return err_set(&s->failure, -ENOMEM, "environment");
    size_t len = 0;
    int r = env_put_all(env, &len, policy_base_env);
    if (r == 0)
        r = env_put_all(env, &len, (const char *const *)sandbox_image_env(s->sandbox));
    if (r == 0)
        r = env_put_all(env, &len, (const char *const *)s->spec->env);
    if (r < 0)
        return err_set(&s->failure, r, "more than %u variables in the environment", ENV_MAX);

    uint32_t uid = sandbox_program_uid(s->sandbox);
    char workspace[] = POLICY_WORKSPACE;
    struct frame_spec spec = {
        .uid = uid,
        .gid = uid,
        .compile = s->spec->compile,
        .run = s->spec->run,
        .env = (char **)(uintptr_t)env, /* only read */
        .cwd = workspace,
    };
    r = frame_spec_encode(&s->link.out, &spec);
    return r < 0 ? err_set(&s->failure, r, "encode the job's command and environment") : 0;
}

/* Waits until what is queued for init is at most `left` bytes. */
static int let_out(struct session *s, size_t left, int64_t deadline_ms)
{
    while (link_pending(&s->link) > left) {
        int r = session_step(s, deadline_ms);
        if (r < 0)
            return r;
        if (s->decided)
            return 0;
        if (clock_now_ms() >= deadline_ms)
            return err_set(&s->failure, -ETIMEDOUT, "send the files to the sandbox");
    }
    return 0;
}

static int send_file(struct session *s, const struct job_file *f, int64_t deadline_ms)
{
    struct frame_file header = {
        .mode = FILE_MODE, .size = f->content_len, .path = span_str(f->name)};
    int r = frame_file_encode(&s->link.out, FRAME_FILE, &header);
    if (r < 0)
        return err_set(&s->failure, r, "send file %.100s", f->name);
    for (size_t at = 0; at < f->content_len && !s->decided;) {
        size_t n = f->content_len - at < FILE_CHUNK ? f->content_len - at : FILE_CHUNK;
        r = frame_encode(&s->link.out, FRAME_DATA, f->content + at, n);
        if (r < 0)
            return err_set(&s->failure, r, "send file %.100s", f->name);
        at += n;
        r = let_out(s, FILE_CHUNK, deadline_ms);
        if (r < 0)
            return r;
    }
    return 0;
}

static int await_ready(struct session *s)
{
    int64_t deadline_ms = clock_now_ms() + SESSION_READY_TIMEOUT_MS;
    while (!s->ready && !s->decided) {
        int r = session_step(s, deadline_ms);
        if (r < 0)
            return r;
        if (!s->ready && clock_now_ms() >= deadline_ms)
            return err_set(&s->failure, -ETIMEDOUT, "init of the sandbox did not get ready");
    }
    return 0;
}

int session_setup(struct session *s)
{
    struct sandbox_request request = {
        .job_id = s->spec->id,
        .language = s->spec->language,
        .version = s->spec->version,
        .image = s->spec->image,
        .limits = &s->spec->limits,
    };
    int r = sandbox_open(s->options->backend, &request, &s->sandbox, &s->failure);
    if (r < 0)
        return r;
    link_init(&s->link, s->sandbox);
    r = await_ready(s);
    if (r < 0 || s->decided)
        return r;

    int64_t deadline_ms = clock_now_ms() + SESSION_SETUP_TIMEOUT_MS;
    r = send_spec(s);
    for (size_t i = 0; r == 0 && !s->decided && i < s->spec->files_len; i++)
        r = send_file(s, &s->spec->files[i], deadline_ms);
    if (r == 0 && !s->decided)
        r = let_out(s, 0, deadline_ms);
    s->ready_ms = clock_now_ms();
    return r;
}
