/* admit.h - from the body of POST /v1/execute to a job. Pure: no I/O but for random bytes and time.
 *
 * Order of checks: language, version, each file, all files, sizes, limits. The first that fails is
 * the answer. */
#ifndef GATEWAY_ADMIT_H
#define GATEWAY_ADMIT_H

#include <jansson.h>

#include "answer.h"
#include "contract/job.h"
#include "manifest/manifest.h"

struct admit_rules {
    const struct languages *languages;
    const struct limits *limits_max; /* 0 = no maximum */
    uint64_t max_files_bytes;
};

/* body has passed the schema. Returns 0 and the job; or 1, and refusal says why: 400, 413, 501, or
 * 500 when out of memory. */
int admit_execute(const struct admit_rules *rules, const json_t *body, struct job_spec **ret,
                  struct answer *refusal);

/* files.c: fills spec->files. As above; has_refs: a file names a blob instead of its content. */
int admit_files(const json_t *files, uint64_t max_bytes, struct job_spec *spec, bool *ret_has_refs,
                struct answer *refusal);

#endif
