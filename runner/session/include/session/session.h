/* session/session.h - the life of one job on a worker, from claim to clean-up.
 *
 * claimed -> opening -> gate -> compiling -> running -> closing: one function per state in session.c,
 * each returns the next. session_run() blocks for the whole life and returns when the result is
 * published and nothing of the job is left; every way out goes through the same closing, once. */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <stdint.h>

#include "bus/bus.h"
#include "sandbox/sandbox.h"

struct session_options {
    struct bus *bus;
    struct sandbox_backend *backend;
    const char *worker_id;
    int64_t warmup_ms; /* how long the gate waits for start */
    int drain_fd;      /* stays readable once the jobs under way must end; borrowed */
};

/* Consumes the claim. */
void session_run(const struct session_options *o, struct claim *claim_consume);

#endif
