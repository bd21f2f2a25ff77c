#include "init/init.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "feed.h"
#include "files.h"
#include "stage.h"
#include "stream.h"

#define KILL_AGAIN_MS 20 /* for what was not killed the first time, of another user for example */

#define LAST_KILLS 1000 /* a millisecond apart */

/* What the worker may still say. KILL goes to OVER from anywhere. */
enum phase {
    PHASE_SPEC,   /* READY was sent */
    PHASE_FILES,  /* the spec came; the gate is closed */
    PHASE_STAGES, /* compile, run */
    PHASE_OVER,   /* nothing runs any more; waits for the end of the stream */
};

struct init {
    struct stream stream;
    struct frame_spec spec;
    struct files files;
    struct feed feed;
    struct stage stage;
    enum phase phase;
    bool is_killed;
    bool has_exited; /* EXITED was sent */
    int signals;     /* signalfd for SIGCHLD */
};

enum slot {
    SLOT_IN,
    SLOT_OUT,
    SLOT_SIGNALS,
    SLOT_EXEC,
    SLOT_STDOUT,
    SLOT_STDERR,
    SLOT_STDIN,
    SLOTS
};

/* PID 1 is deaf to what has its default action anyway on Linux; other kernels (gVisor) are told. */
static void ignore_signals(void)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    for (int sig = 1; sig < NSIG; sig++)
        if (sig != SIGCHLD)
            (void)sigaction(sig, &ignored, NULL); /* KILL, STOP and libc's own refuse */
    sigset_t children;
    (void)sigemptyset(&children); /* none of these three can fail */
    (void)sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &children, NULL); /* NOLINT(concurrency-mt-unsafe): one thread */
}

int init_guard(struct err *err)
{
    if (getpid() != 1)
        return err_say(err, -EPERM,
                       "must be process 1 of a pid namespace of its own, is process %d",
                       (int)getpid());
    for (int fd = 0; fd < 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            return err_set(err, -errno, "descriptor %d, the stream to the worker", fd);
    if (fcntl(2, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != 2)
        return err_set(err, -EBADF, "descriptor 2"); /* a pipe must never get this number */
    process_close_from(3);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_set(err, -errno, "prctl dumpable");
    ignore_signals();
    (void)umask(022); /* cannot fail */
    return 0;
}

static int queue_failed(int r, const char *what, struct err *err)
{
    return r < 0 ? err_say(err, r, "queue %s", what) : 0;
}

static int tell_taken(struct init *i, struct err *err)
{
    uint32_t n = feed_take_count(&i->feed);
    if (n == 0)
        return 0;
    return queue_failed(frame_u32_encode(&i->stream.output, FRAME_STDIN_TAKEN, n), "STDIN_TAKEN",
                        err);
}

/* The one EXITED of this sandbox, and the end of its job. */
static int end_job(struct init *i, const struct frame_exit *end, struct err *err)
{
    i->phase = PHASE_OVER;
    i->has_exited = true;
    files_close(&i->files);
    feed_drop(&i->feed);
    int r = tell_taken(i, err);
    if (r < 0)
        return r;
    return queue_failed(frame_exit_encode(&i->stream.output, FRAME_EXITED, end), "EXITED", err);
}

static int end_killed(struct init *i, struct err *err)
{
    const struct frame_exit killed = {.code = -1, .signal = SIGKILL};
    return end_job(i, &killed, err);
}

static int start_stage(struct init *i, enum frame_stage which, struct err *err)
{
    int r = stage_start(&i->stage, which, &i->spec, err);
    if (r == 0 && which == FRAME_STAGE_RUN)
        feed_open_take(&i->feed, fd_take(&i->stage.process.in));
    return r;
}

static int finish_stage(struct init *i, struct err *err)
{
    const struct frame_exit end = i->stage.end;
    i->stage.state = STAGE_IDLE;
    if (i->stage.which == FRAME_STAGE_RUN)
        return end_job(i, &end, err);

    int r =
        queue_failed(frame_exit_encode(&i->stream.output, FRAME_COMPILED, &end), "COMPILED", err);
    if (r < 0)
        return r;
    if (i->is_killed)
        return end_killed(i, err);
    if (end.code == 0)
        return start_stage(i, FRAME_STAGE_RUN, err);
    i->phase = PHASE_OVER;
    feed_drop(&i->feed);
    return 0;
}

static int out_of_order(const struct frame *frame, struct err *err)
{
    return err_say(err, -EPROTO, "frame %s is out of order", frame_type_name(frame->type));
}

static int take_spec(struct init *i, const struct frame *frame, struct err *err)
{
    if (i->phase != PHASE_SPEC)
        return out_of_order(frame, err);
    int r = frame_spec_decode(frame->payload, &i->spec, err);
    if (r < 0)
        return r;
    if (i->spec.rows != 0)
        return err_say(err, -ENOTSUP, "terminals are not supported");
    i->phase = PHASE_FILES;
    return files_open(&i->files, &i->spec, err);
}

static int take_file(struct init *i, const struct frame *frame, struct err *err)
{
    if (i->phase != PHASE_FILES || files_is_busy(&i->files))
        return out_of_order(frame, err);
    struct frame_file file;
    int r = frame_file_decode(frame->payload, &file, err);
    return r < 0 ? r : files_begin(&i->files, &file, err);
}

static int take_data(struct init *i, const struct frame *frame, struct err *err)
{
    if (i->phase != PHASE_FILES || (!files_is_busy(&i->files) && frame->payload.len > 0))
        return out_of_order(frame, err);
    return files_data(&i->files, frame->payload, err);
}

static int take_start(struct init *i, const struct frame *frame, struct err *err)
{
    if (i->phase != PHASE_FILES || files_is_busy(&i->files))
        return out_of_order(frame, err);
    files_close(&i->files);
    i->phase = PHASE_STAGES;
    return start_stage(i, i->spec.compile ? FRAME_STAGE_COMPILE : FRAME_STAGE_RUN, err);
}

static int take_stdin(struct init *i, const struct frame *frame, struct err *err)
{
    if (i->phase == PHASE_SPEC)
        return out_of_order(frame, err);
    return feed_put(&i->feed, frame->payload, err);
}

static int take_eof(struct init *i, const struct frame *frame, struct err *err)
{
    if (i->phase == PHASE_SPEC)
        return out_of_order(frame, err);
    feed_eof(&i->feed);
    return 0;
}

static int take_signal(struct init *i, const struct frame *frame, struct err *err)
{
    static const int allowed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
    uint8_t number = 0;
    int r = frame_u8_decode(frame->payload, &number, err);
    if (r < 0)
        return r;
    bool is_allowed = false;
    for (size_t k = 0; k < ARRAY_LEN(allowed); k++)
        is_allowed |= allowed[k] == number;
    if (!is_allowed)
        return err_say(err, -EPROTO, "SIGNAL %u is none a program may be sent", number);
    if (i->phase == PHASE_STAGES && i->stage.which == FRAME_STAGE_RUN)
        stage_signal(&i->stage, number);
    return 0;
}

static int take_kill(struct init *i, struct err *err)
{
    i->is_killed = true;
    if (i->phase == PHASE_STAGES) {
        process_kill_all(); /* COMPILED and EXITED, or EXITED, follow from its death */
        return 0;
    }
    return i->has_exited ? 0 : end_killed(i, err);
}

static int take_frame(struct init *i, const struct frame *frame, struct err *err)
{
    /* KILL overtakes on the worker's side too: what was under way when it came changes nothing. */
    bool is_moot = i->is_killed && i->phase == PHASE_OVER;
    switch (frame->type) {
    case FRAME_SPEC:
        return is_moot ? 0 : take_spec(i, frame, err);
    case FRAME_FILE:
        return is_moot ? 0 : take_file(i, frame, err);
    case FRAME_DATA:
        return is_moot ? 0 : take_data(i, frame, err);
    case FRAME_START:
        return is_moot ? 0 : take_start(i, frame, err);
    case FRAME_STDIN:
        return take_stdin(i, frame, err);
    case FRAME_STDIN_EOF:
        return take_eof(i, frame, err);
    case FRAME_SIGNAL:
        return take_signal(i, frame, err);
    case FRAME_KILL:
        return take_kill(i, err);
    case FRAME_RESIZE:
        return err_say(err, -ENOTSUP, "terminals are not supported");
    case FRAME_COLLECT:
        return err_say(err, -ENOTSUP, "artifacts are not supported");
    case FRAME_READY:
    case FRAME_STAGE:
    case FRAME_STDOUT:
    case FRAME_STDERR:
    case FRAME_STDIN_TAKEN:
    case FRAME_USAGE:
    case FRAME_COMPILED:
    case FRAME_EXITED:
    case FRAME_ARTIFACT:
    case FRAME_COLLECTED:
    case FRAME_FAULT:
        break; /* the decoder refused them already */
    }
    return out_of_order(frame, err);
}

/* 0, STREAM_END or a negative errno. */
static int take_input(struct init *i, struct err *err)
{
    int r = stream_fill(&i->stream);
    if (r < 0)
        return err_say(err, r, "read the stream");
    if (r == STREAM_END)
        return STREAM_END;
    struct frame frame;
    while ((r = stream_next(&i->stream, &frame, err)) == 0) {
        r = take_frame(i, &frame, err);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : 0;
}

static void prepare(const struct init *i, struct pollfd slots[static SLOTS])
{
    const struct stage *stage = &i->stage;
    bool reads = stage_reads_output(stage) && stream_has_room(&i->stream);
    slots[SLOT_IN] = (struct pollfd){.fd = i->stream.in, .events = POLLIN};
    slots[SLOT_OUT] = (struct pollfd){.fd = i->stream.out};
    slots[SLOT_OUT].events = i->stream.output.len > 0 ? POLLOUT : 0;
    slots[SLOT_SIGNALS] = (struct pollfd){.fd = i->signals, .events = POLLIN};
    slots[SLOT_EXEC] = (struct pollfd){.fd = -1, .events = POLLIN};
    if (stage->state == STAGE_STARTING)
        slots[SLOT_EXEC].fd = stage->process.exec;
    slots[SLOT_STDOUT] = (struct pollfd){.fd = reads ? stage->process.out[0] : -1};
    slots[SLOT_STDERR] = (struct pollfd){.fd = reads ? stage->process.out[1] : -1};
    slots[SLOT_STDOUT].events = slots[SLOT_STDERR].events = POLLIN;
    slots[SLOT_STDIN] = (struct pollfd){.fd = feed_poll_fd(&i->feed), .events = POLLOUT};
}

static void drain_signals(int fd)
{
    struct signalfd_siginfo info;
    (void)!read(fd, &info, sizeof(info)); /* one, as SIGCHLD does not queue; who died wait4 tells */
}

/* What happened to the stage since the last time. 0 or a negative errno. */
static int advance_stage(struct init *i, const struct pollfd slots[static SLOTS], struct err *err)
{
    struct stage *stage = &i->stage;
    int r = 0;
    if (slots[SLOT_EXEC].revents != 0 && stage->state == STAGE_STARTING)
        r = stage_check_exec(stage, &i->stream, err);
    if (slots[SLOT_SIGNALS].revents != 0)
        drain_signals(i->signals);
    if (r == 0 && (slots[SLOT_SIGNALS].revents != 0 || stage->state == STAGE_DYING ||
                   stage->has_more_to_reap))
        r = stage_reap(stage, &i->stream, err);
    if (r < 0)
        return r;
    if (stage->which == FRAME_STAGE_RUN && stage->state > STAGE_RUNNING)
        feed_drop(&i->feed);
    if (slots[SLOT_STDOUT].revents != 0 || slots[SLOT_STDERR].revents != 0 ||
        stage->state == STAGE_DRAINING)
        stage_move_output(stage, &i->stream);
    return stage->state == STAGE_DONE ? finish_stage(i, err) : 0;
}

static int timeout_of(const struct stage *stage)
{
    if (stage->has_more_to_reap)
        return 0;
    return stage->state == STAGE_DYING ? KILL_AGAIN_MS : -1;
}

/* One turn of the loop. 0, STREAM_END or a negative errno. */
static int turn(struct init *i, struct err *err)
{
    struct pollfd slots[SLOTS];
    prepare(i, slots);
    if (poll(slots, SLOTS, timeout_of(&i->stage)) < 0)
        return errno == EINTR ? 0 : err_say(err, -errno, "poll");
    if (slots[SLOT_OUT].revents & (POLLERR | POLLHUP | POLLNVAL))
        return STREAM_END;
    int r = 0;
    if (slots[SLOT_IN].revents != 0)
        r = take_input(i, err);
    if (r == 0)
        r = advance_stage(i, slots, err);
    if (r != 0)
        return r;
    feed_write(&i->feed);
    if (stream_has_room(&i->stream))
        r = tell_taken(i, err);
    return r < 0 ? r : stream_flush(&i->stream);
}

/* Says why and waits until it is said, at most INIT_FAULT_WAIT_MS. */
static void send_fault(struct init *i, const struct err *err)
{
    process_kill_all();
    const struct frame_fault fault = {.error = err->code < 0 ? -err->code : EIO,
                                      .text = span_str(err->msg)};
    if (frame_fault_encode(&i->stream.output, &fault) < 0)
        return; /* the room kept for control frames is never used up */
    int64_t deadline_ms = clock_now_ms() + INIT_FAULT_WAIT_MS;
    while (stream_flush(&i->stream) == 0 && i->stream.output.len > 0) {
        struct pollfd slots[] = {{.fd = i->stream.in, .events = POLLIN},
                                 {.fd = i->stream.out, .events = POLLOUT}};
        int timeout_ms = clock_poll_timeout(deadline_ms);
        if (timeout_ms == 0 || poll(slots, ARRAY_LEN(slots), timeout_ms) < 0)
            return;
        buf_clear(&i->stream.input); /* a worker that still writes must get to reading */
        i->stream.used = 0;
        if (slots[0].revents != 0 && stream_fill(&i->stream) == STREAM_END)
            return;
    }
}

/* What does not die in a second (or may not be killed by us) dies with process 1 all the same. */
static void reap_everything(void)
{
    pid_t pid = 0;
    for (int n = 0; n < LAST_KILLS && pid >= 0; n++) {
        process_kill_all();
        do
            pid = waitpid(-1, NULL, WNOHANG | __WALL);
        while (pid > 0);
        if (pid == 0)
            (void)poll(NULL, 0, 1); /* a millisecond */
    }
}

static int open_all(struct init *i, int in, int out, struct err *err)
{
    int r = stream_init(&i->stream, in, out);
    if (r < 0)
        return err_set(err, r, "set up the stream");
    sigset_t children;
    (void)sigemptyset(&children); /* neither can fail */
    (void)sigaddset(&children, SIGCHLD);
    i->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (i->signals < 0)
        return err_set(err, -errno, "signalfd");
    return queue_failed(frame_u32_encode(&i->stream.output, FRAME_READY, FRAME_VERSION), "READY",
                        err);
}

static void close_all(struct init *i)
{
    cleanup_close_slot(&i->signals);
    stage_done(&i->stage);
    feed_done(&i->feed);
    files_close(&i->files);
    frame_spec_done(&i->spec);
    stream_done(&i->stream);
}

int init_run(int in, int out)
{
    struct init i = {.signals = -1};
    files_init(&i.files);
    feed_init(&i.feed);
    stage_init(&i.stage);
    struct err err = {0};
    int end = INIT_STREAM_ENDED;
    int r = open_all(&i, in, out, &err);
    if (r < 0) {
        (void)dprintf(STDERR_FILENO, "code-runner-init: %s\n", err.msg); /* last words */
        close_all(&i);
        return INIT_REFUSED;
    }
    r = stream_flush(&i.stream);
    while (r == 0)
        r = turn(&i, &err);
    if (r < 0) {
        send_fault(&i, &err);
        end = INIT_FAULTED;
    }
    reap_everything();
    close_all(&i);
    return end;
}
