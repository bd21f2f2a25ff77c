/* What a job sees and what is told of it: output, stdin, ends, signals, stages. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "box.h"
#include "init/init.h"

#define MEBIBYTES_5 (5U << 20)

static const struct box_options plain = {0};

static void says(const struct buf *got, const char *want)
{
    if (got->len != strlen(want) || (got->len > 0 && memcmp(got->data, want, got->len) != 0))
        fail_msg("got \"%s\", not \"%s\"", got->data ? got->data : "", want);
}

static const struct {
    const char *name;
    const char *script;
    const char *in;
    const char *out;
    const char *err;
    int code;
    int signal;
} jobs[] = {
    {"both streams", "echo out; echo err >&2", "", "out\n", "err\n", 0, 0},
    {"stdin", "cat", "two\nlines\n", "two\nlines\n", "", 0, 0},
    {"exit code", "exit 7", "", "", "", 7, 0},
    {"a shell's 139 is an exit", "exit 139", "", "", "", 139, 0},
    {"own signal", "kill -SEGV $$", "", "", "", -1, SIGSEGV},
    {"killed", "kill -KILL $$", "", "", "", -1, SIGKILL},
    {"environment", "echo \"$WORD\"; env | grep -vc '^PWD=\\|^_=\\|^WORD=\\|^PATH=\\|^SHLVL='", "",
     "two words\n0\n", "", 1, 0},
    {"user and group", "id -u; id -g; id -G", "", "54321\n54321\n54321\n", "", 0, 0},
    {"umask", "umask", "", "0022\n", "", 0, 0},
    {"descriptors", "ls /proc/self/fd", "", "0\n1\n2\n3\n", "", 0, 0}, /* 3 is ls's own */
    {"signals are as usual", "grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t'", "",
     "SigBlk:0000000000000000\nSigIgn:0000000000000000\n", "", 0, 0},
    {"goes first out of memory", "cat /proc/self/oom_score_adj", "", "1000\n", "", 0, 0},
    {"leads a session", "test $(ps -o sid= $$) -eq $(ps -o pid= $$) && echo yes", "", "yes\n", "",
     0, 0},
    {"may open its streams by name", "cat /dev/stdin >/dev/stdout; echo e >/dev/stderr", "in", "in",
     "e\n", 0, 0},
    {"unread stdin", "exit 3", "nobody reads this\n", "", "", 3, 0},
    {"closed stdin", "exec 0<&-; echo ok", "nobody reads this\n", "ok\n", "", 0, 0},
    {"init is process 1", "echo $PPID", "", "1\n", "", 0, 0},
};

static void jobs_do_what_they_say(void **state)
{
    (void)state;
    const struct box_options variants[] = {{0}, {.keep_id = true}, {.uses_pipes = true}};
    for (size_t v = 0; v < ARRAY_LEN(variants); v++)
        for (size_t k = 0; k < ARRAY_LEN(jobs); k++) {
            cleanup_outcome struct outcome o;
            outcome_init(&o);
            struct box_options options = variants[v];
            options.has_proc = true;
            struct box b;
            box_open(&b, options);
            box_start_shell(&b, jobs[k].script);
            box_run(&b, &o, jobs[k].in, strlen(jobs[k].in));
            box_close(&b, INIT_STREAM_ENDED);
            if (o.fault || o.exited.code != jobs[k].code || o.exited.signal != jobs[k].signal)
                fail_msg("%s: code %d signal %d fault %s: %s", jobs[k].name, o.exited.code,
                         o.exited.signal, o.fault_text, o.err.data ? o.err.data : "");
            says(&o.out, jobs[k].out);
            says(&o.err, jobs[k].err);
            assert_int_equal(o.taken, strlen(jobs[k].in));
            assert_string_equal(o.stages, "Rr");
        }
}

static void every_exit_code_is_told(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        char script[16];
        (void)snprintf(script, sizeof(script), "exit %d", code);
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        box_shell(plain, script, &o);
        assert_int_equal(o.exited.code, code);
        assert_int_equal(o.exited.signal, 0);
    }
}

static void big_streams_pass_both_ways(void **state)
{
    (void)state;
    cleanup_free char *data = malloc(MEBIBYTES_5);
    assert_non_null(data);
    uint32_t x = 1;
    for (size_t k = 0; k < MEBIBYTES_5; k++) {
        x = x * 1664525U + 1013904223U;
        data[k] = (char)(x >> 24);
    }
    const struct box_options variants[] = {{0}, {.uses_pipes = true}};
    for (size_t v = 0; v < ARRAY_LEN(variants); v++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, variants[v]);
        box_start_shell(&b, "tee /dev/stderr");
        box_run(&b, &o, data, MEBIBYTES_5);
        box_close(&b, INIT_STREAM_ENDED);
        assert_int_equal(o.exited.code, 0);
        assert_int_equal(o.out.len, MEBIBYTES_5);
        assert_memory_equal(o.out.data, data, MEBIBYTES_5);
        assert_int_equal(o.err.len, MEBIBYTES_5);
        assert_memory_equal(o.err.data, data, MEBIBYTES_5);
        assert_int_equal(o.taken, MEBIBYTES_5);
    }
}

static void an_early_exit_loses_nothing(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        box_shell(plain, "head -c 65536 /dev/zero; head -c 65536 /dev/zero >&2; exit 5", &o);
        assert_int_equal(o.exited.code, 5);
        assert_int_equal(o.out.len, 65536);
        assert_int_equal(o.err.len, 65536);
    }
}

static void stdin_is_held_until_the_run_stage(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    char *const compile[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"cat; echo compiled"}, NULL};
    char *const run[] = {(char[]){"cat"}, NULL};
    box_spec(&b, compile, run);
    box_send(&b, FRAME_STDIN, "first ", 6);
    box_file(&b, "main.c", 0644, "x", 1);
    box_send(&b, FRAME_STDIN, "second", 6);
    box_send(&b, FRAME_STDIN_EOF, NULL, 0);
    box_send(&b, FRAME_STDIN_EOF, NULL, 0); /* twice is once */
    box_send(&b, FRAME_START, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    says(&o.out, "compiled\nfirst second");
    assert_int_equal(o.taken, 12);
    assert_string_equal(o.stages, "CcRr");
    assert_int_equal(o.compiled.code, 0);
}

static void all_the_credit_may_be_held(void **state)
{
    (void)state;
    static char all[FRAME_STDIN_CREDIT];
    memset(all, 'x', sizeof(all));
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    char *const run[] = {(char[]){"wc"}, (char[]){"-c"}, NULL};
    box_spec(&b, NULL, run);
    box_send(&b, FRAME_STDIN, all, sizeof(all));
    box_send(&b, FRAME_STDIN_EOF, NULL, 0);
    box_send(&b, FRAME_START, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    says(&o.out, "65536\n");
    assert_int_equal(o.taken, sizeof(all));
}

static void unread_stdin_is_taken_in_the_end(void **state)
{
    (void)state;
    static char all[FRAME_STDIN_CREDIT];
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    box_start_shell(&b, "echo up; while kill -0 $$ && test ! -e go; do sleep 0.01; done; exit 4");
    box_until_output(&b, &o, 3);
    for (int k = 0; k < 2; k++) /* one fills the pipe, one waits in init */
        for (size_t at = 0; at < sizeof(all); at += 8192) {
            box_send(&b, FRAME_STDIN, all + at, 8192);
            struct frame frame;
            uint32_t taken = 0;
            if (k == 0) {
                box_expect(&b, FRAME_STDIN_TAKEN, &frame);
                assert_int_equal(frame_u32_decode(frame.payload, &taken, NULL), 0);
                assert_int_equal(taken, 8192);
                o.taken += taken;
            }
        }
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/go", b.cwd);
    FILE *go = fopen(path, "we");
    assert_non_null(go);
    (void)fclose(go);
    box_run(&b, &o, NULL, 0);
    assert_int_equal(o.exited.code, 4);
    assert_true(o.taken >= sizeof(all));
    /* what comes after the end is taken too, and the last of the above may have come so */
    box_send(&b, FRAME_STDIN, "x", 1);
    struct frame frame;
    while (o.taken < 2 * sizeof(all) + 1) {
        box_expect(&b, FRAME_STDIN_TAKEN, &frame);
        o.taken += u32be(frame.payload.ptr);
    }
    assert_int_equal(o.taken, 2 * sizeof(all) + 1);
    box_close(&b, INIT_STREAM_ENDED);
}

static void a_program_may_close_its_stdin(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    cleanup_free char *much = calloc(1, 1U << 20);
    assert_non_null(much);
    struct box b;
    box_open(&b, plain);
    /* ends only after all stdin was accepted: the pause below needs no clock, it waits for a file */
    box_start_shell(&b, "exec 0<&-; echo closed; while test ! -e go; do sleep 0.01; done; echo on");
    box_until_output(&b, &o, 7);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/go", b.cwd);
    for (size_t k = 0; k < 16; k++) { /* a mebibyte: more than every pipe and queue */
        box_send(&b, FRAME_STDIN, much, FRAME_STDIN_CREDIT);
        struct frame frame;
        box_expect(&b, FRAME_STDIN_TAKEN, &frame);
        assert_int_equal(u32be(frame.payload.ptr), FRAME_STDIN_CREDIT);
    }
    FILE *go = fopen(path, "we");
    assert_non_null(go);
    (void)fclose(go);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    says(&o.out, "closed\non\n");
}

static void compile_errors_end_the_job(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    char *const compile[] = {(char[]){"sh"}, (char[]){"-c"},
                             (char[]){"echo bad line 3 >&2; echo; exit 2"}, NULL};
    char *const run[] = {(char[]){"echo"}, (char[]){"never"}, NULL};
    box_spec(&b, compile, run);
    box_send(&b, FRAME_STDIN, "abc", 3);
    box_send(&b, FRAME_START, NULL, 0);
    box_run(&b, &o, NULL, 0);
    assert_string_equal(o.stages, "Cc");
    assert_int_equal(o.compiled.code, 2);
    says(&o.err, "bad line 3\n");
    says(&o.out, "\n");
    struct frame frame;
    box_expect(&b, FRAME_STDIN_TAKEN, &frame);
    assert_int_equal(u32be(frame.payload.ptr), 3);
    box_close(&b, INIT_STREAM_ENDED);
}

static void what_a_compiler_leaves_is_killed_first(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    char *const compile[] = {(char[]){"sh"}, (char[]){"-c"},
                             (char[]){"(setsid sh -c 'echo left; touch up; sleep 1000' &);"
                                      "while test ! -e up; do sleep 0.01; done"},
                             NULL};
    char *const run[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"kill -9 -1; echo alone"}, NULL};
    box_spec(&b, compile, run);
    box_send(&b, FRAME_START, NULL, 0);
    box_run(&b, &o, "", 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_string_equal(o.stages, "CcRr");
    assert_int_equal(o.compiled.code, 0);
    assert_non_null(strstr(o.out.data, "left\n"));
    assert_non_null(strstr(o.out.data, "alone\n"));
}

static const struct {
    const char *name;
    const char *program;
    int error;
    const char *text;
} failures[] = {
    {"not in PATH", "no-such-program", ENOENT, "exec no-such-program"},
    {"not there", "./no-such-program", ENOENT, "exec ./no-such-program"},
    {"not executable", "./data", EACCES, "exec ./data"},
    {"no format", "./script", ENOEXEC, "exec ./script"},
    {"no interpreter", "./lost", ENOENT, "exec ./lost"},
    {"a folder", "/usr", EACCES, "exec /usr"},
    {"through a file", "./data/x", ENOTDIR, "exec ./data/x"},
};

static void a_program_that_cannot_start_is_a_fault(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(failures); k++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, plain);
        char *const run[] = {(char *)(uintptr_t)failures[k].program, NULL};
        box_spec(&b, NULL, run);
        box_file(&b, "data", 0644, "x", 1);
        box_file(&b, "script", 0755, "echo hello\n", 11);
        box_file(&b, "lost", 0755, "#!/no/such/shell\n", 17);
        box_send(&b, FRAME_START, NULL, 0);
        box_run(&b, &o, NULL, 0);
        box_close(&b, INIT_FAULTED);
        if (o.fault != failures[k].error || strcmp(o.fault_text, failures[k].text) != 0 ||
            o.stages[0])
            fail_msg("%s: fault %d \"%s\" stages %s", failures[k].name, o.fault, o.fault_text,
                     o.stages);
    }
}

static void a_missing_working_directory_is_a_fault(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    char kept[sizeof(b.cwd)];
    memcpy(kept, b.cwd, sizeof(kept));
    (void)snprintf(b.cwd, sizeof(b.cwd), "/no/such/folder");
    char *const run[] = {(char[]){"true"}, NULL};
    box_spec(&b, NULL, run);
    memcpy(b.cwd, kept, sizeof(kept));
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_FAULTED);
    assert_int_equal(o.fault, ENOENT);
    assert_string_equal(o.fault_text, "open working directory /no/such/folder");
}

static void a_kill_before_start_runs_nothing(void **state)
{
    (void)state;
    for (int when = 0; when < 3; when++) { /* before SPEC, after it, inside a file */
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, plain);
        char *const run[] = {(char[]){"touch"}, (char[]){"/tmp/init-test-must-not-exist"}, NULL};
        if (when > 0)
            box_spec(&b, NULL, run);
        if (when == 2) {
            const struct frame_file file = {0644, 10, span_str("a")};
            cleanup_buf struct buf raw;
            buf_init(&raw, 64);
            assert_int_equal(frame_file_encode(&raw, FRAME_FILE, &file), 0);
            box_send_raw(&b, raw.data, raw.len);
            box_send(&b, FRAME_STDIN, "abc", 3);
        }
        box_send(&b, FRAME_KILL, NULL, 0);
        box_run(&b, &o, NULL, 0);
        assert_string_equal(o.stages, "r");
        assert_int_equal(o.exited.code, -1);
        assert_int_equal(o.exited.signal, SIGKILL);
        assert_int_equal(o.taken, when == 2 ? 3 : 0);
        /* what was under way when the kill came */
        if (when == 0)
            box_spec(&b, NULL, run);
        if (when == 2)
            box_send(&b, FRAME_DATA, "0123456789", 10);
        box_send(&b, FRAME_START, NULL, 0);
        box_send(&b, FRAME_KILL, NULL, 0);
        box_send(&b, FRAME_STDIN, "abc", 3);
        struct frame frame;
        box_expect(&b, FRAME_STDIN_TAKEN, &frame);
        assert_int_not_equal(access("/tmp/init-test-must-not-exist", F_OK), 0);
        box_close(&b, INIT_STREAM_ENDED);
    }
}

static void a_kill_while_compiling_runs_nothing(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    char *const compile[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"echo up; sleep 1000"}, NULL};
    char *const run[] = {(char[]){"echo"}, (char[]){"never"}, NULL};
    box_spec(&b, compile, run);
    box_send(&b, FRAME_START, NULL, 0);
    box_until_output(&b, &o, 3);
    box_send(&b, FRAME_KILL, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_string_equal(o.stages, "Ccr");
    assert_int_equal(o.compiled.signal, SIGKILL);
    assert_int_equal(o.exited.code, -1);
    assert_int_equal(o.exited.signal, SIGKILL);
    says(&o.out, "up\n");
}

static void a_kill_after_a_failed_compile_is_answered(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    char *const compile[] = {(char[]){"false"}, NULL};
    char *const run[] = {(char[]){"true"}, NULL};
    box_spec(&b, compile, run);
    box_send(&b, FRAME_START, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_send(&b, FRAME_KILL, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_string_equal(o.stages, "Ccr");
    assert_int_equal(o.compiled.code, 1);
    assert_int_equal(o.exited.signal, SIGKILL);
}

static void a_kill_right_after_start_ends_it(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, plain);
        box_start_shell(&b, "sleep 1000");
        box_send(&b, FRAME_KILL, NULL, 0);
        box_run(&b, &o, NULL, 0);
        box_close(&b, INIT_STREAM_ENDED);
        assert_string_equal(o.stages, "Rr");
        assert_int_equal(o.exited.code, -1);
        assert_int_equal(o.exited.signal, SIGKILL);
    }
}

static void a_deaf_program_is_killed_with_its_output(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    box_start_shell(&b, "trap '' INT TERM HUP QUIT USR1 USR2; echo up; while :; do :; done");
    box_until_output(&b, &o, 3);
    const uint8_t term = SIGTERM;
    box_send(&b, FRAME_SIGNAL, &term, 1);
    box_send(&b, FRAME_KILL, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_send(&b, FRAME_KILL, NULL, 0); /* after the end: nothing */
    box_close(&b, INIT_STREAM_ENDED);
    assert_string_equal(o.stages, "Rr");
    assert_int_equal(o.exited.signal, SIGKILL);
    says(&o.out, "up\n");
}

static void signals_reach_the_process_group(void **state)
{
    (void)state;
    static const uint8_t numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
    for (size_t k = 0; k < sizeof(numbers); k++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, plain);
        char script[160];
        (void)snprintf(script, sizeof(script),
                       "trap 'echo got; exit 9' %d; echo up; while :; do sleep 0.01; done",
                       numbers[k]);
        box_start_shell(&b, script);
        box_until_output(&b, &o, 3);
        box_send(&b, FRAME_SIGNAL, &numbers[k], 1);
        box_run(&b, &o, NULL, 0);
        box_send(&b, FRAME_SIGNAL, &numbers[k], 1); /* after the end: nothing */
        box_close(&b, INIT_STREAM_ENDED);
        says(&o.out, "up\ngot\n");
        assert_int_equal(o.exited.code, 9);
    }
}

static void signals_outside_the_run_stage_do_nothing(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    const uint8_t term = SIGTERM;
    char *const compile[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"echo up; cat go; echo on"},
                             NULL};
    char *const run[] = {(char[]){"true"}, NULL};
    box_spec(&b, compile, run);
    box_send(&b, FRAME_SIGNAL, &term, 1);
    box_send(&b, FRAME_START, NULL, 0);
    box_until_stage(&b, &o, 'C');
    box_send(&b, FRAME_SIGNAL, &term, 1);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_string_equal(o.stages, "CcRr");
    assert_int_equal(o.exited.code, 0);
}

static void the_cost_is_counted(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    /* the burner is an orphan: only whoever reaps it knows */
    box_shell(plain,
              "(sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; touch done' &);"
              "while test ! -e done; do sleep 0.01; done",
              &o);
    assert_int_equal(o.exited.code, 0);
    assert_true(o.exited.cpu_user_us + o.exited.cpu_system_us > 10000);
    assert_true(o.exited.max_rss_bytes > 100000 && o.exited.max_rss_bytes < 1ULL << 30);
    assert_true(o.exited.wall_us > 10000);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        box_use_program(argv[1]);
    box_need_namespaces();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_do_what_they_say),
        cmocka_unit_test(every_exit_code_is_told),
        cmocka_unit_test(big_streams_pass_both_ways),
        cmocka_unit_test(an_early_exit_loses_nothing),
        cmocka_unit_test(stdin_is_held_until_the_run_stage),
        cmocka_unit_test(all_the_credit_may_be_held),
        cmocka_unit_test(unread_stdin_is_taken_in_the_end),
        cmocka_unit_test(a_program_may_close_its_stdin),
        cmocka_unit_test(compile_errors_end_the_job),
        cmocka_unit_test(what_a_compiler_leaves_is_killed_first),
        cmocka_unit_test(a_program_that_cannot_start_is_a_fault),
        cmocka_unit_test(a_missing_working_directory_is_a_fault),
        cmocka_unit_test(a_kill_before_start_runs_nothing),
        cmocka_unit_test(a_kill_while_compiling_runs_nothing),
        cmocka_unit_test(a_kill_after_a_failed_compile_is_answered),
        cmocka_unit_test(a_kill_right_after_start_ends_it),
        cmocka_unit_test(a_deaf_program_is_killed_with_its_output),
        cmocka_unit_test(signals_reach_the_process_group),
        cmocka_unit_test(signals_outside_the_run_stage_do_nothing),
        cmocka_unit_test(the_cost_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
