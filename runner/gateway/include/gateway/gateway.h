/* gateway/gateway.h - the HTTP front door (libmicrohttpd): bearer, schema, routes, errors.
 *
 * Routes, shapes and errors: docs/api.md. Handlers never block. The bearer is checked when the
 * headers are there, before any body is read; bodies are bounded by max_body_bytes while they
 * arrive.
 *
 * Shutdown   gateway_quiesce(), hub_free(), gateway_free(): the server cannot stop while upgraded
 *            sockets live, and those are the hub's.
 * Threads    one of its own for all of HTTP, one for deadlines; the functions here from one thread.
 */
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
    const char *host;  /* an IPv4 or IPv6 address */
    uint16_t port;     /* 0: any free one */
    const char *token; /* not empty */
    struct bus *bus;
    struct hub *hub; /* NULL: subscribers are served elsewhere; no /app/, no channel-auth */
    const struct languages *languages;
    uint64_t max_files_bytes;
    uint64_t max_body_bytes;
    struct limits limits_max; /* 0 = none */
    bool channel_auth;
    uint32_t connections_max; /* upgraded ones too; more wait in the listen queue */
    int64_t idle_ms;          /* a connection without bytes moving is closed; 0 = 60 s */
    /* From the first byte waited for to the last header, and from there to the end of the body: a
     * client that trickles is cut off. 0 = 120 s. */
    int64_t request_ms;
    /* New array of {"name","status","message"} for what is not in order, empty when all is well;
     * called from the gateway's thread for /health and /ready; must not block for long. /ready is
     * 503 while one of them has the status "error". NULL: always well. */
    json_t *(*health)(void *arg);
    void *health_arg;
};

/* What is pointed to, but for host and token, must outlive the gateway. contract_init() comes first.
 * 0, -EINVAL (host, token, a missing pointer), -ENOMEM, what bind(2) and listen(2) answer. */
int gateway_start(const struct gateway_options *o, struct gateway **ret, struct err *err);
uint16_t gateway_port(const struct gateway *g);
/* Refuses new connections and upgrades; requests on open connections are still answered. After it
 * the hub is not called any more. */
void gateway_quiesce(struct gateway *g);
/* Quiesces, gives requests under way two seconds to be answered, stops. NULL is fine. The hub must
 * be gone by then, or have no sockets. */
void gateway_free(struct gateway *g);
DEFINE_CLEANUP(struct gateway *, gateway_free)
#define cleanup_gateway CLEANUP(gateway_free_slot)

#endif
