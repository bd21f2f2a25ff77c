/* Any bytes as the body of POST /v1/execute: a refusal with a client's status, or a job whose files
 * can be made below a folder. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../admit.h"
#include "contract/contract.h"
#include "json/json.h"

#define FILES_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct language items[1];
static struct languages languages = {items, 1};

static void prepare(void)
{
    static const char text[] =
        "{\"language\":\"python\",\"version\":\"3.13\",\"aliases\":[\"py\"],\"image\":\"i\","
        "\"entrypoint\":\"m\",\"compile\":null,\"run\":[\"r\"],\"interactive\":true,"
        "\"preimport\":null,\"defaultLimits\":{\"wallTimeMs\":1,\"idleMs\":1,\"cpuMs\":1,"
        "\"memoryMb\":128,\"pids\":1,\"outputKb\":1,\"maxArtifacts\":1,\"maxArtifactBytes\":1}}";
    if (items[0].name)
        return;
    struct err err = {0};
    if (contract_init(&err) < 0 ||
        manifest_parse(text, sizeof(text) - 1, "fuzz", &items[0], &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.msg);
        abort();
    }
}

static void check_job(const struct job_spec *spec)
{
    uint64_t total = 0;
    for (size_t i = 0; i < spec->files_len; i++) {
        const struct job_file *f = &spec->files[i];
        assert(f->name && f->name[0] && f->name[0] != '/' && f->content);
        for (const char *p = f->name; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL) {
            size_t n = strcspn(p, "/");
            assert(n > 0 && n <= 255 && !(n == 1 && *p == '.') && strncmp(p, "../", 3) != 0 &&
                   strcmp(p, "..") != 0);
        }
        for (size_t j = 0; j < i; j++)
            assert(strcmp(f->name, spec->files[j].name) != 0);
        total += f->content_len;
    }
    assert(total <= FILES_BYTES_MAX);
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        assert(limit_get(&spec->limits, &limit_fields[i]) >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prepare();
    json_auto_t *body = NULL;
    if (json_parse((const char *)data, size, &body, NULL) < 0)
        return 0;
    json_auto_t *details = NULL;
    if (contract_check(CONTRACT_EXECUTE_REQUEST, body, &details) != 0)
        return 0;
    struct limits max = {.wall_ms = 100000, .pids = 50};
    struct admit_rules rules = {&languages, &max, FILES_BYTES_MAX};
    cleanup_answer struct answer refusal;
    answer_init(&refusal);
    cleanup_job_spec struct job_spec *spec = NULL;
    if (admit_execute(&rules, body, &spec, &refusal) == 0) {
        assert(spec && refusal.status == 0);
        check_job(spec);
    } else {
        assert(!spec && (refusal.status == 400 || refusal.status == 413 || refusal.status == 501));
        assert(refusal.body.len > 0 && refusal.body.len < 2048);
    }
    return 0;
}
