#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "fake_sandbox.h"
#include "frames/frames.h"
#include "test.h"

#define JOB "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

/* ---- the init side, in the fake's thread: plain blocking frames ---- */

static void put(int fd, enum frame_type type, const void *bytes, size_t n)
{
    cleanup_buf struct buf out;
    buf_init(&out, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX);
    if (frame_encode(&out, type, bytes, n) == 0)
        (void)fd_write_full(fd, out.data, out.len);
}

static void put_ready(int fd)
{
    put(fd, FRAME_READY, "\0\0\0\1", 4);
}

static void put_run(int fd)
{
    put(fd, FRAME_STAGE, "\2", 1);
}

static void put_exit(int fd, enum frame_type type, int code, int signal)
{
    cleanup_buf struct buf out;
    buf_init(&out, 4096);
    const struct frame_exit e = {.code = code, .signal = signal, .wall_us = 7000};
    if (frame_exit_encode(&out, type, &e) == 0)
        (void)fd_write_full(fd, out.data, out.len);
}

/* Reads one frame; its type, 0 at the end. payload has room for any. */
static int get(int fd, char *payload, size_t *ret_len)
{
    uint8_t header[FRAME_HEADER_BYTES];
    if (fd_read_full(fd, header, sizeof(header)) != (ssize_t)sizeof(header))
        return 0;
    size_t n = u32be(header + 2);
    if (fd_read_full(fd, payload, n) != (ssize_t)n)
        return 0;
    if (ret_len)
        *ret_len = n;
    return header[0];
}

static bool await(int fd, enum frame_type type)
{
    char *payload = malloc(FRAME_PAYLOAD_MAX);
    int got = 1;
    while (payload && got && got != (int)type)
        got = get(fd, payload, NULL);
    free(payload);
    return got == (int)type;
}

static void init_prints(int fd)
{
    put_ready(fd);
    if (!await(fd, FRAME_START))
        return;
    put_run(fd);
    put(fd, FRAME_STDOUT, "out", 3);
    put(fd, FRAME_STDERR, "err", 3);
    put_exit(fd, FRAME_EXITED, 3, 0);
}

/* Echoes stdin until its end. */
static void init_echoes(int fd)
{
    char *payload = malloc(FRAME_PAYLOAD_MAX);
    size_t n = 0;
    put_ready(fd);
    cleanup_buf struct buf held;
    buf_init(&held, FRAME_STDIN_CREDIT);
    bool eof = false;
    bool started = false;
    for (int type = 1; payload && type && !(started && eof);) {
        type = get(fd, payload, &n);
        if (type == FRAME_STDIN)
            (void)buf_append(&held, payload, n);
        eof = eof || type == FRAME_STDIN_EOF;
        started = started || type == FRAME_START;
    }
    free(payload);
    if (!started || !eof)
        return;
    put_run(fd);
    const uint8_t taken[4] = {0, 0, 0, (uint8_t)held.len};
    put(fd, FRAME_STDIN_TAKEN, taken, 4);
    put(fd, FRAME_STDOUT, held.data, held.len);
    put_exit(fd, FRAME_EXITED, 0, 0);
}

static void init_waits_for_kill(int fd)
{
    put_ready(fd);
    if (!await(fd, FRAME_START))
        return;
    put_run(fd);
    if (!await(fd, FRAME_KILL))
        return;
    put(fd, FRAME_STDOUT, "last words", 10);
    put_exit(fd, FRAME_EXITED, -1, 9);
}

static void init_ignores_kill(int fd)
{
    put_ready(fd);
    if (await(fd, FRAME_START))
        put_run(fd);
    (void)await(fd, FRAME_SIGNAL); /* never sent: until the stream ends */
}

static void init_never_gets_ready(int fd)
{
    (void)await(fd, FRAME_SIGNAL);
}

static void init_faults(int fd)
{
    static const char payload[] = "\0\0\0\2exec python3";
    put_ready(fd);
    if (await(fd, FRAME_START))
        put(fd, FRAME_FAULT, payload, sizeof(payload) - 1);
}

static void init_dies_at_once(int fd)
{
    put_ready(fd);
}

static void init_dies_while_running(int fd)
{
    put_ready(fd);
    if (await(fd, FRAME_START))
        put_run(fd);
}

static void init_lies(int fd)
{
    put_ready(fd);
    put(fd, FRAME_STDOUT, "too early", 9);
    (void)await(fd, FRAME_SIGNAL);
}

static void init_fails_to_compile(int fd)
{
    put_ready(fd);
    if (!await(fd, FRAME_START))
        return;
    put(fd, FRAME_STAGE, "\1", 1);
    put(fd, FRAME_STDERR, "syntax", 6);
    put_exit(fd, FRAME_COMPILED, 1, 0);
    (void)await(fd, FRAME_SIGNAL);
}

/* ---- one job ---- */

struct trial {
    void (*init)(int fd);
    bool no_start, kill, drain, compile, out_of_memory, collect;
    bool kill_when_running;
    const char *input; /* sent before the claim, then EOF */
    int64_t wall_ms, idle_ms, warmup_ms;
    int open_error;
    /* filled in */
    struct bus *bus;
    struct sandbox_backend backend;
};

static char *copy(const char *s)
{
    char *c = strdup(s);
    assert_non_null(c);
    return c;
}

static char **list(const char *word)
{
    char **l = calloc(2, sizeof(*l));
    assert_non_null(l);
    l[0] = copy(word);
    return l;
}

static void control(struct trial *t, enum control_type type, const char *text)
{
    const struct control c = {.type = type, .data = span_str(text)};
    assert_int_equal(bus_control_append(t->bus, JOB, &c), 0);
}

static void *kill_when_running(void *arg)
{
    struct trial *t = arg;
    struct job_status status = {.state = JOB_QUEUED};
    while (bus_status(t->bus, JOB, &status) == 0 && status.state != JOB_RUNNING)
        (void)poll(NULL, 0, 1);
    const struct control c = {.type = CONTROL_KILL};
    (void)bus_control_append(t->bus, JOB, &c);
    return NULL;
}

static struct job_spec *spec_of(const struct trial *t)
{
    struct job_spec *spec = calloc(1, sizeof(*spec));
    assert_non_null(spec);
    memcpy(spec->id, JOB, JOB_ID_SIZE);
    spec->language = copy("python");
    spec->version = copy("3.13");
    spec->image = copy("image");
    spec->entrypoint = copy("main.py");
    spec->run = list("python3");
    spec->compile = t->compile ? list("cc") : NULL;
    spec->collect_output = t->collect;
    spec->files = calloc(1, sizeof(*spec->files));
    assert_non_null(spec->files);
    spec->files_len = 1;
    spec->files[0] = (struct job_file){copy("main.py"), copy("print()"), 7};
    spec->limits = (struct limits){.wall_ms = t->wall_ms ? t->wall_ms : 60000,
                                   .idle_ms = t->idle_ms ? t->idle_ms : 60000,
                                   .cpu_ms = 60000,
                                   .memory_mb = 64,
                                   .pids = 8,
                                   .output_kb = 64,
                                   .max_artifacts = 1,
                                   .max_artifact_bytes = 1};
    return spec;
}

static void play(struct trial *t)
{
    const struct bus_memory_options o = {.queue_depth_max = 1,
                                         .job_ttl_ms = 1000000,
                                         .result_ttl_ms = 1000000,
                                         .memory_max_bytes = 1 << 20};
    assert_int_equal(bus_memory_new(&o, &t->bus, NULL), 0);
    assert_int_equal(bus_submit_take(t->bus, spec_of(t), NULL), 0);
    if (!t->no_start)
        control(t, CONTROL_START, NULL);
    if (t->input) {
        control(t, CONTROL_STDIN, t->input);
        control(t, CONTROL_STDIN_EOF, NULL);
    }
    struct claim claim;
    assert_int_equal(bus_claim(t->bus, "w", 0, &claim, NULL), 0);
    if (t->kill)
        control(t, CONTROL_KILL, NULL);
    cleanup_close int drain_fd = fd_eventfd();
    if (t->drain)
        fd_notify(drain_fd);
    t->backend = (struct sandbox_backend){
        .init = t->init, .open_error = t->open_error, .out_of_memory = t->out_of_memory};
    const struct session_options options = {.bus = t->bus,
                                            .backend = &t->backend,
                                            .worker_id = "w",
                                            .warmup_ms = t->warmup_ms ? t->warmup_ms : 60000,
                                            .drain_fd = drain_fd};
    pthread_t killer = 0;
    if (t->kill_when_running)
        assert_int_equal(pthread_create(&killer, NULL, kill_when_running, t), 0);
    session_run(&options, &claim);
    if (t->kill_when_running)
        assert_int_equal(pthread_join(killer, NULL), 0);
    assert_int_equal(t->backend.opened, t->backend.closed);
}

/* The events as "type:data|", the result and report as their names alone. */
static void assert_events(struct trial *t, const char *want)
{
    struct event_batch batch;
    assert_int_equal(bus_event_read(t->bus, JOB, 0, 1 << 20, &batch), 0);
    assert_true(batch.end);
    cleanup_buf struct buf got;
    buf_init(&got, 1 << 20);
    for (size_t i = 0; i < batch.len; i++) {
        const struct event *e = &batch.items[i];
        bool brief = e->type == EVENT_REPORT || e->type == EVENT_RESULT;
        assert_int_equal(buf_appendf(&got, "%s:%.*s|", event_type_name(e->type),
                                     brief ? 0 : (int)e->data.len, e->data.ptr),
                         0);
    }
    event_batch_done(&batch);
    assert_string_equal(got.data, want);
}

static void assert_end(struct trial *t, enum job_state state, const char *in_report)
{
    struct job_status status;
    assert_int_equal(bus_status(t->bus, JOB, &status), 0);
    assert_int_equal(status.state, state);
    cleanup_buf struct buf report;
    buf_init(&report, 1 << 16);
    assert_int_equal(bus_report(t->bus, JOB, &report), 0);
    if (!strstr(report.data, in_report))
        fail_msg("%s is not in %s", in_report, report.data);
}

#define QUEUED  "stage:{\"phase\":\"queued\"}|"
#define RUNNING "stage:{\"phase\":\"running\"}|"
#define END     "report:|result:|"

static void a_program_that_prints_and_exits(void **state)
{
    (void)state;
    struct trial t = {.init = init_prints, .collect = true};
    play(&t);
    assert_events(&t, QUEUED RUNNING "stdout:out|stderr:err|" END);
    assert_end(&t, JOB_DONE, "\"outcome\":\"exited\",\"reason\":null,\"exitCode\":3");
    cleanup_buf struct buf output;
    buf_init(&output, 1 << 16);
    assert_int_equal(bus_output(t.bus, JOB, &output), 0);
    assert_non_null(strstr(output.data, "\"stdout\":\"out\",\"stderr\":\"err\""));
    bus_free(t.bus);
}

static void stdin_and_eof_from_before_the_claim_arrive(void **state)
{
    (void)state;
    struct trial t = {.init = init_echoes, .input = "hello"};
    play(&t);
    assert_events(&t, QUEUED RUNNING "stdout:hello|" END);
    bus_free(t.bus);
}

static void eof_alone_arrives(void **state)
{
    (void)state;
    struct trial t = {.init = init_echoes, .input = ""};
    play(&t);
    assert_events(&t, QUEUED RUNNING END);
    assert_end(&t, JOB_DONE, "\"exitCode\":0");
    bus_free(t.bus);
}

static void a_kill_keeps_the_last_words(void **state)
{
    (void)state;
    struct trial t = {.init = init_waits_for_kill, .kill_when_running = true};
    play(&t);
    assert_events(&t, QUEUED RUNNING "stdout:last words|" END);
    assert_end(&t, JOB_KILLED, "\"outcome\":\"killed\"");
    assert_end(&t, JOB_KILLED, "\"outputLost\":false");
    assert_int_equal(t.backend.killed, 0);
    bus_free(t.bus);
}

static void an_init_that_does_not_answer_is_killed_from_outside(void **state)
{
    (void)state;
    struct trial t = {.init = init_ignores_kill, .wall_ms = 20};
    play(&t);
    assert_end(&t, JOB_ERROR, "\"outcome\":\"wall_timeout\"");
    assert_end(&t, JOB_ERROR, "\"outputLost\":true");
    assert_end(&t, JOB_ERROR, "\"limit\":{\"name\":\"wallTimeMs\",\"value\":20}");
    assert_int_equal(t.backend.killed, 1);
    bus_free(t.bus);
}

static void every_other_end(void **state)
{
    (void)state;
    const struct {
        const char *name;
        struct trial trial;
        enum job_state state;
        const char *in_report;
    } cases[] = {
        {"killed before start",
         {.init = init_prints, .kill = true, .no_start = true},
         JOB_KILLED,
         "\"outcome\":\"killed\""},
        {"killed while opening",
         {.init = init_never_gets_ready, .kill = true},
         JOB_KILLED,
         "\"outcome\":\"killed\""},
        {"no start",
         {.init = init_prints, .no_start = true, .warmup_ms = 20},
         JOB_ERROR,
         "\"outcome\":\"start_timeout\""},
        {"shutting down",
         {.init = init_prints, .no_start = true, .drain = true},
         JOB_ERROR,
         "\"outcome\":\"drained\""},
        {"idle",
         {.init = init_waits_for_kill, .idle_ms = 20},
         JOB_ERROR,
         "\"outcome\":\"idle_timeout\""},
        {"no sandbox",
         {.init = init_prints, .open_error = -EHOSTDOWN},
         JOB_ERROR,
         "\"reason\":\"open the fake: Host is down\""},
        {"exec failed",
         {.init = init_faults},
         JOB_ERROR,
         "\"reason\":\"exec python3: No such file or directory\""},
        {"init gone before start",
         {.init = init_dies_at_once, .no_start = true},
         JOB_ERROR,
         "\"outcome\":\"setup_failed\""},
        {"init gone while running",
         {.init = init_dies_while_running},
         JOB_ERROR,
         "\"outcome\":\"worker_lost\",\"reason\":\"the sandbox ended unexpectedly\""},
        {"what went with it", {.init = init_dies_while_running}, JOB_ERROR, "\"outputLost\":true"},
        {"out of memory took init",
         {.init = init_dies_while_running, .out_of_memory = true},
         JOB_DONE,
         "\"outcome\":\"out_of_memory\""},
        {"out of memory, yet it exited",
         {.init = init_prints, .out_of_memory = true},
         JOB_DONE,
         "\"limit\":{\"name\":\"memoryMb\",\"value\":64}"},
        {"protocol error",
         {.init = init_lies, .no_start = true},
         JOB_ERROR,
         "\"outcome\":\"setup_failed\""},
        {"compile error",
         {.init = init_fails_to_compile, .compile = true},
         JOB_ERROR,
         "\"outcome\":\"compile_failed\""},
        {"stage that was not asked for",
         {.init = init_fails_to_compile},
         JOB_ERROR,
         "\"outcome\":\"setup_failed\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trial t = cases[i].trial;
        print_message("  %s\n", cases[i].name);
        play(&t);
        assert_end(&t, cases[i].state, cases[i].in_report);
        bus_free(t.bus);
    }
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* the fake init may write to a session that has gone */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_prints_and_exits),
        cmocka_unit_test(stdin_and_eof_from_before_the_claim_arrive),
        cmocka_unit_test(eof_alone_arrives),
        cmocka_unit_test(a_kill_keeps_the_last_words),
        cmocka_unit_test(an_init_that_does_not_answer_is_killed_from_outside),
        cmocka_unit_test(every_other_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
