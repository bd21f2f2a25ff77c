#include "container_config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "image.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"

#define SECCOMP_MAX       (1U << 20)
#define TMPFS_UNIT        65536U /* as the policy's sizes: whole pages on every machine */
#define VOLUME_SHARE      32U    /* a VOLUME gets this part of the workspace's size */
#define INODE_BYTES       8192U
#define VOLUME_INODES_MIN 256U
#define OOM_SCORE_ADJ     500 /* sandboxes go before services when the host runs out of memory */

static_assert(2 * IMAGE_VOLUMES_MAX <= VOLUME_SHARE, "half of the workspace stays");

/* Takes value. Each put returns 0 or -1, so that a caller may OR them together. */
static int put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

static int put_text(json_t *object, const char *key, const char *value)
{
    return put(object, key, json_string(value));
}

static int put_number(json_t *object, const char *key, uint64_t value)
{
    return put(object, key, json_integer((json_int_t)value));
}

static int put_bool(json_t *object, const char *key, bool value)
{
    return put(object, key, json_boolean(value));
}

static json_t *list_of(const char *const *texts)
{
    json_t *list = json_array();
    for (const char *const *t = texts; list && *t; t++) {
        if (json_array_append_new(list, json_string(*t)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

bool container_init_is_root(const struct policy *p)
{
    return strncmp(p->runtime, "runsc", 5) == 0;
}

/* --- file systems ---------------------------------------------------------------------------- */

static int put_tmpfs(json_t *tmpfs, const struct policy *p, const struct policy_tmpfs *t)
{
    char options[256], owner[64] = "";
    if (t->owned)
        (void)snprintf(owner, sizeof(owner), ",uid=%" PRIu32 ",gid=%" PRIu32, p->uid, p->gid);
    (void)snprintf(options, sizeof(options),
                   "rw,nosuid,nodev,%s,size=%" PRIu64 ",nr_inodes=%" PRIu64 ",mode=%04" PRIo32 "%s",
                   t->exec ? "exec" : "noexec", t->size_bytes, t->inodes, t->mode, owner);
    return put_text(tmpfs, t->path, options); /* both fit: five numbers of at most 20 digits */
}

static uint64_t volume_bytes(const struct policy *p)
{
    uint64_t size = p->tmpfs[0].size_bytes / VOLUME_SHARE;
    return size < TMPFS_UNIT ? TMPFS_UNIT : size - size % TMPFS_UNIT;
}

static bool is_covered(const struct policy *p, const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(p->tmpfs); i++)
        if (strcmp(path, p->tmpfs[i].path) == 0)
            return true;
    return false;
}

/* A VOLUME would be a writable folder of the host's disk without any bound. */
static json_t *make_tmpfs(const struct policy *p, const struct image *image)
{
    json_t *tmpfs = json_object();
    if (!tmpfs)
        return NULL;
    int bad = 0;
    struct policy_tmpfs workspace = p->tmpfs[0];
    struct policy_tmpfs volume = {
        .size_bytes = volume_bytes(p),
        .inodes = volume_bytes(p) / INODE_BYTES,
        .mode = 0755,
        .owned = true,
    };
    if (volume.inodes < VOLUME_INODES_MIN)
        volume.inodes = VOLUME_INODES_MIN;
    for (char *const *v = image->volumes; *v; v++) {
        if (is_covered(p, *v))
            continue;
        volume.path = *v;
        workspace.size_bytes -= volume.size_bytes;
        bad |= put_tmpfs(tmpfs, p, &volume);
    }
    bad |= put_tmpfs(tmpfs, p, &workspace);
    for (size_t i = 1; i < ARRAY_LEN(p->tmpfs); i++)
        bad |= put_tmpfs(tmpfs, p, &p->tmpfs[i]);
    if (bad) {
        json_decref(tmpfs);
        return NULL;
    }
    return tmpfs;
}

/* NoCopy: what the image may have at that path stays out of the volume. */
static json_t *make_mounts(const char *init_volume, bool read_only)
{
    return json_pack("[{s:s, s:s, s:s, s:b, s:{s:b}}]", "Type", "volume", "Source", init_volume,
                     "Target", POLICY_INIT_DIR, "ReadOnly", read_only, "VolumeOptions", "NoCopy",
                     1);
}

/* --- confinement ----------------------------------------------------------------------------- */

static json_t *make_ulimits(const struct policy *p)
{
    return json_pack("[{s:s, s:I, s:I}, {s:s, s:I, s:I}, {s:s, s:i, s:i}]", "Name", "nofile",
                     "Soft", (json_int_t)p->nofile_max, "Hard", (json_int_t)p->nofile_max, "Name",
                     "fsize", "Soft", (json_int_t)p->fsize_bytes, "Hard",
                     (json_int_t)p->fsize_bytes, "Name", "core", "Soft", 0, "Hard", 0);
}

static json_t *make_security(const struct policy *p)
{
    cleanup_buf struct buf seccomp;
    buf_init(&seccomp, SECCOMP_MAX);
    if (buf_append_str(&seccomp, "seccomp=") < 0 || buf_append_str(&seccomp, p->seccomp_json) < 0)
        return NULL;
    return json_pack("[s, s]", "no-new-privileges:true", seccomp.data);
}

static int put_limits(json_t *host, const struct policy *p)
{
    return put_number(host, "Memory", p->memory_bytes) |
           put_number(host, "MemorySwap", p->memory_bytes) | /* both together: no swap */
           put_number(host, "PidsLimit", p->pids_max) |
           put_number(host, "CpuQuota", p->cpu_quota_us) |
           put_number(host, "CpuPeriod", p->cpu_period_us) | put(host, "Ulimits", make_ulimits(p)) |
           put(host, "OomScoreAdj", json_integer(OOM_SCORE_ADJ));
}

static int put_confinement(json_t *host, const struct policy *p)
{
    static const char *const all[] = {"ALL", NULL};
    static const char *const become[] = {"SETUID", "SETGID", "KILL", NULL};
    int bad = put_text(host, "NetworkMode", "none") | put_bool(host, "ReadonlyRootfs", true) |
              put(host, "CapDrop", list_of(all)) | put(host, "SecurityOpt", make_security(p)) |
              put_text(host, "IpcMode", "none") | put_text(host, "CgroupnsMode", "private") |
              put(host, "MaskedPaths", list_of(p->masked_paths)) |
              put(host, "ReadonlyPaths", list_of(p->readonly_paths)) |
              put_bool(host, "Privileged", false);
    if (container_init_is_root(p))
        bad |= put(host, "CapAdd", list_of(become));
    if (p->runtime[0])
        bad |= put_text(host, "Runtime", p->runtime);
    return bad;
}

/* What a container of ours never does, whatever it is for. */
static int put_habits(json_t *host)
{
    return put(host, "LogConfig", json_pack("{s:s, s:{}}", "Type", "none", "Config")) |
           put(host, "RestartPolicy", json_pack("{s:s}", "Name", "no")) |
           put_bool(host, "AutoRemove", false) | put_bool(host, "Init", false);
}

static json_t *make_host(const struct policy *p, const struct image *image, const char *init_volume)
{
    json_t *host = json_object();
    if (!host)
        return NULL;
    int bad = put_limits(host, p) | put_confinement(host, p) | put_habits(host) |
              put(host, "Tmpfs", make_tmpfs(p, image)) |
              put(host, "Mounts", make_mounts(init_volume, true));
    if (bad) {
        json_decref(host);
        return NULL;
    }
    return host;
}

/* --- the whole ------------------------------------------------------------------------------- */

static json_t *make_labels(const struct container_owner *owner, const struct sandbox_request *req)
{
    if (!req)
        return json_pack("{s:s, s:s}", LABEL_DEPLOYMENT, owner->deployment_id, LABEL_WORKER,
                         owner->worker_id);
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", LABEL_DEPLOYMENT, owner->deployment_id,
                     LABEL_WORKER, owner->worker_id, LABEL_JOB, req->job_id, LABEL_LANGUAGE,
                     req->language, LABEL_VERSION, req->version);
}

/* The program is init; what the image would start, or check, is of no interest. */
static int put_program(json_t *config, const struct image *image)
{
    static const char *const entrypoint[] = {POLICY_INIT_PATH, NULL};
    return put_text(config, "Image", image->id) | put(config, "Entrypoint", list_of(entrypoint)) |
           put(config, "Cmd", json_array()) |
           put(config, "Healthcheck", json_pack("{s:[s]}", "Test", "NONE")) |
           put_bool(config, "NetworkDisabled", true) | put_bool(config, "Tty", false);
}

static int put_stream(json_t *config)
{
    return put_bool(config, "OpenStdin", true) | put_bool(config, "StdinOnce", true) |
           put_bool(config, "AttachStdin", true) | put_bool(config, "AttachStdout", true) |
           put_bool(config, "AttachStderr", true);
}

int container_config_make(const struct policy *p, const struct image *image,
                          const char *init_volume, const struct container_owner *owner,
                          const struct sandbox_request *req, json_t **ret, struct err *err)
{
    if (!p->seccomp_json || !*p->seccomp_json)
        return err_say(err, -EINVAL, "a sandbox without a seccomp profile is refused");
    json_t *config = json_object();
    if (!config)
        return err_set(err, -ENOMEM, "describe a container");
    char user[32] = "0:0";
    if (!container_init_is_root(p))
        (void)snprintf(user, sizeof(user), "%" PRIu32 ":%" PRIu32, p->uid, p->gid);
    int bad = put_program(config, image) | put_stream(config) | put_text(config, "User", user) |
              put_text(config, "WorkingDir", POLICY_WORKSPACE) |
              put_text(config, "Hostname", "sandbox") |
              put(config, "Labels", make_labels(owner, req)) |
              put(config, "HostConfig", make_host(p, image, init_volume));
    if (bad) {
        json_decref(config);
        return err_set(err, -ENOMEM, "describe a container");
    }
    *ret = config;
    return 0;
}

int container_config_make_helper(const struct image *image, const char *init_volume,
                                 const struct container_owner *owner, json_t **ret, struct err *err)
{
    json_t *config = json_object(), *host = json_object();
    int bad = !config || !host;
    if (!bad)
        bad = put_habits(host) | put_text(host, "NetworkMode", "none") |
              put(host, "Mounts", make_mounts(init_volume, false)) | put_program(config, image) |
              put(config, "Labels", make_labels(owner, NULL)) |
              put(config, "HostConfig", json_incref(host));
    json_decref(host);
    if (bad) {
        json_decref(config);
        return err_set(err, -ENOMEM, "describe a container");
    }
    *ret = config;
    return 0;
}
