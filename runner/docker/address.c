#include <errno.h>
#include <sys/un.h>

#include "address.h"
#include "docker_internal.h"

#define TCP_PORT "2375" /* the daemon's usual port without TLS */

static int copy(const char *text, char **ret, struct err *err)
{
    char *s = strdup(text);
    if (!s)
        return err_set(err, -ENOMEM, "copy the Docker address");
    *ret = s;
    return 0;
}

static int parse_unix(const char *address, const char *path, struct docker_address *ret,
                      struct err *err)
{
    if (path[0] != '/')
        return err_say(err, -EINVAL, "DOCKER_HOST %s: the socket's path must be absolute", address);
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return err_say(err, -EINVAL, "DOCKER_HOST %s: a socket's path has at most %zu bytes",
                       address, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
    int r = copy(path, &ret->unix_path, err);
    return r < 0 ? r : copy("docker", &ret->host, err);
}

/* curl judges the host and the port; anything else of a URL has no meaning here. */
static int parse_tcp(const char *address, const char *rest, struct docker_address *ret,
                     struct err *err)
{
    cleanup_buf struct buf url;
    buf_init(&url, DOCKER_URL_MAX);
    if (buf_appendf(&url, "http://%s", rest) < 0)
        return err_say(err, -EINVAL, "DOCKER_HOST is too long");
    CURLU *u = curl_url();
    if (!u)
        return err_set(err, -ENOMEM, "read the Docker address");

    char *host = NULL, *port = NULL, *path = NULL, *user = NULL, *query = NULL, *fragment = NULL;
    bool ok = rest[0] != '\0' && curl_url_set(u, CURLUPART_URL, url.data, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PATH, &path, 0) == CURLUE_OK && strcmp(path, "/") == 0 &&
              curl_url_get(u, CURLUPART_USER, &user, 0) != CURLUE_OK &&
              curl_url_get(u, CURLUPART_QUERY, &query, 0) != CURLUE_OK &&
              curl_url_get(u, CURLUPART_FRAGMENT, &fragment, 0) != CURLUE_OK;
    if (ok)
        (void)curl_url_get(u, CURLUPART_PORT, &port, 0); /* none is fine */

    int r = 0;
    cleanup_buf struct buf name;
    buf_init(&name, DOCKER_URL_MAX);
    if (!ok)
        r = err_say(err, -EINVAL, "DOCKER_HOST %s: tcp:// takes a host and a port only", address);
    else if (buf_appendf(&name, "%s:%s", host, port ? port : TCP_PORT) < 0)
        r = err_set(err, -ENOMEM, "copy the Docker address");
    else
        r = copy(name.data, &ret->host, err);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_free(user);
    curl_free(query);
    curl_free(fragment);
    curl_url_cleanup(u);
    return r;
}

int docker_address_parse(const char *address, struct docker_address *ret, struct err *err)
{
    struct docker_address a = {NULL, NULL};
    int r;
    if (strncmp(address, "unix://", 7) == 0)
        r = parse_unix(address, address + 7, &a, err);
    else if (strncmp(address, "tcp://", 6) == 0)
        r = parse_tcp(address, address + 6, &a, err);
    else
        r = err_say(err, -EINVAL,
                    "DOCKER_HOST is \"%.100s\"; it must be unix:///path or tcp://host:port",
                    address);
    if (r < 0)
        docker_address_done(&a);
    else
        *ret = a;
    return r;
}

void docker_address_done(struct docker_address *a)
{
    free(a->unix_path);
    free(a->host);
    *a = (struct docker_address){NULL, NULL};
}
