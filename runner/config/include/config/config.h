/* config/config.h - every setting, from one table.
 *
 * The table (settings.c) declares name, type, unit, default, bounds and the sentence users read;
 * today values come from the environment or the default. A bad value is refused with the key's
 * name, the value (never of a secret) and the bounds. An empty variable counts as unset, but for
 * secrets, where it is refused. SOKETI_HOST and REDIS_URL ask for what this build does not have and
 * are refused. Threads: read-only after loading. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "contract/limits.h"

#define CONFIG_DEV_TOKEN "dev-insecure-token-change-me" /* refused off loopback */

struct config {
    /* gateway */
    char *api_host;           /* API_HOST, 127.0.0.1; always an IP address */
    uint16_t api_port;        /* API_PORT, 8080; 0 = any free one, printed at start */
    char *api_token;          /* EXECUTOR_API_TOKEN, required */
    uint64_t max_queue_depth; /* MAX_QUEUE_DEPTH, 256 */
    uint64_t max_files_bytes; /* MAX_FILES_BYTES, 8388608 */
    uint64_t max_body_bytes;  /* MAX_BODY_BYTES, 2 x MAX_FILES_BYTES + 1 MiB */
    bool enable_channel_auth; /* ENABLE_CHANNEL_AUTH, off; only "true" is on */
    struct limits limits_max; /* MAX_WALL_TIME_MS ... one each; 0 = none */

    /* hub */
    char *app_id;     /* SOKETI_APP_ID, code-runner */
    char *app_key;    /* SOKETI_APP_KEY, code-runner-key */
    char *app_secret; /* SOKETI_APP_SECRET; unset: random per start */
    bool app_secret_random;
    bool hub_replay; /* HUB_REPLAY, on */

    /* bus */
    int64_t job_ttl_ms;            /* JOB_TTL, 3600 s */
    int64_t result_ttl_ms;         /* RUN_RESULT_TTL, 600 s */
    uint64_t bus_memory_max_bytes; /* BUS_MEMORY_MAX_BYTES, 256 MiB */

    /* worker */
    uint64_t max_sandboxes; /* WORKER_MAX_SANDBOXES, 8 */
    int64_t warmup_ms;      /* WORKER_WARMUP_MS, 30000: how long the gate waits for start */
    int64_t drain_ms;       /* WORKER_DRAIN_TIMEOUT_MS, 120000 */

    /* sandbox */
    char *docker_host;     /* DOCKER_HOST, unix:///var/run/docker.sock */
    char *sandbox_runtime; /* SANDBOX_RUNTIME, "" */
    char *seccomp_path;    /* SECCOMP_PROFILE_PATH, the tree's or the installed profile */
    char *init_path;       /* INIT_PATH, code-runner-init beside this program */
    uint32_t uid_base;     /* SANDBOX_UID_BASE, 1879048192 */
    uint32_t cpus_milli;   /* SANDBOX_CPUS_MILLI, 1000 */

    /* common */
    char *languages_dir; /* LANGUAGES_DIR */
    char *state_dir;     /* STATE_DIR */
    char *log_level;     /* LOG_LEVEL, info */
};

/* getenv_fn: how a variable is read (tests pass their own). exe_dir: the folder of this program;
 * files that no variable names are looked for around it, first as in a source tree (../languages,
 * ../seccomp/profile.json, code-runner-init), then as installed (../share/code-runner/...).
 *   -EINVAL   a bad value, a required one that is missing, the development token off loopback
 *   -ERANGE   a number, or the length of a text, out of bounds
 *   -ENOTSUP  a variable that must be unset
 *   -ENOENT   a file that no variable names is in neither place
 *   -ENOMEM */
int config_load(const char *(*getenv_fn)(const char *name), const char *exe_dir,
                struct config **ret, struct err *err);
void config_free(struct config *c);
DEFINE_CLEANUP(struct config *, config_free)
#define cleanup_config CLEANUP(config_free_slot)

/* The table as Markdown, for docs/configuration.md. 0, -ENOMEM. */
int config_markdown(struct buf *out);

#endif
