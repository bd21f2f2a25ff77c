/* Programs that want to outlive, blind, stop, read or flood init. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "box.h"
#include "init/init.h"

static const struct box_options plain = {0};

static void a_grandchild_that_keeps_the_pipes_is_killed(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    box_shell(plain,
              "(setsid sh -c 'echo from below; touch up; exec sleep 1000' &);"
              "while test ! -e up; do sleep 0.01; done; echo bye; exit 6",
              &o);
    assert_int_equal(o.exited.code, 6);
    assert_string_equal(o.out.data, "from below\nbye\n");
    assert_string_equal(o.stages, "Rr");
}

static void orphans_are_reaped(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    const struct box_options with_proc = {.has_proc = true};
    /* every zombie keeps its number: with init not reaping, 300 of them would still be here */
    box_shell(with_proc,
              "i=0; while [ $i -lt 300 ]; do (true &); i=$((i+1)); done;"
              "while grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | grep -q .; do :; done;"
              "echo clean",
              &o);
    assert_int_equal(o.exited.code, 0);
    assert_string_equal(o.out.data, "clean\n");
}

static void a_storm_of_orphans_does_not_blind_init(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    box_start_shell(&b, "for k in 1 2 3 4; do (while :; do (true &); done &); done; echo up;"
                        "while :; do (true &); done");
    box_until_output(&b, &o, 3);
    static char some[4096];
    for (int k = 0; k < 8; k++) { /* it still takes stdin */
        box_send(&b, FRAME_STDIN, some, sizeof(some));
        struct frame frame;
        box_expect(&b, FRAME_STDIN_TAKEN, &frame);
    }
    box_send(&b, FRAME_KILL, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_int_equal(o.exited.signal, SIGKILL);
}

static void init_cannot_be_signalled(void **state)
{
    (void)state;
    /* with init's own uid, so that only being deaf protects it */
    const struct box_options same_user = {.keep_id = true};
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    box_shell(same_user,
#if IS_SANITIZED
              "no=11;" /* the sanitizer's own handler */
#else
              "no=0;"
#endif
              "i=1; while [ $i -le 64 ]; do [ $i = $no ] || kill -$i 1; i=$((i+1)); done;"
              "kill -0 1 && echo alive",
              &o);
    assert_int_equal(o.exited.code, 0);
    assert_string_equal(o.out.data, "alive\n");
}

static void init_cannot_be_read(void **state)
{
    (void)state;
    static const struct box_options variants[] = {
        {.keep_id = true, .has_proc = true},
        {.has_proc = true},
    };
    for (size_t k = 0; k < ARRAY_LEN(variants); k++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        /* each line that opens something says so; $$ shows that the same is open where it may be */
        box_shell(variants[k],
                  "for p in 1 $$; do"
                  " ls /proc/$p/fd >/dev/null 2>&1 && echo fd $p;"
                  " (: </proc/$p/mem) 2>/dev/null && echo mem $p;"
                  " (: >/proc/$p/mem) 2>/dev/null && echo write $p;"
                  " (: </proc/$p/environ) 2>/dev/null && echo environ $p;"
                  " (: >/proc/$p/fd/1) 2>/dev/null && echo stream $p;"
                  " cat /proc/$p/maps 2>/dev/null | grep -q . && echo maps $p;"
                  " readlink /proc/$p/exe >/dev/null && echo exe $p;"
                  "done | sed \"s/ $$\\$/ self/\"",
                  &o);
        assert_string_equal(o.out.data, "fd self\nmem self\nwrite self\nenviron self\nstream self\n"
                                        "maps self\nexe self\n");
    }
}

static void no_process_left_means_a_fault(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    const struct box_options none = {.keep_id = true, .no_processes = true};
    box_shell(none, "true", &o);
    assert_int_equal(o.fault, EAGAIN);
    assert_string_equal(o.fault_text, "fork for sh");
}

/* Resident memory of the box's process 1, in KiB; it is the only child of the helper. */
static long resident_kib(const struct box *b)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)b->helper, (int)b->helper);
    cleanup_free char *child = NULL;
    size_t n = 0;
    assert_int_equal(fd_read_file(path, 256, &child, &n), 0);
    cleanup_buf struct buf status;
    buf_init(&status, 128);
    assert_int_equal(buf_appendf(&status, "/proc/%ld/status", strtol(child, NULL, 10)), 0);
    cleanup_free char *text = NULL;
    assert_int_equal(fd_read_file(status.data, 16384, &text, &n), 0);
    const char *line = strstr(text, "VmRSS:");
    assert_non_null(line);
    return strtol(line + 6, NULL, 10);
}

/* Waits until the program, which writes a byte to this file for each chunk of output, stands still:
 * no progress in twenty looks. Looking too early makes the test weaker, never wrong. */
static off_t wait_until_stuck(const struct box *b)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/progress", b->cwd);
    off_t last = 0;
    for (int same = 0; same < 20;) {
        struct stat st = {0};
        (void)stat(path, &st); /* not there yet */
        same = st.st_size > 0 && st.st_size == last ? same + 1 : 0;
        last = st.st_size;
        (void)poll(NULL, 0, 10);
    }
    return last;
}

static void a_worker_that_does_not_read_stops_the_program(void **state)
{
    (void)state;
    const struct box_options variants[] = {{0}, {.uses_pipes = true}};
    const int chunks = 2000;
    for (size_t v = 0; v < ARRAY_LEN(variants); v++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, variants[v]);
        box_start_shell(&b, "i=0; while [ $i -lt 2000 ]; do head -c 10000 /dev/zero;"
                            "printf . >>progress; i=$((i+1)); done; echo >&2 end; exit 5");
        box_until_stage(&b, &o, 'R');
        long before = resident_kib(&b);
        off_t progress = wait_until_stuck(&b);
        long after = resident_kib(&b);
        if (progress >= chunks)
            fail_msg("init took %lld chunks that nobody read", (long long)progress);
        if (after - before > 4096)
            fail_msg("init grew from %ld to %ld KiB", before, after);
        box_send(&b, FRAME_STDIN, "x", 1); /* taken although no output moves */
        box_run(&b, &o, NULL, 0);
        box_close(&b, INIT_STREAM_ENDED);
        assert_int_equal(o.out.len, chunks * 10000);
        assert_string_equal(o.err.data, "end\n");
        assert_int_equal(o.exited.code, 5);
        assert_int_equal(o.taken, 1);
    }
}

/* Every byte that the program got rid of comes out, also what was in its pipe when it died. */
static void a_kill_loses_nothing_that_was_written(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, (struct box_options){.uses_pipes = true});
    box_start_shell(&b, "while :; do head -c 10000 /dev/zero; printf . >>progress; done");
    off_t progress = wait_until_stuck(&b);
    box_send(&b, FRAME_KILL, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_int_equal(o.exited.signal, SIGKILL);
    if (o.out.len < (size_t)progress * 10000)
        fail_msg("%lld bytes were written, %zu came out", (long long)progress * 10000, o.out.len);
}

static void a_kill_passes_a_full_stream(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    box_start_shell(&b, "yes");
    box_until_output(&b, &o, 1U << 20);
    box_send(&b, FRAME_KILL, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_int_equal(o.exited.signal, SIGKILL);
    for (size_t k = 0; k < o.out.len; k++)
        assert_int_equal(o.out.data[k], k % 2 ? '\n' : 'y');
}

/* A fifo in the box's folder: what opened it for writing and lives keeps it from its end. */
static int watch_alive(const struct box *b)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/alive", b->cwd);
    assert_int_equal(mkfifo(path, 0622), 0);
    assert_int_equal(chmod(path, 0622), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void the_end_of_the_stream_kills_everything(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "exec 9>alive; trap '' HUP TERM INT; (setsid sleep 1000 &); echo up; while :; do :; done",
        "exec 9>alive; echo up; yes >&2", /* and the stream is full */
        "exec 9>alive; echo up; exec sleep 1000",
    };
    for (size_t k = 0; k < 2 * ARRAY_LEN(scripts); k++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, (struct box_options){.uses_pipes = k % 2 == 1});
        int alive = watch_alive(&b);
        box_start_shell(&b, scripts[k / 2]);
        box_until_output(&b, &o, 3);
        char byte;
        assert_int_equal(read(alive, &byte, 1), -1); /* EAGAIN: somebody lives */
        assert_int_equal(errno, EAGAIN);
        box_close(&b, INIT_STREAM_ENDED);
        assert_int_equal(read(alive, &byte, 1), 0); /* the end: nobody does */
        (void)close(alive);
    }
}

static void a_fault_kills_everything(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, plain);
    int alive = watch_alive(&b);
    box_start_shell(&b, "exec 9>alive; (setsid sleep 1000 &); echo up; yes");
    box_until_output(&b, &o, 3);
    box_send(&b, FRAME_COLLECT, NULL, 0);
    box_run(&b, &o, NULL, 0);
    assert_int_equal(o.fault, ENOTSUP);
    box_wait(&b, INIT_FAULTED);
    char byte;
    assert_int_equal(read(alive, &byte, 1), 0);
    (void)close(alive);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        box_use_program(argv[1]);
    box_need_namespaces();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grandchild_that_keeps_the_pipes_is_killed),
        cmocka_unit_test(orphans_are_reaped),
        cmocka_unit_test(a_storm_of_orphans_does_not_blind_init),
        cmocka_unit_test(init_cannot_be_signalled),
        cmocka_unit_test(init_cannot_be_read),
        cmocka_unit_test(no_process_left_means_a_fault),
        cmocka_unit_test(a_worker_that_does_not_read_stops_the_program),
        cmocka_unit_test(a_kill_loses_nothing_that_was_written),
        cmocka_unit_test(a_kill_passes_a_full_stream),
        cmocka_unit_test(the_end_of_the_stream_kills_everything),
        cmocka_unit_test(a_fault_kills_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
