/* A sandbox for tests: init as process 1 of a new pid namespace, and the worker's side of its stream.
 *
 * By default init is the library of this build, in a forked child; box_use_program() makes it the
 * shipped binary instead, so that one set of tests covers both. */
#ifndef BOX_H
#define BOX_H

#include <sys/types.h>

#include "frames/frames.h"

#define BOX_UID 54321U /* nobody on this machine */

struct box_options {
    bool keep_id;      /* init itself is BOX_UID, the spec says FRAME_KEEP_ID */
    bool has_proc;     /* /proc of the new namespace */
    bool uses_pipes;   /* two pipes instead of one socket */
    bool no_processes; /* RLIMIT_NPROC 1 (with keep_id) */
    bool small_files;  /* RLIMIT_FSIZE 4096 */
};

struct box {
    struct box_options options;
    char cwd[64];
    pid_t helper;
    int in;  /* frames to init */
    int out; /* frames from init */
    struct buf input;
    size_t used;
};

/* What a job did, as its frames say. */
struct outcome {
    struct buf out;
    struct buf err;
    uint64_t taken;
    char stages[8]; /* of C (STAGE compile), c (COMPILED), R (STAGE run), r (EXITED), in order */
    struct frame_exit compiled;
    struct frame_exit exited;
    int fault;
    char fault_text[FRAME_FAULT_TEXT_MAX + 1];
};

void box_use_program(const char *path);
void box_need_namespaces(void); /* skips the test program where there are none */

void box_open(struct box *b, struct box_options options);
/* Ends the stream and checks init's exit code; removes the folder. */
void box_close(struct box *b, int want);
/* Only waits, for an init that ends by itself. */
void box_wait(struct box *b, int want);

void box_send(struct box *b, enum frame_type type, const void *payload, size_t n);
void box_send_raw(struct box *b, const void *bytes, size_t n);
void box_spec(struct box *b, char *const *compile, char *const *run);
void box_file(struct box *b, const char *path, uint32_t mode, const void *bytes, size_t n);
/* SPEC for /bin/sh -c script and START. */
void box_start_shell(struct box *b, const char *script);

/* The next frame, within a generous deadline; fails the test otherwise. End of the stream: false. */
bool box_next(struct box *b, struct frame *ret);
void box_expect(struct box *b, enum frame_type type, struct frame *ret);

/* Reads until EXITED, FAULT, the COMPILED of a failed compile, or the end of the stream; meanwhile
 * sends stdin within the credit, then STDIN_EOF. */
void box_run(struct box *b, struct outcome *o, const char *in, size_t n);
/* Reads until this much stdout came, or a stage began ('C' or 'R'). */
void box_until_output(struct box *b, struct outcome *o, size_t n);
void box_until_stage(struct box *b, struct outcome *o, char stage);
void outcome_init(struct outcome *o);
void outcome_done(struct outcome *o);
#define cleanup_outcome CLEANUP(outcome_done)

/* A whole job: shell script, no stdin, box closed. */
void box_shell(struct box_options options, const char *script, struct outcome *o);

#endif
