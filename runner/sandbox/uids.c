#include "uids.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

int uids_init(struct uids *u, uint32_t base, uint32_t count, struct err *err)
{
    if (count < 1 || count > UIDS_MAX)
        return err_say(err, -EINVAL, "%" PRIu32 " sandbox uids; it must be from 1 to %u", count,
                       UIDS_MAX);
    if (base == 0 || base > (uint32_t)INT32_MAX - (count - 1))
        return err_say(err, -EINVAL,
                       "sandbox uids from %" PRIu32 " on, %" PRIu32
                       " of them: they must be from 1 to %d",
                       base, count, INT32_MAX);
    *u = (struct uids){.base = base, .count = count};
    u->used = calloc(count, sizeof(*u->used));
    if (!u->used || pthread_mutex_init(&u->lock, NULL) != 0) {
        free(u->used);
        return err_set(err, -ENOMEM, "keep the sandbox uids");
    }
    return 0;
}

void uids_done(struct uids *u)
{
    (void)pthread_mutex_destroy(&u->lock); /* nobody holds it any more */
    free(u->used);
}

int uids_take(struct uids *u, uint32_t *ret, struct err *err)
{
    bool found = false;
    (void)pthread_mutex_lock(&u->lock);
    for (uint32_t i = 0; i < u->count && !found; i++) {
        uint32_t at = (u->next + i) % u->count;
        if (u->used[at])
            continue;
        u->used[at] = true;
        u->next = (at + 1) % u->count;
        *ret = u->base + at;
        found = true;
    }
    (void)pthread_mutex_unlock(&u->lock);
    return found ? 0 : err_say(err, -EAGAIN, "all %" PRIu32 " sandbox uids are in use", u->count);
}

void uids_give(struct uids *u, uint32_t uid)
{
    (void)pthread_mutex_lock(&u->lock);
    assert(uid >= u->base && uid - u->base < u->count && u->used[uid - u->base]);
    u->used[uid - u->base] = false;
    (void)pthread_mutex_unlock(&u->lock);
}
