/* policy/policy.h - everything that confines a sandbox, decided in one place.
 *
 * One function makes a policy from the job's limits and the server's settings; each backend has one
 * function that applies it. Plain data, no I/O. docs/architecture.md, "Policy". */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "contract/limits.h"

#define POLICY_WORKSPACE "/workspace"
#define POLICY_INIT_DIR "/.code-runner" /* where the backend mounts init, read-only */
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
    uint64_t memory_bytes; /* no swap beyond it */
    uint64_t pids_max;
    uint64_t cpu_quota_us; /* CPU time in each cpu_period_us */
    uint64_t cpu_period_us;
    uint64_t nofile_max;
    uint64_t fsize_bytes; /* largest file */
    struct policy_tmpfs tmpfs[3]; /* /workspace, /tmp, /dev/shm: together at most half of the memory */
    const char *const *masked_paths;   /* NULL-terminated, static */
    const char *const *readonly_paths; /* NULL-terminated, static */
    const char *seccomp_json;          /* borrowed from the settings; NULL: none (refused by serve) */
    const char *runtime;               /* OCI runtime, "" = the daemon's default; borrowed */
};

struct policy_settings {
    const char *seccomp_json;
    const char *runtime;
    uint32_t cpus_milli; /* 1000 = one CPU */
};

/* limits are within the server's maxima (checked at the front door) and >= 1 each. uid is the
 * sandbox's own. -ERANGE when a limit is too small to run anything, naming it. */
int policy_make(const struct limits *limits, const struct policy_settings *settings, uint32_t uid,
                struct policy *ret, struct err *err);

/* The environment every program starts from: HOME, LANG, TZ, PATH. NULL-terminated, static. */
extern const char *const policy_base_env[];

#endif
