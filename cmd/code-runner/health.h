/* health.h - the housekeeping thread, and what it knows about our surroundings.
 *
 * Once a second it drops expired records; every HEALTH_CHECK_MS it asks the backend whether sandboxes
 * can be opened, looks for each language's image and removes what was left behind. /health reads what
 * was found last, so that it never waits for a daemon. */
#ifndef CODE_RUNNER_HEALTH_H
#define CODE_RUNNER_HEALTH_H

#include <jansson.h>

#include "base/err.h"
#include "bus/bus.h"
#include "manifest/manifest.h"
#include "sandbox/sandbox.h"

#define HEALTH_CHECK_MS   5000
#define HEALTH_RECHECK_MS 1000 /* while something is not in order */

struct health;

/* Makes the first check before it returns, then starts the thread. */
int health_start(struct bus *bus, struct sandbox_backend *backend,
                 const struct languages *languages, struct health **ret, struct err *err);
void health_stop(struct health *h); /* NULL is fine */

/* New array of {"name","status","message"}, empty when all is well; NULL when out of memory. arg is the
 * struct health; any thread. */
json_t *health_checks(void *arg);

#endif
