#include "box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "init/init.h"
#include "tests/support/require.h"

#define DEADLINE_MS  60000
#define INPUT_MAX    (4U << 20)
#define SETUP_FAILED 90
#define BY_SIGNAL    100 /* added to the number of the signal that ended init */

static const char *program;

void box_use_program(const char *path)
{
    program = path;
}

static void limit_processes(rlim_t n)
{
    struct rlimit limit;
    (void)getrlimit(RLIMIT_NPROC, &limit); /* cannot fail */
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    (void)setrlimit(RLIMIT_NPROC, &limit); /* nor can this: below the hard limit */
}

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, strerrordesc_np(errno));
    _exit(SETUP_FAILED);
}

static void become_the_user(const struct box_options *o)
{
    if (o->no_processes)
        limit_processes(1);
    if (setgroups(0, NULL) < 0 || setresgid(BOX_UID, BOX_UID, BOX_UID) < 0 ||
        setresuid(BOX_UID, BOX_UID, BOX_UID) < 0)
        give_up("setresuid");
}

/* Process 1. */
static _Noreturn void first(const struct box_options *o, int in, int out)
{
    if (o->has_proc && mount("proc", "/proc", "proc", 0, NULL) < 0)
        give_up("mount /proc");
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0)
        give_up("dup2");
    const struct rlimit small = {4096, 4096};
    if (o->small_files && setrlimit(RLIMIT_FSIZE, &small) < 0)
        give_up("setrlimit");
    if (o->keep_id)
        become_the_user(o);
    if (program) {
        char *const argv[] = {(char[]){"code-runner-init"}, NULL};
        char *const env[] = {NULL};
        (void)execve(program, argv, env);
        give_up(program);
    }
    struct err err = {0};
    if (init_guard(&err) < 0) {
        (void)fprintf(stderr, "%s\n", err.msg);
        _exit(INIT_REFUSED);
    }
    int end = init_run(0, 1);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* the leak checker traces its process */
    limit_processes(RLIM_INFINITY);           /* from another one */
    exit(end);                                /* NOLINT(concurrency-mt-unsafe): one thread */
}

/* Between the test and process 1: only children of a process that unshared are in the new namespace. */
static _Noreturn void helper(const struct box_options *o, int in, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (unshare(CLONE_NEWPID | (o->has_proc ? CLONE_NEWNS : 0)) < 0)
        give_up("unshare");
    if (o->has_proc && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        give_up("make mounts private");
    pid_t pid = fork();
    if (pid < 0)
        give_up("fork");
    if (pid == 0)
        first(o, in, out);
    (void)close(in); /* or it would keep the stream open */
    (void)close(out);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            give_up("waitpid");
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : BY_SIGNAL + WTERMSIG(status));
}

void box_need_namespaces(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* init ends by itself after a FAULT */
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 || setresuid(0, 0, 0) < 0);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        skip_without("root", "needs root, pid and mount namespaces");
}

static void make_streams(struct box *b, int theirs[static 2])
{
    int a[2];
    int c[2];
    if (!b->options.uses_pipes) {
        assert_int_equal(fd_socketpair(a), 0);
        b->in = b->out = a[0];
        theirs[0] = theirs[1] = a[1];
        return;
    }
    assert_int_equal(fd_pipe(a), 0);
    assert_int_equal(fd_pipe(c), 0);
    b->in = a[1];
    b->out = c[0];
    theirs[0] = a[0];
    theirs[1] = c[1];
}

void box_open(struct box *b, struct box_options options)
{
    *b = (struct box){.options = options, .cwd = "/tmp/init-test-XXXXXX"};
    buf_init(&b->input, INPUT_MAX);
    assert_non_null(mkdtemp(b->cwd));
    assert_int_equal(chown(b->cwd, BOX_UID, BOX_UID), 0);
    int theirs[2];
    make_streams(b, theirs);
    (void)fflush(NULL); /* what is buffered now must not come out of the child too */
    b->helper = fork();
    assert_true(b->helper >= 0);
    if (b->helper == 0) {
        (void)close(b->in);
        if (b->in != b->out)
            (void)close(b->out);
        helper(&options, theirs[0], theirs[1]);
    }
    (void)close(theirs[0]);
    if (theirs[0] != theirs[1])
        (void)close(theirs[1]);
    struct frame ready;
    box_expect(b, FRAME_READY, &ready);
    uint32_t version = 0;
    assert_int_equal(frame_u32_decode(ready.payload, &version, NULL), 0);
    assert_int_equal(version, FRAME_VERSION);
}

static void remove_tree(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        (void)unlinkat(dir_fd, name, 0);
        return;
    }
    DIR *dir = fdopendir(fd);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) /* NOLINT(concurrency-mt-unsafe): one thread */
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove_tree(fd, e->d_name);
    (void)closedir(dir);
    (void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

void box_wait(struct box *b, int want)
{
    int status = 0;
    assert_int_equal(waitpid(b->helper, &status, 0), b->helper);
    if (b->in >= 0)
        (void)close(b->in);
    if (b->out >= 0 && b->out != b->in)
        (void)close(b->out);
    buf_done(&b->input);
    remove_tree(AT_FDCWD, b->cwd);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != want)
        fail_msg("init ended with %d (%x), not with %d", WEXITSTATUS(status), (unsigned)status,
                 want);
}

void box_close(struct box *b, int want)
{
    (void)close(b->in);
    if (b->out != b->in)
        (void)close(b->out);
    b->in = b->out = -1;
    box_wait(b, want);
}

void box_send_raw(struct box *b, const void *bytes, size_t n)
{
    int r = fd_write_full(b->in, bytes, n);
    if (r < 0 && r != -EPIPE && r != -ECONNRESET) /* what it sent last says why it is gone */
        fail_msg("write to init: %s", strerrordesc_np(-r));
}

void box_send(struct box *b, enum frame_type type, const void *payload, size_t n)
{
    uint8_t header[FRAME_HEADER_BYTES];
    frame_header(type, (uint32_t)n, header);
    box_send_raw(b, header, sizeof(header));
    box_send_raw(b, payload, n);
}

void box_spec(struct box *b, char *const *compile, char *const *run)
{
    char *env[] = {(char[]){"PATH=/nowhere:/usr/bin:/bin"}, (char[]){"WORD=two words"}, NULL};
    uint32_t id = b->options.keep_id ? FRAME_KEEP_ID : BOX_UID;
    const struct frame_spec spec = {
        .uid = id,
        .gid = id,
        .compile = (char **)(uintptr_t)compile,
        .run = (char **)(uintptr_t)run,
        .env = env,
        .cwd = b->cwd,
    };
    cleanup_buf struct buf out;
    buf_init(&out, FRAME_PAYLOAD_MAX + FRAME_HEADER_BYTES);
    assert_int_equal(frame_spec_encode(&out, &spec), 0);
    box_send_raw(b, out.data, out.len);
}

void box_file(struct box *b, const char *path, uint32_t mode, const void *bytes, size_t n)
{
    const struct frame_file file = {mode, n, span_str(path)};
    cleanup_buf struct buf out;
    buf_init(&out, 8192);
    assert_int_equal(frame_file_encode(&out, FRAME_FILE, &file), 0);
    box_send_raw(b, out.data, out.len);
    for (size_t at = 0; at < n;) {
        size_t part = n - at < FRAME_PAYLOAD_MAX ? n - at : FRAME_PAYLOAD_MAX;
        box_send(b, FRAME_DATA, (const char *)bytes + at, part);
        at += part;
    }
}

void box_start_shell(struct box *b, const char *script)
{
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)script, NULL};
    box_spec(b, NULL, argv);
    box_send(b, FRAME_START, NULL, 0);
}

/* false at the end of the stream. */
static bool fill(struct box *b)
{
    buf_consume(&b->input, b->used);
    b->used = 0;
    struct pollfd slot = {.fd = b->out, .events = POLLIN};
    if (poll(&slot, 1, DEADLINE_MS) != 1)
        fail_msg("init said nothing for a minute");
    char *room = buf_reserve(&b->input, 65536);
    assert_non_null(room);
    ssize_t n = read(b->out, room, 65536);
    if (n <= 0)
        return false;
    buf_commit(&b->input, (size_t)n);
    return true;
}

bool box_next(struct box *b, struct frame *ret)
{
    for (;;) {
        struct err err = {0};
        size_t n = 0;
        struct span rest = {b->input.data ? b->input.data + b->used : "", b->input.len - b->used};
        int r = frame_decode(rest, FRAME_FROM_INIT, ret, &n, &err);
        if (r < 0)
            fail_msg("init sent no frame: %s", err.msg);
        b->used += r == 0 ? n : 0;
        if (r == 0)
            return true;
        if (!fill(b))
            return false;
    }
}

void box_expect(struct box *b, enum frame_type type, struct frame *ret)
{
    if (!box_next(b, ret))
        fail_msg("the stream ended before %s", frame_type_name(type));
    struct frame_fault fault = {0};
    if (ret->type == FRAME_FAULT && type != FRAME_FAULT &&
        frame_fault_decode(ret->payload, &fault, NULL) == 0)
        fail_msg("FAULT \"%.*s\": %s", (int)fault.text.len, fault.text.ptr,
                 strerrordesc_np(fault.error));
    if (ret->type != type)
        fail_msg("%s came before %s", frame_type_name(ret->type), frame_type_name(type));
}

void outcome_init(struct outcome *o)
{
    *o = (struct outcome){0};
    buf_init(&o->out, 64U << 20);
    buf_init(&o->err, 64U << 20);
}

void outcome_done(struct outcome *o)
{
    buf_done(&o->out);
    buf_done(&o->err);
}

static void note_stage(struct outcome *o, char stage)
{
    size_t n = strlen(o->stages);
    assert_true(n + 1 < sizeof(o->stages));
    o->stages[n] = stage;
}

/* Whether the job is over. */
static bool note(struct outcome *o, const struct frame *f)
{
    struct frame_fault fault;
    uint8_t stage = 0;
    uint32_t taken = 0;
    if (f->type == FRAME_STDOUT || f->type == FRAME_STDERR) {
        assert_int_equal(
            buf_append(f->type == FRAME_STDOUT ? &o->out : &o->err, f->payload.ptr, f->payload.len),
            0);
        if (!strchr(o->stages, 'C') && !strchr(o->stages, 'R'))
            fail_msg("output before a STAGE");
    } else if (f->type == FRAME_STDIN_TAKEN) {
        assert_int_equal(frame_u32_decode(f->payload, &taken, NULL), 0);
        o->taken += taken;
    } else if (f->type == FRAME_STAGE) {
        assert_int_equal(frame_u8_decode(f->payload, &stage, NULL), 0);
        note_stage(o, stage == FRAME_STAGE_COMPILE ? 'C' : 'R');
    } else if (f->type == FRAME_COMPILED) {
        note_stage(o, 'c');
        assert_int_equal(frame_exit_decode(f->payload, &o->compiled, NULL), 0);
    } else if (f->type == FRAME_EXITED) {
        note_stage(o, 'r');
        assert_int_equal(frame_exit_decode(f->payload, &o->exited, NULL), 0);
        return true;
    } else if (f->type == FRAME_FAULT) {
        assert_int_equal(frame_fault_decode(f->payload, &fault, NULL), 0);
        o->fault = fault.error;
        memcpy(o->fault_text, fault.text.ptr, fault.text.len);
        return true;
    } else {
        fail_msg("%s came", frame_type_name(f->type));
    }
    return false;
}

void box_run(struct box *b, struct outcome *o, const char *in, size_t n)
{
    size_t sent = 0;
    bool has_eof = in == NULL;
    uint64_t before = o->taken;
    for (;;) {
        size_t credit = FRAME_STDIN_CREDIT - (sent - (size_t)(o->taken - before));
        if (!has_eof && sent < n && credit > 0) {
            size_t part = n - sent < credit ? n - sent : credit;
            box_send(b, FRAME_STDIN, in + sent, part);
            sent += part;
        }
        if (!has_eof && sent == n) {
            box_send(b, FRAME_STDIN_EOF, NULL, 0);
            has_eof = true;
        }
        struct frame frame;
        if (!box_next(b, &frame) || note(o, &frame))
            return;
        if (frame.type == FRAME_COMPILED && o->compiled.signal == 0 && o->compiled.code != 0)
            return;
    }
}

void box_until_output(struct box *b, struct outcome *o, size_t n)
{
    struct frame frame;
    while (o->out.len < n)
        if (!box_next(b, &frame) || note(o, &frame))
            fail_msg("the job ended after %zu bytes: %s", o->out.len, o->fault_text);
}

void box_until_stage(struct box *b, struct outcome *o, char stage)
{
    struct frame frame;
    while (!strchr(o->stages, stage))
        if (!box_next(b, &frame) || note(o, &frame))
            fail_msg("the job ended before stage %c: %s", stage, o->fault_text);
}

void box_shell(struct box_options options, const char *script, struct outcome *o)
{
    struct box b;
    box_open(&b, options);
    box_start_shell(&b, script);
    box_run(&b, o, "", 0);
    box_close(&b, o->fault ? INIT_FAULTED : INIT_STREAM_ENDED);
}
