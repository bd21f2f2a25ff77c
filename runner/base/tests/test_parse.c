#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "test.h"

static void u64(void **state)
{
    (void)state;
    static const struct {
        const char *name, *in;
        uint64_t min, max;
        int want;
        uint64_t value;
    } cases[] = {
        {"zero", "0", 0, UINT64_MAX, 0, 0},
        {"largest", "18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX},
        {"one past largest", "18446744073709551616", 0, UINT64_MAX, -ERANGE, 0},
        {"far past largest", "99999999999999999999999", 0, UINT64_MAX, -ERANGE, 0},
        {"leading zeros", "007", 0, 9, 0, 7},
        {"at the minimum", "5", 5, 9, 0, 5},
        {"below the minimum", "4", 5, 9, -ERANGE, 0},
        {"at the maximum", "9", 5, 9, 0, 9},
        {"above the maximum", "10", 5, 9, -ERANGE, 0},
        {"empty", "", 0, 9, -EINVAL, 0},
        {"trailing unit", "12ms", 0, 99, -EINVAL, 0},
        {"sign", "+1", 0, 9, -EINVAL, 0},
        {"minus", "-1", 0, 9, -EINVAL, 0},
        {"leading space", " 1", 0, 9, -EINVAL, 0},
        {"trailing space", "1 ", 0, 9, -EINVAL, 0},
        {"hex", "0x1", 0, 9, -EINVAL, 0},
        {"not a number wins over range", "99999999999999999999999x", 0, 9, -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t got = 77; /* must survive a failure untouched */
        int r = parse_u64(cases[i].in, strlen(cases[i].in), cases[i].min, cases[i].max, &got);
        if (r != cases[i].want || got != (r < 0 ? 77 : cases[i].value))
            fail_msg("%s: r=%d got=%" PRIu64, cases[i].name, r, got);
    }
    uint64_t got = 77;
    assert_int_equal(parse_u64("1\0", 2, 0, 9, &got), -EINVAL);
}

static void base64(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        int64_t want;
        const char *out;
    } cases[] = {
        {"", 0, ""},
        {"Zg==", 1, "f"},
        {"Zm8=", 2, "fo"},
        {"Zm9v", 3, "foo"},
        {"Zm9vYmFy", 6, "foobar"},
        {"AAAA", 3, "\0\0\0"},
        {"+/+/", 3, "\xfb\xff\xbf"},
        {"Zg=", -EINVAL, NULL},
        {"Zg", -EINVAL, NULL},
        {"Z===", -EINVAL, NULL},
        {"====", -EINVAL, NULL},
        {"Zg==Zg==", -EINVAL, NULL},
        {"Zm 9v", -EINVAL, NULL},
        {"Zm9\n", -EINVAL, NULL},
        {"Zm9-", -EINVAL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t out[16];
        int64_t n = parse_base64(cases[i].in, strlen(cases[i].in), out);
        if (n != cases[i].want || (n > 0 && memcmp(out, cases[i].out, (size_t)n) != 0))
            fail_msg("%s: %" PRId64, cases[i].in, n);
        assert_true(parse_base64(cases[i].in, strlen(cases[i].in), NULL) == cases[i].want);
    }
}

static void hex(void **state)
{
    (void)state;
    char out[9];
    hex_encode("\x00\x1f\xa0\xff", 4, out);
    assert_string_equal(out, "001fa0ff");
    hex_encode("", 0, out);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u64),
        cmocka_unit_test(base64),
        cmocka_unit_test(hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
