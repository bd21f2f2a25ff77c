/* address.h - where the daemon is: DOCKER_HOST taken apart. */
#ifndef DOCKER_ADDRESS_H
#define DOCKER_ADDRESS_H

#include "base/err.h"

struct docker_address {
    char *unix_path; /* NULL for TCP */
    char *host;      /* host[:port] for the URL; "docker" for a socket */
};

/* unix:///absolute/path, tcp://host, tcp://host:port (IPv6 in brackets; port 2375 when there is
 * none). -EINVAL with words for anything else. curl_global_init() was called before. */
int docker_address_parse(const char *address, struct docker_address *ret, struct err *err);
void docker_address_done(struct docker_address *a);

#endif
