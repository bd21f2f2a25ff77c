/* torture.h - fails the 1st, 2nd ... allocation of a step: jansson's through its own hook, ours by the
 * linker (--wrap of calloc, realloc, reallocarray and strdup). For one program each, from main(). */
#ifndef JSON_TESTS_TORTURE_H
#define JSON_TESTS_TORTURE_H

#include "test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static size_t countdown; /* 0: never fail; n: the n-th allocation from now fails */
static bool failed;

static bool must_fail(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    failed = true;
    return true;
}

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return must_fail() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return must_fail() ? NULL : __real_reallocarray(p, n, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : __real_strdup(text);
}

static void *jansson_malloc(size_t size)
{
    return must_fail() ? NULL : malloc(size);
}

static inline void torture_begin(void)
{
    json_set_alloc_funcs(jansson_malloc, free);
}

/* Runs step with the 1st, 2nd ... allocation failing, until a run needs no more of them.
 * parses: the step reads JSON, where jansson's tokeniser ignores some failures and takes others for a
 * bad token. */
static void torture(int (*step)(void *arg), void *arg, bool parses)
{
    size_t nth = 0;
    do {
        countdown = ++nth;
        failed = false;
        int r = step(arg);
        countdown = 0;
        bool excused = failed && parses && (r == 0 || r == -EINVAL);
        if (r == 0 ? failed && !excused : !failed || (r != -ENOMEM && !excused))
            fail_msg("allocation %zu: r=%d", nth, r);
    } while (failed);
    assert_true(nth > 1);
}

#endif
