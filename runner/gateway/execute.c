/* POST /v1/execute: one body, one job. */
#include "admit.h"
#include "gateway_internal.h"

static void submitted(struct answer *a, const char *id)
{
    char channel[sizeof(JOB_CHANNEL_PREFIX) + JOB_ID_SIZE];
    (void)snprintf(channel, sizeof(channel), "%s%s", JOB_CHANNEL_PREFIX, id); /* always fits */
    answer_json_take(a, MHD_HTTP_ACCEPTED,
                     json_pack("{s:s, s:s, s:s}", "jobId", id, "channel", channel, "status",
                               job_state_name(JOB_QUEUED)));
}

void execute_post(struct request *r, struct answer *a)
{
    const struct gateway_options *o = &r->gateway->options;
    const struct admit_rules rules = {o->languages, &o->limits_max, o->max_files_bytes};
    cleanup_job_spec struct job_spec *spec = NULL;
    if (admit_execute(&rules, r->json, &spec, a) != 0)
        return;

    char id[JOB_ID_SIZE];
    memcpy(id, spec->id, sizeof(id));
    struct err err = {0};
    int outcome = bus_submit_take(o->bus, spec, &err);
    if (outcome == 0) {
        (void)ptr_take(&spec); /* the bus has it */
        submitted(a, id);
    } else if (outcome == BUS_FULL) {
        struct bus_counts counts;
        bus_counts(o->bus, &counts);
        answer_error(a, MHD_HTTP_TOO_MANY_REQUESTS,
                     "Executor at capacity (%llu jobs are waiting). Try again later.",
                     (unsigned long long)counts.queued);
    } else if (outcome == BUS_CLOSED) {
        answer_error(a, MHD_HTTP_SERVICE_UNAVAILABLE, "The server is shutting down");
    } else {
        answer_failure(a, outcome, &err);
    }
}
