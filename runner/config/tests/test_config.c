#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_internal.h"
#include "test.h"

#define VARIABLES_MAX 8

/* The environment of a test: what it says, and a token unless it says otherwise. */
static struct {
    const char *name, *value;
} variables[VARIABLES_MAX];
static const char *default_token = "token";

static const char *read_variable(const char *name)
{
    for (size_t i = 0; i < VARIABLES_MAX && variables[i].name; i++)
        if (strcmp(variables[i].name, name) == 0)
            return variables[i].value;
    if (strcmp(name, "EXECUTOR_API_TOKEN") == 0)
        return default_token;
    if (strcmp(name, "STATE_DIR") == 0)
        return "/state";
    return NULL;
}

static void set_variable(size_t at, const char *name, const char *value)
{
    assert_true(at < VARIABLES_MAX);
    variables[at].name = name;
    variables[at].value = value;
}

static char root[64];  /* of a source tree */
static char bin[128];  /* where its program is */
static char bare[128]; /* a folder with nothing around it */

static void make_dir(const char *path)
{
    char whole[256];
    (void)snprintf(whole, sizeof(whole), "%s/%s", root, path);
    assert_int_equal(mkdir(whole, 0755), 0);
}

static void make_file(const char *path)
{
    char whole[256];
    (void)snprintf(whole, sizeof(whole), "%s/%s", root, path);
    int fd = open(whole, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static int setup_tree(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof(root), "/tmp/config-test-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    static const char *const dirs[] = {"tree",
                                       "tree/build",
                                       "tree/seccomp",
                                       "tree/languages",
                                       "usr",
                                       "usr/bin",
                                       "usr/share",
                                       "usr/share/code-runner",
                                       "usr/share/code-runner/seccomp",
                                       "usr/share/code-runner/languages",
                                       "bare",
                                       "bare/bin"};
    static const char *const files[] = {"tree/build/code-runner-init", "tree/seccomp/profile.json",
                                        "usr/share/code-runner/code-runner-init",
                                        "usr/share/code-runner/seccomp/profile.json"};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        make_dir(dirs[i]);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        make_file(files[i]);
    (void)snprintf(bin, sizeof(bin), "%s/tree/build", root);
    (void)snprintf(bare, sizeof(bare), "%s/bare/bin", root);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int teardown_tree(void **state)
{
    (void)state;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the test has one thread */
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int clear(void **state)
{
    (void)state;
    memset(variables, 0, sizeof(variables));
    default_token = "token";
    return 0;
}

static struct config *load(void)
{
    struct config *c = NULL;
    struct err err = {0};
    if (config_load(read_variable, bin, &c, &err) != 0)
        fail_msg("%s", err.msg);
    return c;
}

/* Fails with want, and all words are in the message. */
static void refused_from(const char *exe_dir, int want, const char *const words[])
{
    struct config *c = NULL;
    struct err err = {0};
    int r = config_load(read_variable, exe_dir, &c, &err);
    if (r != want || c || err.code != r)
        fail_msg("%s=%s: r=%d, not %d: %s", variables[0].name, variables[0].value, r, want,
                 err.msg);
    for (; *words; words++)
        if (!strstr(err.msg, *words))
            fail_msg("no \"%s\" in: %s", *words, err.msg);
}
#define REFUSED(want, ...) refused_from(bin, want, (const char *const[]){__VA_ARGS__, NULL})

static void defaults(void **state)
{
    (void)state;
    cleanup_config struct config *c = load();
    assert_string_equal(c->api_host, "127.0.0.1");
    assert_int_equal(c->api_port, 8080);
    assert_string_equal(c->api_token, "token");
    assert_int_equal(c->max_queue_depth, 256);
    assert_int_equal(c->max_files_bytes, 8388608);
    assert_int_equal(c->max_body_bytes, 17825792);
    assert_false(c->enable_channel_auth);
    for (size_t i = 0; i < sizeof(c->limits_max); i++)
        assert_int_equal(((const char *)&c->limits_max)[i], 0);
    assert_string_equal(c->app_id, "code-runner");
    assert_string_equal(c->app_key, "code-runner-key");
    assert_true(c->app_secret_random);
    assert_true(c->hub_replay);
    assert_int_equal(c->job_ttl_ms, 3600000);
    assert_int_equal(c->result_ttl_ms, 600000);
    assert_int_equal(c->bus_memory_max_bytes, 268435456);
    assert_int_equal(c->max_sandboxes, 8);
    assert_int_equal(c->warmup_ms, 30000);
    assert_int_equal(c->drain_ms, 120000);
    assert_string_equal(c->docker_host, "unix:///var/run/docker.sock");
    assert_string_equal(c->sandbox_runtime, "");
    assert_int_equal(c->uid_base, 1879048192);
    assert_int_equal(c->cpus_milli, 1000);
    assert_string_equal(c->state_dir, "/state");
    assert_string_equal(c->log_level, "info");
}

static uint64_t number_of(const struct config *c, const struct setting *s)
{
    const char *at = (const char *)c + s->offset;
    uint16_t u16 = 0;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    switch (s->type) {
    case SETTING_U16:
        memcpy(&u16, at, sizeof(u16));
        return u16;
    case SETTING_U32:
        memcpy(&u32, at, sizeof(u32));
        return u32;
    default:
        memcpy(&u64, at, sizeof(u64));
        return s->type == SETTING_SECONDS ? u64 / 1000 : u64;
    }
}

static bool is_number(const struct setting *s)
{
    return s->type >= SETTING_U16 && s->type <= SETTING_SECONDS;
}

/* Both sides of both bounds of every number, and its default. */
static void bounds_of_numbers(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < config_settings_len; i++) {
        const struct setting *s = &config_settings[i];
        if (!is_number(s))
            continue;
        n++;
        char text[32], bound[32];
        const uint64_t good[] = {s->min, s->max};
        const uint64_t wrong[] = {s->min - 1, s->max + 1}; /* 0 - 1 is above everything */
        for (size_t k = 0; k < 2; k++) {
            (void)snprintf(text, sizeof(text), "%" PRIu64, good[k]);
            set_variable(0, s->name, text);
            cleanup_config struct config *c = load();
            if (number_of(c, s) != good[k])
                fail_msg("%s=%s: %" PRIu64, s->name, text, number_of(c, s));

            (void)snprintf(text, sizeof(text), "%" PRIu64, wrong[k]);
            (void)snprintf(bound, sizeof(bound), "%" PRIu64, good[k]);
            REFUSED(-ERANGE, s->name, text, bound);
        }
    }
    assert_int_equal(n, 20);
}

static void numbers_that_are_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {"-1", "+1",   " 1",  "1 ",    "0x10", "1e3",
                                        "8m", "none", "1.0", "1,000", "٣",    "\n"};
    for (size_t i = 0; i < config_settings_len; i++) {
        const struct setting *s = &config_settings[i];
        for (size_t k = 0; is_number(s) && k < ARRAY_LEN(wrong); k++) {
            set_variable(0, s->name, wrong[k]);
            REFUSED(-EINVAL, s->name, wrong[k], "whole number");
        }
    }
}

static void each_maximum_has_its_field(void **state)
{
    (void)state;
    static const struct {
        const char *name, *limit;
    } cases[] = {
        {"MAX_WALL_TIME_MS", "wallTimeMs"},
        {"MAX_IDLE_MS", "idleMs"},
        {"MAX_CPU_MS", "cpuMs"},
        {"MAX_MEMORY_MB", "memoryMb"},
        {"MAX_PIDS", "pids"},
        {"MAX_OUTPUT_KB", "outputKb"},
        {"MAX_ARTIFACTS", "maxArtifacts"},
        {"MAX_ARTIFACT_BYTES", "maxArtifactBytes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        set_variable(0, cases[i].name, "7");
        cleanup_config struct config *c = load();
        for (size_t k = 0; k < LIMIT_COUNT; k++) {
            int64_t want = strcmp(limit_fields[k].name, cases[i].limit) == 0 ? 7 : 0;
            if (limit_get(&c->limits_max, &limit_fields[k]) != want)
                fail_msg("%s: %s is not %" PRId64, cases[i].name, limit_fields[k].name, want);
        }
    }
}

static void values(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        int want;
        const char *rule; /* in the message, beside name and value */
    } cases[] = {
        {"API_HOST", "0.0.0.0", 0, NULL},
        {"API_HOST", "::", 0, NULL},
        {"API_HOST", "localhost", 0, NULL},
        {"API_HOST", "example.com", -EINVAL, "IPv4"},
        {"API_HOST", "127.1", -EINVAL, "IPv4"},
        {"API_HOST", "[::1]", -EINVAL, "IPv4"},
        {"API_HOST", "127.0.0.1:80", -EINVAL, "IPv4"},
        {"ENABLE_CHANNEL_AUTH", "true", 0, NULL},
        {"ENABLE_CHANNEL_AUTH", "false", 0, NULL},
        {"ENABLE_CHANNEL_AUTH", "1", -EINVAL, "true or false"},
        {"ENABLE_CHANNEL_AUTH", "True", -EINVAL, "true or false"},
        {"ENABLE_CHANNEL_AUTH", "on", -EINVAL, "true or false"},
        {"HUB_REPLAY", "on", 0, NULL},
        {"HUB_REPLAY", "off", 0, NULL},
        {"HUB_REPLAY", "true", -EINVAL, "on or off"},
        {"SOKETI_APP_ID", "a_b-c.9", 0, NULL},
        {"SOKETI_APP_ID", "a b", -EINVAL, "letters"},
        {"SOKETI_APP_KEY", "a/b", -EINVAL, "letters"},
        {"SANDBOX_RUNTIME", "runsc", 0, NULL},
        {"SANDBOX_RUNTIME", "io.containerd.runsc.v1", 0, NULL},
        {"SANDBOX_RUNTIME", "a;b", -EINVAL, "letters"},
        {"DOCKER_HOST", "unix:///x", 0, NULL},
        {"DOCKER_HOST", "tcp://127.0.0.1:2375", 0, NULL},
        {"DOCKER_HOST", "unix:///", -EINVAL, "unix:///path"},
        {"DOCKER_HOST", "unix://x", -EINVAL, "unix:///path"},
        {"DOCKER_HOST", "tcp://", -EINVAL, "tcp://"},
        {"DOCKER_HOST", "ssh://host", -EINVAL, "tcp://"},
        {"DOCKER_HOST", "/var/run/docker.sock", -EINVAL, "unix:///path"},
        {"LOG_LEVEL", "debug", 0, NULL},
        {"LOG_LEVEL", "off", 0, NULL},
        {"LOG_LEVEL", "trace", -EINVAL, "debug, info"},
        {"LOG_LEVEL", "INFO", -EINVAL, "debug, info"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        set_variable(0, cases[i].name, cases[i].value);
        if (cases[i].want == 0)
            config_free(load());
        else
            REFUSED(cases[i].want, cases[i].name, cases[i].value, cases[i].rule);
    }
}

static void stored_values(void **state)
{
    (void)state;
    set_variable(0, "API_HOST", "localhost");
    set_variable(1, "ENABLE_CHANNEL_AUTH", "true");
    set_variable(2, "HUB_REPLAY", "off");
    set_variable(3, "SOKETI_APP_SECRET", "s3cret");
    set_variable(4, "RUN_RESULT_TTL", "5");
    set_variable(5, "MAX_FILES_BYTES", "1000");
    cleanup_config struct config *c = load();
    assert_string_equal(c->api_host, "127.0.0.1");
    assert_true(c->enable_channel_auth);
    assert_false(c->hub_replay);
    assert_string_equal(c->app_secret, "s3cret");
    assert_false(c->app_secret_random);
    assert_int_equal(c->result_ttl_ms, 5000);
    assert_int_equal(c->max_body_bytes, 2000 + 1048576);

    set_variable(6, "MAX_BODY_BYTES", "4096");
    cleanup_config struct config *given = load();
    assert_int_equal(given->max_body_bytes, 4096);
}

static void lengths_of_text(void **state)
{
    (void)state;
    static char text[8192];
    for (size_t i = 0; i < config_settings_len; i++) {
        const struct setting *s = &config_settings[i];
        if (s->type != SETTING_TEXT && s->type != SETTING_WORD && s->type != SETTING_SECRET)
            continue;
        memset(text, 'a', sizeof(text));
        text[s->max] = '\0';
        set_variable(0, s->name, text);
        config_free(load());
        text[s->max] = 'a';
        text[s->max + 1] = '\0';
        char bound[32];
        (void)snprintf(bound, sizeof(bound), "%" PRIu64, s->max);
        REFUSED(-ERANGE, s->name, bound);
    }
}

static void control_characters(void **state)
{
    (void)state;
    set_variable(0, "STATE_DIR", "/a\nb");
    REFUSED(-EINVAL, "STATE_DIR", "control character");
    set_variable(0, "STATE_DIR", "/a\x7f");
    REFUSED(-EINVAL, "STATE_DIR", "control character");
    set_variable(0, "STATE_DIR", "/ä b");
    config_free(load());
}

/* An empty variable is as good as none: compose files write them for what is not set. */
static void empty_is_unset(void **state)
{
    (void)state;
    cleanup_config struct config *want = load();
    for (size_t i = 0; i < config_settings_len; i++) {
        const struct setting *s = &config_settings[i];
        if (s->type == SETTING_SECRET || strcmp(s->name, "STATE_DIR") == 0)
            continue;
        set_variable(0, s->name, "");
        cleanup_config struct config *c = load();
        if (is_number(s) && number_of(c, s) != number_of(want, s))
            fail_msg("%s", s->name);
        assert_string_equal(c->seccomp_path, want->seccomp_path);
        assert_string_equal(c->api_host, want->api_host);
        assert_string_equal(c->docker_host, want->docker_host);
        assert_string_equal(c->log_level, want->log_level);
    }
}

static void secrets(void **state)
{
    (void)state;
    static const char *const names[] = {"EXECUTOR_API_TOKEN", "SOKETI_APP_SECRET"};
    static const char *const wrong[] = {"hush hush", "hush\n", "hush\x7f", "hush\xc3\xa4"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        set_variable(0, names[i], "");
        REFUSED(-EINVAL, names[i], "is empty");
        for (size_t k = 0; k < ARRAY_LEN(wrong); k++) {
            set_variable(0, names[i], wrong[k]);
            struct config *c = NULL;
            struct err err = {0};
            assert_int_equal(config_load(read_variable, bin, &c, &err), -EINVAL);
            assert_non_null(strstr(err.msg, names[i]));
            assert_null(strstr(err.msg, "hush"));
        }
    }
    static char long_one[8192];
    memset(long_one, 'h', sizeof(long_one) - 1);
    set_variable(0, "EXECUTOR_API_TOKEN", long_one);
    struct err err = {0};
    struct config *c = NULL;
    assert_int_equal(config_load(read_variable, bin, &c, &err), -ERANGE);
    assert_null(strstr(err.msg, "hhhh"));

    default_token = NULL;
    set_variable(0, "HUB_REPLAY", "on");
    REFUSED(-EINVAL, "EXECUTOR_API_TOKEN", "required");
}

static void random_secret(void **state)
{
    (void)state;
    cleanup_config struct config *a = load();
    cleanup_config struct config *b = load();
    assert_int_equal(strlen(a->app_secret), 64);
    assert_int_equal(strspn(a->app_secret, "0123456789abcdef"), 64);
    assert_string_not_equal(a->app_secret, b->app_secret);
}

static void development_token(void **state)
{
    (void)state;
    default_token = CONFIG_DEV_TOKEN;
    static const char *const loopback[] = {"127.0.0.1", "127.255.255.255", "::1", "localhost", ""};
    static const char *const others[] = {"0.0.0.0",  "::",  "126.255.255.255", "128.0.0.0",
                                         "10.0.0.1", "::2", "::ffff:10.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(loopback); i++) {
        set_variable(0, "API_HOST", loopback[i]);
        config_free(load());
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        set_variable(0, "API_HOST", others[i]);
        REFUSED(-EINVAL, "EXECUTOR_API_TOKEN", "API_HOST", others[i]);
    }
}

static void unsupported(void **state)
{
    (void)state;
    static const char *const names[] = {"SOKETI_HOST", "REDIS_URL"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        set_variable(0, names[i], "redis://secret@host");
        REFUSED(-ENOTSUP, names[i], "does not support", "unset it");
        set_variable(0, names[i], "");
        config_free(load());
    }
}

static void files_beside_the_program(void **state)
{
    (void)state;
    static const struct {
        const char *exe, *init, *profile, *languages;
    } cases[] = {
        {"tree/build", "tree/build/code-runner-init", "tree/build/../seccomp/profile.json",
         "tree/build/../languages"},
        {"usr/bin", "usr/bin/../share/code-runner/code-runner-init",
         "usr/bin/../share/code-runner/seccomp/profile.json",
         "usr/bin/../share/code-runner/languages"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char exe[256];
        (void)snprintf(exe, sizeof(exe), "%s/%s", root, cases[i].exe);
        cleanup_config struct config *c = NULL;
        struct err err = {0};
        if (config_load(read_variable, exe, &c, &err) != 0)
            fail_msg("%s", err.msg);
        size_t n = strlen(root) + 1;
        assert_string_equal(c->init_path + n, cases[i].init);
        assert_string_equal(c->seccomp_path + n, cases[i].profile);
        assert_string_equal(c->languages_dir + n, cases[i].languages);
    }
}

static void files_that_are_nowhere(void **state)
{
    (void)state;
    static const char *const names[] = {"SECCOMP_PROFILE_PATH", "INIT_PATH", "LANGUAGES_DIR"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        refused_from(bare, -ENOENT, (const char *const[]){names[i], bare, "share", NULL});
        set_variable(i, names[i], "/given");
    }
    cleanup_config struct config *c = NULL;
    assert_int_equal(config_load(read_variable, bare, &c, NULL), 0);
    assert_string_equal(c->seccomp_path, "/given");
    assert_string_equal(c->init_path, "/given");
    assert_string_equal(c->languages_dir, "/given");

    /* empty does not mean: without a profile */
    set_variable(0, "SECCOMP_PROFILE_PATH", "");
    refused_from(bare, -ENOENT, (const char *const[]){"SECCOMP_PROFILE_PATH", NULL});
}

static void state_dir(void **state)
{
    (void)state;
    static const struct {
        const char *xdg, *home;
        bool is_root;
        const char *want; /* NULL: refused */
    } cases[] = {
        {NULL, NULL, true, "/var/lib/code-runner"},
        {"/xdg", "/home/a", true, "/var/lib/code-runner"},
        {"/xdg", "/home/a", false, "/xdg/code-runner"},
        {NULL, "/home/a", false, "/home/a/.local/state/code-runner"},
        {"", "/home/a", false, "/home/a/.local/state/code-runner"},
        {"relative", "/home/a", false, "/home/a/.local/state/code-runner"},
        {NULL, NULL, false, NULL},
        {NULL, "", false, NULL},
        {NULL, "home", false, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        set_variable(0, "XDG_STATE_HOME", cases[i].xdg);
        set_variable(1, "HOME", cases[i].home);
        cleanup_free char *got = NULL;
        struct err err = {0};
        int r = config_state_dir(read_variable, cases[i].is_root, &got, &err);
        if (r != (cases[i].want ? 0 : -EINVAL))
            fail_msg("%zu: r=%d", i, r);
        if (cases[i].want)
            assert_string_equal(got, cases[i].want);
        else
            assert_non_null(strstr(err.msg, "STATE_DIR"));
    }
    set_variable(2, "STATE_DIR", "");
    set_variable(1, "HOME", "/home/a");
    cleanup_config struct config *c = load();
    assert_string_equal(c->state_dir, geteuid() == 0 ? "/var/lib/code-runner"
                                                     : "/home/a/.local/state/code-runner");
}

static void table_is_sane(void **state)
{
    (void)state;
    assert_non_null(config_settings[0].section);
    for (size_t i = 0; i < config_settings_len; i++) {
        const struct setting *s = &config_settings[i];
        if (!s->value && !s->shown)
            fail_msg("%s: no default to show", s->name);
        if (s->type == SETTING_SECRET && s->value)
            fail_msg("%s: a secret has a default", s->name);
        if (s->min > s->max)
            fail_msg("%s: bounds", s->name);
        if (strchr(s->about, '|') || strchr(s->about, '\n'))
            fail_msg("%s: breaks the table", s->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->name, config_settings[k].name) == 0)
                fail_msg("%s: twice", s->name);
    }
}

static void markdown(void **state)
{
    (void)state;
    cleanup_buf struct buf b;
    buf_init(&b, 1 << 20);
    assert_int_equal(config_markdown(&b), 0);
    for (size_t i = 0; i < config_settings_len; i++) {
        char row[64];
        (void)snprintf(row, sizeof(row), "\n| `%s` | ", config_settings[i].name);
        if (!strstr(b.data, row))
            fail_msg("no row for %s", config_settings[i].name);
    }
    assert_null(strstr(b.data, CONFIG_DEV_TOKEN));

    cleanup_buf struct buf small;
    buf_init(&small, 300);
    assert_int_equal(buf_append_str(&small, "before"), 0);
    assert_int_equal(config_markdown(&small), -EMSGSIZE);
    assert_int_equal(small.len, 6);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, clear)
    const struct CMUnitTest tests[] = {
        TEST(defaults),
        TEST(bounds_of_numbers),
        TEST(numbers_that_are_none),
        TEST(each_maximum_has_its_field),
        TEST(values),
        TEST(stored_values),
        TEST(lengths_of_text),
        TEST(control_characters),
        TEST(empty_is_unset),
        TEST(secrets),
        TEST(random_secret),
        TEST(development_token),
        TEST(unsupported),
        TEST(files_beside_the_program),
        TEST(files_that_are_nowhere),
        TEST(state_dir),
        TEST(table_is_sane),
        TEST(markdown),
    };
    return cmocka_run_group_tests(tests, setup_tree, teardown_tree);
}
