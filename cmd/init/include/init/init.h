/* init/init.h - PID 1 of every sandbox: frames in, frames out.
 *
 * Theory     init is the only process of ours in the box. It speaks frames (frames/frames.h) with the
 *            worker over one byte stream, writes the job's files, starts the compile and the run stage
 *            one after the other, carries their bytes, and ends with its stream.
 *
 *                worker ══ stream (fd 0, 1) ══ init ── pipes ── compile, then run
 *
 * Trust      the worker is believed (but every frame is checked); what runs below is hostile. It has
 *            no descriptor of the stream, may not signal init (PID 1 with everything ignored), nor read
 *            its memory or descriptors (not dumpable), nor make it wait: init has one thread, one poll,
 *            and every descriptor of it is non-blocking.
 * Memory     bounded: one frame of input, INIT_OUTPUT_MAX of output, FRAME_STDIN_CREDIT of stdin. When
 *            the worker does not read, init stops reading the program, which then blocks in write.
 * Death      init ends when its stream ends, after everything else in the box is dead.
 * Privilege  with SPEC uid and gid it must be root in the box with SETUID, SETGID and KILL; with
 *            FRAME_KEEP_ID it needs nothing.
 */
#ifndef INIT_INIT_H
#define INIT_INIT_H

#include "base/err.h"

/* Output that waits for the worker. */
#define INIT_OUTPUT_MAX 262144U

/* How long a FAULT may wait for a worker that does not read. */
#define INIT_FAULT_WAIT_MS 10000

/* How the process exits. Not 1: that is what a sanitizer exits with. */
enum init_end {
    INIT_STREAM_ENDED = 0,
    INIT_REFUSED = 2, /* it never started */
    INIT_FAULTED = 3, /* a FAULT was sent, or could not be within INIT_FAULT_WAIT_MS */
};

/* Makes this process what init must be before it reads anything: PID 1 (it kills with kill(-1), so it
 * starts nowhere else), not dumpable, deaf to signals, without any descriptor above 2. 0; -EPERM when
 * it is not PID 1; another negative errno. */
int init_guard(struct err *err);

/* The whole life of the sandbox on a guarded process; in and out may be one socket or two pipes.
 * Returns enum init_end after killing all others in its pid namespace; the caller exits. */
int init_run(int in, int out);

#endif
