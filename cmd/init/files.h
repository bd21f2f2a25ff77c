/* files.h - the job's files, below its working directory, before anything of it runs.
 *
 * They belong to whom the program will be. Symbolic links are never followed and nothing that exists
 * is opened: a name that comes twice, or is another's folder, is an error.
 */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "frames/frames.h"
#include "owner.h"

struct files {
    int root; /* the working directory, owned; -1: closed */
    int fd;   /* the file being written, owned; -1: none */
    uint64_t left;
    struct owner owner;
    char name[256]; /* of the file being written, cut, for messages */
};

void files_init(struct files *f);

/* 0 or a negative errno. */
int files_open(struct files *f, const struct frame_spec *spec, struct err *err);
int files_begin(struct files *f, const struct frame_file *file, struct err *err);
int files_data(struct files *f, struct span bytes,
               struct err *err); /* -EPROTO: more than its size */

bool files_is_busy(const struct files *f); /* bytes of a file are still to come */
void files_close(struct files *f);

#endif
