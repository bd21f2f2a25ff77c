/* frames/frames.h - what worker and init say to each other over one byte stream.
 *
 * Frame      type u8 | flags u8 (0) | length u32 big-endian (<= FRAME_PAYLOAD_MAX) | payload
 * Numbers    big-endian. Text is bytes without a terminator.
 * Order      init speaks first: READY. The worker answers SPEC, then each FILE with its DATA, then
 *            START (when the gate opens). STDIN, STDIN_EOF, SIGNAL and KILL may come at any time
 * after SPEC; what comes before its stage is held in order by init (at most FRAME_STDIN_CREDIT
 *            bytes of stdin, which the worker's credit guarantees).
 * Errors     a frame that is unknown, too long, out of order or malformed ends the sandbox: init
 * sends FAULT and exits, the worker destroys the sandbox. Threads    pure functions on the caller's
 * memory.
 */
#ifndef FRAMES_FRAMES_H
#define FRAMES_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define FRAME_VERSION        1U
#define FRAME_HEADER_BYTES   6U
#define FRAME_PAYLOAD_MAX    (1U << 20)
#define FRAME_STDIN_CREDIT   65536U     /* bytes of stdin in flight: sent and not yet STDIN_TAKEN */
#define FRAME_OUTPUT_CHUNK   32768U     /* the most init puts in one STDOUT or STDERR frame */
#define FRAME_PATH_MAX       4096U      /* bytes of a FILE's or an ARTIFACT's path */
#define FRAME_FAULT_TEXT_MAX 1024U      /* bytes of a FAULT's text */
#define FRAME_KEEP_ID        UINT32_MAX /* SPEC uid and gid: stay who you are; both or neither */

enum frame_type {
    /* worker -> init */
    FRAME_SPEC = 1,  /* struct frame_spec as tagged fields */
    FRAME_FILE,      /* struct frame_file: opens a file; exactly `size` bytes of DATA follow */
    FRAME_DATA,      /* bytes of the FILE (or, the other way, of the ARTIFACT) before it */
    FRAME_START,     /* empty: the gate is open */
    FRAME_STDIN,     /* bytes for the program */
    FRAME_STDIN_EOF, /* empty: close the program's stdin after what was sent before */
    FRAME_SIGNAL,    /* u8 signal number, to the program's process group */
    FRAME_RESIZE,    /* u16 rows, u16 columns of the terminal */
    FRAME_KILL,      /* empty: kill everything; EXITED (or COMPILED then EXITED) follows */
    FRAME_COLLECT,   /* empty: send ARTIFACTs, then COLLECTED */

    /* init -> worker */
    FRAME_READY = 64,  /* u32 FRAME_VERSION */
    FRAME_STAGE,       /* u8 enum frame_stage: this stage's process has just been started */
    FRAME_STDOUT,      /* bytes */
    FRAME_STDERR,      /* bytes */
    FRAME_STDIN_TAKEN, /* u32 bytes that left init for the program, or were thrown away because the
                          program closed its end or had ended */
    FRAME_USAGE,       /* struct frame_usage */
    FRAME_COMPILED, /* struct frame_exit of the compile stage; no run stage follows unless code 0 */
    FRAME_EXITED, /* struct frame_exit of the run stage; everything is dead, every byte was sent */
    FRAME_ARTIFACT,  /* struct frame_file: exactly `size` bytes of DATA follow */
    FRAME_COLLECTED, /* u32 how many files were left out */
    FRAME_FAULT,     /* struct frame_fault: init could not do what was asked; it exits after this */
};

enum frame_stage { FRAME_STAGE_COMPILE = 1, FRAME_STAGE_RUN = 2 };

enum frame_direction { FRAME_TO_INIT, FRAME_FROM_INIT };

struct frame {
    enum frame_type type;
    struct span payload; /* borrowed from the input */
};

enum { FRAME_INCOMPLETE = 1 };

/* Looks for one frame at the start of in. 0: *ret is set and *ret_used says how many bytes it took;
 * FRAME_INCOMPLETE: more bytes are needed; -EBADMSG: not a frame that may go this way. Type,
 * flags and length (what its type may have: empty frames have 0 bytes, STDIN at most
 * FRAME_STDIN_CREDIT, STDOUT and STDERR at most FRAME_OUTPUT_CHUNK) are judged from the header
 * alone. */
int frame_decode(struct span in, enum frame_direction direction, struct frame *ret,
                 size_t *ret_used, struct err *err);

/* Encoders: 0; -EMSGSIZE (past FRAME_PAYLOAD_MAX or what out may hold); -ENOMEM; those of a struct
 * also -EINVAL when a decoder would refuse it. On failure out is as it was. */
int frame_encode(struct buf *out, enum frame_type type, const void *payload, size_t n);

/* Only the header, for payloads that are written from where they are. */
void frame_header(enum frame_type type, uint32_t n, uint8_t ret[static FRAME_HEADER_BYTES]);

const char *frame_type_name(enum frame_type type);

/* What to run. Lists end with NULL; compile is NULL when the language has no compile stage. run[0]
 * is looked up in PATH of env when it has no slash. cwd exists and is absolute; files go below it.
 * No text has a NUL byte; the first entry of run and compile is not empty. */
struct frame_spec {
    uint32_t uid; /* FRAME_KEEP_ID, or whom to become before running anything */
    uint32_t gid;
    char **compile;
    char **run;
    char **env; /* NAME=VALUE */
    char *cwd;
    uint16_t rows; /* 0: pipes; otherwise a terminal of this size */
    uint16_t columns;
};
int frame_spec_encode(struct buf *out, const struct frame_spec *spec);
/* One allocation holds everything; frame_spec_done() frees it (only ever call it on a decoded
 * spec). env is never NULL. -EBADMSG, -ENOMEM. */
int frame_spec_decode(struct span payload, struct frame_spec *ret, struct err *err);
void frame_spec_done(struct frame_spec *spec);

/* path: relative, 1..4096 bytes, no NUL, no empty, "." or ".." segment. mode: permission bits only.
 */
struct frame_file {
    uint32_t mode;
    uint64_t size;
    struct span path; /* borrowed */
};
int frame_file_encode(struct buf *out, enum frame_type type, const struct frame_file *file);
int frame_file_decode(struct span payload, struct frame_file *ret, struct err *err);

/* How a stage's main process ended: code 0..255 with signal 0, or code -1 with signal 1..64. */
struct frame_exit {
    int32_t code;         /* 0..255, or -1 when a signal ended it */
    int32_t signal;       /* 0 when it exited */
    uint64_t cpu_user_us; /* of every reaped process of the stage */
    uint64_t cpu_system_us;
    uint64_t max_rss_bytes; /* of the largest single process */
    uint64_t wall_us;
};
int frame_exit_encode(struct buf *out, enum frame_type type, const struct frame_exit *exit);
int frame_exit_decode(struct span payload, struct frame_exit *ret, struct err *err);

#define FRAME_USAGE_UNKNOWN UINT64_MAX
struct frame_usage {
    uint64_t cpu_us;
    uint64_t memory_peak_bytes;
    uint64_t pids;
};
int frame_usage_encode(struct buf *out, const struct frame_usage *usage);
int frame_usage_decode(struct span payload, struct frame_usage *ret, struct err *err);

struct frame_fault {
    int32_t error; /* a positive errno */
    struct span
        text; /* what was attempted; borrowed; the encoder cuts it at FRAME_FAULT_TEXT_MAX */
};
int frame_fault_encode(struct buf *out, const struct frame_fault *fault);
int frame_fault_decode(struct span payload, struct frame_fault *ret, struct err *err);

/* The small ones: one number. */
int frame_u8_encode(struct buf *out, enum frame_type type, uint8_t v);
int frame_u8_decode(struct span payload, uint8_t *ret, struct err *err);
int frame_u32_encode(struct buf *out, enum frame_type type, uint32_t v);
int frame_u32_decode(struct span payload, uint32_t *ret, struct err *err);

static inline void frame_spec_done_slot(struct frame_spec *spec)
{
    frame_spec_done(spec);
}
#define cleanup_frame_spec CLEANUP(frame_spec_done_slot)

#endif
