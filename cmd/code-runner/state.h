/* state.h - the folder that belongs to one running server: STATE_DIR.
 *
 *   lock           held (flock) while a server uses the folder; a second one is refused
 *   deployment-id  32 hex digits, made once; labels everything we make on the Docker host */
#ifndef CODE_RUNNER_STATE_H
#define CODE_RUNNER_STATE_H

#include "base/err.h"

#define STATE_ID_SIZE 33

struct state {
    int lock_fd;
    char deployment_id[STATE_ID_SIZE];
};

/* Makes what is missing, parents too, for this user only. -EBUSY: another server runs on it. */
int state_open(const char *dir, struct state *ret, struct err *err);
void state_close(struct state *s);

#endif
