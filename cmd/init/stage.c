#include "stage.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

/* A program that makes orphans without end must not keep us from the stream. */
#define REAPS_PER_TURN 128

static const enum frame_type output_types[] = {FRAME_STDOUT, FRAME_STDERR};

void stage_init(struct stage *s)
{
    *s = (struct stage){.process = {.pid = -1, .exec = -1, .in = -1, .out = {-1, -1}}};
}

void stage_done(struct stage *s)
{
    process_close(&s->process);
}

bool stage_reads_output(const struct stage *s)
{
    return s->state == STAGE_RUNNING || s->state == STAGE_DYING || s->state == STAGE_DRAINING;
}

static char **argv_of(const struct stage *s)
{
    return s->which == FRAME_STAGE_COMPILE ? s->spec->compile : s->spec->run;
}

int stage_start(struct stage *s, enum frame_stage which, const struct frame_spec *spec,
                struct err *err)
{
    stage_done(s);
    stage_init(s);
    s->which = which;
    s->spec = spec;
    int r = process_start(spec, argv_of(s), which == FRAME_STAGE_RUN, &s->process, err);
    if (r < 0)
        return r;
    s->state = STAGE_STARTING;
    s->started_us = clock_now_us();
    return 0;
}

int stage_check_exec(struct stage *s, struct stream *out, struct err *err)
{
    int r = process_check_exec(&s->process, s->spec, argv_of(s), err);
    if (r < 0 || r == PROCESS_PENDING)
        return r < 0 ? r : 0;
    s->state = STAGE_RUNNING;
    s->started_us = clock_now_us();
    r = frame_u8_encode(&out->output, FRAME_STAGE, (uint8_t)s->which);
    return r < 0 ? err_say(err, r, "queue STAGE") : 0;
}

static uint64_t micros(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000U + (uint64_t)t.tv_usec;
}

static void account(struct stage *s, const struct rusage *used)
{
    s->end.cpu_user_us += micros(used->ru_utime);
    s->end.cpu_system_us += micros(used->ru_stime);
    uint64_t rss = (uint64_t)used->ru_maxrss * 1024; /* getrusage(2): kibibytes */
    if (rss > s->end.max_rss_bytes)
        s->end.max_rss_bytes = rss;
}

static int main_ended(struct stage *s, int status, struct stream *out, struct err *err)
{
    if (s->state == STAGE_STARTING) { /* its report is whole: nobody else holds that pipe */
        int r = stage_check_exec(s, out, err);
        if (r < 0)
            return r;
    }
    s->end.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    s->end.signal = WIFEXITED(status) ? 0 : WTERMSIG(status);
    s->end.wall_us = (uint64_t)(clock_now_us() - s->started_us);
    s->process.pid = -1;
    s->state = STAGE_DYING;
    return 0;
}

int stage_reap(struct stage *s, struct stream *out, struct err *err)
{
    pid_t pid = 1;
    for (int n = 0; n < REAPS_PER_TURN; n++) {
        int status = 0;
        struct rusage used = {0};
        pid = wait4(-1, &status, WNOHANG | __WALL, &used);
        if (pid <= 0)
            break;
        account(s, &used);
        int r = pid == s->process.pid ? main_ended(s, status, out, err) : 0;
        if (r < 0)
            return r;
    }
    s->has_more_to_reap = pid > 0;
    if (s->state == STAGE_DYING && pid < 0) /* ECHILD: nobody is left */
        s->state = STAGE_DRAINING;
    if (s->state == STAGE_DYING)
        process_kill_all();
    return 0;
}

void stage_move_output(struct stage *s, struct stream *out)
{
    if (!stage_reads_output(s))
        return;
    bool progress = true;
    while (progress && stream_has_room(out)) {
        unsigned i = s->turn++ % 2;
        progress = false;
        for (int k = 0; k < 2 && stream_has_room(out); k++, i ^= 1U) {
            int *fd = &s->process.out[i];
            if (*fd < 0)
                continue;
            int r = stream_copy(out, output_types[i], *fd);
            if (r == STREAM_END || (r == STREAM_LATER && s->state == STAGE_DRAINING)) {
                cleanup_close int done = fd_take(fd);
                (void)done; /* closed by its cleanup */
            }
            progress |= r == 0;
        }
    }
    if (s->state == STAGE_DRAINING && s->process.out[0] < 0 && s->process.out[1] < 0)
        s->state = STAGE_DONE;
}

void stage_signal(const struct stage *s, int signal)
{
    if (s->state == STAGE_RUNNING && s->process.pid > 0)
        (void)kill(-s->process.pid, signal); /* the group may be gone: nobody to tell */
}
