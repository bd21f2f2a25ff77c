#include "policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "test.h"

#define MIB UINT64_C(1048576)
#define UID UINT32_C(1879048192)

static const struct policy_settings settings = {
    .seccomp_json = "{}", .runtime = "runsc", .cpus_milli = 1000};

static struct limits limits_of(int64_t memory_mb, int64_t pids)
{
    return (struct limits){.wall_ms = 1,
                           .idle_ms = 1,
                           .cpu_ms = 1,
                           .memory_mb = memory_mb,
                           .pids = pids,
                           .output_kb = 1,
                           .max_artifacts = 1,
                           .max_artifact_bytes = 1};
}

static void plain_fields(void **state)
{
    (void)state;
    struct limits l = limits_of(128, 64);
    struct policy p;
    assert_int_equal(policy_make(&l, &settings, UID, &p, NULL), 0);
    assert_int_equal(p.uid, UID);
    assert_int_equal(p.gid, UID);
    assert_int_equal(p.memory_bytes, 128 * MIB);
    assert_int_equal(p.pids_max, 65);
    assert_int_equal(p.cpu_quota_us, 100000);
    assert_int_equal(p.cpu_period_us, 100000);
    assert_int_equal(p.nofile_max, 1024);
    assert_int_equal(p.fsize_bytes, p.tmpfs[0].size_bytes);
    assert_string_equal(p.seccomp_json, "{}");
    assert_string_equal(p.runtime, "runsc");
}

static void no_runtime_is_the_default_one(void **state)
{
    (void)state;
    struct limits l = limits_of(128, 64);
    struct policy_settings s = {.cpus_milli = 1500};
    struct policy p;
    assert_int_equal(policy_make(&l, &s, 1, &p, NULL), 0);
    assert_string_equal(p.runtime, "");
    assert_null(p.seccomp_json);
    assert_int_equal(p.cpu_quota_us, 150000);
}

static void bounds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t memory_mb, pids;
        uint32_t cpus_milli, uid;
        int want;
        const char *words[3]; /* all of them in the message */
    } cases[] = {
        {"smallest memory", 6, 1, 1000, UID, 0, {NULL}},
        {"less", 5, 1, 1000, UID, -ERANGE, {"memoryMb", "5", "6"}},
        {"none", 0, 1, 1000, UID, -ERANGE, {"memoryMb", "0", "6"}},
        {"negative memory", -1, 1, 1000, UID, -ERANGE, {"memoryMb", "-1", "6"}},
        {"largest memory", INT64_MAX >> 20, 1, 1000, UID, 0, {NULL}},
        {"more", (INT64_MAX >> 20) + 1, 1, 1000, UID, -ERANGE, {"memoryMb", "8796093022208", NULL}},
        {"most", INT64_MAX, 1, 1000, UID, -ERANGE, {"memoryMb", "9223372036854775807", NULL}},
        {"no pids", 128, 0, 1000, UID, -ERANGE, {"pids", "0", "1"}},
        {"largest pids", 128, 4194303, 1000, UID, 0, {NULL}},
        {"one more", 128, 4194304, 1000, UID, -ERANGE, {"pids", "4194304", "4194303"}},
        {"most pids", 128, INT64_MAX, 1000, UID, -ERANGE, {"pids", NULL, NULL}},
        {"smallest quota", 128, 1, 10, UID, 0, {NULL}},
        {"smaller", 128, 1, 9, UID, -ERANGE, {"CPU", "9", "10"}},
        {"largest quota", 128, 1, UINT32_MAX, UID, 0, {NULL}},
        {"root", 128, 1, 1000, 0, -EINVAL, {"uid 0", NULL, NULL}},
        {"not root", 128, 1, 1000, 1, 0, {NULL}},
        {"largest uid", 128, 1, 1000, INT32_MAX, 0, {NULL}},
        {"no such uid", 128, 1, 1000, UINT32_C(1) << 31, -EINVAL, {"2147483648", NULL, NULL}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct limits l = limits_of(cases[i].memory_mb, cases[i].pids);
        struct policy_settings s = {.cpus_milli = cases[i].cpus_milli};
        struct policy p = {.uid = 77}; /* must survive a failure untouched */
        struct err err = {0};
        int r = policy_make(&l, &s, cases[i].uid, &p, &err);
        if (r != cases[i].want || p.uid != (r < 0 ? 77 : cases[i].uid))
            fail_msg("%s: r=%d uid=%" PRIu32 " %s", cases[i].name, r, p.uid, err.msg);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].words) && cases[i].words[k]; k++)
            if (!strstr(err.msg, cases[i].words[k]))
                fail_msg("%s: no \"%s\" in: %s", cases[i].name, cases[i].words[k], err.msg);
    }
}

static void tmpfs_fit_in_half(void **state)
{
    (void)state;
    static const int64_t sizes[] = {6,   7,   8,    63,   64,    127,     128,
                                    129, 256, 1000, 4096, 65536, 1 << 20, INT64_MAX >> 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct limits l = limits_of(sizes[i], 1);
        struct policy p;
        assert_int_equal(policy_make(&l, &settings, UID, &p, NULL), 0);
        uint64_t sum = 0;
        for (size_t k = 0; k < ARRAY_LEN(p.tmpfs); k++) {
            const struct policy_tmpfs *t = &p.tmpfs[k];
            sum += t->size_bytes;
            if (t->size_bytes == 0 || t->size_bytes % 65536 != 0)
                fail_msg("%s of %" PRId64 " MiB: %" PRIu64, t->path, sizes[i], t->size_bytes);
            if (t->inodes < 256 || t->inodes > UINT64_C(1) << 20)
                fail_msg("%s of %" PRId64 " MiB: %" PRIu64 " inodes", t->path, sizes[i], t->inodes);
        }
        assert_true(sum == p.memory_bytes / 2);
        assert_true(p.tmpfs[0].size_bytes > p.tmpfs[1].size_bytes);
        assert_true(p.tmpfs[2].size_bytes <= 64 * MIB);
    }
}

static void tmpfs_modes(void **state)
{
    (void)state;
    static const struct policy_tmpfs want[] = {
        {.path = "/workspace", .mode = 0755, .exec = true, .owned = true},
        {.path = "/tmp", .mode = 01777},
        {.path = "/dev/shm", .mode = 01777},
    };
    struct limits l = limits_of(128, 64);
    struct policy p;
    assert_int_equal(policy_make(&l, &settings, UID, &p, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_string_equal(p.tmpfs[i].path, want[i].path);
        assert_int_equal(p.tmpfs[i].mode, want[i].mode);
        assert_int_equal(p.tmpfs[i].exec, want[i].exec);
        assert_int_equal(p.tmpfs[i].owned, want[i].owned);
    }
}

static bool has(const char *const *list, const char *item)
{
    for (; *list; list++)
        if (strcmp(*list, item) == 0)
            return true;
    return false;
}

static void paths(void **state)
{
    (void)state;
    static const char *const must_mask[] = {
        "/proc/asound",      "/proc/acpi",
        "/proc/kcore",       "/proc/keys",
        "/proc/timer_list",  "/proc/latency_stats",
        "/proc/timer_stats", "/proc/sched_debug",
        "/proc/scsi",        "/sys/firmware",
        "/proc/cmdline",     "/sys/devices/virtual/powercap",
        "/proc/interrupts",  "/proc/sys/kernel/random/boot_id",
    };
    static const char *const must_be_readonly[] = {"/proc/bus", "/proc/fs", "/proc/irq",
                                                   "/proc/sys", "/proc/sysrq-trigger"};
    /* what runtimes read to size their heaps and thread pools, and to find themselves */
    static const char *const must_stay[] = {"/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
                                            "/proc/self",    "/proc/mounts",  "/proc/uptime",
                                            "/proc/loadavg", "/proc/version", "/proc/filesystems"};
    struct limits l = limits_of(128, 64);
    struct policy p;
    assert_int_equal(policy_make(&l, &settings, UID, &p, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(must_mask); i++)
        if (!has(p.masked_paths, must_mask[i]))
            fail_msg("%s is not masked", must_mask[i]);
    for (size_t i = 0; i < ARRAY_LEN(must_be_readonly); i++)
        if (!has(p.readonly_paths, must_be_readonly[i]))
            fail_msg("%s is not read-only", must_be_readonly[i]);
    for (size_t i = 0; i < ARRAY_LEN(must_stay); i++)
        if (has(p.masked_paths, must_stay[i]))
            fail_msg("%s is masked", must_stay[i]);
}

static void base_env(void **state)
{
    (void)state;
    static const char *const want[] = {"HOME=", "LANG=C.UTF-8", "TZ=UTC", "PATH=/"};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_non_null(policy_base_env[i]);
        assert_int_equal(strncmp(policy_base_env[i], want[i], strlen(want[i])), 0);
    }
    assert_null(policy_base_env[ARRAY_LEN(want)]);

    /* home is a place where the program can write */
    struct limits l = limits_of(128, 64);
    struct policy p;
    assert_int_equal(policy_make(&l, &settings, UID, &p, NULL), 0);
    const char *home = policy_base_env[0] + strlen("HOME=");
    assert_true(strcmp(home, p.tmpfs[0].path) == 0 || strcmp(home, p.tmpfs[1].path) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_fields), cmocka_unit_test(no_runtime_is_the_default_one),
        cmocka_unit_test(bounds),       cmocka_unit_test(tmpfs_fit_in_half),
        cmocka_unit_test(tmpfs_modes),  cmocka_unit_test(paths),
        cmocka_unit_test(base_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
