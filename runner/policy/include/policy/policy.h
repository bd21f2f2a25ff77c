/* policy/policy.h - everything that confines a sandbox, decided in one place.
 *
 * One function makes a policy from the job's limits and the server's settings; each backend has one
 * function that applies it. What is the same for every sandbox is not in the struct: no network, a
 * read-only root, no capabilities, no new privileges, no core files (RLIMIT_CORE 0), private
 * namespaces. Plain data, no I/O. docs/architecture.md, "Policy". */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "contract/limits.h"

#define POLICY_WORKSPACE "/workspace"
#define POLICY_INIT_DIR  "/.code-runner" /* where the backend mounts init, read-only */
#define POLICY_INIT_PATH POLICY_INIT_DIR "/init"

struct policy_tmpfs {
    const char *path;
    uint64_t size_bytes;
    uint64_t inodes;
    uint32_t mode;
    bool exec;  /* files on it may be executed */
    bool owned; /* belongs to the sandbox's uid instead of root */
};

struct policy {
    uint32_t uid;
    uint32_t gid;
    uint64_t memory_bytes; /* memory and swap together */
    uint64_t pids_max;     /* limits.pids and one more: the kernel counts init, the user does not */
    uint64_t cpu_quota_us; /* CPU time in each cpu_period_us */
    uint64_t cpu_period_us;
    uint64_t nofile_max;
    uint64_t fsize_bytes; /* largest file */
    /* /workspace, /tmp, /dev/shm: together at most half of the memory, so that filling them is
     * ENOSPC and never the end of the sandbox */
    struct policy_tmpfs tmpfs[3];
    /* NULL-terminated, static. Files and folders; a kernel may lack some, which are skipped.
     * Read-only first, then masked: a masked path may be below a read-only one. */
    const char *const *masked_paths;
    const char *const *readonly_paths; /* NULL-terminated, static */
    const char *seccomp_json; /* borrowed from the settings; NULL: none (refused by serve) */
    const char *runtime;      /* OCI runtime, "" = the daemon's default; borrowed */
};

struct policy_settings {
    const char *seccomp_json;
    const char *runtime;
    uint32_t cpus_milli; /* 1000 = one CPU */
};

#define POLICY_MEMORY_MB_MIN 6 /* Docker refuses less */

/* limits are within the server's maxima (checked at the front door). uid, which is the gid too, is
 * the sandbox's own. The policy borrows what settings borrow. -ERANGE when a limit is too small to
 * run anything, or larger than the kernel takes, naming it, its value and the bounds; -EINVAL for
 * uid 0 and for one beyond 2^31 - 1. */
int policy_make(const struct limits *limits, const struct policy_settings *settings, uint32_t uid,
                struct policy *ret, struct err *err);

/* The environment every program starts from: HOME, LANG, TZ, PATH. The image's variables, the
 * manifest's and the request's come after it and win. NULL-terminated, static. */
extern const char *const policy_base_env[];

#endif
