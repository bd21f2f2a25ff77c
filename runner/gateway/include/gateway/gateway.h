/* gateway/gateway.h - the HTTP front door (libmicrohttpd): bearer, schema, routes, errors.
 *
 * Routes and shapes: docs/api.md. Handlers never block. The bearer is checked when the headers are
 * there, before any body is read; body sizes are bounded by max_body_bytes while they arrive.
 * Threads: gateway_start() to gateway_free() from one thread; the callback may come from any. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bus/bus.h"
#include "hub/hub.h"
#include "manifest/manifest.h"

struct gateway;

struct gateway_options {
    const char *host; /* an IPv4 or IPv6 address */
    uint16_t port;    /* 0: any free one */
    const char *token;
    struct bus *bus;
    struct hub *hub;
    const struct languages *languages;
    uint64_t max_files_bytes;
    uint64_t max_body_bytes;
    struct limits limits_max; /* 0 = none */
    bool channel_auth;
    uint32_t connections_max;
    /* New array of {"name","status","message"} for what is not in order, empty when all is well; called
     * for /health; must not block for long. */
    json_t *(*health)(void *arg);
    void *health_arg;
};
int gateway_start(const struct gateway_options *o, struct gateway **ret, struct err *err);
uint16_t gateway_port(const struct gateway *g);
void gateway_free(struct gateway *g); /* stops listening, answers what is under way; NULL is fine */
DEFINE_CLEANUP(struct gateway *, gateway_free)
#define cleanup_gateway CLEANUP(gateway_free_slot)

#endif
