#include "config_internal.h"

#define AT(field) offsetof(struct config, field)
#define LIMIT(l)  (offsetof(struct config, limits_max) + offsetof(struct limits, l))
#define KIB       UINT64_C(1024)
#define MIB       (1024 * KIB)
#define GIB       (1024 * MIB)
#define YEAR_S    UINT64_C(31536000)
#define HOUR_MS   UINT64_C(3600000)
#define TEXT_MAX  4096
#define LIMIT_MAX UINT64_C(9007199254740991) /* 2^53 - 1, what every JSON reader agrees on */

/* Ids from the base on, one for each sandbox, must stay below 2^31, where the daemon's end. */
#define SANDBOXES_MAX UINT64_C(4096)
#define UID_BASE_MAX  (UINT64_C(2147483647) - SANDBOXES_MAX)

const struct setting config_settings[] = {
    {"Gateway", "API_HOST", SETTING_HOST, NULL, "127.0.0.1", 1, 64, AT(api_host), NULL,
     "Address to listen on: IPv4, IPv6 or `localhost`. Off loopback the development token is "
     "refused."},
    {NULL, "API_PORT", SETTING_U16, NULL, "8080", 0, 65535, AT(api_port), NULL,
     "Port to listen on; 0 takes any free one and says which."},
    {NULL, "EXECUTOR_API_TOKEN", SETTING_SECRET, NULL, NULL, 1, TEXT_MAX, AT(api_token), "required",
     "Bearer token that every API call must carry."},
    {NULL, "MAX_QUEUE_DEPTH", SETTING_U64, "jobs", "256", 1, 1000000, AT(max_queue_depth), NULL,
     "Jobs that may wait for a worker; one more is answered 429."},
    {NULL, "MAX_FILES_BYTES", SETTING_U64, "bytes", "8388608", 1, GIB, AT(max_files_bytes), NULL,
     "Decoded size of all files of a job."},
    {NULL, "MAX_BODY_BYTES", SETTING_U64, "bytes", NULL, KIB, 4 * GIB, AT(max_body_bytes),
     "2 × `MAX_FILES_BYTES` + 1 MiB", "Size of a request body; a larger one is answered 413."},
    {NULL, "ENABLE_CHANNEL_AUTH", SETTING_BOOL, NULL, "false", 0, 0, AT(enable_channel_auth), NULL,
     "Serve `POST /v1/channel-auth`, which signs subscriptions for browsers."},

    {"Largest limits", "MAX_WALL_TIME_MS", SETTING_I64, "ms", "0", 0, LIMIT_MAX, LIMIT(wall_ms),
     NULL, "Largest `wallTimeMs` a job may ask for; 0 is no maximum, here and below."},
    {NULL, "MAX_IDLE_MS", SETTING_I64, "ms", "0", 0, LIMIT_MAX, LIMIT(idle_ms), NULL,
     "Largest `idleMs`."},
    {NULL, "MAX_CPU_MS", SETTING_I64, "ms", "0", 0, LIMIT_MAX, LIMIT(cpu_ms), NULL,
     "Largest `cpuMs`."},
    {NULL, "MAX_MEMORY_MB", SETTING_I64, "MiB", "0", 0, LIMIT_MAX, LIMIT(memory_mb), NULL,
     "Largest `memoryMb`."},
    {NULL, "MAX_PIDS", SETTING_I64, "processes and threads", "0", 0, LIMIT_MAX, LIMIT(pids), NULL,
     "Largest `pids`."},
    {NULL, "MAX_OUTPUT_KB", SETTING_I64, "KiB", "0", 0, LIMIT_MAX, LIMIT(output_kb), NULL,
     "Largest `outputKb`."},
    {NULL, "MAX_ARTIFACTS", SETTING_I64, "files", "0", 0, LIMIT_MAX, LIMIT(max_artifacts), NULL,
     "Largest `maxArtifacts`."},
    {NULL, "MAX_ARTIFACT_BYTES", SETTING_I64, "bytes", "0", 0, LIMIT_MAX, LIMIT(max_artifact_bytes),
     NULL, "Largest `maxArtifactBytes`."},

    {"Hub", "SOKETI_APP_ID", SETTING_WORD, NULL, "code-runner", 1, 64, AT(app_id), NULL,
     "Application id in the path of the trigger API."},
    {NULL, "SOKETI_APP_KEY", SETTING_WORD, NULL, "code-runner-key", 1, 64, AT(app_key), NULL,
     "Application key that browsers connect with; not a secret."},
    {NULL, "SOKETI_APP_SECRET", SETTING_SECRET, NULL, NULL, 1, TEXT_MAX, AT(app_secret),
     "random, anew at each start",
     "Signs channel subscriptions. Set it if your backend signs them itself."},
    {NULL, "HUB_REPLAY", SETTING_SWITCH, NULL, "on", 0, 0, AT(hub_replay), NULL,
     "Send a new subscriber the events it has missed."},
    {NULL, "SOKETI_HOST", SETTING_REFUSED, NULL, NULL, 0, 0, 0, "must be unset",
     "Would name an outside soketi; this build has the embedded hub only."},

    {"Bus", "JOB_TTL", SETTING_SECONDS, "s", "3600", 1, YEAR_S, AT(job_ttl_ms), NULL,
     "How long a job's record is kept."},
    {NULL, "RUN_RESULT_TTL", SETTING_SECONDS, "s", "600", 1, YEAR_S, AT(result_ttl_ms), NULL,
     "How long result, output and events of an ended job are kept."},
    {NULL, "BUS_MEMORY_MAX_BYTES", SETTING_U64, "bytes", "268435456", MIB, 1024 * GIB,
     AT(bus_memory_max_bytes), NULL,
     "Memory for the records of ended jobs; past it the oldest go first."},
    {NULL, "REDIS_URL", SETTING_REFUSED, NULL, NULL, 0, 0, 0, "must be unset",
     "Would name a Redis; this build has the bus in memory only."},

    {"Worker", "WORKER_MAX_SANDBOXES", SETTING_U64, "sandboxes", "8", 1, SANDBOXES_MAX,
     AT(max_sandboxes), NULL, "Jobs that run at the same time."},
    {NULL, "WORKER_WARMUP_MS", SETTING_I64, "ms", "30000", 1, HOUR_MS, AT(warmup_ms), NULL,
     "How long a ready sandbox waits for `start`."},
    {NULL, "WORKER_DRAIN_TIMEOUT_MS", SETTING_I64, "ms", "120000", 0, HOUR_MS, AT(drain_ms), NULL,
     "How long running jobs may go on after SIGTERM."},

    {"Sandbox", "DOCKER_HOST", SETTING_DOCKER, NULL, "unix:///var/run/docker.sock", 1, TEXT_MAX,
     AT(docker_host), NULL, "Docker daemon: `unix:///path` or `tcp://host:port`."},
    {NULL, "SANDBOX_RUNTIME", SETTING_WORD, NULL, "", 0, 255, AT(sandbox_runtime),
     "the daemon's own", "OCI runtime, such as `runsc` or `crun`."},
    {NULL, "SECCOMP_PROFILE_PATH", SETTING_TEXT, NULL, NULL, 1, TEXT_MAX, AT(seccomp_path),
     "beside the program", "Seccomp profile of every sandbox. It cannot be switched off."},
    {NULL, "INIT_PATH", SETTING_TEXT, NULL, NULL, 1, TEXT_MAX, AT(init_path), "beside the program",
     "The program `code-runner-init` that is put into every sandbox."},
    {NULL, "SANDBOX_UID_BASE", SETTING_U32, NULL, "1879048192", 1000, UID_BASE_MAX, AT(uid_base),
     NULL, "User and group id of the first sandbox; the others follow."},
    {NULL, "SANDBOX_CPUS_MILLI", SETTING_U32, "thousandths of a CPU", "1000", 10, 1024000,
     AT(cpus_milli), NULL, "CPU quota of a sandbox."},

    {"Common", "LANGUAGES_DIR", SETTING_TEXT, NULL, NULL, 1, TEXT_MAX, AT(languages_dir),
     "beside the program", "Folder of the languages."},
    {NULL, "STATE_DIR", SETTING_TEXT, NULL, NULL, 1, TEXT_MAX, AT(state_dir),
     "root: `/var/lib/code-runner`; else `$XDG_STATE_HOME/code-runner` or "
     "`$HOME/.local/state/code-runner`",
     "Folder of what must survive a restart; one server each."},
    {NULL, "LOG_LEVEL", SETTING_LEVEL, NULL, "info", 1, 16, AT(log_level), NULL,
     "`debug`, `info`, `warn`, `error` or `off`."},
};
const size_t config_settings_len = ARRAY_LEN(config_settings);
