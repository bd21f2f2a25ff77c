/* The records of a job: limits, names, JSON shapes and the table of results. */
#include "test.h"

#include "contract/contract.h"
#include "contract/job.h"
#include "json/json.h"

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct err err = {0};
    if (json_parse(text, strlen(text), &value, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
    return value;
}

static void assert_valid(enum contract_schema which, const json_t *value)
{
    json_auto_t *details = NULL;
    assert_non_null(value);
    if (contract_check(which, value, &details) == 0)
        return;
    cleanup_buf struct buf text;
    buf_init(&text, 1 << 20);
    assert_int_equal(json_print(&text, details), 0);
    fail_msg("%s: %s", contract_schema_name(which), text.data);
}

static void assert_prints(json_t *value, const char *want)
{
    assert_non_null(value);
    cleanup_buf struct buf text;
    buf_init(&text, 1 << 20);
    assert_int_equal(json_print(&text, value), 0);
    assert_string_equal(text.data, want);
}

static const struct limits some = {1, 2, 3, 4, 5, 6, 7, 8};

static void test_limits_json(void **state)
{
    (void)state;
    json_auto_t *o = limits_json(&some);
    assert_prints(o, "{\"wallTimeMs\":1,\"idleMs\":2,\"cpuMs\":3,\"memoryMb\":4,\"pids\":5,"
                     "\"outputKb\":6,\"maxArtifacts\":7,\"maxArtifactBytes\":8}");
    struct limits back = {0};
    limits_override(&back, o);
    assert_memory_equal(&back, &some, sizeof(some));
}

static void test_limits_override(void **state)
{
    (void)state;
    struct limits l = some;
    limits_override(&l, NULL);
    assert_memory_equal(&l, &some, sizeof(some));
    json_auto_t *o = parse("{\"idleMs\":20.0,\"cpuMs\":3e3,\"memoryMb\":1e300,\"pids\":1.5,"
                           "\"outputKb\":\"9\",\"maxArtifactBytes\":9007199254740991,\"other\":1}");
    limits_override(&l, o);
    const struct limits want = {1, 20, 3000, 4, 5, 6, 7, JSON_SAFE_INT_MAX};
    assert_memory_equal(&l, &want, sizeof(want));
}

static void test_limits_above(void **state)
{
    (void)state;
    const struct limits none = {0};
    assert_null(limits_above(&some, &none));
    assert_null(limits_above(&some, &some));
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        struct limits max = some;
        limit_put(&max, &limit_fields[i], limit_get(&some, &limit_fields[i]) - 1);
        /* The first field is 1, and a maximum of 0 is none. */
        assert_ptr_equal(limits_above(&some, &max), i == 0 ? NULL : &limit_fields[i]);
        struct limits wanted = some;
        limit_put(&wanted, &limit_fields[i], INT64_MAX);
        assert_ptr_equal(limits_above(&wanted, &some), &limit_fields[i]);
        assert_null(limits_above(&wanted, &none));
    }
    struct limits wanted = some;
    wanted.pids = 50;
    wanted.idle_ms = 20;
    assert_string_equal(limits_above(&wanted, &some)->name, "idleMs");
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum job_state state;
        bool is_final;
    } states[] = {
        {"queued", JOB_QUEUED, false},   {"starting", JOB_STARTING, false},
        {"running", JOB_RUNNING, false}, {"done", JOB_DONE, true},
        {"killed", JOB_KILLED, true},    {"error", JOB_ERROR, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        assert_string_equal(job_state_name(states[i].state), states[i].name);
        assert_int_equal(job_state_is_final(states[i].state), states[i].is_final);
    }
    static const struct {
        const char *name;
        enum event_type type;
        bool is_output;
    } events[] = {
        {"stage", EVENT_STAGE, false},       {"stdout", EVENT_STDOUT, true},
        {"stderr", EVENT_STDERR, true},      {"compile_output", EVENT_COMPILE_OUTPUT, true},
        {"report", EVENT_REPORT, false},     {"result", EVENT_RESULT, false},
        {"artifact", EVENT_ARTIFACT, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        assert_string_equal(event_type_name(events[i].type), events[i].name);
        assert_int_equal(event_is_output(events[i].type), events[i].is_output);
    }
}

static void test_signal_names(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *name;
    } signals[] = {
        {1, "SIGHUP"},      {2, "SIGINT"},       {6, "SIGABRT"},      {7, "SIGBUS"},
        {9, "SIGKILL"},     {11, "SIGSEGV"},     {15, "SIGTERM"},     {16, "SIGSTKFLT"},
        {24, "SIGXCPU"},    {25, "SIGXFSZ"},     {29, "SIGIO"},       {30, "SIGPWR"},
        {31, "SIGSYS"},     {32, "SIG32"},       {33, "SIG33"},       {34, "SIGRTMIN"},
        {35, "SIGRTMIN+1"}, {49, "SIGRTMIN+15"}, {64, "SIGRTMIN+30"},
    };
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        assert_string_equal(signal_name(signals[i].number), signals[i].name);
    for (int n = 1; n <= 64; n++) {
        assert_non_null(signal_name(n));
        for (int other = 1; other < n; other++)
            assert_string_not_equal(signal_name(n), signal_name(other));
    }
    assert_null(signal_name(0));
    assert_null(signal_name(-9));
    assert_null(signal_name(65));
    assert_null(signal_name(INT32_MAX));
    assert_null(signal_name(INT32_MIN));
}

#define UUID "00000000-0000-4000-8000-000000000000"

static void test_status(void **state)
{
    (void)state;
    struct job_status s = {.id = UUID, .language = "c++", .version = "14", .updated_at_ms = 12};
    for (unsigned i = JOB_QUEUED; i <= JOB_ERROR; i++) {
        s.state = i;
        json_auto_t *o = job_status_json(&s);
        assert_valid(CONTRACT_JOB_STATUS, o);
    }
    s.state = JOB_KILLED;
    json_auto_t *o = job_status_json(&s);
    assert_prints(o, "{\"jobId\":\"" UUID "\",\"channel\":\"private-run-" UUID
                     "\",\"language\":\"c++\",\"version\":\"14\",\"state\":\"killed\","
                     "\"updatedAtMs\":12}");
}

static void test_result(void **state)
{
    (void)state;
    struct job_result r = {.exit_code = 7, .truncated = true, .duration_ms = 5};
    json_auto_t *exited = job_result_json(&r);
    assert_valid(CONTRACT_RESULT_EVENT, exited);
    assert_prints(exited,
                  "{\"exitCode\":7,\"signal\":null,\"timedOut\":false,\"idleTimedOut\":false,"
                  "\"truncated\":true,\"durationMs\":5}");
    r = (struct job_result){.exit_code = JOB_NO_EXIT_CODE,
                            .signal = signal_name(9),
                            .timed_out = true,
                            .idle_timed_out = true};
    json_auto_t *killed = job_result_json(&r);
    assert_valid(CONTRACT_RESULT_EVENT, killed);
    assert_prints(killed, "{\"exitCode\":null,\"signal\":\"SIGKILL\",\"timedOut\":true,"
                          "\"idleTimedOut\":true,\"truncated\":false,\"durationMs\":0}");
}

/* A report that carries more than its outcome may show: only the table decides. */
enum seen { BEFORE_START, AT_COMPILE, AT_RUN };

static const struct {
    const char *name;
    enum job_outcome outcome;
    enum seen seen;
    int exit_code; /* of the report */
    int signal;
    int want_exit_code;
    const char *want_signal;
    bool timed_out, idle_timed_out;
    enum job_state state;
    int64_t duration_ms;
} results[] = {
    {"exited", OUTCOME_EXITED, AT_RUN, 0, 0, 0, NULL, false, false, JOB_DONE, 30},
    {"exited", OUTCOME_EXITED, AT_RUN, 139, 0, 139, NULL, false, false, JOB_DONE, 30},
    {"exited", OUTCOME_EXITED, AT_RUN, 255, 11, 255, NULL, false, false, JOB_DONE, 30},
    {"signaled", OUTCOME_SIGNALED, AT_RUN, -1, 11, -1, "SIGSEGV", false, false, JOB_DONE, 30},
    {"signaled", OUTCOME_SIGNALED, AT_RUN, 5, 25, -1, "SIGXFSZ", false, false, JOB_DONE, 30},
    {"out_of_memory", OUTCOME_OUT_OF_MEMORY, AT_RUN, 137, 0, -1, "SIGKILL", false, false, JOB_DONE,
     30},
    {"out_of_memory", OUTCOME_OUT_OF_MEMORY, AT_COMPILE, 1, 0, -1, "SIGKILL", false, false,
     JOB_DONE, 20},
    {"killed", OUTCOME_KILLED, AT_RUN, 0, 15, -1, "SIGKILL", false, false, JOB_KILLED, 30},
    {"killed", OUTCOME_KILLED, AT_COMPILE, -1, 0, -1, "SIGKILL", false, false, JOB_KILLED, 20},
    {"killed", OUTCOME_KILLED, BEFORE_START, -1, 0, -1, NULL, false, false, JOB_KILLED, 0},
    {"killed", OUTCOME_KILLED, BEFORE_START, -1, 9, -1, NULL, false, false, JOB_KILLED, 0},
    {"wall_timeout", OUTCOME_WALL_TIMEOUT, AT_RUN, 137, 9, -1, NULL, true, false, JOB_ERROR, 30},
    {"wall_timeout", OUTCOME_WALL_TIMEOUT, AT_COMPILE, -1, 9, -1, NULL, true, false, JOB_ERROR, 20},
    {"cpu_timeout", OUTCOME_CPU_TIMEOUT, AT_RUN, 137, 9, -1, NULL, true, false, JOB_ERROR, 30},
    {"idle_timeout", OUTCOME_IDLE_TIMEOUT, AT_RUN, 137, 9, -1, NULL, false, true, JOB_ERROR, 30},
    {"compile_failed", OUTCOME_COMPILE_FAILED, AT_COMPILE, 1, 0, 1, NULL, false, false, JOB_ERROR,
     20},
    {"compile_failed", OUTCOME_COMPILE_FAILED, AT_COMPILE, -1, 11, -1, "SIGSEGV", false, false,
     JOB_ERROR, 20},
    {"start_timeout", OUTCOME_START_TIMEOUT, BEFORE_START, 1, 9, -1, NULL, false, false, JOB_ERROR,
     0},
    {"setup_failed", OUTCOME_SETUP_FAILED, BEFORE_START, 1, 9, -1, NULL, false, false, JOB_ERROR,
     0},
    {"worker_lost", OUTCOME_WORKER_LOST, AT_RUN, 1, 9, -1, NULL, false, false, JOB_ERROR, 30},
    {"drained", OUTCOME_DRAINED, AT_RUN, 1, 9, -1, NULL, false, false, JOB_ERROR, 30},
};

static struct job_report report_of(size_t i)
{
    struct job_report r;
    job_report_init(&r);
    r.outcome = results[i].outcome;
    r.exit_code = results[i].exit_code;
    r.signal = signal_name(results[i].signal);
    r.truncated = i % 2 == 0;
    if (results[i].seen >= AT_COMPILE) {
        r.gate_ms = 10;
        r.compile_ms = 20;
    }
    if (results[i].seen == AT_RUN)
        r.run_ms = 30;
    return r;
}

static void test_results_table(void **state)
{
    (void)state;
    unsigned seen = 0;
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        struct job_report r = report_of(i);
        struct job_result got;
        enum job_state got_state;
        job_result_from_report(&r, &got, &got_state);
        seen |= 1U << results[i].outcome;

        if (strcmp(job_outcome_name(r.outcome), results[i].name) != 0 ||
            got.exit_code != results[i].want_exit_code || got.timed_out != results[i].timed_out ||
            got.idle_timed_out != results[i].idle_timed_out || got_state != results[i].state ||
            got.truncated != r.truncated || got.duration_ms != results[i].duration_ms ||
            (got.signal && !results[i].want_signal) ||
            (results[i].want_signal &&
             (!got.signal || strcmp(got.signal, results[i].want_signal) != 0)))
            fail_msg("row %zu, %s: exit %d signal %s state %s duration %lld", i, results[i].name,
                     got.exit_code, got.signal ? got.signal : "null", job_state_name(got_state),
                     (long long)got.duration_ms);

        /* Both payloads say the same. */
        json_auto_t *report = job_report_json(&r);
        json_auto_t *result = job_result_json(&got);
        assert_valid(CONTRACT_REPORT, report);
        assert_valid(CONTRACT_RESULT_EVENT, result);
        static const char *const shared[] = {"exitCode", "signal", "truncated"};
        for (size_t k = 0; k < ARRAY_LEN(shared); k++)
            assert_true(
                json_equal(json_object_get(report, shared[k]), json_object_get(result, shared[k])));
    }
    assert_int_equal(seen, (1U << (OUTCOME_DRAINED + 1)) - 1);
}

static void test_report_unknown(void **state)
{
    (void)state;
    struct job_report r;
    job_report_init(&r);
    r.outcome = OUTCOME_SETUP_FAILED;
    json_auto_t *o = job_report_json(&r);
    assert_valid(CONTRACT_REPORT, o);
    assert_prints(o,
                  "{\"outcome\":\"setup_failed\",\"reason\":null,\"exitCode\":null,\"signal\":null,"
                  "\"wallMs\":null,\"cpuUserMs\":null,\"cpuSystemMs\":null,"
                  "\"memoryPeakBytes\":null,\"memoryFileBytes\":null,\"pidsPeak\":null,"
                  "\"stdoutBytes\":null,\"stdoutKeptBytes\":null,\"stderrBytes\":null,"
                  "\"stderrKeptBytes\":null,\"truncated\":false,\"outputLost\":false,"
                  "\"queueMs\":null,\"openMs\":null,\"gateMs\":null,\"compileMs\":null,"
                  "\"runMs\":null,\"limit\":null,\"backend\":null,\"runtime\":null,"
                  "\"worker\":null,\"artifactsOmitted\":null}");
}

static void test_report_known(void **state)
{
    (void)state;
    struct job_report r = {
        .outcome = OUTCOME_WALL_TIMEOUT,
        .reason = "ran for 1 s \xff",
        .exit_code = JOB_NO_EXIT_CODE,
        .wall_ms = 1,
        .cpu_user_ms = 2,
        .cpu_system_ms = 3,
        .memory_peak_bytes = 4,
        .memory_file_bytes = 5,
        .pids_peak = 6,
        .stdout_bytes = 7,
        .stdout_kept_bytes = 8,
        .stderr_bytes = 9,
        .stderr_kept_bytes = 10,
        .truncated = true,
        .output_lost = true,
        .queue_ms = 11,
        .open_ms = 12,
        .gate_ms = 13,
        .compile_ms = 14,
        .run_ms = 15,
        .limit_name = "wallTimeMs",
        .limit_value = 1000,
        .backend = "docker",
        .runtime = "runc",
        .worker = "0123456789abcdef0123456789abcdef",
        .artifacts_omitted = 16,
    };
    json_auto_t *o = job_report_json(&r);
    assert_valid(CONTRACT_REPORT, o);
    assert_prints(o, "{\"outcome\":\"wall_timeout\",\"reason\":\"ran for 1 s \xef\xbf\xbd\","
                     "\"exitCode\":null,\"signal\":null,\"wallMs\":1,\"cpuUserMs\":2,"
                     "\"cpuSystemMs\":3,\"memoryPeakBytes\":4,\"memoryFileBytes\":5,\"pidsPeak\":6,"
                     "\"stdoutBytes\":7,\"stdoutKeptBytes\":8,\"stderrBytes\":9,"
                     "\"stderrKeptBytes\":10,\"truncated\":true,\"outputLost\":true,\"queueMs\":11,"
                     "\"openMs\":12,\"gateMs\":13,\"compileMs\":14,\"runMs\":15,"
                     "\"limit\":{\"name\":\"wallTimeMs\",\"value\":1000},\"backend\":\"docker\","
                     "\"runtime\":\"runc\",\"worker\":\"0123456789abcdef0123456789abcdef\","
                     "\"artifactsOmitted\":16}");
    r.limit_value = JOB_UNKNOWN;
    json_auto_t *without = job_report_json(&r);
    assert_valid(CONTRACT_REPORT, without);
    assert_true(json_is_null(json_object_get(json_object_get(without, "limit"), "value")));
}

static void test_strings(void **state)
{
    (void)state;
    assert_null(strings_dup(NULL));
    strings_free(NULL);
    char one[] = "one";
    char two[] = "";
    char *list[] = {one, two, NULL};
    char **copy = strings_dup(list);
    assert_non_null(copy);
    assert_ptr_not_equal(copy[0], one);
    assert_string_equal(copy[0], "one");
    assert_string_equal(copy[1], "");
    assert_null(copy[2]);
    strings_free(copy);

    static const struct {
        const char *json;
        size_t n; /* SIZE_MAX: refused */
    } arrays[] = {
        {"[]", 0},
        {"[\"a\",\"\"]", 2},
        {"[\"a\",1]", SIZE_MAX},
        {"[\"a\\u0000b\"]", SIZE_MAX},
        {"{}", SIZE_MAX},
        {"null", SIZE_MAX},
        {"\"a\"", SIZE_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
        json_auto_t *array = parse(arrays[i].json);
        char **got = strings_from_json(array);
        if (!got != (arrays[i].n == SIZE_MAX))
            fail_msg("%s", arrays[i].json);
        size_t n = 0;
        while (got && got[n])
            n++;
        assert_int_equal(n, got ? arrays[i].n : 0);
        strings_free(got);
    }
    assert_null(strings_from_json(NULL));
}

/* Whole, half built and absent specs; the leak checker is the judge. */
static void test_spec_free(void **state)
{
    (void)state;
    job_spec_free(NULL);
    job_spec_free(calloc(1, sizeof(struct job_spec)));

    struct job_spec *spec = calloc(1, sizeof(*spec));
    assert_non_null(spec);
    char arg[] = "a";
    char *list[] = {arg, arg, NULL};
    spec->language = strdup("c");
    spec->version = strdup("14");
    spec->image = strdup("i");
    spec->entrypoint = strdup("main.c");
    spec->compile = strings_dup(list);
    spec->run = strings_dup(list);
    spec->env = strings_dup(list);
    spec->files = calloc(2, sizeof(*spec->files));
    assert_non_null(spec->files);
    spec->files_len = 2;
    spec->files[0].name = strdup("main.c");
    spec->files[0].content = strdup("x");
    job_spec_free(spec);
}

static int setup(void **state)
{
    (void)state;
    return contract_init(NULL);
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
        cmocka_unit_test(test_limits_json),    cmocka_unit_test(test_limits_override),
        cmocka_unit_test(test_limits_above),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_signal_names),   cmocka_unit_test(test_status),
        cmocka_unit_test(test_result),         cmocka_unit_test(test_results_table),
        cmocka_unit_test(test_report_unknown), cmocka_unit_test(test_report_known),
        cmocka_unit_test(test_strings),        cmocka_unit_test(test_spec_free),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
