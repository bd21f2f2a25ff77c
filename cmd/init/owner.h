/* owner.h - making things that belong to the program while init is somebody else.
 *
 * The effective ids decide who owns a new file or pipe: without CAP_CHOWN and CAP_DAC_OVERRIDE in the
 * box this is the only way, and everywhere the honest one. Only between owner_enter() and
 * owner_leave(), and only while nothing of the job runs. With FRAME_KEEP_ID both do nothing.
 */
#ifndef OWNER_H
#define OWNER_H

#include <stdint.h>

#include "base/err.h"

struct owner {
    uint32_t uid; /* FRAME_KEEP_ID, or the program's */
    uint32_t gid;
};

/* 0 or a negative errno; after a failure init must end. */
int owner_enter(struct owner o, struct err *err);
int owner_leave(struct owner o, struct err *err);

#endif
