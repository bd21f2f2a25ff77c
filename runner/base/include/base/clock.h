/* base/clock.h - the two clocks: deadlines are monotonic, records carry wall time. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define DEADLINE_NEVER INT64_MAX

int64_t clock_now_ms(void);      /* CLOCK_MONOTONIC */
int64_t clock_now_us(void);      /* CLOCK_MONOTONIC */
int64_t clock_realtime_ms(void); /* milliseconds since the epoch */

/* The time-out argument poll(2) wants for an absolute monotonic deadline: 0 when it has passed, -1 for
 * DEADLINE_NEVER. Rounded up, so that a poll never returns early because of rounding. */
int clock_poll_timeout(int64_t deadline_ms);

#endif
