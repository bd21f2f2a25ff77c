#include "fake_sandbox.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "frames/frames.h"

struct sandbox {
    struct sandbox_backend *backend;
    pthread_t thread;
    int ours, inits;
};

static void *init_main(void *arg)
{
    struct sandbox *s = arg;
    s->backend->init(s->inits);
    (void)shutdown(s->inits, SHUT_RDWR);
    return NULL;
}

int sandbox_open(struct sandbox_backend *b, const struct sandbox_request *req, struct sandbox **ret,
                 struct err *err)
{
    (void)req;
    if (b->open_error)
        return err_set(err, b->open_error, "open the fake");
    struct sandbox *s = calloc(1, sizeof(*s));
    int fds[2];
    if (!s || fd_socketpair(fds) < 0)
        abort();
    *s = (struct sandbox){.backend = b, .ours = fds[0], .inits = fds[1]};
    (void)fd_set_nonblock(s->ours, 1);
    if (pthread_create(&s->thread, NULL, init_main, s) != 0)
        abort();
    b->opened++;
    *ret = s;
    return 0;
}

int sandbox_poll_fd(const struct sandbox *s)
{
    return s->ours;
}

bool sandbox_read_pending(const struct sandbox *s)
{
    (void)s;
    return false;
}

ssize_t sandbox_read(struct sandbox *s, void *bytes, size_t n)
{
    ssize_t got = read(s->ours, bytes, n);
    return got < 0 ? -errno : got;
}

ssize_t sandbox_write(struct sandbox *s, const void *bytes, size_t n)
{
    ssize_t put = send(s->ours, bytes, n, MSG_NOSIGNAL);
    return put < 0 ? -errno : put;
}

uint32_t sandbox_program_uid(const struct sandbox *s)
{
    (void)s;
    return FRAME_KEEP_ID;
}

char *const *sandbox_image_env(const struct sandbox *s)
{
    (void)s;
    static char path[] = "PATH=/image";
    static char *const env[] = {path, NULL};
    return env;
}

int sandbox_kill(struct sandbox *s, struct err *err)
{
    (void)err;
    s->backend->killed++;
    (void)shutdown(s->ours, SHUT_RDWR);
    return 0;
}

int sandbox_close(struct sandbox *s, struct verdict *ret, struct err *err)
{
    (void)err;
    (void)shutdown(s->ours, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->ours);
    (void)close(s->inits);
    s->backend->closed++;
    *ret = (struct verdict){.out_of_memory = s->backend->out_of_memory,
                            .memory_peak_bytes = 4096,
                            .cpu_us = -1,
                            .pids_peak = -1};
    free(s);
    return 0;
}

const char *sandbox_backend_name(const struct sandbox_backend *b)
{
    (void)b;
    return "fake";
}

const char *sandbox_backend_runtime(const struct sandbox_backend *b)
{
    (void)b;
    return "";
}
