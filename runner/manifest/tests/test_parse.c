#include "manifest/manifest.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "contract/contract.h"
#include "manifests.h"
#include "test.h"

static int setup(void **state)
{
    (void)state;
    struct err err = {0};
    int r = contract_init(&err);
    if (r < 0)
        print_error("contract_init: %s\n", err.msg);
    return r;
}

static int teardown(void **state)
{
    (void)state;
    contract_done();
    return 0;
}

static void whole_manifest(void **state)
{
    (void)state;
    static const char text[] =
        "{\"language\":\"c\",\"version\":\"14\",\"aliases\":[\"gcc\",\"c17\"],\"image\":\"i:1\","
        "\"entrypoint\":\"main.c\",\"compile\":[\"gcc\",\"main.c\"],\"run\":[\"./a.out\"],"
        "\"interactive\":false,\"preimport\":null,\"env\":{\"A\":\"1\",\"_b2\":\"x=y\"},"
        "\"fileExtensions\":[\".c\"],\"defaultLimits\":{\"wallTimeMs\":1,\"idleMs\":2,\"cpuMs\":3,"
        "\"memoryMb\":4,\"pids\":5,\"outputKb\":6.0,\"maxArtifacts\":7,\"maxArtifactBytes\":8}}";
    struct language l;
    struct err err = {0};
    assert_int_equal(manifest_parse(text, sizeof(text) - 1, "c", &l, &err), 0);
    assert_string_equal(l.name, "c");
    assert_string_equal(l.version, "14");
    assert_string_equal(l.image, "i:1");
    assert_string_equal(l.entrypoint, "main.c");
    assert_string_equal(l.aliases[0], "gcc");
    assert_string_equal(l.aliases[1], "c17");
    assert_null(l.aliases[2]);
    assert_string_equal(l.compile[0], "gcc");
    assert_string_equal(l.compile[1], "main.c");
    assert_null(l.compile[2]);
    assert_string_equal(l.run[0], "./a.out");
    assert_null(l.run[1]);
    assert_string_equal(l.env[0], "A=1");
    assert_string_equal(l.env[1], "_b2=x=y");
    assert_null(l.env[2]);
    assert_false(l.interactive);
    assert_int_equal(l.defaults.wall_ms, 1);
    assert_int_equal(l.defaults.output_kb, 6);
    assert_int_equal(l.defaults.max_artifact_bytes, 8);
    language_done(&l);
    assert_null(l.name);
}

static void optional_members(void **state)
{
    (void)state;
    static const char text[] = "{\"language\":\"a\",\"version\":\"1\",\"image\":\"i\","
                               "\"entrypoint\":\"m\",\"compile\":null,\"run\":[\"r\"],"
                               "\"interactive\":true,\"defaultLimits\":" TEST_LIMITS "}";
    struct language l;
    assert_int_equal(manifest_parse(text, sizeof(text) - 1, "a", &l, NULL), 0);
    assert_null(l.aliases[0]);
    assert_null(l.env[0]);
    assert_null(l.compile);
    assert_true(l.interactive);
    language_done(&l);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        const char *words; /* in the message */
    } cases[] = {
        {"empty", "", "line"},
        {"cut", "{\"language\":", "line"},
        {"no object", "[]", "where: "},
        {"nothing in it", "{}", "more)"},
        {"twice the same key", "{\"language\":\"a\",\"language\":\"b\"}", "line"},
        {"unknown key", TEST_MANIFEST("a", "1", "[]", ",\"imag\":\"x\""), "imag"},
        {"no name", TEST_MANIFEST("", "1", "[]", ""), "language"},
        {"no version", TEST_MANIFEST("a", "", "[]", ""), "version"},
        {"name with a line end", TEST_MANIFEST("a\\n", "1", "[]", ""), "language"},
        {"version with a NUL", TEST_MANIFEST("a", "1\\u0000", "[]", ""), "version"},
        {"alias with a NUL", TEST_MANIFEST("a", "1", "[\"b\\u0000\"]", ""), "aliases.0"},
        {"empty alias", TEST_MANIFEST("a", "1", "[\"b\",\"\"]", ""), "aliases.1"},
        {"env name", TEST_MANIFEST("a", "1", "[]", ",\"env\":{\"1A\":\"\"}"), "1A"},
        {"env name with =", TEST_MANIFEST("a", "1", "[]", ",\"env\":{\"A=B\":\"\"}"), "A=B"},
        {"empty env name", TEST_MANIFEST("a", "1", "[]", ",\"env\":{\"\":\"\"}"), "env"},
        {"env with a NUL", TEST_MANIFEST("a", "1", "[]", ",\"env\":{\"A\":\"\\u0000\"}"), "env.A"},
        {"env number", TEST_MANIFEST("a", "1", "[]", ",\"env\":{\"A\":1}"), "env.A"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct language l = {.interactive = true, .name = NULL};
        struct err err = {0};
        int r = manifest_parse(cases[i].text, strlen(cases[i].text), "where", &l, &err);
        if (r != -EINVAL || err.code != r || !l.interactive || l.name)
            fail_msg("%s: r=%d %s", cases[i].name, r, err.msg);
        if (strncmp(err.msg, "where: ", 7) != 0 || !strstr(err.msg, cases[i].words))
            fail_msg("%s: \"%s\" in: %s", cases[i].name, cases[i].words, err.msg);
    }
}

/* Replaces the first occurrence of what. */
static void replace(struct buf *out, const char *text, const char *what, const char *with)
{
    const char *at = strstr(text, what);
    assert_non_null(at);
    buf_clear(out);
    assert_int_equal(buf_append(out, text, (size_t)(at - text)), 0);
    assert_int_equal(buf_append_str(out, with), 0);
    assert_int_equal(buf_append_str(out, at + strlen(what)), 0);
}

static void one_part_replaced(void **state)
{
    (void)state;
    static const char text[] = TEST_MANIFEST("a", "1", "[]", "");
    static const struct {
        const char *what, *with, *words; /* words NULL: accepted */
    } cases[] = {
        {"\"run\":[\"run\",\"it\"]", "\"run\":[\"run\"]", NULL},
        {"\"run\":[\"run\",\"it\"]", "\"run\":[\"run\",\"\"]", NULL},
        {"\"run\":[\"run\",\"it\"]", "\"run\":[]", "run"},
        {"\"run\":[\"run\",\"it\"]", "\"run\":[\"\"]", "run.0"},
        {"\"run\":[\"run\",\"it\"]", "\"run\":[\"a\",\"b\\u0000\"]", "run.1"},
        {"\"run\":[\"run\",\"it\"]", "\"run\":null", "run"},
        {"\"compile\":null", "\"compile\":[]", "compile"},
        {"\"compile\":null", "\"compile\":[\"\"]", "compile.0"},
        {"\"compile\":null", "\"compile\":[\"cc\"]", NULL},
        {"\"compile\":null,", "", "compile"},
        {"\"pids\":64", "\"pids\":0", "defaultLimits.pids"},
        {"\"pids\":64", "\"pids\":1", NULL},
        {"\"pids\":64", "\"pids\":\"64\"", "defaultLimits.pids"},
        {"\"pids\":64", "\"pids\":9007199254740991", NULL},
        {"\"pids\":64", "\"pids\":9007199254740992", "defaultLimits.pids"},
        {"\"image\":\"img\"", "\"image\":\"i\\u0000g\"", "image"},
        {"\"entrypoint\":\"main\"", "\"entrypoint\":\"\"", "entrypoint"},
        {"\"interactive\":true", "\"interactive\":1", "interactive"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf b;
        buf_init(&b, 65536);
        replace(&b, text, cases[i].what, cases[i].with);
        struct language l = {0};
        struct err err = {0};
        int r = manifest_parse(b.data, b.len, "where", &l, &err);
        if (r != (cases[i].words ? -EINVAL : 0))
            fail_msg("%s: r=%d %s", cases[i].with, r, err.msg);
        if (cases[i].words && !strstr(err.msg, cases[i].words))
            fail_msg("%s: \"%s\" in: %s", cases[i].with, cases[i].words, err.msg);
        language_done(&l);
    }
}

static int parse_filled(const char *before, size_t n, const char *after, struct err *err)
{
    cleanup_buf struct buf b;
    buf_init(&b, 1 << 20);
    assert_int_equal(buf_append_str(&b, before), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(buf_append_byte(&b, 'a'), 0);
    assert_int_equal(buf_append_str(&b, after), 0);
    struct language l = {0};
    int r = manifest_parse(b.data, b.len, "where", &l, err);
    language_done(&l);
    return r;
}

static void lengths(void **state)
{
    (void)state;
    cleanup_buf struct buf before;
    buf_init(&before, 65536);
    static const struct {
        const char *name, *what;
        size_t largest;
        const char *words;
    } cases[] = {
        {"language", "\"language\":\"", 127 - 1, "language"}, /* it has one letter already */
        {"version", "\"version\":\"", 63 - 1, "version"},
        {"alias", "\"aliases\":[\"", 127 - 1, "aliases.0"},
        {"env", "\"env\":{\"A\":\"", 65536 - 4, "env"}, /* A= and a NUL, and that one letter */
    };
    static const char text[] = TEST_MANIFEST("b", "1", "[\"b\"]", ",\"env\":{\"A\":\"b\"}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *at = strstr(text, cases[i].what);
        assert_non_null(at);
        at += strlen(cases[i].what);
        buf_clear(&before);
        assert_int_equal(buf_append(&before, text, (size_t)(at - text)), 0);
        struct err err = {0};
        if (parse_filled(before.data, cases[i].largest, at, &err) != 0)
            fail_msg("%s, largest: %s", cases[i].name, err.msg);
        if (parse_filled(before.data, cases[i].largest + 1, at, &err) != -EINVAL)
            fail_msg("%s, one more: taken", cases[i].name);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("%s: \"%s\" in: %s", cases[i].name, cases[i].words, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_manifest), cmocka_unit_test(optional_members),
        cmocka_unit_test(refusals),       cmocka_unit_test(one_part_replaced),
        cmocka_unit_test(lengths),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
