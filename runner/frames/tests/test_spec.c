#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "frames/frames.h"

#define MANY 3000

static char *one[] = {(char[]){"python3"}, NULL};
static char *three[] = {(char[]){"/bin/sh"}, (char[]){""}, (char[]){"a b\n\xff"}, NULL};
static char *none[] = {NULL};
static char *unnamed[] = {(char[]){""}, NULL};
static char *good_env[] = {(char[]){"A="}, (char[]){"PATH=/bin"}, (char[]){"B=c=d"}, NULL};
static char *bare_env[] = {(char[]){"PATH"}, NULL};
static char *nameless_env[] = {(char[]){"=x"}, NULL};
static char root_dir[] = "/";
static char work_dir[] = "/workspace";
static char relative_dir[] = "workspace";

static void lists_equal(const char *name, char **got, char **want)
{
    if (!want || !got) {
        if (want != got && !(want == NULL && got && got[0] == NULL))
            fail_msg("%s: one list is missing", name);
        return;
    }
    for (; *got && *want; got++, want++)
        assert_string_equal(*got, *want);
    assert_ptr_equal(*got, *want); /* both at their end */
}

static void good_specs_round_trip(void **state)
{
    (void)state;
    static char *many[MANY + 1];
    for (size_t i = 0; i < MANY; i++)
        many[i] = three[2];
    const struct frame_spec specs[] = {
        {.run = one, .cwd = root_dir},
        {.uid = 1000, .gid = 0, .run = three, .env = none, .cwd = work_dir},
        {.uid = FRAME_KEEP_ID,
         .gid = FRAME_KEEP_ID,
         .compile = three,
         .run = one,
         .env = good_env,
         .cwd = work_dir},
        {.uid = FRAME_KEEP_ID - 1,
         .gid = 1,
         .run = many,
         .compile = one,
         .env = good_env,
         .cwd = work_dir,
         .rows = UINT16_MAX,
         .columns = 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        cleanup_buf struct buf out;
        buf_init(&out, FRAME_PAYLOAD_MAX + FRAME_HEADER_BYTES);
        assert_int_equal(frame_spec_encode(&out, &specs[i]), 0);
        struct frame frame;
        size_t used;
        assert_int_equal(frame_decode(buf_span(&out), FRAME_TO_INIT, &frame, &used, NULL), 0);
        assert_int_equal(used, out.len);
        struct err err = {0};
        cleanup_frame_spec struct frame_spec got = {0};
        if (frame_spec_decode(frame.payload, &got, &err) != 0)
            fail_msg("%zu: %s", i, err.msg);
        assert_int_equal(got.uid, specs[i].uid);
        assert_int_equal(got.gid, specs[i].gid);
        assert_int_equal(got.rows, specs[i].rows);
        assert_int_equal(got.columns, specs[i].columns);
        assert_string_equal(got.cwd, specs[i].cwd);
        lists_equal("run", got.run, specs[i].run);
        lists_equal("env", got.env, specs[i].env);
        assert_int_equal(got.compile == NULL, specs[i].compile == NULL);
        lists_equal("compile", got.compile, specs[i].compile);
        assert_non_null(got.env);
    }
}

static void bad_specs_are_not_sent(void **state)
{
    (void)state;
    const struct {
        const char *name;
        struct frame_spec spec;
    } cases[] = {
        {"no run", {.cwd = root_dir}},
        {"empty run", {.run = none, .cwd = root_dir}},
        {"unnamed run", {.run = unnamed, .cwd = root_dir}},
        {"empty compile", {.run = one, .compile = none, .cwd = root_dir}},
        {"unnamed compile", {.run = one, .compile = unnamed, .cwd = root_dir}},
        {"no cwd", {.run = one}},
        {"relative cwd", {.run = one, .cwd = relative_dir}},
        {"env without value", {.run = one, .cwd = root_dir, .env = bare_env}},
        {"env without name", {.run = one, .cwd = root_dir, .env = nameless_env}},
        {"uid alone", {.run = one, .cwd = root_dir, .uid = FRAME_KEEP_ID}},
        {"gid alone", {.run = one, .cwd = root_dir, .gid = FRAME_KEEP_ID}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf out;
        buf_init(&out, 4096);
        int r = frame_spec_encode(&out, &cases[i].spec);
        if (r != -EINVAL || out.len != 0)
            fail_msg("%s: r=%d", cases[i].name, r);
    }
}

static void a_spec_has_an_end(void **state)
{
    (void)state;
    /* what the other fields take: 3 numbers of 9, cwd of 6, one list entry's head of 5 */
    const size_t rest = 3 * 9 + 6 + 5;
    cleanup_free char *text = malloc(FRAME_PAYLOAD_MAX);
    assert_non_null(text);
    memset(text, 'x', FRAME_PAYLOAD_MAX);
    char *run[] = {text, NULL};
    const struct frame_spec spec = {.run = run, .cwd = root_dir};
    cleanup_buf struct buf out;
    buf_init(&out, 2 * (size_t)FRAME_PAYLOAD_MAX);
    text[FRAME_PAYLOAD_MAX - rest + 1] = '\0';
    assert_int_equal(frame_spec_encode(&out, &spec), -EMSGSIZE);
    assert_int_equal(out.len, 0);
    text[FRAME_PAYLOAD_MAX - rest] = '\0';
    assert_int_equal(frame_spec_encode(&out, &spec), 0);
    assert_int_equal(out.len, FRAME_PAYLOAD_MAX + FRAME_HEADER_BYTES);
    cleanup_frame_spec struct frame_spec got = {0};
    struct span payload = {out.data + FRAME_HEADER_BYTES, FRAME_PAYLOAD_MAX};
    assert_int_equal(frame_spec_decode(payload, &got, NULL), 0);
    assert_string_equal(got.run[0], text);
}

/* SPAN_LIT is no constant initialiser. */
#define BYTES(s)                                                                                   \
    {                                                                                              \
        (s), sizeof(s) - 1                                                                         \
    }
#define UID  "\1\0\0\0\4\0\0\0\1"
#define GID  "\2\0\0\0\4\0\0\0\1"
#define KEPT "\1\0\0\0\4\xff\xff\xff\xff"
#define RUN  "\4\0\0\0\1x"
#define CWD  "\6\0\0\0\1/"
#define TTY  "\7\0\0\0\4\0\0\0\0"
#define GOOD UID GID RUN CWD TTY

static const struct {
    const char *name;
    struct span payload;
    const char *want; /* a part of the message; NULL: it is good */
} payloads[] = {
    {"good", BYTES(GOOD), NULL},
    {"other order", BYTES(TTY CWD RUN GID UID), NULL},
    {"empty", BYTES(""), "uid is missing"},
    {"no gid", BYTES(UID RUN CWD TTY), "gid is missing"},
    {"no run", BYTES(UID GID CWD TTY), "run is missing"},
    {"no cwd", BYTES(UID GID RUN TTY), "cwd is missing"},
    {"no terminal", BYTES(UID GID RUN CWD), "terminal is missing"},
    {"uid twice", BYTES(GOOD UID), "uid comes twice"},
    {"cwd twice", BYTES(GOOD CWD), "cwd comes twice"},
    {"tag 0", BYTES(GOOD "\0\0\0\0\0"), "field 0 is unknown"},
    {"tag 8", BYTES(GOOD "\10\0\0\0\0"), "field 8 is unknown"},
    {"half a head", BYTES(GOOD "\4\0\0\0"), "ends inside"},
    {"value past the end", BYTES(GOOD "\4\0\0\0\2x"), "run has 2 bytes, 1 are there"},
    {"huge value", BYTES(GOOD "\4\xff\xff\xff\xffx"), "4294967295"},
    {"uid of three", BYTES("\1\0\0\0\3abc" GID RUN CWD TTY), "uid has 3 bytes"},
    {"uid of five", BYTES("\1\0\0\0\5abcde" GID RUN CWD TTY), "uid has 5 bytes"},
    {"unnamed run", BYTES(UID GID "\4\0\0\0\0" CWD TTY), "run names no program"},
    {"empty argument", BYTES(GOOD "\4\0\0\0\0"), NULL},
    {"unnamed compile", BYTES(GOOD "\3\0\0\0\0"), "compile names no program"},
    {"NUL in run", BYTES(GOOD "\4\0\0\0\1\0"), "run has a NUL"},
    {"NUL in cwd", BYTES(UID GID RUN TTY "\6\0\0\0\2/\0"), "cwd has a NUL"},
    {"empty cwd", BYTES(UID GID RUN TTY "\6\0\0\0\0"), "absolute"},
    {"relative cwd", BYTES(UID GID RUN TTY "\6\0\0\0\1a"), "absolute"},
    {"env", BYTES(GOOD "\5\0\0\0\2A="), NULL},
    {"env without =", BYTES(GOOD "\5\0\0\0\2AB"), "entry 0"},
    {"second env without name", BYTES(GOOD "\5\0\0\0\2A=\5\0\0\0\2=A"), "entry 1"},
    {"empty env", BYTES(GOOD "\5\0\0\0\0"), "entry 0"},
    {"NUL in env", BYTES(GOOD "\5\0\0\0\3A=\0"), "env has a NUL"},
    {"uid kept, gid not", BYTES(KEPT GID RUN CWD TTY), "both be kept"},
};

static void bad_payloads_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
        struct frame_spec got = {.uid = 77};
        struct err err = {0};
        int r = frame_spec_decode(payloads[i].payload, &got, &err);
        if (r != (payloads[i].want ? -EBADMSG : 0))
            fail_msg("%s: r=%d %s", payloads[i].name, r, err.msg);
        const char *want = payloads[i].want ? payloads[i].want : "";
        if (r < 0 && (got.uid != 77 || !strstr(err.msg, want)))
            fail_msg("%s: \"%s\" lacks \"%s\"", payloads[i].name, err.msg, want);
        if (r == 0)
            frame_spec_done(&got);
    }
    struct frame_spec got;
    struct span huge = {"", (size_t)FRAME_PAYLOAD_MAX + 1};
    assert_int_equal(frame_spec_decode(huge, &got, NULL), -EBADMSG);
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    for (size_t n = 0; n + 1 < sizeof(GOOD); n++) {
        struct frame_spec got = {.uid = 77};
        assert_int_equal(frame_spec_decode((struct span){GOOD, n}, &got, NULL), -EBADMSG);
        assert_int_equal(got.uid, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_specs_round_trip), cmocka_unit_test(bad_specs_are_not_sent),
        cmocka_unit_test(a_spec_has_an_end),     cmocka_unit_test(bad_payloads_are_refused),
        cmocka_unit_test(every_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
