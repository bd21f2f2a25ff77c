/* tar.h - as much of the tar format (POSIX.1-1988 ustar) as init's volume needs. Pure. */
#ifndef SANDBOX_TAR_H
#define SANDBOX_TAR_H

#include <stdint.h>

#include "base/buf.h"

#define TAR_BLOCK    512U
#define TAR_NAME_MAX 100U

/* Appends a regular file of root. 0, -EINVAL (name empty or above TAR_NAME_MAX bytes), -EMSGSIZE,
 * -ENOMEM. */
int tar_add_file(struct buf *out, const char *name, uint32_t mode, struct span bytes);
int tar_end(struct buf *out);

/* The first regular file of an archive; headers of other kinds before it are skipped. -ENOENT:
 * none; -EBADMSG: no archive, or it is cut. */
int tar_first_file(struct span tar, uint32_t *ret_mode, struct span *ret_bytes);

#endif
