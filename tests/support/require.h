/* tests/support/require.h - tests that need something the machine may lack.
 *
 * need("docker", "no daemon at ...") ends the test program with exit code 77, which ctest shows as
 * skipped with the reason; when the name is in the comma list REQUIRE it fails instead. */
#ifndef TESTS_SUPPORT_REQUIRE_H
#define TESTS_SUPPORT_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int is_required(const char *name)
{
    const char *list = getenv("REQUIRE"); /* NOLINT(concurrency-mt-unsafe): before any thread */
    size_t n = strlen(name);
    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return 1;
    return 0;
}

static inline _Noreturn void skip_without(const char *name, const char *reason)
{
    (void)printf("%s: %s (%s)\n", is_required(name) ? "FAILED, required" : "SKIPPED", name, reason);
    (void)fflush(stdout);
    exit(is_required(name) ? 1 : 77); /* NOLINT(concurrency-mt-unsafe): before any thread */
}

#endif
