/* The compiled-in schemas: that they compile, what they refuse and with which words. */
#include "test.h"

#include <stdbool.h>

#include "base/fd.h"
#include "contract/contract.h"
#include "json/json.h"

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct err err = {0};
    if (json_parse(text, strlen(text), &value, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
    return value;
}

/* "path: message" lines of all violations. */
static void violations(enum contract_schema which, const char *text, struct buf *out)
{
    json_auto_t *value = parse(text);
    json_auto_t *details = NULL;
    int r = contract_check(which, value, &details);
    assert_true(r == 0 || r == 1);
    assert_int_equal(r == 1, json_array_size(details) > 0);
    buf_init(out, 1 << 20);
    assert_int_equal(buf_append_str(out, ""), 0);
    size_t i;
    json_t *d;
    json_array_foreach(details, i, d)
    {
        assert_int_equal(json_object_size(d), 2);
        assert_int_equal(buf_appendf(out, "%s%s: %s", i > 0 ? "\n" : "",
                                     json_string_value(json_object_get(d, "path")),
                                     json_string_value(json_object_get(d, "message"))),
                         0);
    }
}

#define HASH "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UUID "00000000-0000-4000-8000-000000000000"

static const struct {
    enum contract_schema which;
    const char *text;
    const char *want; /* "": valid */
} cases[] = {
    /* Execute request. */
    {CONTRACT_EXECUTE_REQUEST, "{\"language\":\"c\",\"files\":[{\"name\":\"a\",\"content\":\"\"}]}",
     ""},
    {CONTRACT_EXECUTE_REQUEST,
     "{\"language\":\"c\",\"version\":\"\",\"files\":[{\"name\":\"a\",\"content\":\"\\u0000\","
     "\"encoding\":\"base64\"},{\"name\":\"b\",\"ref\":\"" HASH "\"}],\"limits\":{\"wallTimeMs\":1,"
     "\"idleMs\":1.0,\"cpuMs\":1e3,\"memoryMb\":1,\"pids\":1,\"outputKb\":1,\"maxArtifacts\":1,"
     "\"maxArtifactBytes\":9007199254740991},\"collectOutput\":true}",
     ""},
    {CONTRACT_EXECUTE_REQUEST, "{}", "language: Required\nfiles: Required"},
    {CONTRACT_EXECUTE_REQUEST, "[]", ": Expected object, received array"},
    {CONTRACT_EXECUTE_REQUEST, "null", ": Expected object, received null"},
    {CONTRACT_EXECUTE_REQUEST, "{\"language\":\"\",\"files\":[]}",
     "language: String must contain at least 1 character(s), received 0\n"
     "files: Array must contain at least 1 element(s), received 0"},
    {CONTRACT_EXECUTE_REQUEST, "{\"language\":5,\"version\":null,\"files\":{},\"collectOutput\":1}",
     "language: Expected string, received number\n"
     "version: Expected string, received null\n"
     "files: Expected array, received object\n"
     "collectOutput: Expected boolean, received number"},
    {CONTRACT_EXECUTE_REQUEST,
     "{\"language\":\"c\",\"files\":[{\"name\":\"a\"}],\"stdin\":\"\",\"args\":[]}",
     ": Unrecognized key(s) in object: 'stdin', 'args'"},
    {CONTRACT_EXECUTE_REQUEST,
     "{\"language\":\"c\",\"files\":[{\"name\":\"\"},{\"content\":\"\",\"encoding\":\"x\"},"
     "{\"name\":\"a\",\"mode\":1,\"ref\":\"sha1:0\"}]}",
     "files.0.name: String must contain at least 1 character(s), received 0\n"
     "files.1.name: Required\n"
     "files.1.encoding: Invalid enum value. Expected 'utf8' | 'base64', received 'x'\n"
     "files.2.ref: Invalid, must match ^sha256:[a-f0-9]{64}$, received 'sha1:0'\n"
     "files.2: Unrecognized key(s) in object: 'mode'"},
    {CONTRACT_EXECUTE_REQUEST,
     "{\"language\":\"c\",\"files\":[{\"name\":\"a\"}],\"limits\":{\"wallTimeMs\":0,\"idleMs\":1.5,"
     "\"cpuMs\":\"1\",\"memoryMb\":null,\"pids\":-1,\"outputKb\":1e300,"
     "\"maxArtifacts\":9007199254740992,\"wallMs\":1}}",
     "limits.wallTimeMs: Number must be greater than or equal to 1, received 0\n"
     "limits.idleMs: Expected integer, received float\n"
     "limits.cpuMs: Expected number, received string\n"
     "limits.memoryMb: Expected number, received null\n"
     "limits.pids: Number must be greater than or equal to 1, received -1\n"
     "limits.outputKb: Number must be less than or equal to 9007199254740991, received 1e+300\n"
     "limits.maxArtifacts: Number must be less than or equal to 9007199254740991, received "
     "9007199254740992\n"
     "limits: Unrecognized key(s) in object: 'wallMs'"},

    /* The other bodies. */
    {CONTRACT_STDIN_REQUEST, "{\"chunk\":\"\"}", ""},
    {CONTRACT_STDIN_REQUEST, "{}", "chunk: Required"},
    {CONTRACT_STDIN_REQUEST, "{\"chunk\":1,\"x\":1}",
     "chunk: Expected string, received number\n: Unrecognized key(s) in object: 'x'"},
    {CONTRACT_CHANNEL_AUTH_REQUEST,
     "{\"socket_id\":\"12.34\",\"channel_name\":\"private-run-1\",\"extra\":1}", ""},
    {CONTRACT_CHANNEL_AUTH_REQUEST, "{\"socket_id\":\"12.34:x\",\"channel_name\":\"a b\"}",
     "socket_id: Invalid, must match ^[0-9]+\\.[0-9]+$, received '12.34:x'\n"
     "channel_name: Invalid, must match ^[A-Za-z0-9_=@,.;-]+$, received 'a b'"},
    {CONTRACT_BLOBS_REQUEST, "{\"hashes\":[]}", ""},
    {CONTRACT_BLOBS_REQUEST, "{\"hashes\":[\"" HASH "\"]}", ""},
    {CONTRACT_BLOBS_REQUEST, "{\"hashes\":[\"" HASH "0\",\"" HASH "\\u0000\",\"\",1]}",
     "hashes.0: String must contain at most 71 character(s), received 72\n"
     "hashes.1: String must contain at most 71 character(s), received 72\n"
     "hashes.2: Invalid, must match ^sha256:[a-f0-9]{64}$, received ''\n"
     "hashes.3: Expected string, received number"},

    /* Manifest. */
    {CONTRACT_MANIFEST,
     "{\"rootfs\":\"chroot\",\"fileExtensions\":[\"py\"],\"env\":{\"A\":1},\"compile\":[]}",
     "language: Required\nversion: Required\nimage: Required\nentrypoint: Required\n"
     "compile: Array must contain at least 1 element(s), received 0\n"
     "run: Required\ninteractive: Required\ndefaultLimits: Required\n"
     "env.A: Expected string, received number\n"
     "fileExtensions.0: Invalid, must match ^\\.[^/]+$, received 'py'\n"
     "rootfs: Invalid enum value. Expected 'image' | 'host', received 'chroot'"},

    /* Answers. */
    {CONTRACT_EXECUTE_ACCEPTED,
     "{\"jobId\":\"" UUID "\",\"channel\":\"private-run-" UUID "\",\"status\":\"queued\"}", ""},
    {CONTRACT_EXECUTE_ACCEPTED,
     "{\"jobId\":\"" UUID "\",\"channel\":\"private-run-x\",\"status\":\"done\"}",
     "status: Invalid literal value, expected 'queued', received 'done'"},
    {CONTRACT_JOB_STATUS, "{\"jobId\":\"x\"}",
     "jobId: Invalid, must match "
     "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$, received 'x'\n"
     "channel: Required\nlanguage: Required\nversion: Required\nstate: Required\n"
     "updatedAtMs: Required"},
    {CONTRACT_RUN_RESULT,
     "{\"exitCode\":0,\"signal\":null,\"timedOut\":false,\"idleTimedOut\":false,\"truncated\":"
     "false,"
     "\"durationMs\":3,\"stdout\":\"\",\"stderr\":\"\",\"compile\":{\"exitCode\":null,"
     "\"signal\":\"SIGKILL\",\"stdout\":\"\",\"stderr\":\"\",\"output\":\"\",\"durationMs\":1},"
     "\"artifacts\":[{\"name\":\"a\",\"mimeType\":\"b/c\",\"bytes\":0,\"url\":\"d\"}],"
     "\"artifactsTruncated\":false}",
     ""},
    {CONTRACT_RUN_RESULT,
     "{\"exitCode\":0,\"signal\":null,\"timedOut\":false,\"idleTimedOut\":false,\"truncated\":"
     "false,"
     "\"durationMs\":3,\"stdout\":\"\",\"stderr\":\"\",\"compile\":null,\"artifacts\":null,"
     "\"artifactsTruncated\":false}",
     "compile: Expected object, received null\nartifacts: Expected array, received null"},
    {CONTRACT_LANGUAGES, "[]", ""},
    {CONTRACT_LANGUAGES,
     "[{\"language\":\"c\",\"version\":\"14\",\"aliases\":[],\"interactive\":true},"
     "{\"language\":\"c\",\"version\":\"14\",\"aliases\":[],\"interactive\":true,\"limits\":{}}]",
     "1: Unrecognized key(s) in object: 'limits'"},
    {CONTRACT_ERROR, "{\"error\":\"unauthorized\"}", ""},
    {CONTRACT_ERROR,
     "{\"error\":\"x\",\"details\":[{\"path\":\"\",\"message\":\"Required\"}],\"retryAfterMs\":"
     "1000,"
     "\"capBytes\":65536}",
     ""},
    {CONTRACT_ERROR, "{\"details\":[{\"path\":\"\"}]}",
     "error: Required\ndetails.0.message: Required"},
    {CONTRACT_STAGE_EVENT, "{\"phase\":\"compiling\"}", ""},
    {CONTRACT_STAGE_EVENT, "{\"phase\":\"done\"}",
     "phase: Invalid enum value. Expected 'queued' | 'compiling' | 'running', received 'done'"},
    {CONTRACT_OUTPUT_EVENT, "{\"chunk\":\"\",\"seq\":1}", ""},
    {CONTRACT_OUTPUT_EVENT, "{\"chunk\":\"\",\"seq\":0}",
     "seq: Number must be greater than or equal to 1, received 0"},
    {CONTRACT_RESULT_EVENT, "{\"exitCode\":256}",
     "exitCode: Number must be less than or equal to 255, received 256\nsignal: Required\n"
     "timedOut: Required\nidleTimedOut: Required\ntruncated: Required\ndurationMs: Required"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf got;
        violations(cases[i].which, cases[i].text, &got);
        if (strcmp(got.data, cases[i].want) != 0)
            fail_msg("%s of %s:\n%s\nwanted:\n%s", contract_schema_name(cases[i].which),
                     cases[i].text, got.data, cases[i].want);
    }
}

/* A file name of n times unit. */
static void name_violations(const char *unit, size_t n, struct buf *out)
{
    cleanup_buf struct buf text;
    buf_init(&text, 1 << 16);
    assert_int_equal(buf_append_str(&text, "{\"language\":\"c\",\"files\":[{\"name\":\""), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(buf_append_str(&text, unit), 0);
    assert_int_equal(buf_append_str(&text, "\"}]}"), 0);
    violations(CONTRACT_EXECUTE_REQUEST, text.data, out);
}

static void test_name_length(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        size_t n;
        const char *want;
    } names[] = {
        {"a", 255, ""},
        {"a", 256, "files.0.name: String must contain at most 255 character(s), received 256"},
        {"\xc3\xa9", 255, ""},
        {"\xe4\xb8\x96", 255, ""},
        /* A code point past U+FFFF is two units. */
        {"\xf0\x9f\x98\x80", 127, ""},
        {"\xf0\x9f\x98\x80", 128,
         "files.0.name: String must contain at most 255 character(s), received 256"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        cleanup_buf struct buf got;
        name_violations(names[i].unit, names[i].n, &got);
        assert_string_equal(got.data, names[i].want);
    }
}

/* Every schema is the file in the tree, byte for byte, and none of its rules is unknown. */
static void test_texts(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CONTRACT_COUNT; i++) {
        cleanup_buf struct buf path;
        buf_init(&path, 4096);
        assert_int_equal(buf_appendf(&path, "%s/contract/%s.schema.json", PROJECT_SOURCE_DIR,
                                     contract_schema_name(i)),
                         0);
        cleanup_free char *text = NULL;
        size_t len = 0;
        assert_int_equal(fd_read_file(path.data, 1 << 20, &text, &len), 0);
        assert_string_equal(text, contract_schema_text(i));
        json_auto_t *schema = parse(text);
        cleanup_buf struct buf id;
        buf_init(&id, 256);
        assert_int_equal(buf_appendf(&id, "%s.schema.json", contract_schema_name(i)), 0);
        assert_string_equal(json_string_value(json_object_get(schema, "$id")), id.data);
    }
}

/* The shipped manifest is the largest document we have: it must pass whole. */
static void test_manifest(void **state)
{
    (void)state;
    cleanup_free char *text = NULL;
    size_t len = 0;
    assert_int_equal(fd_read_file(PROJECT_SOURCE_DIR "/languages/python-3.13/manifest.json",
                                  1 << 20, &text, &len),
                     0);
    cleanup_buf struct buf got;
    violations(CONTRACT_MANIFEST, text, &got);
    assert_string_equal(got.data, "");

    json_auto_t *manifest = parse(text);
    const char *const optional[] = {"aliases",  "preimport", "env",   "fileExtensions",
                                    "packages", "rootfs",    "tests", NULL};
    const char *key;
    void *next;
    json_t *value;
    json_object_foreach_safe(manifest, next, key, value)
    {
        json_auto_t *without = json_copy(manifest);
        assert_int_equal(json_object_del(without, key), 0);
        bool is_optional = false;
        for (size_t i = 0; optional[i]; i++)
            is_optional = is_optional || strcmp(optional[i], key) == 0;
        json_auto_t *details = NULL;
        int r = contract_check(CONTRACT_MANIFEST, without, &details);
        if (r != (is_optional ? 0 : 1))
            fail_msg("without %s: %d", key, r);
    }
}

static void test_init_twice(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(contract_init(&err), 0);
    contract_done();
    contract_done();
    assert_int_equal(contract_init(&err), 0);
}

static int setup(void **state)
{
    (void)state;
    struct err err = {0};
    int r = contract_init(&err);
    if (r < 0)
        (void)fprintf(stderr, "%s\n", err.msg);
    return r;
}

static int teardown(void **state)
{
    (void)state;
    contract_done();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),      cmocka_unit_test(test_name_length),
        cmocka_unit_test(test_texts),      cmocka_unit_test(test_manifest),
        cmocka_unit_test(test_init_twice),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
