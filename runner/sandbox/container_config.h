/* container_config.h - the policy as the body of POST /containers/create (Docker API 1.41).
 * Pure. */
#ifndef SANDBOX_CONTAINER_CONFIG_H
#define SANDBOX_CONTAINER_CONFIG_H

#include <stdbool.h>

#include <jansson.h>

#include "base/err.h"

struct policy;
struct image;
struct sandbox_request;

#define LABEL_PREFIX     "code-runner."
#define LABEL_DEPLOYMENT LABEL_PREFIX "deployment"
#define LABEL_WORKER     LABEL_PREFIX "worker"
#define LABEL_JOB        LABEL_PREFIX "job"
#define LABEL_LANGUAGE   LABEL_PREFIX "language"
#define LABEL_VERSION    LABEL_PREFIX "version"
#define LABEL_INIT       LABEL_PREFIX "init"

struct container_owner {
    const char *deployment_id;
    const char *worker_id;
};

/* Under gVisor everything in the sandbox that shares init's uid could reach init's descriptors
 * through /proc: there init is root inside, with the capabilities to become somebody else and
 * nothing more. */
bool container_init_is_root(const struct policy *p);

/* The sandbox itself. Each VOLUME of the image becomes a tmpfs that takes its size from the
 * workspace's. -EINVAL: the policy has no seccomp profile; -ENOMEM. */
int container_config_make(const struct policy *p, const struct image *image,
                          const char *init_volume, const struct container_owner *owner,
                          const struct sandbox_request *req, json_t **ret, struct err *err);

/* A container that never runs, through which files get into init's volume. */
int container_config_make_helper(const struct image *image, const char *init_volume,
                                 const struct container_owner *owner, json_t **ret,
                                 struct err *err);

#endif
