#include "contract/limits.h"

#include <assert.h>
#include <stddef.h>

#include "json/json.h"

const struct limit_field limit_fields[LIMIT_COUNT] = {
    {"wallTimeMs", offsetof(struct limits, wall_ms)},
    {"idleMs", offsetof(struct limits, idle_ms)},
    {"cpuMs", offsetof(struct limits, cpu_ms)},
    {"memoryMb", offsetof(struct limits, memory_mb)},
    {"pids", offsetof(struct limits, pids)},
    {"outputKb", offsetof(struct limits, output_kb)},
    {"maxArtifacts", offsetof(struct limits, max_artifacts)},
    {"maxArtifactBytes", offsetof(struct limits, max_artifact_bytes)},
};
static_assert(sizeof(struct limits) == LIMIT_COUNT * sizeof(int64_t), "a row for every field");

int64_t limit_get(const struct limits *l, const struct limit_field *f)
{
    int64_t v;
    memcpy(&v, (const char *)l + f->offset, sizeof(v));
    return v;
}

void limit_put(struct limits *l, const struct limit_field *f, int64_t v)
{
    memcpy((char *)l + f->offset, &v, sizeof(v));
}

void limits_override(struct limits *l, const json_t *object)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        int64_t v;
        if (json_int(json_object_get(object, limit_fields[i].name), &v) == 0)
            limit_put(l, &limit_fields[i], v);
    }
}

json_t *limits_json(const struct limits *l)
{
    json_t *object = json_object();
    for (size_t i = 0; object && i < LIMIT_COUNT; i++)
        if (json_object_set_new(object, limit_fields[i].name,
                                json_integer(limit_get(l, &limit_fields[i]))) < 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

const struct limit_field *limits_above(const struct limits *wanted, const struct limits *max)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        int64_t bound = limit_get(max, &limit_fields[i]);
        if (bound > 0 && limit_get(wanted, &limit_fields[i]) > bound)
            return &limit_fields[i];
    }
    return NULL;
}
