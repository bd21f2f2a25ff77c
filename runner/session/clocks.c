#include <inttypes.h>

#include "base/clock.h"
#include "session_internal.h"

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Wall counts from start, compile stage included; idle from the last output or stdin of the run. */
static int64_t wall_end(const struct session *s)
{
    return s->start_ms + s->spec->limits.wall_ms;
}

static int64_t idle_end(const struct session *s)
{
    return s->run_ms ? s->active_ms + s->spec->limits.idle_ms : DEADLINE_NEVER;
}

int64_t clocks_deadline_ms(const struct session *s)
{
    return sooner(wall_end(s), idle_end(s));
}

static void hit(struct session *s, enum job_outcome outcome, const char *name, int64_t value,
                const char *what)
{
    char reason[128];
    (void)snprintf(reason, sizeof(reason), "%s %s (%s) of %" PRId64 " ms",
                   "the program reached its", what, name, value);
    s->report.limit_name = name;
    s->report.limit_value = value;
    session_decide(s, outcome, reason);
}

void clocks_check(struct session *s)
{
    int64_t now = clock_now_ms();
    if (now >= wall_end(s))
        hit(s, OUTCOME_WALL_TIMEOUT, "wallTimeMs", s->spec->limits.wall_ms, "wall time");
    else if (now >= idle_end(s))
        hit(s, OUTCOME_IDLE_TIMEOUT, "idleMs", s->spec->limits.idle_ms, "idle time");
}
