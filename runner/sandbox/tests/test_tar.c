#include "tar.h"

#include <errno.h>
#include <string.h>

#include "test.h"

static void test_round_trip(void **state)
{
    (void)state;
    static char bytes[1025];
    memset(bytes, 'x', sizeof(bytes));
    static const size_t sizes[] = {0, 1, TAR_BLOCK - 1, TAR_BLOCK, TAR_BLOCK + 1, sizeof(bytes)};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        cleanup_buf struct buf tar;
        buf_init(&tar, 1U << 16);
        assert_int_equal(tar_add_file(&tar, "init", 0555, (struct span){bytes, sizes[i]}), 0);
        assert_int_equal(tar.len % TAR_BLOCK, 0);
        assert_int_equal(tar_end(&tar), 0);
        uint32_t mode = 0;
        struct span got = {NULL, 0};
        assert_int_equal(tar_first_file(buf_span(&tar), &mode, &got), 0);
        assert_int_equal(mode, 0555);
        assert_int_equal(got.len, sizes[i]);
        assert_memory_equal(got.ptr, bytes, got.len);
    }
}

/* Byte for byte what the format says: other programs read it. */
static void test_header(void **state)
{
    (void)state;
    cleanup_buf struct buf tar;
    buf_init(&tar, 1U << 16);
    assert_int_equal(tar_add_file(&tar, "init", 0555, SPAN_LIT("abc")), 0);
    static const struct {
        size_t at;
        const char *text;
        size_t len;
    } fields[] = {
        {0, "init\0", 5},        {100, "0000555\0", 8},      {108, "0000000\0", 8},
        {116, "0000000\0", 8},   {124, "00000000003\0", 12}, {136, "00000000000\0", 12},
        {156, "0", 1},           {257, "ustar\0", 6},        {263, "00", 2},
        {TAR_BLOCK, "abc\0", 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        assert_memory_equal(tar.data + fields[i].at, fields[i].text, fields[i].len);
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i < 148 || i >= 156 ? (unsigned char)tar.data[i] : 0;
    char want[9];
    (void)snprintf(want, sizeof(want), "%06o", sum);
    want[7] = ' ';
    assert_memory_equal(tar.data + 148, want, 8);
}

static void test_refusals(void **state)
{
    (void)state;
    cleanup_buf struct buf tar;
    buf_init(&tar, 1024);
    char name[102];
    memset(name, 'n', sizeof(name));
    name[101] = '\0';
    assert_int_equal(tar_add_file(&tar, "", 0555, SPAN_LIT("x")), -EINVAL);
    assert_int_equal(tar_add_file(&tar, name, 0555, SPAN_LIT("x")), -EINVAL);
    static char two[TAR_BLOCK + 1];
    assert_int_equal(tar_add_file(&tar, "n", 0555, (struct span){two, sizeof(two)}), -EMSGSIZE);
    assert_int_equal(tar.len, 0);
    name[100] = '\0';
    assert_int_equal(tar_add_file(&tar, name, 0555, SPAN_LIT("x")), 0);
}

static void test_broken_archives(void **state)
{
    (void)state;
    cleanup_buf struct buf tar;
    buf_init(&tar, 1U << 16);
    assert_int_equal(tar_add_file(&tar, "init", 0555, SPAN_LIT("abc")), 0);
    uint32_t mode;
    struct span got;
    for (size_t n = 1; n < TAR_BLOCK + 3; n++)
        assert_int_equal(tar_first_file((struct span){tar.data, n}, &mode, &got), -EBADMSG);
    assert_int_equal(tar_first_file((struct span){tar.data, 0}, &mode, &got), -ENOENT);
    for (size_t i = 0; i < TAR_BLOCK; i++) { /* the sum sees each byte */
        if (i == 155)
            continue; /* but what follows the sum's own end */
        tar.data[i] ^= 1;
        assert_true(tar_first_file(buf_span(&tar), &mode, &got) < 0);
        tar.data[i] ^= 1;
    }
    assert_int_equal(tar_first_file(buf_span(&tar), &mode, &got), 0);
    cleanup_buf struct buf end;
    buf_init(&end, 1U << 16);
    assert_int_equal(tar_end(&end), 0);
    assert_int_equal(tar_first_file(buf_span(&end), &mode, &got), -ENOENT);
}

/* Other kinds come first: the daemon may put extended headers before a file. */
static void test_skips_other_kinds(void **state)
{
    (void)state;
    cleanup_buf struct buf tar;
    buf_init(&tar, 1U << 16);
    assert_int_equal(tar_add_file(&tar, "extended", 0644, SPAN_LIT("17 comment=xyzzy\n")), 0);
    tar.data[156] = 'x';
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i < 148 || i >= 156 ? (unsigned char)tar.data[i] : 0;
    (void)snprintf(tar.data + 148, 7, "%06o", sum);
    assert_int_equal(tar_add_file(&tar, "init", 0755, SPAN_LIT("abc")), 0);
    uint32_t mode = 0;
    struct span got = {NULL, 0};
    assert_int_equal(tar_first_file(buf_span(&tar), &mode, &got), 0);
    assert_true(span_eq(got, "abc"));
    assert_int_equal(mode, 0755);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),        cmocka_unit_test(test_header),
        cmocka_unit_test(test_refusals),          cmocka_unit_test(test_broken_archives),
        cmocka_unit_test(test_skips_other_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
