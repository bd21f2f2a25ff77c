/* worker/worker.h - takes jobs from the bus and gives each a session thread of its own.
 *
 * One thread claims; a job is claimed only when a slot (WORKER_MAX_SANDBOXES) is free. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bus/bus.h"
#include "sandbox/sandbox.h"

struct worker;

struct worker_options {
    struct bus *bus;
    struct sandbox_backend *backend;
    const char *worker_id;
    uint32_t max_sandboxes;
    int64_t warmup_ms;
};
int worker_start(const struct worker_options *o, struct worker **ret, struct err *err);

/* Stops claiming, waits up to drain_ms for the sessions under way, then ends those that are left with
 * the outcome `drained`, and returns when none is. bus_close() must have been called. */
void worker_stop(struct worker *w, int64_t drain_ms);
/* Ends the sessions under way now, as at the end of drain_ms. From any thread. */
void worker_hurry(struct worker *w);
void worker_free(struct worker *w); /* after worker_stop(); NULL is fine */
DEFINE_CLEANUP(struct worker *, worker_free)
#define cleanup_worker CLEANUP(worker_free_slot)

#endif
