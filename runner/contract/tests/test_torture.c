/* Out of memory at every single allocation, in all that builds values. Reading JSON is left out: when
 * jansson's tokeniser cannot grow its buffer it goes on with half a token. */
#include "torture.h"

#include "contract/job.h"

static int result_of(json_t *value)
{
    int r = value ? 0 : -ENOMEM;
    json_decref(value);
    return r;
}

static int step_limits(void *arg)
{
    (void)arg;
    return result_of(limits_json(&(struct limits){0}));
}

static int step_status(void *arg)
{
    (void)arg;
    return result_of(job_status_json(&(struct job_status){.language = "c\xff"}));
}

static int step_result(void *arg)
{
    (void)arg;
    return result_of(job_result_json(&(struct job_result){.signal = "SIGKILL"}));
}

static int step_report(void *arg)
{
    (void)arg;
    struct job_report r;
    job_report_init(&r);
    r.limit_name = "pids";
    r.limit_value = 1;
    r.wall_ms = 1;
    return result_of(job_report_json(&r));
}

static int step_strings(void *arg)
{
    char **list = strings_from_json(arg);
    char **copy = strings_dup(list);
    int r = copy ? 0 : -ENOMEM;
    strings_free(list);
    strings_free(copy);
    return r;
}

static int step_payload(void *arg)
{
    (void)arg;
    struct event e = {.type = EVENT_STDOUT, .seq = 1, .data = {"some output, some more", 22}};
    cleanup_buf struct buf out;
    buf_init(&out, EVENT_PAYLOAD_MAX);
    int r = event_payload(&out, &e);
    assert_int_equal(out.len > 0, r == 0);
    return r;
}

static void test_steps(void **state)
{
    (void)state;
    torture(step_limits, NULL, false);
    torture(step_status, NULL, false);
    torture(step_result, NULL, false);
    torture(step_report, NULL, false);
    torture(step_payload, NULL, false);
    json_t *list = json_pack("[s, s]", "a", "");
    assert_non_null(list);
    torture(step_strings, list, false);
    json_decref(list);
}

int main(void)
{
    torture_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
