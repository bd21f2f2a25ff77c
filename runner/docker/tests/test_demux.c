#include "demux.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "test.h"

static const uint8_t two_and_err[] = "\1\0\0\0\0\0\0\5hello"
                                     "\2\0\0\0\0\0\0\3err"
                                     "\0\0\0\0\0\0\0\2no"
                                     "\1\0\0\0\0\0\0\0"
                                     "\1\0\0\0\0\0\0\6 world";
#define WHOLE (sizeof(two_and_err) - 1)

/* Feeds in[0..n) into an output of out_size bytes a call, appending to out. */
static int feed_all(struct demux *m, const uint8_t *in, size_t n, size_t out_size, struct buf *out)
{
    while (n > 0) {
        uint8_t piece[64];
        struct demux_step step;
        int r = demux_feed(m, in, n, piece, out_size, &step);
        assert_true(step.used <= n && step.made <= out_size);
        assert_int_equal(buf_append(out, piece, step.made), 0);
        if (r < 0)
            return r;
        assert_true(step.used == n || step.made == out_size);
        in += step.used;
        n -= step.used;
    }
    return 0;
}

static void test_split_at_every_byte(void **state)
{
    (void)state;
    for (size_t at = 0; at <= WHOLE; at++) {
        for (size_t out_size = 1; out_size <= 12; out_size++) {
            struct demux m = {0};
            cleanup_buf struct buf out;
            buf_init(&out, 1024);
            assert_int_equal(feed_all(&m, two_and_err, at, out_size, &out), 0);
            assert_int_equal(feed_all(&m, two_and_err + at, WHOLE - at, out_size, &out), 0);
            assert_int_equal(out.len, 11);
            assert_memory_equal(out.data, "hello world", 11);
            assert_int_equal(m.stderr_len, 3);
            assert_memory_equal(m.stderr_text, "err", 3);
            assert_true(demux_is_between(&m));
        }
    }
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    struct demux m = {0};
    cleanup_buf struct buf out;
    buf_init(&out, 1024);
    for (size_t i = 0; i < WHOLE; i++)
        assert_int_equal(feed_all(&m, two_and_err + i, 1, 64, &out), 0);
    assert_int_equal(out.len, 11);
    assert_memory_equal(out.data, "hello world", 11);
}

static void test_headers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint8_t header[8];
        int want;
        uint32_t direct;
    } cases[] = {
        {"stdout", {1, 0, 0, 0, 0, 0, 0, 9}, 0, 9},
        {"stdin", {0, 0, 0, 0, 0, 0, 0, 9}, 0, 0},
        {"stderr", {2, 0, 0, 0, 0, 0, 0, 9}, 0, 0},
        {"daemon's error", {3, 0, 0, 0, 0, 0, 0, 9}, -EBADMSG, 0},
        {"text", {'H', 'T', 'T', 'P', '/', '1', '.', '1'}, -EBADMSG, 0},
        {"second byte", {1, 1, 0, 0, 0, 0, 0, 9}, -EBADMSG, 0},
        {"third byte", {1, 0, 1, 0, 0, 0, 0, 9}, -EBADMSG, 0},
        {"fourth byte", {1, 0, 0, 1, 0, 0, 0, 9}, -EBADMSG, 0},
        {"largest", {1, 0, 0, 0, 255, 255, 255, 255}, 0, UINT32_MAX},
        {"empty", {1, 0, 0, 0, 0, 0, 0, 0}, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct demux m = {0};
        struct demux_step step;
        uint8_t out[4];
        int r = demux_feed(&m, cases[i].header, 8, out, sizeof(out), &step);
        if (r != cases[i].want || step.used != 8 || step.made != 0)
            fail_msg("%s: r=%d used=%zu", cases[i].name, r, step.used);
        if (r == 0)
            assert_int_equal(demux_direct(&m), cases[i].direct);
    }
}

static void test_largest_frame_is_only_counted(void **state)
{
    (void)state;
    static const uint8_t header[8] = {1, 0, 0, 0, 255, 255, 255, 255};
    struct demux m = {0};
    struct demux_step step;
    uint8_t out[16];
    assert_int_equal(demux_feed(&m, header, 8, out, sizeof(out), &step), 0);
    demux_direct_took(&m, UINT32_MAX - 3);
    assert_false(demux_is_between(&m));
    assert_int_equal(demux_feed(&m, (const uint8_t *)"abc", 3, out, sizeof(out), &step), 0);
    assert_int_equal(step.made, 3);
    assert_true(demux_is_between(&m));
}

static void test_stderr_is_bounded(void **state)
{
    (void)state;
    static const uint8_t header[8] = {2, 0, 0, 0, 0, 0, 0x40, 0}; /* 16 KiB */
    static uint8_t text[0x4000];
    memset(text, 'x', sizeof(text));
    text[DEMUX_STDERR_KEPT] = 'y';
    struct demux m = {0};
    struct demux_step step;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(demux_feed(&m, header, 8, NULL, 0, &step), 0);
        assert_int_equal(demux_feed(&m, text, sizeof(text), NULL, 0, &step), 0);
        assert_int_equal(step.used, sizeof(text));
    }
    assert_int_equal(m.stderr_len, DEMUX_STDERR_KEPT);
    assert_null(memchr(m.stderr_text, 'y', m.stderr_len));
}

static void test_good_bytes_before_a_broken_header(void **state)
{
    (void)state;
    static const uint8_t in[] = "\1\0\0\0\0\0\0\2ok\7\0\0\0\0\0\0\1";
    struct demux m = {0};
    struct demux_step step;
    uint8_t out[16];
    assert_int_equal(demux_feed(&m, in, sizeof(in) - 1, out, sizeof(out), &step), -EBADMSG);
    assert_int_equal(step.made, 2);
    assert_memory_equal(out, "ok", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_at_every_byte),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_largest_frame_is_only_counted),
        cmocka_unit_test(test_stderr_is_bounded),
        cmocka_unit_test(test_good_bytes_before_a_broken_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
