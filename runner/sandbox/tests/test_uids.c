#include "uids.h"

#include <errno.h>

#include "base/cleanup.h"
#include "test.h"

static void test_bounds(void **state)
{
    (void)state;
    static const struct {
        uint32_t base, count;
        int want;
    } cases[] = {
        {1, 1, 0},
        {0, 1, -EINVAL},
        {1000, 0, -EINVAL},
        {1000, UIDS_MAX, 0},
        {1000, UIDS_MAX + 1, -EINVAL},
        {1879048192, 1000, 0},
        {INT32_MAX, 1, 0},
        {INT32_MAX, 2, -EINVAL},
        {(uint32_t)INT32_MAX - 1, 2, 0},
        {(uint32_t)INT32_MAX + 1, 1, -EINVAL},
        {UINT32_MAX, 1, -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct uids u;
        struct err err = {0};
        int r = uids_init(&u, cases[i].base, cases[i].count, &err);
        if (r != cases[i].want)
            fail_msg("%u %u: %d %s", cases[i].base, cases[i].count, r, err.msg);
        if (r == 0)
            uids_done(&u);
    }
}

static void test_each_once_and_last_used_last(void **state)
{
    (void)state;
    struct uids u;
    assert_int_equal(uids_init(&u, 100, 3, NULL), 0);
    uint32_t uid = 0;
    for (uint32_t want = 100; want < 103; want++) {
        assert_int_equal(uids_take(&u, &uid, NULL), 0);
        assert_int_equal(uid, want);
    }
    struct err err = {0};
    assert_int_equal(uids_take(&u, &uid, &err), -EAGAIN);
    assert_string_equal(err.msg, "all 3 sandbox uids are in use");
    assert_int_equal(uid, 102);

    uids_give(&u, 101);
    uids_give(&u, 100);
    assert_int_equal(uids_take(&u, &uid, NULL), 0);
    assert_int_equal(uid, 100);
    uids_give(&u, 100);
    assert_int_equal(uids_take(&u, &uid, NULL), 0);
    assert_int_equal(uid, 101); /* not the one that was just given back */
    uids_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_each_once_and_last_used_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
