#include "process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "owner.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* the same on every architecture */
#endif

#define NOFILE_MAX     65536
#define LOOKUP_MAX     (1U << 20)
#define SIGNALS        64 /* of the kernel, on every architecture we build for */
#define EXEC_FAILED_RC 127
#define REPORT_FD      3 /* the child's only descriptor besides its stdio */

enum step { STEP_SESSION, STEP_STDIO, STEP_GROUP, STEP_USER, STEP_CWD, STEP_EXEC, STEP_COUNT };

static const char *const step_names[STEP_COUNT] = {
    [STEP_SESSION] = "setsid",      [STEP_STDIO] = "dup2",    [STEP_GROUP] = "become group of",
    [STEP_USER] = "become user of", [STEP_CWD] = "chdir for", [STEP_EXEC] = "exec",
};

struct report {
    int step;
    int error;
};

/* Everything the child needs, made before the fork. */
struct plan {
    const struct frame_spec *spec;
    char *const *argv;
    struct buf lookup; /* the paths to try, each with its NUL */
    int stdio[3];
    int report;
};

void process_kill_all(void)
{
    if (getpid() != 1)
        abort();             /* anywhere else this would kill the machine's processes */
    (void)kill(-1, SIGKILL); /* ESRCH: nobody is left */
}

void process_close_from(int first)
{
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
        return;
    struct rlimit limit = {NOFILE_MAX, NOFILE_MAX}; /* Linux before 5.9 */
    (void)getrlimit(RLIMIT_NOFILE, &limit);         /* cannot fail */
    int end = limit.rlim_cur < NOFILE_MAX ? (int)limit.rlim_cur : NOFILE_MAX;
    for (int fd = first; fd < end; fd++)
        (void)close(fd); /* most are not open */
}

static const char *path_of(char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return PROCESS_PATH;
}

static int append_candidate(struct buf *out, const char *dir, size_t n, const char *name)
{
    int r = buf_append(out, dir, n);
    if (r == 0 && n > 0)
        r = buf_append_byte(out, '/');
    return r < 0 ? r : buf_append(out, name, strlen(name) + 1);
}

static int make_lookup(const char *name, char *const *env, struct buf *out)
{
    if (strchr(name, '/'))
        return append_candidate(out, NULL, 0, name);
    for (const char *dir = path_of(env); dir;) {
        const char *colon = strchr(dir, ':');
        size_t n = colon ? (size_t)(colon - dir) : strlen(dir);
        int r = append_candidate(out, dir, n, name); /* an empty entry is the working directory */
        if (r < 0)
            return r == -EMSGSIZE ? -E2BIG : r;
        dir = colon ? colon + 1 : NULL;
    }
    return 0;
}

/* Straight to the kernel: libc's sigaction() refuses the two real-time signals that it keeps for
 * itself, and whoever started us may have had them ignored. All zero is SIG_DFL without flags, whatever
 * the order of the kernel's fields is. */
static void reset_signals(void)
{
    const unsigned long by_default[8] = {0};
    for (int sig = 1; sig <= SIGNALS; sig++)
        (void)syscall(SYS_rt_sigaction, sig, by_default, NULL, SIGNALS / 8); /* KILL, STOP refuse */
    sigset_t none;
    (void)sigemptyset(&none);                    /* neither can fail */
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* NOLINT(concurrency-mt-unsafe): one thread */
}

/* The program goes before init when memory runs out. Its /proc entries are root's while it is not
 * dumpable; nobody else is alive who could use this moment, and exec sets the flag anyway. */
static void offer_to_the_oom_killer(void)
{
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* a failure shows in open */
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* a box without /proc: only the choice is worse */
    (void)!write(fd, "1000", 4);
    (void)close(fd);
}

static int become(const struct frame_spec *spec, enum step *step)
{
    if (spec->uid == FRAME_KEEP_ID)
        return 0;
    *step = STEP_GROUP;
    if (setgroups(0, NULL) < 0 || setresgid(spec->gid, spec->gid, spec->gid) < 0)
        return -1;
    *step = STEP_USER;
    return setresuid(spec->uid, spec->uid, spec->uid);
}

/* Tries each candidate as execvp(3) does: on to the next only when this one is not a program we may
 * run, and "not allowed" is told rather than "not there". Returns the errno. */
static int exec_first(const struct plan *plan)
{
    int error = ENOENT;
    const char *end = plan->lookup.data + plan->lookup.len;
    for (const char *path = plan->lookup.data; path < end; path += strlen(path) + 1) {
        (void)execve(path, plan->argv, plan->spec->env); /* returns only when it failed */
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            return errno;
        if (error != EACCES)
            error = errno;
    }
    return error;
}

/* Async-signal-safe calls only. */
static _Noreturn void child(const struct plan *plan)
{
    int report_fd = plan->report;
    enum step step = STEP_SESSION;
    if (setsid() < 0)
        goto failed;
    step = STEP_STDIO;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(plan->stdio[fd], fd) < 0) /* ours are all above 2 */
            goto failed;
    if (report_fd != REPORT_FD && dup3(report_fd, REPORT_FD, O_CLOEXEC) < 0)
        goto failed;
    report_fd = REPORT_FD;
    process_close_from(REPORT_FD + 1);
    reset_signals();
    (void)umask(022); /* cannot fail */
    offer_to_the_oom_killer();
    if (become(plan->spec, &step) < 0)
        goto failed;
    step = STEP_CWD;
    if (chdir(plan->spec->cwd) < 0)
        goto failed;
    step = STEP_EXEC;
    errno = exec_first(plan);
failed:;
    const struct report report = {(int)step, errno};
    (void)!write(report_fd, &report, sizeof(report)); /* fits into an empty pipe */
    _exit(EXEC_FAILED_RC);
}

void process_close(struct process *p)
{
    int *const fds[] = {&p->exec, &p->in, &p->out[0], &p->out[1]};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        cleanup_close int fd = fd_take(fds[i]);
        (void)fd; /* closed by its cleanup */
    }
}

/* A pipe of which we keep ret_ours, non-blocking, and the child gets *ret_theirs. */
static int make_pipe(bool we_read, int *ret_ours, int *ret_theirs)
{
    int fds[2];
    int r = fd_pipe(fds);
    if (r < 0)
        return r;
    *ret_ours = fds[we_read ? 0 : 1];
    *ret_theirs = fds[we_read ? 1 : 0];
    return fd_set_nonblock(*ret_ours, 1);
}

static int make_stdio(struct process *p, int theirs[static 4], bool has_stdin, struct err *err)
{
    int r = 0;
    if (has_stdin) {
        r = make_pipe(false, &p->in, &theirs[0]);
    } else {
        theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (theirs[0] < 0)
            return err_say(err, -errno, "open /dev/null");
    }
    for (int i = 0; i < 2 && r == 0; i++)
        r = make_pipe(true, &p->out[i], &theirs[i + 1]);
    if (r == 0)
        r = make_pipe(true, &p->exec, &theirs[3]);
    return r < 0 ? err_say(err, r, "make pipes") : 0;
}

static int start(const struct frame_spec *spec, char *const *argv, struct process *p,
                 const int theirs[static 4], struct err *err)
{
    struct plan plan = {
        .spec = spec,
        .argv = argv,
        .stdio = {theirs[0], theirs[1], theirs[2]},
        .report = theirs[3],
    };
    for (int i = 0; i < 4; i++)
        assert(theirs[i] > 2);
    buf_init(&plan.lookup, LOOKUP_MAX);
    int r = make_lookup(argv[0], spec->env, &plan.lookup);
    if (r < 0) {
        r = err_say(err, r, "look %.200s up in PATH", argv[0]);
    } else {
        p->pid = fork();
        if (p->pid == 0)
            child(&plan);
        if (p->pid < 0)
            r = err_say(err, -errno, "fork for %.200s", argv[0]);
    }
    buf_done(&plan.lookup);
    return r;
}

int process_start(const struct frame_spec *spec, char *const *argv, bool has_stdin,
                  struct process *ret, struct err *err)
{
    struct process p = {.pid = -1, .exec = -1, .in = -1, .out = {-1, -1}};
    int theirs[4] = {-1, -1, -1, -1};
    const struct owner owner = {spec->uid, spec->gid};
    int r = owner_enter(owner, err); /* or the program could not open its own /dev/stdout */
    if (r == 0)
        r = make_stdio(&p, theirs, has_stdin, err);
    if (r == 0)
        r = owner_leave(owner, err);
    if (r == 0)
        r = start(spec, argv, &p, theirs, err);
    for (int i = 0; i < 4; i++)
        cleanup_close_slot(&theirs[i]);
    if (r < 0) {
        process_close(&p);
        return r;
    }
    *ret = p;
    return 0;
}

int process_check_exec(struct process *p, const struct frame_spec *spec, char *const *argv,
                       struct err *err)
{
    struct report report;
    ssize_t n = read(p->exec, &report, sizeof(report));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return PROCESS_PENDING;
    cleanup_close int done = fd_take(&p->exec);
    (void)done; /* closed by its cleanup */
    if (n != (ssize_t)sizeof(report))
        return 0; /* closed by exec, or by death */
    if (report.step < 0 || report.step >= STEP_COUNT || report.error <= 0)
        return err_say(err, -EIO, "start %.200s", argv[0]);
    if (report.step == STEP_CWD)
        return err_say(err, -report.error, "chdir %.300s", spec->cwd);
    return err_say(err, -report.error, "%s %.300s", step_names[report.step], argv[0]);
}
