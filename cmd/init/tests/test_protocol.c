/* Frames that must not be: each ends init with a FAULT that names it. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "box.h"
#include "init/init.h"

static char *const run_cat[] = {(char[]){"cat"}, NULL};

enum at { AT_READY, AT_FILES, AT_IN_FILE, AT_RUNNING, AT_OVER };

#define FILE_OF(n, name) "\2\0\0\0\0\15\0\0\1\244\0\0\0\0\0\0\0" n name

static const struct {
    const char *name;
    const char *bytes;
    size_t n;
    const char *text; /* a part of it */
    enum at at;
    int want;
} cases[] = {
#define BYTES(s) (s), sizeof(s) - 1
    {"unknown type", BYTES("\143\0\0\0\0\0"), "frame type 99 is unknown", AT_READY, EBADMSG},
    {"type 0", BYTES("\0\0\0\0\0\0"), "frame type 0 is unknown", AT_FILES, EBADMSG},
    {"wrong way", BYTES("\100\0\0\0\0\4\0\0\0\1"), "READY goes the other way", AT_FILES, EBADMSG},
    {"flags", BYTES("\11\1\0\0\0\0"), "KILL has flags", AT_FILES, EBADMSG},
    {"too long", BYTES("\3\0\0\20\0\1"), "DATA has 1048577 bytes", AT_FILES, EBADMSG},
    {"a request, whose G is EXITED", BYTES("GET / HTTP/1.1\r\n\r\n"), "EXITED goes the other way",
     AT_RUNNING, EBADMSG},
    {"bad spec", BYTES("\1\0\0\0\0\1x"), "spec", AT_READY, EBADMSG},
    {"empty spec", BYTES("\1\0\0\0\0\0"), "spec field uid is missing", AT_READY, EBADMSG},
    {"file before spec", BYTES(FILE_OF("\0", "a")), "FILE is out of order", AT_READY, EPROTO},
    {"data before spec", BYTES("\3\0\0\0\0\1x"), "DATA is out of order", AT_READY, EPROTO},
    {"start before spec", BYTES("\4\0\0\0\0\0"), "START is out of order", AT_READY, EPROTO},
    {"stdin before spec", BYTES("\5\0\0\0\0\1x"), "STDIN is out of order", AT_READY, EPROTO},
    {"eof before spec", BYTES("\6\0\0\0\0\0"), "STDIN_EOF is out of order", AT_READY, EPROTO},
    {"data without file", BYTES("\3\0\0\0\0\1x"), "DATA is out of order", AT_FILES, EPROTO},
    {"data of an empty file", BYTES(FILE_OF("\0", "a") "\3\0\0\0\0\1x"), "DATA is out of order",
     AT_FILES, EPROTO},
    {"more data than its size", BYTES("\3\0\0\0\0\4abcd"), "DATA of 4 bytes for file f, 3 are left",
     AT_IN_FILE, EPROTO},
    {"file inside a file", BYTES(FILE_OF("\0", "a")), "FILE is out of order", AT_IN_FILE, EPROTO},
    {"start inside a file", BYTES("\4\0\0\0\0\0"), "START is out of order", AT_IN_FILE, EPROTO},
    {"file while running", BYTES(FILE_OF("\0", "a")), "FILE is out of order", AT_RUNNING, EPROTO},
    {"start twice", BYTES("\4\0\0\0\0\0"), "START is out of order", AT_RUNNING, EPROTO},
    {"start after the end", BYTES("\4\0\0\0\0\0"), "START is out of order", AT_OVER, EPROTO},
    {"stdin after eof", BYTES("\6\0\0\0\0\0\5\0\0\0\0\1x"), "STDIN after STDIN_EOF", AT_FILES,
     EPROTO},
    {"signal 9", BYTES("\7\0\0\0\0\1\11"), "SIGNAL 9", AT_RUNNING, EPROTO},
    {"signal 0", BYTES("\7\0\0\0\0\1\0"), "SIGNAL 0", AT_FILES, EPROTO},
    {"signal 255", BYTES("\7\0\0\0\0\1\377"), "SIGNAL 255", AT_OVER, EPROTO},
    {"resize", BYTES("\10\0\0\0\0\4\0\1\0\1"), "terminals are not supported", AT_RUNNING, ENOTSUP},
    {"collect", BYTES("\12\0\0\0\0\0"), "artifacts are not supported", AT_OVER, ENOTSUP},
};

static void reach(struct box *b, enum at at, struct outcome *o)
{
    if (at == AT_READY)
        return;
    box_spec(b, NULL, run_cat);
    if (at == AT_IN_FILE)
        box_send_raw(b, BYTES(FILE_OF("\3", "f")));
    if (at == AT_RUNNING || at == AT_OVER)
        box_send(b, FRAME_START, NULL, 0);
    if (at == AT_RUNNING)
        box_until_stage(b, o, 'R');
    if (at == AT_OVER)
        box_run(b, o, "", 0);
}

static void bad_frames_are_faults(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, (struct box_options){.uses_pipes = k % 2 == 1});
        reach(&b, cases[k].at, &o);
        box_send_raw(&b, cases[k].bytes, cases[k].n);
        box_run(&b, &o, NULL, 0);
        if (o.fault != cases[k].want || !strstr(o.fault_text, cases[k].text))
            fail_msg("%s: fault %d \"%s\"", cases[k].name, o.fault, o.fault_text);
        struct frame frame;
        if (box_next(&b, &frame))
            fail_msg("%s: %s after FAULT", cases[k].name, frame_type_name(frame.type));
        box_wait(&b, INIT_FAULTED); /* it ends by itself */
    }
}

static void a_second_spec_is_a_fault(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, (struct box_options){0});
    box_spec(&b, NULL, run_cat);
    box_spec(&b, NULL, run_cat);
    box_run(&b, &o, NULL, 0);
    box_wait(&b, INIT_FAULTED);
    assert_int_equal(o.fault, EPROTO);
    assert_string_equal(o.fault_text, "frame SPEC is out of order");
}

static void a_terminal_is_refused(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    cleanup_buf struct buf raw;
    buf_init(&raw, 4096);
    char cwd[] = "/";
    const struct frame_spec spec = {
        .run = (char **)(uintptr_t)run_cat, .cwd = cwd, .rows = 24, .columns = 80};
    assert_int_equal(frame_spec_encode(&raw, &spec), 0);
    struct box b;
    box_open(&b, (struct box_options){0});
    box_send_raw(&b, raw.data, raw.len);
    box_run(&b, &o, NULL, 0);
    box_wait(&b, INIT_FAULTED);
    assert_int_equal(o.fault, ENOTSUP);
    assert_string_equal(o.fault_text, "terminals are not supported");
}

static void the_stdin_credit_is_kept(void **state)
{
    (void)state;
    static char all[FRAME_STDIN_CREDIT];
    for (int past = 0; past < 2; past++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, (struct box_options){0});
        box_spec(&b, NULL, run_cat);
        box_send(&b, FRAME_STDIN, all, sizeof(all) - 1);
        box_send(&b, FRAME_STDIN, all, 1 + (size_t)past);
        box_send(&b, FRAME_KILL, NULL, 0);
        box_run(&b, &o, NULL, 0);
        box_close(&b, past ? INIT_FAULTED : INIT_STREAM_ENDED);
        assert_int_equal(o.fault, past ? EPROTO : 0);
        assert_int_equal(o.taken, past ? 0 : sizeof(all));
    }
}

static void frames_may_come_byte_by_byte(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, (struct box_options){0});
    int wire = b.in;
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    b.in = ends[1]; /* what would be sent, to be sent again in pieces */
    char *const run[] = {(char[]){"cat"}, (char[]){"a/b"}, (char[]){"-"}, NULL};
    box_spec(&b, NULL, run);
    box_file(&b, "a/b", 0644, "file ", 5);
    box_send(&b, FRAME_START, NULL, 0);
    box_send(&b, FRAME_STDIN, "stdin", 5);
    box_send(&b, FRAME_STDIN_EOF, NULL, 0);
    (void)close(ends[1]);
    b.in = wire;
    char byte;
    while (fd_read_full(ends[0], &byte, 1) == 1)
        box_send_raw(&b, &byte, 1);
    (void)close(ends[0]);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_int_equal(o.out.len, 10);
    assert_memory_equal(o.out.data, "file stdin", 10);
}

static void a_stream_cut_anywhere_ends_it(void **state)
{
    (void)state;
    static const char bytes[] = FILE_OF("\3", "f") "\3\0\0\0\0\3abc\4\0\0\0\0\0\5\0\0\0\0\2hi";
    for (size_t n = 0; n < sizeof(bytes); n++) {
        struct box b;
        box_open(&b, (struct box_options){.uses_pipes = n % 2 == 1});
        box_spec(&b, NULL, run_cat);
        box_send_raw(&b, bytes, n);
        box_close(&b, INIT_STREAM_ENDED);
    }
}

static void it_starts_only_as_process_1(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct err err = {0};
        int r = init_guard(&err);
        (void)fd_write_full(ends[1], err.msg, strlen(err.msg));
        _exit(r == -EPERM ? INIT_REFUSED : 0);
    }
    (void)close(ends[1]);
    char text[512] = "";
    assert_true(fd_read_full(ends[0], text, sizeof(text) - 1) > 0);
    (void)close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), INIT_REFUSED);
    assert_non_null(strstr(text, "must be process 1"));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        box_use_program(argv[1]);
    box_need_namespaces();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_frames_are_faults),
        cmocka_unit_test(a_second_spec_is_a_fault),
        cmocka_unit_test(a_terminal_is_refused),
        cmocka_unit_test(the_stdin_credit_is_kept),
        cmocka_unit_test(frames_may_come_byte_by_byte),
        cmocka_unit_test(a_stream_cut_anywhere_ends_it),
        cmocka_unit_test(it_starts_only_as_process_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
