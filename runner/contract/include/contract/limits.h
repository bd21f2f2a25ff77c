/* contract/limits.h - the eight limits of a job.
 *
 * JSON names: wallTimeMs idleMs cpuMs memoryMb pids outputKb maxArtifacts maxArtifactBytes; each an
 * integer >= 1. A request overrides the manifest's defaults field by field; a value above the
 * server's maximum is refused, never clamped. */
#ifndef CONTRACT_LIMITS_H
#define CONTRACT_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct limits {
    int64_t wall_ms;            /* compile and run together */
    int64_t idle_ms;            /* without output or stdin taken */
    int64_t cpu_ms;             /* of everything in the sandbox */
    int64_t memory_mb;          /* MiB, files in /workspace and /tmp included */
    int64_t pids;               /* processes and threads */
    int64_t output_kb;          /* KiB of stdout and stderr together that are kept */
    int64_t max_artifacts;      /* files */
    int64_t max_artifact_bytes; /* bytes of all files */
};

#define LIMIT_COUNT 8

/* One row a field, in JSON order; the single place that knows the names. */
struct limit_field {
    const char *name; /* JSON key */
    size_t offset;    /* of the int64_t in struct limits */
};
extern const struct limit_field limit_fields[LIMIT_COUNT];

int64_t limit_get(const struct limits *l, const struct limit_field *f);
void limit_put(struct limits *l, const struct limit_field *f, int64_t v);

/* Overwrites the fields present in object (already validated by schema; NULL is fine). 1.0 is 1. */
void limits_override(struct limits *l, const json_t *object);

/* New object with all eight keys; NULL when out of memory. */
json_t *limits_json(const struct limits *l);

/* The first field of wanted that is above the maximum (max 0 = no maximum), or NULL. */
const struct limit_field *limits_above(const struct limits *wanted, const struct limits *max);

#endif
