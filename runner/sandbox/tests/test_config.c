/* What the daemon is asked for, flag by flag; and what is read from an image. */
#include "container_config.h"

#include <errno.h>
#include <string.h>

#include "image.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"
#include "test.h"

static const struct container_owner owner = {"dep", "wrk"};

static struct policy make_policy(const char *runtime)
{
    const struct limits limits = {
        .wall_ms = 1000,
        .idle_ms = 1000,
        .cpu_ms = 1000,
        .memory_mb = 128,
        .pids = 32,
        .output_kb = 64,
        .max_artifacts = 1,
        .max_artifact_bytes = 1,
    };
    const struct policy_settings settings = {
        .seccomp_json = "{\"defaultAction\":\"SCMP_ACT_ERRNO\"}",
        .runtime = runtime,
        .cpus_milli = 1000,
    };
    struct policy p;
    assert_int_equal(policy_make(&limits, &settings, 1879048192, &p, NULL), 0);
    return p;
}

static struct image *make_image(const char *config, int want)
{
    struct image *image = NULL;
    struct err err = {0};
    json_t *json = json_pack("{s:s, s:o}", "Id", "sha256:abc", "Config",
                             json_loads(config, JSON_DECODE_ANY, NULL));
    assert_non_null(json);
    int r = image_parse("img:1", json, &image, &err);
    if (r != want)
        fail_msg("%s: %d %s", config, r, err.msg);
    json_decref(json);
    return image;
}

static json_t *make(const struct policy *p, const struct image *image)
{
    const struct sandbox_request req = {
        .job_id = "job1", .language = "python", .version = "3.13", .image = "img:1"};
    json_t *config = NULL;
    struct err err = {0};
    if (container_config_make(p, image, "the-volume", &owner, &req, &config, &err) < 0)
        fail_msg("%s", err.msg);
    return config;
}

/* "HostConfig.Memory" -> that value. */
static json_t *at(json_t *config, const char *path)
{
    char key[64];
    json_t *v = config;
    for (const char *p = path; v && *p;) {
        size_t n = strcspn(p, "|");
        memcpy(key, p, n);
        key[n] = '\0';
        v = json_object_get(v, key);
        p += n + (p[n] == '|');
    }
    return v;
}

static void test_every_flag(void **state)
{
    (void)state;
    static const struct {
        const char *path, *want;
    } cases[] = {
        {"Image", "\"sha256:abc\""}, /* by id, so that its environment is the one we read */
        {"Entrypoint", "[\"/.code-runner/init\"]"},
        {"Cmd", "[]"},
        {"User", "\"1879048192:1879048192\""},
        {"WorkingDir", "\"/workspace\""},
        {"Hostname", "\"sandbox\""},
        {"Env", NULL}, /* nothing of ours */
        {"Tty", "false"},
        {"OpenStdin", "true"},
        {"StdinOnce", "true"},
        {"AttachStdin", "true"},
        {"AttachStdout", "true"},
        {"AttachStderr", "true"},
        {"NetworkDisabled", "true"},
        {"Healthcheck", "{\"Test\":[\"NONE\"]}"},
        {"Labels", "{\"code-runner.deployment\":\"dep\",\"code-runner.job\":\"job1\",\"code-runner."
                   "language\":"
                   "\"python\",\"code-runner.version\":\"3.13\",\"code-runner.worker\":\"wrk\"}"},
        {"HostConfig|NetworkMode", "\"none\""},
        {"HostConfig|ReadonlyRootfs", "true"},
        {"HostConfig|Privileged", "false"},
        {"HostConfig|CapDrop", "[\"ALL\"]"},
        {"HostConfig|CapAdd", NULL},
        {"HostConfig|SecurityOpt",
         "[\"no-new-privileges:true\",\"seccomp={\\\"defaultAction\\\":\\\"SCMP_ACT_ERRNO\\\"}\"]"},
        {"HostConfig|Memory", "134217728"},
        {"HostConfig|MemorySwap", "134217728"},
        {"HostConfig|MemorySwappiness", NULL},
        {"HostConfig|OomKillDisable", NULL},
        {"HostConfig|OomScoreAdj", "500"},
        {"HostConfig|PidsLimit", "33"},
        {"HostConfig|CpuQuota", "100000"},
        {"HostConfig|CpuPeriod", "100000"},
        {"HostConfig|Ulimits", "[{\"Hard\":1024,\"Name\":\"nofile\",\"Soft\":1024},"
                               "{\"Hard\":41943040,\"Name\":\"fsize\",\"Soft\":41943040},"
                               "{\"Hard\":0,\"Name\":\"core\",\"Soft\":0}]"},
        {"HostConfig|IpcMode", "\"none\""},
        {"HostConfig|PidMode", NULL},
        {"HostConfig|UTSMode", NULL},
        {"HostConfig|UsernsMode", NULL},
        {"HostConfig|CgroupnsMode", "\"private\""},
        {"HostConfig|LogConfig", "{\"Config\":{},\"Type\":\"none\"}"},
        {"HostConfig|AutoRemove", "false"},
        {"HostConfig|Init", "false"},
        {"HostConfig|RestartPolicy", "{\"Name\":\"no\"}"},
        {"HostConfig|Runtime", NULL},
        {"HostConfig|Binds", NULL},
        {"HostConfig|Devices", NULL},
        {"HostConfig|PortBindings", NULL},
        {"HostConfig|Mounts",
         "[{\"ReadOnly\":true,\"Source\":\"the-volume\",\"Target\":\"/.code-runner\",\"Type\":"
         "\"volume\",\"VolumeOptions\":{\"NoCopy\":true}}]"},
        {"HostConfig|Tmpfs|/workspace",
         "\"rw,nosuid,nodev,exec,size=41943040,nr_inodes=5120,mode=0755,uid=1879048192,"
         "gid=1879048192\""},
        {"HostConfig|Tmpfs|/tmp",
         "\"rw,nosuid,nodev,noexec,size=16777216,nr_inodes=2048,mode=1777\""},
        {"HostConfig|Tmpfs|/dev/shm",
         "\"rw,nosuid,nodev,noexec,size=8388608,nr_inodes=1024,mode=1777\""},
    };
    struct policy p = make_policy("");
    struct image *image = make_image("{\"Env\":[\"SECRET=1\"]}", 0);
    json_t *config = make(&p, image);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *v = at(config, cases[i].path);
        cleanup_free char *got =
            v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
        if (!got != !cases[i].want || (got && strcmp(got, cases[i].want) != 0))
            fail_msg("%s is %s", cases[i].path, got ? got : "absent");
    }
    assert_int_equal(json_object_size(at(config, "HostConfig|Tmpfs")), 3);
    json_decref(config);
    image_unref(image);
}

static void test_paths_of_the_policy(void **state)
{
    (void)state;
    struct policy p = make_policy("");
    struct image *image = make_image("{}", 0);
    json_t *config = make(&p, image);
    const struct {
        const char *path;
        const char *const *want;
    } lists[] = {
        {"HostConfig|MaskedPaths", p.masked_paths},
        {"HostConfig|ReadonlyPaths", p.readonly_paths},
    };
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        json_t *list = at(config, lists[k].path);
        size_t n = 0;
        for (; lists[k].want[n]; n++)
            assert_string_equal(json_string_value(json_array_get(list, n)), lists[k].want[n]);
        assert_true(n > 0);
        assert_int_equal(json_array_size(list), n);
    }
    json_decref(config);
    image_unref(image);
}

static uint64_t size_of(json_t *config, const char *path)
{
    const char *options = json_string_value(json_object_get(at(config, "HostConfig|Tmpfs"), path));
    const char *size = options ? strstr(options, "size=") : NULL;
    return size ? strtoull(size + 5, NULL, 10) : 0;
}

static void test_volumes_of_the_image(void **state)
{
    (void)state;
    struct policy p = make_policy("");
    struct image *image = make_image(
        "{\"Volumes\":{\"/data//\":{},\"/var/lib/x\":{},\"/tmp\":{},\"/workspace/\":{}}}", 0);
    json_t *config = make(&p, image);
    assert_int_equal(json_object_size(at(config, "HostConfig|Tmpfs")), 5);
    uint64_t data = size_of(config, "/data");
    assert_true(data >= 65536);
    assert_int_equal(size_of(config, "/var/lib/x"), data);
    assert_int_equal(size_of(config, "/workspace") + 2 * data, p.tmpfs[0].size_bytes);
    assert_non_null(
        strstr(json_string_value(at(config, "HostConfig|Tmpfs|/data")), "nosuid,nodev,noexec,"));
    json_decref(config);
    image_unref(image);
}

static void test_images(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        int want;
    } cases[] = {
        {"{}", 0},
        {"{\"Env\":null,\"Volumes\":null}", 0},
        {"{\"Volumes\":{\"data\":{}}}", -ENOTSUP},
        {"{\"Volumes\":{\"/\":{}}}", -ENOTSUP},
        {"{\"Volumes\":{\"\":{}}}", -ENOTSUP},
        {"{\"Volumes\":{\"/a/../b\":{}}}", -ENOTSUP},
        {"{\"Volumes\":{\"/a/./b\":{}}}", -ENOTSUP},
        {"{\"Volumes\":{\"/proc\":{}}}", -ENOTSUP},
        {"{\"Volumes\":{\"/dev/x\":{}}}", -ENOTSUP},
        {"{\"Volumes\":{\"//.code-runner/\":{}}}", -ENOTSUP},
        {"{\"Volumes\":{\"/process\":{}, \"/..a\":{}}}", 0},
        {"[]", -EBADMSG},
        {"null", -EBADMSG},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        image_unref(make_image(cases[i].config, cases[i].want));

    struct image *image = make_image("{\"Env\":[\"A=b=c\",\"NAME\",\"=x\",7,\"EMPTY=\"]}", 0);
    assert_string_equal(image->env[0], "A=b=c");
    assert_string_equal(image->env[1], "EMPTY=");
    assert_null(image->env[2]);
    image_unref(image);

    for (int n = IMAGE_VOLUMES_MAX; n <= IMAGE_VOLUMES_MAX + 1; n++) {
        json_t *config = json_pack("{s:{}}", "Volumes");
        for (int i = 0; i < n; i++) {
            char path[16];
            (void)snprintf(path, sizeof(path), "/v%d", i);
            (void)json_object_set_new(json_object_get(config, "Volumes"), path, json_object());
        }
        cleanup_free char *text = json_dumps(config, 0);
        json_decref(config);
        image = make_image(text, n > IMAGE_VOLUMES_MAX ? -ENOTSUP : 0);
        if (image) {
            struct policy p = make_policy("");
            config = make(&p, image);
            assert_true(size_of(config, "/workspace") >= p.tmpfs[0].size_bytes / 2);
            json_decref(config);
        }
        image_unref(image);
    }
}

static void test_runtimes(void **state)
{
    (void)state;
    static const struct {
        const char *runtime, *user, *cap_add;
    } cases[] = {
        {"crun", "1879048192:1879048192", NULL},
        {"runsc", "0:0", "[\"SETUID\",\"SETGID\",\"KILL\"]"},
        {"runsc-kvm", "0:0", "[\"SETUID\",\"SETGID\",\"KILL\"]"},
    };
    struct image *image = make_image("{}", 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct policy p = make_policy(cases[i].runtime);
        json_t *config = make(&p, image);
        assert_string_equal(json_string_value(at(config, "HostConfig|Runtime")), cases[i].runtime);
        assert_string_equal(json_string_value(at(config, "User")), cases[i].user);
        json_t *add = at(config, "HostConfig|CapAdd");
        cleanup_free char *got = add ? json_dumps(add, JSON_COMPACT) : NULL;
        if (!got != !cases[i].cap_add || (got && strcmp(got, cases[i].cap_add) != 0))
            fail_msg("%s: CapAdd is %s", cases[i].runtime, got ? got : "absent");
        json_decref(config);
    }
    image_unref(image);
}

static void test_no_seccomp_is_refused(void **state)
{
    (void)state;
    struct image *image = make_image("{}", 0);
    const struct sandbox_request req = {.job_id = "j", .language = "l", .version = "v"};
    static const char *const none[] = {NULL, ""};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct policy p = make_policy("");
        p.seccomp_json = none[i];
        json_t *config = NULL;
        assert_int_equal(container_config_make(&p, image, "v", &owner, &req, &config, NULL),
                         -EINVAL);
        assert_null(config);
    }
    image_unref(image);
}

static void test_helper(void **state)
{
    (void)state;
    struct image *image = make_image("{}", 0);
    json_t *config = NULL;
    assert_int_equal(container_config_make_helper(image, "the-volume", &owner, &config, NULL), 0);
    assert_string_equal(json_string_value(at(config, "HostConfig|NetworkMode")), "none");
    assert_string_equal(json_string_value(at(config, "Labels|code-runner.deployment")), "dep");
    assert_true(json_is_false(
        json_object_get(json_array_get(at(config, "HostConfig|Mounts"), 0), "ReadOnly")));
    json_decref(config);
    image_unref(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_flag),
        cmocka_unit_test(test_paths_of_the_policy),
        cmocka_unit_test(test_volumes_of_the_image),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_runtimes),
        cmocka_unit_test(test_no_seccomp_is_refused),
        cmocka_unit_test(test_helper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
