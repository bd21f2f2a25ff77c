#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "frames/frames.h"

static const struct {
    const char *name;
    unsigned type;
    uint8_t flags;
    uint32_t n;
    enum frame_direction direction;
    int want; /* of the header alone */
} headers[] = {
    {"type 0", 0, 0, 0, FRAME_TO_INIT, -EBADMSG},
    {"first", FRAME_SPEC, 0, 1, FRAME_TO_INIT, FRAME_INCOMPLETE},
    {"last to init", FRAME_COLLECT, 0, 0, FRAME_TO_INIT, 0},
    {"past last to init", FRAME_COLLECT + 1, 0, 0, FRAME_TO_INIT, -EBADMSG},
    {"before first from init", FRAME_READY - 1, 0, 4, FRAME_FROM_INIT, -EBADMSG},
    {"first from init", FRAME_READY, 0, 4, FRAME_FROM_INIT, FRAME_INCOMPLETE},
    {"last from init", FRAME_FAULT, 0, 4, FRAME_FROM_INIT, FRAME_INCOMPLETE},
    {"past last", FRAME_FAULT + 1, 0, 4, FRAME_FROM_INIT, -EBADMSG},
    {"largest type", 255, 0, 0, FRAME_FROM_INIT, -EBADMSG},
    {"READY to init", FRAME_READY, 0, 4, FRAME_TO_INIT, -EBADMSG},
    {"KILL from init", FRAME_KILL, 0, 0, FRAME_FROM_INIT, -EBADMSG},
    {"DATA to init", FRAME_DATA, 0, 1, FRAME_TO_INIT, FRAME_INCOMPLETE},
    {"DATA from init", FRAME_DATA, 0, 1, FRAME_FROM_INIT, FRAME_INCOMPLETE},
    {"flags", FRAME_KILL, 1, 0, FRAME_TO_INIT, -EBADMSG},
    {"top flag", FRAME_KILL, 0x80, 0, FRAME_TO_INIT, -EBADMSG},
    {"KILL with a byte", FRAME_KILL, 0, 1, FRAME_TO_INIT, -EBADMSG},
    {"START with a byte", FRAME_START, 0, 1, FRAME_TO_INIT, -EBADMSG},
    {"largest payload", FRAME_DATA, 0, FRAME_PAYLOAD_MAX, FRAME_TO_INIT, FRAME_INCOMPLETE},
    {"one past largest", FRAME_DATA, 0, FRAME_PAYLOAD_MAX + 1, FRAME_TO_INIT, -EBADMSG},
    {"all ones", FRAME_DATA, 0, UINT32_MAX, FRAME_TO_INIT, -EBADMSG},
    {"stdin of all credit", FRAME_STDIN, 0, FRAME_STDIN_CREDIT, FRAME_TO_INIT, FRAME_INCOMPLETE},
    {"stdin past the credit", FRAME_STDIN, 0, FRAME_STDIN_CREDIT + 1, FRAME_TO_INIT, -EBADMSG},
    {"largest stdout", FRAME_STDOUT, 0, FRAME_OUTPUT_CHUNK, FRAME_FROM_INIT, FRAME_INCOMPLETE},
    {"stdout past it", FRAME_STDOUT, 0, FRAME_OUTPUT_CHUNK + 1, FRAME_FROM_INIT, -EBADMSG},
    {"stderr past it", FRAME_STDERR, 0, FRAME_OUTPUT_CHUNK + 1, FRAME_FROM_INIT, -EBADMSG},
    {"empty stdin", FRAME_STDIN, 0, 0, FRAME_TO_INIT, 0},
    {"signal without number", FRAME_SIGNAL, 0, 0, FRAME_TO_INIT, -EBADMSG},
    {"signal of two", FRAME_SIGNAL, 0, 2, FRAME_TO_INIT, -EBADMSG},
    {"resize of three", FRAME_RESIZE, 0, 3, FRAME_TO_INIT, -EBADMSG},
    {"file without path", FRAME_FILE, 0, 12, FRAME_TO_INIT, -EBADMSG},
    {"file of one byte path", FRAME_FILE, 0, 13, FRAME_TO_INIT, FRAME_INCOMPLETE},
    {"file, longest path", FRAME_FILE, 0, 12 + FRAME_PATH_MAX, FRAME_TO_INIT, FRAME_INCOMPLETE},
    {"file, path too long", FRAME_FILE, 0, 13 + FRAME_PATH_MAX, FRAME_TO_INIT, -EBADMSG},
    {"exit of 39", FRAME_EXITED, 0, 39, FRAME_FROM_INIT, -EBADMSG},
    {"exit of 40", FRAME_EXITED, 0, 40, FRAME_FROM_INIT, FRAME_INCOMPLETE},
    {"exit of 41", FRAME_COMPILED, 0, 41, FRAME_FROM_INIT, -EBADMSG},
    {"usage of 25", FRAME_USAGE, 0, 25, FRAME_FROM_INIT, -EBADMSG},
    {"fault of 3", FRAME_FAULT, 0, 3, FRAME_FROM_INIT, -EBADMSG},
    {"longest fault", FRAME_FAULT, 0, 4 + FRAME_FAULT_TEXT_MAX, FRAME_FROM_INIT, FRAME_INCOMPLETE},
    {"fault too long", FRAME_FAULT, 0, 5 + FRAME_FAULT_TEXT_MAX, FRAME_FROM_INIT, -EBADMSG},
};

static void headers_are_judged_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        uint8_t bytes[FRAME_HEADER_BYTES];
        frame_header((enum frame_type)headers[i].type, headers[i].n, bytes);
        bytes[1] = headers[i].flags;
        struct frame frame = {.payload = {NULL, 77}};
        size_t used = 77;
        struct err err = {0};
        int r = frame_decode((struct span){(const char *)bytes, sizeof(bytes)},
                             headers[i].direction, &frame, &used, &err);
        if (r != headers[i].want || used != (r == 0 ? sizeof(bytes) : 77) ||
            (r < 0) != (err.msg[0] != '\0'))
            fail_msg("%s: r=%d used=%zu %s", headers[i].name, r, used, err.msg);
        for (size_t n = 0; n < sizeof(bytes); n++) {
            r = frame_decode((struct span){(const char *)bytes, n}, headers[i].direction, &frame,
                             &used, NULL);
            if (r != FRAME_INCOMPLETE)
                fail_msg("%s cut to %zu: r=%d", headers[i].name, n, r);
        }
    }
}

static void frames_follow_each_other(void **state)
{
    (void)state;
    cleanup_buf struct buf out;
    buf_init(&out, 1024);
    assert_int_equal(frame_encode(&out, FRAME_STDIN, "ab\0c", 4), 0);
    assert_int_equal(frame_encode(&out, FRAME_STDIN_EOF, NULL, 0), 0);
    struct span in = buf_span(&out);
    struct frame frame;
    size_t used;
    assert_int_equal(frame_decode((struct span){in.ptr, 9}, FRAME_TO_INIT, &frame, &used, NULL),
                     FRAME_INCOMPLETE);
    assert_int_equal(frame_decode(in, FRAME_TO_INIT, &frame, &used, NULL), 0);
    assert_int_equal(used, 10);
    assert_int_equal(frame.type, FRAME_STDIN);
    assert_int_equal(frame.payload.len, 4);
    assert_memory_equal(frame.payload.ptr, "ab\0c", 4);
    in = (struct span){in.ptr + used, in.len - used};
    assert_int_equal(frame_decode(in, FRAME_TO_INIT, &frame, &used, NULL), 0);
    assert_int_equal(frame.type, FRAME_STDIN_EOF);
    assert_int_equal(used, in.len);
}

static void encoding_fails_whole(void **state)
{
    (void)state;
    cleanup_buf struct buf out;
    buf_init(&out, 9);
    assert_int_equal(frame_encode(&out, FRAME_STDIN, "abcd", 4), -EMSGSIZE);
    assert_int_equal(out.len, 0);
    assert_int_equal(frame_encode(&out, FRAME_STDIN, "abc", 3), 0);
    assert_int_equal(out.len, 9);
    assert_int_equal(frame_encode(&out, FRAME_STDIN, NULL, (size_t)FRAME_PAYLOAD_MAX + 1),
                     -EMSGSIZE);
    assert_int_equal(frame_u8_encode(&out, FRAME_SIGNAL, 2), -EMSGSIZE);
    assert_int_equal(out.len, 9);
}

static void names_are_told(void **state)
{
    (void)state;
    assert_string_equal(frame_type_name(FRAME_SPEC), "SPEC");
    assert_string_equal(frame_type_name(FRAME_FAULT), "FAULT");
    assert_string_equal(frame_type_name((enum frame_type)0), "unknown");
    assert_string_equal(frame_type_name((enum frame_type)40), "unknown");
    assert_string_equal(frame_type_name((enum frame_type)255), "unknown");
}

/* The payload of the only frame in out. */
static struct span payload_of(const struct buf *out, enum frame_direction direction)
{
    struct frame frame;
    size_t used;
    struct err err = {0};
    if (frame_decode(buf_span(out), direction, &frame, &used, &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(used, out->len);
    return frame.payload;
}

static char long_path[FRAME_PATH_MAX + 1];

static const struct {
    const char *name;
    struct span path;
    uint32_t mode;
    int good;
} files[] = {
    {"plain", {"main.c", 6}, 0644, 1},
    {"one byte", {"a", 1}, 0, 1},
    {"deep", {"a/b/c/d", 7}, 0777, 1},
    {"any bytes", {"\xff\n \x01", 4}, 0644, 1},
    {"dots that are names", {"...", 3}, 0644, 1},
    {"hidden", {".a/..b/c..", 10}, 0644, 1},
    {"longest", {long_path, FRAME_PATH_MAX}, 0644, 1},
    {"too long", {long_path, FRAME_PATH_MAX + 1}, 0644, 0},
    {"empty", {"", 0}, 0644, 0},
    {"absolute", {"/etc/passwd", 11}, 0644, 0},
    {"slash", {"/", 1}, 0644, 0},
    {"trailing slash", {"a/", 2}, 0644, 0},
    {"empty segment", {"a//b", 4}, 0644, 0},
    {"dot", {".", 1}, 0644, 0},
    {"dotdot", {"..", 2}, 0644, 0},
    {"dotdot first", {"../a", 4}, 0644, 0},
    {"dotdot inside", {"a/../b", 6}, 0644, 0},
    {"dotdot last", {"a/..", 4}, 0644, 0},
    {"dot inside", {"a/./b", 5}, 0644, 0},
    {"NUL", {"a\0b", 3}, 0644, 0},
    {"highest mode", {"a", 1}, 0777, 1},
    {"sticky", {"a", 1}, 01000, 0},
    {"setuid", {"a", 1}, 04755, 0},
};

static void files_round_trip(void **state)
{
    (void)state;
    memset(long_path, 'x', sizeof(long_path));
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        cleanup_buf struct buf out;
        buf_init(&out, 8192);
        struct frame_file in = {files[i].mode, UINT64_MAX - i, files[i].path};
        int r = frame_file_encode(&out, FRAME_FILE, &in);
        if (r != (files[i].good ? 0 : -EINVAL))
            fail_msg("%s: encode r=%d", files[i].name, r);

        /* the payload, made by hand so that bad ones exist too */
        cleanup_buf struct buf raw;
        buf_init(&raw, 8192);
        assert_int_equal(buf_append_u32be(&raw, in.mode), 0);
        assert_int_equal(buf_append_u64be(&raw, in.size), 0);
        assert_int_equal(buf_append(&raw, in.path.ptr, in.path.len), 0);
        struct frame_file got = {.mode = 1234567};
        struct err err = {0};
        r = frame_file_decode(buf_span(&raw), &got, &err);
        if (r != (files[i].good ? 0 : -EBADMSG) || (r < 0 && !err.msg[0]))
            fail_msg("%s: decode r=%d %s", files[i].name, r, err.msg);
        if (r < 0) {
            assert_int_equal(got.mode, 1234567);
            continue;
        }
        assert_int_equal(got.mode, in.mode);
        assert_true(got.size == in.size);
        assert_int_equal(got.path.len, in.path.len);
        assert_memory_equal(got.path.ptr, in.path.ptr, in.path.len);
        struct span payload = payload_of(&out, FRAME_TO_INIT);
        assert_int_equal(payload.len, raw.len);
        assert_memory_equal(payload.ptr, raw.data, raw.len);
    }
}

static const struct {
    int32_t code;
    int32_t signal;
    int good;
} ends[] = {
    {0, 0, 1},   {255, 0, 1},       {256, 0, 0},       {-1, 0, 0},         {-1, 1, 1},
    {-1, 64, 1}, {-1, 65, 0},       {0, 9, 0},         {-1, -1, 0},        {-2, 9, 0},
    {137, 9, 0}, {INT32_MAX, 0, 0}, {INT32_MIN, 0, 0}, {-1, INT32_MAX, 0},
};

static void exits_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        cleanup_buf struct buf out;
        buf_init(&out, 8192);
        const struct frame_exit in = {ends[i].code, ends[i].signal, 1, UINT64_MAX, 3, 4};
        int r = frame_exit_encode(&out, FRAME_EXITED, &in);
        if (r != (ends[i].good ? 0 : -EINVAL))
            fail_msg("%d %d: r=%d", ends[i].code, ends[i].signal, r);
        cleanup_buf struct buf raw;
        buf_init(&raw, 40);
        assert_int_equal(buf_append_u32be(&raw, (uint32_t)in.code), 0);
        assert_int_equal(buf_append_u32be(&raw, (uint32_t)in.signal), 0);
        assert_int_equal(buf_append_u64be(&raw, in.cpu_user_us), 0);
        assert_int_equal(buf_append_u64be(&raw, in.cpu_system_us), 0);
        assert_int_equal(buf_append_u64be(&raw, in.max_rss_bytes), 0);
        assert_int_equal(buf_append_u64be(&raw, in.wall_us), 0);
        struct frame_exit got = {.code = 77};
        r = frame_exit_decode(buf_span(&raw), &got, NULL);
        if (r != (ends[i].good ? 0 : -EBADMSG))
            fail_msg("%d %d: decode r=%d", ends[i].code, ends[i].signal, r);
        if (r < 0) {
            assert_int_equal(got.code, 77);
            continue;
        }
        assert_memory_equal(&got, &in, sizeof(in));
        assert_memory_equal(payload_of(&out, FRAME_FROM_INIT).ptr, raw.data, raw.len);
        assert_int_equal(frame_exit_decode((struct span){raw.data, 39}, &got, NULL), -EBADMSG);
    }
}

static void usage_round_trips(void **state)
{
    (void)state;
    cleanup_buf struct buf out;
    buf_init(&out, 8192);
    const struct frame_usage in = {0, FRAME_USAGE_UNKNOWN, 1ULL << 32};
    struct frame_usage got = {0};
    assert_int_equal(frame_usage_encode(&out, &in), 0);
    struct span payload = payload_of(&out, FRAME_FROM_INIT);
    assert_int_equal(frame_usage_decode(payload, &got, NULL), 0);
    assert_memory_equal(&got, &in, sizeof(in));
    payload.len--;
    assert_int_equal(frame_usage_decode(payload, &got, NULL), -EBADMSG);
}

static void faults_round_trip(void **state)
{
    (void)state;
    static char text[FRAME_FAULT_TEXT_MAX + 1];
    memset(text, 'f', sizeof(text));
    static const struct {
        int32_t error;
        size_t n;
        size_t want; /* SIZE_MAX: refused */
    } cases[] = {
        {0, 1, SIZE_MAX},
        {-1, 1, SIZE_MAX},
        {1, 0, 0},
        {INT32_MAX, 5, 5},
        {2, FRAME_FAULT_TEXT_MAX, FRAME_FAULT_TEXT_MAX},
        {2, FRAME_FAULT_TEXT_MAX + 1, FRAME_FAULT_TEXT_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf out;
        buf_init(&out, 8192);
        const struct frame_fault in = {cases[i].error, {text, cases[i].n}};
        int r = frame_fault_encode(&out, &in);
        assert_int_equal(r, cases[i].want == SIZE_MAX ? -EINVAL : 0);
        if (r < 0)
            continue;
        struct frame_fault got = {0};
        assert_int_equal(frame_fault_decode(payload_of(&out, FRAME_FROM_INIT), &got, NULL), 0);
        assert_int_equal(got.error, cases[i].error);
        assert_int_equal(got.text.len, cases[i].want);
        assert_memory_equal(got.text.ptr, text, got.text.len);
    }
    struct frame_fault got = {.error = 77};
    assert_int_equal(frame_fault_decode((struct span){"\0\0\0\0x", 5}, &got, NULL), -EBADMSG);
    assert_int_equal(frame_fault_decode((struct span){"\x80\0\0\0x", 5}, &got, NULL), -EBADMSG);
    assert_int_equal(frame_fault_decode((struct span){"\0\0\1", 3}, &got, NULL), -EBADMSG);
    assert_int_equal(got.error, 77);
}

static void numbers_round_trip(void **state)
{
    (void)state;
    cleanup_buf struct buf out;
    buf_init(&out, 8192);
    assert_int_equal(frame_u32_encode(&out, FRAME_STDIN_TAKEN, 0xfedcba98), 0);
    uint32_t wide = 0;
    struct span payload = payload_of(&out, FRAME_FROM_INIT);
    assert_int_equal(frame_u32_decode(payload, &wide, NULL), 0);
    assert_true(wide == 0xfedcba98);
    uint8_t narrow = 77;
    assert_int_equal(frame_u8_decode(payload, &narrow, NULL), -EBADMSG);
    assert_int_equal(narrow, 77);
    buf_clear(&out);
    assert_int_equal(frame_u8_encode(&out, FRAME_SIGNAL, 255), 0);
    payload = payload_of(&out, FRAME_TO_INIT);
    assert_int_equal(frame_u8_decode(payload, &narrow, NULL), 0);
    assert_int_equal(narrow, 255);
    assert_int_equal(frame_u32_decode(payload, &wide, NULL), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_judged_alone), cmocka_unit_test(frames_follow_each_other),
        cmocka_unit_test(encoding_fails_whole),     cmocka_unit_test(names_are_told),
        cmocka_unit_test(files_round_trip),         cmocka_unit_test(exits_round_trip),
        cmocka_unit_test(usage_round_trips),        cmocka_unit_test(faults_round_trip),
        cmocka_unit_test(numbers_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
