/* Payloads of events: their text, their bound and where output may be cut. */
#include "test.h"

#include <errno.h>

#include "base/utf8.h"
#include "contract/contract.h"
#include "contract/job.h"
#include "json/json.h"

/* Checks everything that must hold for a piece of output and returns how much of it fitted. */
static size_t check_fit(const char *bytes, size_t n, uint64_t seq)
{
    size_t fit = event_fit(bytes, n, seq);
    assert_true(fit <= n);
    assert_int_equal(fit == 0, n == 0);

    struct event e = {.type = EVENT_STDOUT, .seq = seq, .data = {bytes, fit}};
    cleanup_buf struct buf payload;
    buf_init(&payload, EVENT_PAYLOAD_MAX);
    assert_int_equal(event_payload(&payload, &e), 0);

    json_t *value = NULL;
    struct err err = {0};
    if (json_parse(payload.data, payload.len, &value, &err) < 0)
        fail_msg("%s: %s", err.msg, payload.data);
    json_auto_t *details = NULL;
    assert_int_equal(contract_check(CONTRACT_OUTPUT_EVENT, value, &details),
                     seq > JSON_SAFE_INT_MAX ? 1 : 0);
    json_auto_t *want = json_string_lossy(bytes, fit);
    assert_true(json_equal(json_object_get(value, "chunk"), want));
    json_decref(value);

    if (fit == n)
        return fit;
    /* It is the most that fits: with the next code point the payload would be too long. */
    uint32_t cp;
    int k = utf8_next(bytes + fit, n - fit, &cp);
    size_t next = k > 0 ? (size_t)k : k < 0 ? (size_t)-k : n - fit;
    e.data.len = fit + next;
    buf_clear(&payload);
    assert_int_equal(event_payload(&payload, &e), -EMSGSIZE);
    assert_int_equal(payload.len, 0);
    return fit;
}

/* n bytes made of unit, cut where n ends. */
static char *repeat(const char *unit, size_t unit_len, size_t n)
{
    char *bytes = malloc(n);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = unit[i % unit_len];
    return bytes;
}

static void test_worst_cases(void **state)
{
    (void)state;
    /* Around the chunk stand 20 bytes with a seq of one digit. */
    const size_t room = EVENT_PAYLOAD_MAX - 20;
    static const struct {
        const char *unit;
        size_t unit_len, escaped_len;
    } units[] = {
        {"a", 1, 1},
        {"\0", 1, 6},
        {"\x1b", 1, 6},
        {"\x7f", 1, 6},
        {"\n", 1, 2},
        {"\t", 1, 2},
        {"\r", 1, 2},
        {"\b", 1, 2},
        {"\f", 1, 2},
        {"\x0b", 1, 6},
        {"\"", 1, 2},
        {"\\", 1, 2},
        {"/", 1, 1},
        {"<", 1, 1},
        {"\xff", 1, 3},
        {"\xc3\xa9", 2, 2},
        {"\xe4\xb8\x96", 3, 3},
        {"\xf0\x9f\x98\x80", 4, 4},
        {"\xe2\x80\xa8", 3, 3},
        {"\xed\xa0", 2, 6},
    };
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        cleanup_free char *bytes = repeat(units[i].unit, units[i].unit_len, 20000);
        size_t fit = check_fit(bytes, 20000, 1);
        size_t whole = room / units[i].escaped_len * units[i].unit_len;
        size_t slack = room % units[i].escaped_len >= 3 && units[i].unit_len == 2 ? 1 : 0;
        if (fit != whole + slack)
            fail_msg("unit %zu: %zu", i, fit);
    }
}

static void test_seq_digits(void **state)
{
    (void)state;
    cleanup_free char *bytes = repeat("a", 1, 9000);
    static const struct {
        uint64_t seq;
        size_t fit;
    } seqs[] = {
        {1, 8172}, {9, 8172}, {10, 8171}, {99, 8171}, {100, 8170}, {UINT64_MAX, 8153},
    };
    for (size_t i = 0; i < ARRAY_LEN(seqs); i++) {
        assert_int_equal(event_fit(bytes, 9000, seqs[i].seq), seqs[i].fit);
        assert_int_equal(event_fit(bytes, seqs[i].fit, seqs[i].seq), seqs[i].fit);
        assert_int_equal(event_fit(bytes, seqs[i].fit + 1, seqs[i].seq), seqs[i].fit);
    }
    (void)check_fit(bytes, 9000, JSON_SAFE_INT_MAX);
    assert_int_equal(event_fit(NULL, 0, 1), 0);
    assert_int_equal(check_fit("", 0, 1), 0);
}

/* A fixed sequence, so that a failure can be repeated. */
static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33);
}

/* Random bytes of several mixtures, cut piece by piece until nothing is left: every piece fits, and
 * together they say what the whole would have said. */
static void test_random(void **state)
{
    (void)state;
    static const char *const mixtures[] = {
        "",
        "a\n\t\"\\",
        "\x01\x1f\x7f z",
        "\xe4\xb8\x96\xf0\x9f\x98\x80\xc3\xa9",
        "\xed\xa0\x80\xf4\x90\xc0\xff\xe2\x82 a",
    };
    uint64_t seed = 1;
    char bytes[30000];
    for (unsigned round = 0; round < 60; round++) {
        const char *mix = mixtures[round % ARRAY_LEN(mixtures)];
        size_t mix_len = strlen(mix);
        size_t n = next_random(&seed) % sizeof(bytes);
        for (size_t i = 0; i < n; i++) {
            uint32_t v = next_random(&seed);
            bytes[i] = (char)(v >> 8 & 0xff);
            if (mix_len > 0 && v % 16 != 0)
                bytes[i] = mix[(v >> 8) % mix_len];
        }
        json_auto_t *whole = json_string_lossy(bytes, n);
        cleanup_buf struct buf joined;
        buf_init(&joined, 1 << 20);
        uint64_t seq = 1;
        for (size_t at = 0; at < n; seq++) {
            size_t fit = check_fit(bytes + at, n - at, seq);
            json_auto_t *piece = json_string_lossy(bytes + at, fit);
            assert_int_equal(
                buf_append(&joined, json_string_value(piece), json_string_length(piece)), 0);
            at += fit;
        }
        assert_int_equal(joined.len, json_string_length(whole));
        if (n > 0)
            assert_memory_equal(joined.data, json_string_value(whole), joined.len);
    }
}

static void test_payload(void **state)
{
    (void)state;
    static const struct {
        struct event event;
        const char *want;
    } events[] = {
        {{EVENT_STDOUT, 1, 1, {"a\"\n\0\xff\xe4\xb8\x96", 8}},
         "{\"chunk\":\"a\\\"\\n\\u0000\xef\xbf\xbd\xe4\xb8\x96\",\"seq\":1}"},
        {{EVENT_STDERR, 2, 12, {"", 0}}, "{\"chunk\":\"\",\"seq\":12}"},
        {{EVENT_COMPILE_OUTPUT, 3, UINT64_MAX, {NULL, 0}},
         "{\"chunk\":\"\",\"seq\":18446744073709551615}"},
        {{EVENT_STAGE, 4, 0, {"{\"phase\":\"running\"}", 19}}, "{\"phase\":\"running\"}"},
        {{EVENT_RESULT, 5, 0, {"{}", 2}}, "{}"},
        {{EVENT_REPORT, 6, 0, {"{}", 2}}, "{}"},
        {{EVENT_ARTIFACT, 7, 0, {"{}", 2}}, "{}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        size_t len = strlen(events[i].want);
        cleanup_buf struct buf out;
        buf_init(&out, 1 + len);
        assert_int_equal(buf_append_str(&out, "x"), 0);
        assert_int_equal(event_payload(&out, &events[i].event), 0);
        assert_string_equal(out.data + 1, events[i].want);
        /* Any less room, and the buffer is as it was. */
        for (size_t max = 1; max <= len; max++) {
            cleanup_buf struct buf tight;
            buf_init(&tight, max);
            assert_int_equal(buf_append_str(&tight, "x"), 0);
            assert_int_equal(event_payload(&tight, &events[i].event), -EMSGSIZE);
            assert_int_equal(tight.len, 1);
            assert_string_equal(tight.data, "x");
        }
    }
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
        cmocka_unit_test(test_worst_cases),
        cmocka_unit_test(test_seq_digits),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_payload),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
