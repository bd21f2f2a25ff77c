#include "base/clock.h"

#include <limits.h>

static int64_t read_us(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts); /* cannot fail for these two clocks */
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_now_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t clock_now_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_realtime_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int clock_poll_timeout(int64_t deadline_ms)
{
    if (deadline_ms == DEADLINE_NEVER)
        return -1;
    int64_t left_us = deadline_ms > INT64_MAX / 1000 ? INT64_MAX : deadline_ms * 1000;
    left_us -= clock_now_us();
    if (left_us <= 0)
        return 0;
    int64_t left_ms = left_us / 1000 + (left_us % 1000 != 0);
    return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}
