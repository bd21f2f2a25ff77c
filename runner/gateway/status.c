/* /health, /ready and /metrics: what machines ask, without a bearer. */
#include "gateway_internal.h"

static json_t *checks_now(const struct gateway *g)
{
    return g->options.health ? g->options.health(g->options.health_arg) : json_array();
}

static void health_answer(struct answer *a, unsigned status, json_t *checks)
{
    if (checks && json_array_size(checks) == 0) {
        json_decref(checks);
        answer_json_text(a, status, "{\"status\":\"ok\"}");
        return;
    }
    answer_json_take(a, status, json_pack("{s:s, s:o}", "status", "degraded", "checks", checks));
}

void health_get(struct request *r, struct answer *a)
{
    health_answer(a, MHD_HTTP_OK, checks_now(r->gateway));
}

void ready_get(struct request *r, struct answer *a)
{
    json_t *checks = checks_now(r->gateway);
    bool is_ready = true;
    size_t i;
    json_t *check;
    json_array_foreach(checks, i, check)
    {
        const char *status = json_string_value(json_object_get(check, "status"));
        is_ready = is_ready && !(status && strcmp(status, "error") == 0);
    }
    health_answer(a, is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, checks);
    if (!is_ready)
        answer_header(a, MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

void metrics_get(struct request *r, struct answer *a)
{
    struct bus_counts counts;
    bus_counts(r->gateway->options.bus, &counts);
    char text[256];
    (void)snprintf(text, sizeof(text), /* always fits */
                   "# HELP code_runner_queue_depth Jobs waiting in the queue.\n"
                   "# TYPE code_runner_queue_depth gauge\n"
                   "code_runner_queue_depth %llu\n",
                   (unsigned long long)counts.queued);
    answer_text(a, MHD_HTTP_OK, "text/plain; version=0.0.4", text);
}
