/* base/cleanup.h - scope-bound ownership for C.
 *
 * A variable marked with a cleanup_* macro is released when its scope ends, in reverse order of
 * declaration. Declare and initialise it in one statement. ptr_take() and fd_take() hand the thing on
 * and leave an empty variable behind. A header adds two lines for each type it frees:
 *
 *     DEFINE_CLEANUP(struct manifest *, manifest_free)
 *     #define cleanup_manifest CLEANUP(manifest_free_slot)
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdlib.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

#define DEFINE_CLEANUP(type, fn)                                                                   \
    static inline void fn##_slot(type *slot)                                                       \
    {                                                                                              \
        if (*slot)                                                                                 \
            fn(*slot);                                                                             \
    }

#define ptr_take(pp)                                                                               \
    __extension__({                                                                                \
        __auto_type taken_ = *(pp);                                                                \
        *(pp) = NULL;                                                                              \
        taken_;                                                                                    \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void cleanup_free_slot(void *slot)
{
    free(*(void **)slot);
}
#define cleanup_free CLEANUP(cleanup_free_slot)

/* Closes *fd if it is >= 0 and keeps errno; never retries on EINTR (on Linux the descriptor is gone). */
void cleanup_close_slot(int *fd);
#define cleanup_close CLEANUP(cleanup_close_slot)

static inline int fd_take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

#endif
