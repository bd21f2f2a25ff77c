/* contract/contract.h - the compiled-in JSON Schemas and the checks made with them.
 *
 * The schemas are the files contract/NAME.schema.json at the top of the tree, embedded at build
 * time and compiled once by contract_init(). Threads: read-only after contract_init(). */
#ifndef CONTRACT_CONTRACT_H
#define CONTRACT_CONTRACT_H

#include <jansson.h>

#include "base/err.h"

/* Names are file names without ".schema.json". */
enum contract_schema {
    CONTRACT_EXECUTE_REQUEST,
    CONTRACT_STDIN_REQUEST,
    CONTRACT_CHANNEL_AUTH_REQUEST,
    CONTRACT_BLOBS_REQUEST,
    CONTRACT_MANIFEST,
    CONTRACT_EXECUTE_ACCEPTED,
    CONTRACT_JOB_STATUS,
    CONTRACT_RUN_RESULT,
    CONTRACT_LANGUAGES,
    CONTRACT_ERROR,
    CONTRACT_STAGE_EVENT,
    CONTRACT_OUTPUT_EVENT,
    CONTRACT_RESULT_EVENT,
    CONTRACT_REPORT,
    CONTRACT_COUNT,
};

/* Once, before any thread; fails only on a broken build or without memory. */
int contract_init(struct err *err);
void contract_done(void);

const char *contract_schema_name(enum contract_schema which);
/* The schema's text, as in the tree. */
const char *contract_schema_text(enum contract_schema which);

/* Checks value; on violations returns 1 and sets *ret_details to a new array of
 * {"path": "files.0.name", "message": "..."} with every violation; 0 when there is none. */
int contract_check(enum contract_schema which, const json_t *value, json_t **ret_details);

#endif
