/* sandbox/sandbox.h - a hardened box with init in it and one frame stream. Knows nothing of jobs.
 *
 * A backend puts init, alone, as PID 1, into a box that follows the policy. Everything else goes
 * over the stream as frames (frames/frames.h). A sandbox is used once.
 *
 * Threads    one thread opens, reads, writes and closes a sandbox; sandbox_kill() may come from any
 *            thread between open and close. A backend serves any number of sandboxes at once.
 * Errors     negative errno with words; -EHOSTDOWN: the backend's daemon is not there; -ENOENT: the
 *            image is missing; -ENOTSUP: daemon or image cannot be used; -ERANGE: a limit cannot be
 *            met (policy/policy.h); -EAGAIN from sandbox_open(): every uid is in use.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "contract/limits.h"

struct sandbox;
struct sandbox_backend;

struct sandbox_request {
    const char *job_id; /* for the label */
    const char *language;
    const char *version;
    const char *image;
    const struct limits *limits;
};

/* What the box says about itself once everything in it is dead. JOB_UNKNOWN-like: -1 is unknown. */
struct verdict {
    bool out_of_memory;   /* the kernel killed something in it for memory */
    bool ended_by_itself; /* init ended without being asked or killed */
    int64_t memory_peak_bytes;
    int64_t cpu_us;
    int64_t pids_peak;
};

/* Returns when init's stream is connected (READY may not have arrived yet). Blocks up to the
 * backend's own time-outs; nothing is left behind on failure. */
int sandbox_open(struct sandbox_backend *b, const struct sandbox_request *req, struct sandbox **ret,
                 struct err *err);

int sandbox_poll_fd(const struct sandbox *s);       /* borrowed; only to poll */
bool sandbox_read_pending(const struct sandbox *s); /* bytes are here that poll would not report */
ssize_t sandbox_read(struct sandbox *s, void *bytes,
                     size_t n); /* > 0, 0 at the end, -EAGAIN, ... */
ssize_t sandbox_write(struct sandbox *s, const void *bytes,
                      size_t n); /* > 0, -EAGAIN, -EPIPE ... */

/* The uid and gid init must give to programs, FRAME_KEEP_ID when it already runs as them. */
uint32_t sandbox_program_uid(const struct sandbox *s);

/* The environment the image defines, NAME=VALUE, NULL-terminated; borrowed until close. */
char *const *sandbox_image_env(const struct sandbox *s);

/* All of it, now. */
int sandbox_kill(struct sandbox *s, struct err *err);

/* Kills what is left and returns when nothing of the sandbox remains; frees s also on failure (the
 * backend then retries the removal on its own). ret may be NULL. */
int sandbox_close(struct sandbox *s, struct verdict *ret, struct err *err);

const char *sandbox_backend_name(const struct sandbox_backend *b);    /* "docker", "native" */
const char *sandbox_backend_runtime(const struct sandbox_backend *b); /* OCI runtime or "" */

/* Can it open a sandbox now? 0, or why not. */
int sandbox_backend_check(struct sandbox_backend *b, struct err *err);
/* Is what this image needs there? 0, -ENOENT ... */
int sandbox_backend_check_image(struct sandbox_backend *b, const char *image, struct err *err);
/* Removes what an earlier run of this deployment left; *ret_removed counts it. Retries also the
 * removals that failed before. */
int sandbox_backend_sweep(struct sandbox_backend *b, unsigned *ret_removed, struct err *err);
void sandbox_backend_free(struct sandbox_backend *b); /* every sandbox is closed before */
DEFINE_CLEANUP(struct sandbox_backend *, sandbox_backend_free)
#define cleanup_sandbox_backend CLEANUP(sandbox_backend_free_slot)

struct sandbox_docker_options {
    const char *address;       /* DOCKER_HOST */
    const char *runtime;       /* SANDBOX_RUNTIME, "" = the daemon's default */
    const char *init_path;     /* the code-runner-init binary on this host */
    const char *seccomp_json;  /* the profile's text; borrowed for the backend's life */
    const char *deployment_id; /* goes into labels */
    const char *worker_id;
    uint32_t uid_base;
    uint32_t uid_count; /* how many sandboxes can be alive at once */
    uint32_t cpus_milli;
};
/* Does not talk to the daemon yet: it may come later. */
int sandbox_docker_new(const struct sandbox_docker_options *o, struct sandbox_backend **ret,
                       struct err *err);

#endif
