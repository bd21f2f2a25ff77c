#include "session/session.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "session_internal.h"

enum state { CLAIMED, OPENING, GATE, COMPILING, RUNNING, KILLING, CLOSING };

void session_decide(struct session *s, enum job_outcome outcome, const char *reason)
{
    if (s->decided)
        return;
    s->decided = true;
    s->report.outcome = outcome;
    (void)snprintf(s->report.reason, sizeof(s->report.reason), "%.*s",
                   (int)sizeof(s->report.reason) - 1, reason ? reason : "");
    s->end_ms = clock_now_ms();
}

static int say_stage(struct session *s, const char *phase)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "{\"phase\":\"%s\"}", phase);
    struct event e = {.type = EVENT_STAGE, .data = {text, (size_t)n}};
    return bus_event_append(s->options->bus, s->fence, &e, NULL);
}

static int lost(struct session *s)
{
    return err_set(&s->failure, -ESTALE, "the job was given to another worker");
}

/* ---- frames from init ---- */

static int on_stage(struct session *s, struct span payload)
{
    uint8_t stage = 0;
    int r = frame_u8_decode(payload, &stage, &s->failure);
    if (r < 0)
        return r;
    bool compile = stage == FRAME_STAGE_COMPILE;
    bool in_order = s->started && (compile ? s->spec->compile && !s->stage
                                           : !s->run_ms && (s->compiled || !s->spec->compile));
    if (!in_order)
        return err_set(&s->failure, -EBADMSG, "init began stage %u out of order", stage);
    s->stage = (enum frame_stage)stage;
    r = output_stage(&s->output, compile, (uint64_t)s->spec->limits.output_kb * 1024);
    if (r == 0)
        r = say_stage(s, compile ? "compiling" : "running");
    if (r == 0 && !compile) {
        s->run_ms = s->active_ms = clock_now_ms();
        r = bus_status_set(s->options->bus, s->fence, JOB_RUNNING);
    }
    return r;
}

static int on_output(struct session *s, enum output_stream stream, struct span bytes)
{
    if (!s->stage)
        return err_set(&s->failure, -EBADMSG, "init sent output before any stage");
    bool kept;
    int r = output_add(&s->output, stream, bytes, &kept);
    if (kept)
        s->active_ms = clock_now_ms();
    return r;
}

static int on_stdin_taken(struct session *s, struct span payload)
{
    uint32_t n = 0;
    int r = frame_u32_decode(payload, &n, &s->failure);
    if (r < 0)
        return r;
    if (n > FRAME_STDIN_CREDIT - s->stdin_credit)
        return err_set(&s->failure, -EBADMSG, "init took %u bytes of stdin that it never got", n);
    s->stdin_credit += n;
    s->active_ms = clock_now_ms();
    bus_stdin_taken(s->options->bus, s->fence, n);
    return 0;
}

static int on_exit_frame(struct session *s, const struct frame *f)
{
    bool compile = f->type == FRAME_COMPILED;
    bool *seen = compile ? &s->compiled : &s->exited;
    if (*seen || !s->started)
        return err_set(&s->failure, -EBADMSG, "init sent %s out of order",
                       frame_type_name(f->type));
    *seen = true;
    return frame_exit_decode(f->payload, compile ? &s->compile_exit : &s->run_exit, &s->failure);
}

static int on_fault(struct session *s, struct span payload)
{
    struct frame_fault fault;
    int r = frame_fault_decode(payload, &fault, &s->failure);
    if (r < 0)
        return r;
    s->fault = true;
    return err_set(&s->failure, -fault.error, "%.*s", (int)fault.text.len, fault.text.ptr);
}

static int on_frame(struct session *s, const struct frame *f)
{
    uint32_t version = 0;
    if (!s->ready && f->type != FRAME_READY && f->type != FRAME_FAULT)
        return err_set(&s->failure, -EBADMSG, "init sent %s before READY",
                       frame_type_name(f->type));
    switch (f->type) {
    case FRAME_READY:
        if (s->ready || frame_u32_decode(f->payload, &version, &s->failure) < 0 ||
            version != FRAME_VERSION)
            return err_set(&s->failure, -EBADMSG, "init speaks version %u, not %u", version,
                           FRAME_VERSION);
        s->ready = true;
        return 0;
    case FRAME_STAGE:
        return on_stage(s, f->payload);
    case FRAME_STDOUT:
        return on_output(s, OUTPUT_STDOUT, f->payload);
    case FRAME_STDERR:
        return on_output(s, OUTPUT_STDERR, f->payload);
    case FRAME_STDIN_TAKEN:
        return on_stdin_taken(s, f->payload);
    case FRAME_COMPILED:
    case FRAME_EXITED:
        return on_exit_frame(s, f);
    case FRAME_FAULT:
        return on_fault(s, f->payload);
    case FRAME_USAGE:
        return 0; /* not asked for yet */
    case FRAME_ARTIFACT:
    case FRAME_COLLECTED:
    case FRAME_DATA:
    case FRAME_SPEC:
    case FRAME_FILE:
    case FRAME_START:
    case FRAME_STDIN:
    case FRAME_STDIN_EOF:
    case FRAME_SIGNAL:
    case FRAME_RESIZE:
    case FRAME_KILL:
    case FRAME_COLLECT:
        break;
    }
    return err_set(&s->failure, -EBADMSG, "init sent an unexpected %s", frame_type_name(f->type));
}

static int take_frames(struct session *s)
{
    size_t before = s->link.in.len - s->link.in_at;
    int r = link_fill(&s->link);
    if (r < 0)
        return err_set(&s->failure, r, "read from the sandbox");
    if (s->link.in.len > before) {
        s->heard = true;
        s->last_heard_ms = clock_now_ms();
    }
    struct frame f;
    while (!s->exited && (r = link_next(&s->link, &f, &s->failure)) == 0) {
        r = on_frame(s, &f);
        if (r != 0)
            return r < 0 ? r : lost(s);
    }
    if (r < 0)
        return r;
    if (s->link.ended && !s->exited)
        return err_say(&s->failure, -EPIPE, "the sandbox ended unexpectedly");
    return 0;
}

/* ---- control from callers ---- */

static int on_control(struct session *s, const struct control *c)
{
    const uint8_t number = (uint8_t)c->signal;
    switch (c->type) {
    case CONTROL_START:
        s->started = true;
        return 0;
    case CONTROL_STDIN:
        s->stdin_credit -= (uint32_t)c->data.len;
        return frame_encode(&s->link.out, FRAME_STDIN, c->data.ptr, c->data.len);
    case CONTROL_STDIN_EOF:
        if (!s->ready_ms) {
            s->eof_held = true;
            return 0;
        }
        return frame_encode(&s->link.out, FRAME_STDIN_EOF, NULL, 0);
    case CONTROL_SIGNAL:
        if (!s->run_ms)
            return 0; /* nobody is there to get it */
        return frame_encode(&s->link.out, FRAME_SIGNAL, &number, 1);
    case CONTROL_KILL:
        s->kill_requested = true;
        return 0;
    }
    return 0;
}

/* Before init has its spec only start, EOF and kill are taken; stdin stays with the bus, which keeps
 * the order. After that init can always hold all that the bus lets callers send. */
static int take_control(struct session *s)
{
    void *tag;
    while (bus_watcher_next(s->watcher, &tag))
        ;
    s->control_waits = false;
    struct control_batch batch;
    size_t room = s->ready_ms ? s->stdin_credit : 0;
    int r = bus_control_take(s->options->bus, s->fence, room, &batch);
    if (r != 0)
        return r < 0 ? err_set(&s->failure, r, "read control messages") : lost(s);
    if (batch.kill)
        s->kill_requested = true;
    for (size_t i = 0; r == 0 && i < batch.len; i++)
        r = on_control(s, &batch.items[i]);
    control_batch_done(&batch);
    return r < 0 ? err_set(&s->failure, r, "queue a control message for init") : 0;
}

/* ---- waiting ---- */

enum { POLL_SANDBOX, POLL_CONTROL, POLL_DRAIN, POLL_COUNT };

static int move_bytes(struct session *s)
{
    int r = link_flush(&s->link);
    /* EPIPE: init has ended its side; what it said before is still to be read. */
    if (r < 0 && r != -EPIPE && r != -ECONNRESET)
        return err_set(&s->failure, r, "write to the sandbox");
    if (r < 0)
        buf_clear(&s->link.out);
    r = take_frames(s);
    return r < 0 ? r : 0;
}

int session_step(struct session *s, int64_t deadline_ms)
{
    s->heard = false;
    int64_t flush_ms = output_deadline_ms(&s->output);
    int timeout = clock_poll_timeout(flush_ms < deadline_ms ? flush_ms : deadline_ms);
    struct pollfd fds[POLL_COUNT] = {
        [POLL_SANDBOX] = {.fd = s->sandbox && !s->link_down ? sandbox_poll_fd(s->sandbox) : -1,
                          .events =
                              (short)(link_pending(&s->link) > 0 ? POLLIN | POLLOUT : POLLIN)},
        [POLL_CONTROL] = {.fd = bus_watcher_fd(s->watcher), .events = POLLIN},
        [POLL_DRAIN] = {.fd = s->drain ? -1 : s->options->drain_fd, .events = POLLIN},
    };
    if (s->control_waits || (s->sandbox && sandbox_read_pending(s->sandbox)))
        timeout = 0;
    if (poll(fds, POLL_COUNT, timeout) < 0 && errno != EINTR)
        return err_set(&s->failure, -errno, "poll");

    if (fds[POLL_DRAIN].revents)
        s->drain = true;
    int r = 0;
    if (fds[POLL_CONTROL].revents || s->control_waits)
        r = take_control(s);
    if (r == 0 && s->sandbox && !s->link_down)
        r = move_bytes(s);
    if (r == 0 && output_deadline_ms(&s->output) <= clock_now_ms())
        r = output_flush(&s->output);
    if (r > 0)
        r = lost(s);
    if (r < 0) {
        s->link_down = true;
        if (s->failure.code == 0)
            (void)err_set(&s->failure, r, "keep the output");
        return r;
    }
    if (s->exited)
        return 0; /* it ended by itself before anything else could end it */
    if (s->kill_requested)
        session_decide(s, OUTCOME_KILLED, "The job was killed by request.");
    else if (s->drain)
        session_decide(s, OUTCOME_DRAINED, "The server is shutting down.");
    return 0;
}

/* What a broken sandbox means depends on whether the program had begun. */
static enum state broken(struct session *s)
{
    session_decide(s, s->run_ms ? OUTCOME_WORKER_LOST : OUTCOME_SETUP_FAILED, s->failure.msg);
    s->report.output_lost = s->report.output_lost || s->run_ms;
    return CLOSING;
}

/* ---- the states ---- */

static enum state claimed(struct session *s)
{
    struct bus_watch *watch;
    int r = bus_watcher_new(s->options->bus, &s->watcher, &s->failure);
    if (r == 0)
        r = bus_watch_add(s->watcher, s->spec->id, BUS_WATCH_CONTROL, NULL, &watch);
    if (r == 0)
        r = say_stage(s, "queued");
    if (r == 0)
        return OPENING;
    if (s->failure.code == 0)
        (void)err_set(&s->failure, r < 0 ? r : -ESTALE, "take the job over");
    return broken(s);
}

static enum state opening(struct session *s)
{
    int r = session_setup(s);
    s->control_waits = true; /* stdin that came early may go to init now */
    if (r < 0)
        return broken(s);
    return s->decided ? CLOSING : GATE;
}

static enum state gate(struct session *s)
{
    int64_t deadline_ms = s->ready_ms + s->options->warmup_ms;
    if (s->eof_held && frame_encode(&s->link.out, FRAME_STDIN_EOF, NULL, 0) < 0)
        return broken(s);
    while (!s->started) {
        if (session_step(s, deadline_ms) < 0)
            return broken(s);
        if (s->decided)
            return CLOSING;
        if (!s->started && clock_now_ms() >= deadline_ms) {
            session_decide(s, OUTCOME_START_TIMEOUT,
                           "No start came while the sandbox was kept ready.");
            return CLOSING;
        }
    }
    s->start_ms = clock_now_ms();
    int r = bus_status_set(s->options->bus, s->fence, JOB_STARTING);
    if (r == 0)
        r = frame_encode(&s->link.out, FRAME_START, NULL, 0);
    if (r != 0) {
        (void)(r < 0 ? err_set(&s->failure, r, "start the job") : lost(s));
        return broken(s);
    }
    return s->spec->compile ? COMPILING : RUNNING;
}

/* One step of a stage; true while it goes on. */
static bool goes_on(struct session *s, enum state *ret_next)
{
    if (session_step(s, clocks_deadline_ms(s)) < 0) {
        *ret_next = broken(s);
        return false;
    }
    if (!s->decided && !s->exited)
        clocks_check(s);
    if (s->decided)
        *ret_next = KILLING;
    return !s->decided;
}

static enum state compiling(struct session *s)
{
    enum state next = RUNNING;
    while (!s->compiled && !s->exited)
        if (!goes_on(s, &next))
            return next;
    if (s->compile_exit.code == 0)
        return RUNNING;
    session_decide(s, OUTCOME_COMPILE_FAILED, "The compile stage failed.");
    return CLOSING;
}

static enum state running(struct session *s)
{
    enum state next = CLOSING;
    while (!s->exited)
        if (!goes_on(s, &next))
            break;
    if (s->exited) {
        bool signaled = s->run_exit.signal != 0;
        session_decide(s, signaled ? OUTCOME_SIGNALED : OUTCOME_EXITED, NULL);
        return CLOSING;
    }
    return next;
}

/* Why the job ends is decided; init is asked to end it, so that nothing already written is lost. */
static enum state killing(struct session *s)
{
    s->kill_sent_ms = s->last_heard_ms = clock_now_ms();
    if (frame_encode(&s->link.out, FRAME_KILL, NULL, 0) < 0)
        s->link_down = true;
    int64_t last_ms = s->kill_sent_ms + SESSION_KILL_TOTAL_MS;
    while (!s->exited && !s->link_down && !s->fault) {
        int64_t quiet_ms = s->last_heard_ms + SESSION_KILL_QUIET_MS;
        int64_t deadline_ms = quiet_ms < last_ms ? quiet_ms : last_ms;
        if (clock_now_ms() >= deadline_ms || session_step(s, deadline_ms) < 0)
            break;
    }
    if (!s->exited) {
        s->report.output_lost = true;
        struct err err = {0};
        if (sandbox_kill(s->sandbox, &err) < 0)
            log_warn("session.kill_failed", LOG_STR("job_id", s->spec->id), LOG_ERR(&err));
    }
    return CLOSING;
}

void session_run(const struct session_options *o, struct claim *claim_consume)
{
    struct session s = {
        .options = o,
        .claim = claim_consume,
        .spec = claim_consume->spec,
        .fence = &claim_consume->fence,
        .stdin_credit = FRAME_STDIN_CREDIT,
        .claimed_ms = clock_now_ms(),
        .control_waits = true,
    };
    job_report_init(&s.report);
    s.report.queue_ms = claim_consume->queue_ms;
    link_init(&s.link, NULL);
    output_init(&s.output, o->bus, s.fence, s.spec->collect_output,
                (uint64_t)s.spec->limits.output_kb * 1024);

    enum state state = CLAIMED;
    while (state != CLOSING) {
        switch (state) {
        case CLAIMED:
            state = claimed(&s);
            break;
        case OPENING:
            state = opening(&s);
            break;
        case GATE:
            state = gate(&s);
            break;
        case COMPILING:
            state = compiling(&s);
            break;
        case RUNNING:
            state = running(&s);
            break;
        case KILLING:
            state = killing(&s);
            break;
        case CLOSING:
            break;
        }
    }
    session_finish(&s);
    link_done(&s.link);
    output_done(&s.output);
    bus_watcher_free(s.watcher);
    claim_done(claim_consume);
}
