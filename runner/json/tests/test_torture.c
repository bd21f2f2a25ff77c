/* Out of memory at every single allocation. */
#include "torture.h"

#include <errno.h>

#include "json/json.h"
#include "json/schema.h"

static const char schema_text[] =
    "{\"$ref\":\"#/$defs/a\",\"properties\":{\"l\":{\"items\":{\"anyOf\":[{\"type\":\"null\"},"
    "{\"type\":\"integer\",\"minimum\":1}]}},\"e\":{\"enum\":[\"x\"]},\"c\":{\"const\":1},\"s\":{"
    "\"minLength\":2}},"
    "\"required\":[\"r\"],\"additionalProperties\":false,\"$defs\":{\"a\":{\"type\":\"object\"}}}";
static const char value_text[] =
    "{\"l\":[null,0,1.5,\"\"],\"e\":\"y\",\"c\":2,\"s\":\"\",\"unknown\":\"\\u4e16\"}";

static int step_parse(void *arg)
{
    (void)arg;
    json_t *value = NULL;
    struct err err = {0};
    int r = json_parse(value_text, strlen(value_text), &value, &err);
    assert_int_equal(r == 0, value != NULL);
    assert_int_equal(err.code, r);
    json_decref(value);
    return r;
}

static int step_compile(void *arg)
{
    (void)arg;
    struct schema *s = NULL;
    struct err err = {0};
    int r = schema_compile(schema_text, &s, &err);
    assert_int_equal(r == 0, s != NULL);
    assert_int_equal(err.code, r);
    schema_free(s);
    return r;
}

static int step_lossy(void *arg)
{
    (void)arg;
    json_t *s = json_string_lossy("a\xff", 2);
    int r = s ? 0 : -ENOMEM;
    json_decref(s);
    return r;
}

static int step_print(void *arg)
{
    cleanup_buf struct buf out;
    buf_init(&out, 1 << 16);
    return json_print(&out, arg);
}

/* A message may come out shorter for want of memory; what must not happen is a verdict of "valid", a
 * list of fewer violations or a leak. */
static void test_check(void **state)
{
    (void)state;
    struct schema *s = NULL;
    json_t *value = NULL;
    assert_int_equal(schema_compile(schema_text, &s, NULL), 0);
    assert_int_equal(json_parse(value_text, strlen(value_text), &value, NULL), 0);
    json_t *all = NULL;
    assert_int_equal(schema_check(s, value, &all), 1);
    assert_int_equal(json_array_size(all), 8);
    size_t nth = 0;
    size_t refused = 0;
    do {
        json_t *details = NULL;
        countdown = ++nth;
        failed = false;
        int r = schema_check(s, value, &details);
        countdown = 0;
        assert_true(r == 1 || r == -ENOMEM);
        assert_int_equal(r == 1, details != NULL);
        if (r == 1)
            assert_int_equal(json_array_size(details), json_array_size(all));
        refused += r == -ENOMEM;
        json_decref(details);
    } while (failed);
    assert_true(refused > 0);
    json_decref(all);
    json_decref(value);
    schema_free(s);
}

static void test_steps(void **state)
{
    (void)state;
    torture(step_parse, NULL, true);
    torture(step_compile, NULL, true);
    torture(step_lossy, NULL, false);
    json_t *value = NULL;
    assert_int_equal(json_parse(value_text, strlen(value_text), &value, NULL), 0);
    torture(step_print, value, false);
    json_decref(value);
}

int main(void)
{
    torture_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
