#include "base/utf8.h"

#include <string.h>

#include "base/cleanup.h"
#include "test.h"

static void next(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        size_t n;
        int want;
        uint32_t cp;
    } cases[] = {
        {"a", 1, 1, 'a'},
        {"\0", 1, 1, 0},
        {"\xc2\x80", 2, 2, 0x80},
        {"\xdf\xbf", 2, 2, 0x7ff},
        {"\xe0\xa0\x80", 3, 3, 0x800},
        {"\xed\x9f\xbf", 3, 3, 0xd7ff},
        {"\xee\x80\x80", 3, 3, 0xe000},
        {"\xf0\x90\x80\x80", 4, 4, 0x10000},
        {"\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff},
        {"\x80", 1, -1, 0},
        {"\xc1\x81", 2, -1, 0},
        {"\xf5\x80\x80\x80", 4, -1, 0},
        {"\xff", 1, -1, 0},
        {"\xe0\x9f\x80", 3, -1, 0},
        {"\xed\xa0\x80", 3, -1, 0},
        {"\xf4\x90\x80\x80", 4, -1, 0},
        {"\xf0\x9f\x98z", 4, -3, 0},
        {"\xe4\xb8z", 3, -2, 0},
        {"\xc2", 1, 0, 0},
        {"\xf0\x9f\x98", 3, 0, 0},
        {"\xe0", 1, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t cp = 0;
        int got = utf8_next(cases[i].in, cases[i].n, &cp);
        if (got != cases[i].want || (got > 0 && cp != cases[i].cp))
            fail_msg("case %zu: %d, U+%04x", i, got, cp);
    }
}

static void incomplete_tail(void **state)
{
    (void)state;
    static const char emoji[] = "ab\xf0\x9f\x98\x80";
    static const size_t want[] = {0, 0, 0, 1, 2, 3, 0};
    for (size_t n = 0; n < ARRAY_LEN(want); n++)
        assert_int_equal(utf8_incomplete_tail(emoji, n), want[n]);
    assert_int_equal(utf8_incomplete_tail("\x80\x80\x80", 3), 0); /* hopeless, not incomplete */
    assert_int_equal(utf8_incomplete_tail("\xe0\x9f", 2), 0);
    assert_int_equal(utf8_incomplete_tail("\xc3\xa9\xc3", 3), 1);
}

static void validity_and_units(void **state)
{
    (void)state;
    assert_true(utf8_is_valid("", 0));
    assert_true(utf8_is_valid("a\xf0\x9f\x98\x80", 5));
    assert_false(utf8_is_valid("a\xf0\x9f\x98", 4));
    assert_false(utf8_is_valid("\xed\xa0\x80", 3));
    assert_int_equal(utf8_utf16_units("", 0), 0);
    assert_int_equal(utf8_utf16_units("a\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80", 10), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next),
        cmocka_unit_test(incomplete_tail),
        cmocka_unit_test(validity_and_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
