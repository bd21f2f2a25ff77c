/* uids.h - the user ids of sandboxes: each belongs to one sandbox at a time.
 *
 * The ids go round, so that one that was just given back is the last to be used again.
 * Threads    any. */
#ifndef SANDBOX_UIDS_H
#define SANDBOX_UIDS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define UIDS_MAX 65536U

struct uids {
    uint32_t base;
    uint32_t count;
    pthread_mutex_t lock; /* guards what follows */
    uint32_t next;
    bool *used; /* count of them */
};

/* base..base + count - 1, 1 <= count <= UIDS_MAX. -EINVAL when one of them is root's or does not
 * fit the kernel's and the daemon's 31 bits, naming the bound. */
int uids_init(struct uids *u, uint32_t base, uint32_t count, struct err *err);
void uids_done(struct uids *u);

int uids_take(struct uids *u, uint32_t *ret, struct err *err); /* 0, or -EAGAIN: all are in use */
void uids_give(struct uids *u, uint32_t uid);

#endif
