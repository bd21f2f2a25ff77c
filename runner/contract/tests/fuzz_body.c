/* First byte: which schema ('A' is the first). Rest: a JSON text, checked against it; and, as raw
 * output, cut into one event. */
#include <assert.h>

#include "contract/contract.h"
#include "contract/job.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_body(enum contract_schema which, const char *text, size_t len)
{
    json_auto_t *value = NULL;
    if (json_parse(text, len, &value, NULL) < 0)
        return;
    json_auto_t *details = NULL;
    int r = contract_check(which, value, &details);
    assert(r == (json_array_size(details) > 0));

    /* What we answer with must itself be a well-formed error. */
    if (r == 0)
        return;
    json_auto_t *answer = json_pack("{s:s, s:O}", "error", "Validation error", "details", details);
    json_auto_t *none = NULL;
    assert(answer && contract_check(CONTRACT_ERROR, answer, &none) == 0);

    struct limits l = {0};
    limits_override(&l, json_object_get(value, "limits"));
    strings_free(strings_from_json(json_object_get(value, "run")));
}

static void check_output(const char *bytes, size_t len)
{
    size_t fit = event_fit(bytes, len, len + 1);
    assert(fit <= len && (fit > 0 || len == 0));
    struct event e = {.type = EVENT_STDERR, .seq = len + 1, .data = {bytes, fit}};
    cleanup_buf struct buf payload;
    buf_init(&payload, EVENT_PAYLOAD_MAX);
    assert(event_payload(&payload, &e) == 0);
    json_auto_t *value = NULL;
    assert(json_parse(payload.data, payload.len, &value, NULL) == 0);
    json_auto_t *details = NULL;
    assert(contract_check(CONTRACT_OUTPUT_EVENT, value, &details) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    int r = contract_init(NULL); /* compiles once */
    assert(r == 0);
    unsigned which = (unsigned)(data[0] + 256 - 'A') % CONTRACT_COUNT;
    check_body(which, (const char *)data + 1, size - 1);
    check_output((const char *)data + 1, size - 1);
    return 0;
}
