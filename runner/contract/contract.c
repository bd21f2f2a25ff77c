#include "contract/contract.h"

#include <assert.h>
#include <errno.h>

#include "embedded.h"
#include "json/schema.h"

static const char *const names[] = {
    [CONTRACT_EXECUTE_REQUEST] = "execute-request",
    [CONTRACT_STDIN_REQUEST] = "stdin-request",
    [CONTRACT_CHANNEL_AUTH_REQUEST] = "channel-auth-request",
    [CONTRACT_BLOBS_REQUEST] = "blobs-request",
    [CONTRACT_MANIFEST] = "manifest",
    [CONTRACT_EXECUTE_ACCEPTED] = "execute-accepted",
    [CONTRACT_JOB_STATUS] = "job-status",
    [CONTRACT_RUN_RESULT] = "run-result",
    [CONTRACT_LANGUAGES] = "languages",
    [CONTRACT_ERROR] = "error",
    [CONTRACT_STAGE_EVENT] = "stage-event",
    [CONTRACT_OUTPUT_EVENT] = "output-event",
    [CONTRACT_RESULT_EVENT] = "result-event",
    [CONTRACT_REPORT] = "report",
};
static_assert(sizeof(names) / sizeof(names[0]) == CONTRACT_COUNT, "a name for every schema");

static struct schema *compiled[CONTRACT_COUNT];

const char *contract_schema_name(enum contract_schema which)
{
    return names[which];
}

const char *contract_schema_text(enum contract_schema which)
{
    return embedded_schemas[which].text;
}

int contract_init(struct err *err)
{
    for (unsigned i = 0; i < CONTRACT_COUNT; i++) {
        if (compiled[i])
            continue;
        const struct embedded *e = &embedded_schemas[i];
        int r = strcmp(e->name, names[i]) == 0
                    ? schema_compile(e->text, &compiled[i], err)
                    : err_say(err, -EINVAL, "%s is embedded in its place", e->name);
        if (r < 0) {
            contract_done();
            return err_wrap(err, r, "schema %s", names[i]);
        }
    }
    return 0;
}

void contract_done(void)
{
    for (unsigned i = 0; i < CONTRACT_COUNT; i++) {
        schema_free(compiled[i]);
        compiled[i] = NULL;
    }
}

int contract_check(enum contract_schema which, const json_t *value, json_t **ret_details)
{
    assert(compiled[which]); /* contract_init() comes first */
    return schema_check(compiled[which], value, ret_details);
}
