#include "manifest/manifest.h"

#include <string.h>

#include "base/cleanup.h"
#include "test.h"

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

static void order(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "alpha",
        "beta",
        "0",
        "0.0.1",
        "0.9",
        "0.10",
        "1",
        "1.0.0-rc",
        "1.0.0",
        "1.0.0.0",
        "1.2",
        "1.10-a",
        "1.10-b",
        "1.10",
        "1.10.0",
        "3.9",
        "3.12",
        "3.13-rc1",
        "3.13",
        "3.13.0",
        "3.13.1",
        "14",
        "99999999999999999999999",
        "100000000000000000000000",
    };
    for (size_t i = 0; i < ARRAY_LEN(ascending); i++)
        for (size_t k = 0; k < ARRAY_LEN(ascending); k++) {
            int want = (i > k) - (i < k);
            if (sign(version_compare(ascending[i], ascending[k])) != want)
                fail_msg("%s and %s: not %d", ascending[i], ascending[k], want);
        }
    assert_int_equal(version_compare("3.09", "3.9"), 0);
    assert_int_equal(version_compare("", ""), 0);
    assert_int_equal(version_compare("00", "0"), 0);
}

static char *no_aliases[] = {NULL};
static char py[] = "py";
static char *py_aliases[] = {py, NULL};
static char python[] = "python";
static char zero[] = "zero";
static char edge[] = "edge";
static char versions[][12] = {"3.12",  "3.9",   "3.13.1", "3.13.0",   "4.0", "0.4.0", "0.4.2",
                              "0.5.0", "0.0.3", "0.0.4",  "3.14-rc1", "x",   "3",     "3.x"};

#define PYTHON(i)                                                                                  \
    {                                                                                              \
        .name = python, .version = versions[i], .aliases = py_aliases                              \
    }
#define ZERO(i)                                                                                    \
    {                                                                                              \
        .name = zero, .version = versions[i], .aliases = no_aliases                                \
    }
#define EDGE(i)                                                                                    \
    {                                                                                              \
        .name = edge, .version = versions[i], .aliases = no_aliases                                \
    }
static struct language items[] = {PYTHON(0), PYTHON(1), PYTHON(2), PYTHON(3), PYTHON(4),
                                  ZERO(5),   ZERO(6),   ZERO(7),   ZERO(8),   ZERO(9),
                                  EDGE(10),  EDGE(11),  EDGE(12),  EDGE(13)};
static const struct languages languages = {items, ARRAY_LEN(items)};

static void find(void **state)
{
    (void)state;
    static const struct {
        const char *name, *version;
        const char *want; /* NULL: unknown version */
    } cases[] = {
        {"python", NULL, "4.0"},
        {"py", NULL, "4.0"},
        {"python", "3.12", "3.12"},
        {"python", "3", "3.13.1"},
        {"python", "3.13", "3.13.1"},
        {"python", "3.13.0", "3.13.0"},
        {"python", "3.1", NULL},
        {"python", "3.13.1.0", NULL},
        {"python", "3.x", "3.13.1"},
        {"python", "3.*", "3.13.1"},
        {"python", "3.13.x", "3.13.1"},
        {"python", "5.x", NULL},
        {"python", "*", "4.0"},
        {"python", "x", "4.0"},
        {"python", "^3.12", "3.13.1"},
        {"python", "^3.13.2", NULL},
        {"python", "^4", "4.0"},
        {"python", "~3.12", "3.12"},
        {"python", "~3.13.0", "3.13.1"},
        {"python", "~3.13.2", NULL},
        {"python", "~3", "3.13.1"},
        {"python", ">=3.12", "4.0"},
        {"python", ">=4.0", "4.0"},
        {"python", ">=4.1", NULL},
        {"zero", "^0.4", "0.4.2"},
        {"zero", "^0.4.1", "0.4.2"},
        {"zero", "^0.0.3", "0.0.3"},
        {"zero", "^0", "0.5.0"},
        {"zero", "^0.0", "0.0.4"},
        {"edge", "3.x", "3.x"}, /* exact wins */
        {"edge", "x", "x"},
        {"edge", "3.14-rc1", "3.14-rc1"},
        {"edge", NULL, "3.14-rc1"},
        {"python", "", NULL},
        {"python", "^", NULL},
        {"python", "~", NULL},
        {"python", ">=", NULL},
        {"python", ".x", NULL},
        {"python", "latest", NULL},
        {"python", "3.", NULL},
        {"python", "3 ", NULL},
        {"python", "<4", NULL},
        {"python", "1234567890123456789012345678901234567890123456789012345678901234567890.x",
         NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct language *got = NULL;
        int r = languages_find(&languages, cases[i].name, cases[i].version, &got);
        const char *version = got ? got->version : "none";
        if (r != (cases[i].want ? 0 : LANGUAGE_VERSION_UNKNOWN) ||
            strcmp(version, cases[i].want ? cases[i].want : "none") != 0)
            fail_msg("%s %s: r=%d %s", cases[i].name,
                     cases[i].version ? cases[i].version : "(none)", r, version);
    }
}

static void unknown_languages(void **state)
{
    (void)state;
    static const char *const names[] = {"Python", "PY", "", "pytho", "python3", "version"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct language *got = &items[0];
        assert_int_equal(languages_find(&languages, names[i], "3", &got), LANGUAGE_UNKNOWN);
        assert_ptr_equal(got, &items[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(find),
        cmocka_unit_test(unknown_languages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
