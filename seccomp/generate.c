/* seccomp/generate.c - makes profile.json and the tables of README.md from calls.json.
 *
 *   generate FOLDER            write FOLDER/profile.json and the table in FOLDER/README.md
 *   generate --check FOLDER    write nothing; fail if either differs from what would be written
 *
 * Both fail if libseccomp names a call that no group has, as long as its number is one that existed
 * when the list was last completed ("newest_number"). Calls of later kernels are only reported: what
 * passes must not depend on how new the libseccomp of the building machine is.
 *
 * calls.json is the only source. A group has a name, a one-line reason, calls, and
 *   answer     "allow" (the default), an errno's name, or SUCCESS: nothing is done, 0 is returned
 *   when       alternatives, each a list of conditions that must all hold
 *   otherwise  an errno's name: the answer where no alternative holds (without it: the default)
 * A condition is {"arg": 0-5, "bits": mask, "in" or "not": [values]}: the argument, cut to the bits,
 * is one of the values, or none of them. The kernel drops the upper half of what it takes as an int,
 * a filter sees all 64 bits. So without "bits", "not" compares the low 32, or a refused value with
 * garbage above it would pass; "in" compares all 64, where garbage is refused.
 *
 * The filter language ORs the rules of a call and ANDs the conditions of a rule, but takes one
 * condition per argument and has no "masked and different". So "none of these values" becomes
 * disjoint rules that each fix the lowest bits: every way to leave the tree of refused values.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALLS_MAX = 1024,       /* calls over all groups; Linux 6.18 has about 390 */
    CALL_NUMBER_MAX = 4096, /* the highest call number asked for */
    OLD_NUMBER_MAX = 336, /* each architecture counted by itself up to here (x86_64: uprobe) ... */
    COMMON_NUMBER_MIN = 424, /* ... and all have counted together since this one */
    TESTS_MAX = 128,         /* ways to pass or fail one condition */
    CONDITIONS_MAX = 6,      /* a call has six arguments */
    LINE_MAX_COLUMNS = 100,
};

#define TABLE_BEGIN "<!-- table: made by generate -->\n"
#define TABLE_END   "<!-- end of table -->\n"

static const struct {
    const char *name;
    int number; /* -1: let the call pass */
} answers[] = {
    {"allow", -1},
    {"SUCCESS", 0},
    {"EPERM", EPERM},
    {"ENOMEM", ENOMEM},
    {"EINVAL", EINVAL},
    {"ENOSYS", ENOSYS},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"EAFNOSUPPORT", EAFNOSUPPORT},
};

/* One comparison in the filter language. */
struct test {
    unsigned int arg;
    enum { TEST_EQ, TEST_NE, TEST_MASKED_EQ } op;
    uint64_t mask; /* TEST_MASKED_EQ only */
    uint64_t value;
};

/* A condition: it holds where one of pass does, and fails where one of fail does. */
struct condition {
    unsigned int arg;
    struct test pass[TESTS_MAX], fail[TESTS_MAX];
    size_t n_pass, n_fail;
};

struct alternative {
    struct condition conditions[CONDITIONS_MAX];
    size_t n_conditions;
};

/* The values a condition lists, while its tree is walked. */
struct values {
    unsigned int arg;
    uint64_t bits;
    uint64_t list[16];
    size_t n;
};

static struct {
    const char *name, *group;
} known[CALLS_MAX];
static size_t n_known;

__attribute__((format(printf, 1, 2))) static int complain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fputs("generate: ", stderr); /* nowhere to report a failure of stderr */
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    return -EINVAL;
}

static int answer_number(const char *name, int *ret)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        if (strcmp(name, answers[i].name) == 0) {
            *ret = answers[i].number;
            return 0;
        }
    }
    return complain("unknown answer %s", name);
}

/* --- conditions -------------------------------------------------------------------------------- */

static int number_read(const json_t *json, uint64_t *ret)
{
    const char *text = json_string_value(json);
    char *end = NULL;
    if (!text || strncmp(text, "0x", 2) != 0)
        return complain("a value must be a string like \"0x1f\"");
    errno = 0;
    *ret = strtoull(text, &end, 16);
    return errno || *end ? complain("bad value %s", text) : 0;
}

static int test_add(struct test *tests, size_t *n, struct test test)
{
    if (*n == TESTS_MAX)
        return complain("a condition needs more than %d tests", TESTS_MAX);
    tests[(*n)++] = test;
    return 0;
}

/* Adds one test for each branch that leaves the tree of the listed values. `fixed` are the bits
 * already decided, `prefix` their value; bits are decided from the lowest, where common values differ
 * from the refused ones soonest. */
static int others_add(const struct values *v, uint64_t fixed, uint64_t prefix, struct test *tests,
                      size_t *n)
{
    bool inside = false;
    for (size_t i = 0; i < v->n; i++)
        inside |= (v->list[i] & fixed) == prefix;
    if (!inside)
        return test_add(tests, n, (struct test){v->arg, TEST_MASKED_EQ, fixed, prefix});

    uint64_t left = v->bits & ~fixed;
    if (left == 0)
        return 0;

    uint64_t bit = left & -left;
    int r = others_add(v, fixed | bit, prefix, tests, n);
    return r < 0 ? r : others_add(v, fixed | bit, prefix | bit, tests, n);
}

static int listed_add(const struct values *v, struct test *tests, size_t *n)
{
    int r = 0;
    for (size_t i = 0; i < v->n && r == 0; i++)
        r = test_add(tests, n, (struct test){v->arg, TEST_MASKED_EQ, v->bits, v->list[i]});
    return r;
}

static int values_read(const json_t *json, bool in, struct values *v)
{
    const json_t *list = json_object_get(json, in ? "in" : "not");
    const json_t *bits = json_object_get(json, "bits");
    const json_t *arg = json_object_get(json, "arg");
    size_t i;
    json_t *item;

    v->bits = in ? UINT64_MAX : UINT32_MAX;
    if (bits && number_read(bits, &v->bits) < 0)
        return -EINVAL;
    if (!list || json_object_size(json) != (bits ? 3U : 2U))
        return complain("a condition has \"arg\", \"in\" or \"not\", and perhaps \"bits\"");
    if (!json_is_integer(arg) || json_integer_value(arg) < 0 || json_integer_value(arg) > 5)
        return complain("\"arg\" must be 0 to 5");
    v->arg = (unsigned int)json_integer_value(arg);
    v->n = json_array_size(list);
    if (v->n == 0 || v->n > sizeof v->list / sizeof *v->list)
        return complain("a condition needs 1 to 16 values");
    json_array_foreach(list, i, item)
    {
        if (number_read(item, &v->list[i]) < 0)
            return -EINVAL;
        if (v->list[i] & ~v->bits)
            return complain("value %#" PRIx64 " has bits that are not compared", v->list[i]);
    }
    return 0;
}

static int condition_read(const json_t *json, bool complement, struct condition *c)
{
    struct values v = {0};
    bool in = json_object_get(json, "in") != NULL;

    *c = (struct condition){0};
    if (values_read(json, in, &v) < 0)
        return -EINVAL;
    c->arg = v.arg;

    if (in && v.n == 1 && v.bits == UINT64_MAX) { /* the one case with an operator for both sides */
        c->pass[c->n_pass++] = (struct test){v.arg, TEST_EQ, 0, v.list[0]};
        c->fail[c->n_fail++] = (struct test){v.arg, TEST_NE, 0, v.list[0]};
        return 0;
    }
    if (in) {
        int r = listed_add(&v, c->pass, &c->n_pass);
        return r < 0 || !complement ? r : others_add(&v, 0, 0, c->fail, &c->n_fail);
    }
    int r = others_add(&v, 0, 0, c->pass, &c->n_pass);
    return r < 0 || !complement ? r : listed_add(&v, c->fail, &c->n_fail);
}

static int alternative_read(const json_t *json, bool complement, struct alternative *a)
{
    size_t i;
    json_t *item;

    a->n_conditions = json_array_size(json);
    if (a->n_conditions == 0 || a->n_conditions > CONDITIONS_MAX)
        return complain("an alternative needs 1 to %d conditions", CONDITIONS_MAX);
    json_array_foreach(json, i, item)
    {
        if (condition_read(item, complement, &a->conditions[i]) < 0)
            return -EINVAL;
        /* Runtimes take two conditions on one argument for alternatives: each alone would do. */
        for (size_t j = 0; j < i; j++) {
            if (a->conditions[j].arg == a->conditions[i].arg)
                return complain("two conditions on argument %u", a->conditions[i].arg);
        }
    }
    return 0;
}

/* --- profile.json ------------------------------------------------------------------------------ */

/* The file being written. */
struct profile {
    FILE *out;
    size_t rules;
};

/* The calls that a rule is about. */
struct subject {
    const char *names[CALLS_MAX];
    size_t n;
};

static void names_write(FILE *out, const struct subject *s)
{
    size_t column = fprintf(out, "      \"names\": [") > 0 ? 16 : 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t width = strlen(s->names[i]) + 4;
        if (column + width > LINE_MAX_COLUMNS) {
            (void)fputs("\n       ", out); /* write errors show at fclose */
            column = 7;
        }
        (void)fprintf(out, "%s\"%s\"%s", i ? " " : "", s->names[i], i + 1 < s->n ? "," : "");
        column += width;
    }
    (void)fputs("],\n", out);
}

static void rule_write(struct profile *p, const struct subject *s, int answer,
                       const struct test *const *tests, size_t n_tests)
{
    FILE *out = p->out;
    static const char *const ops[] = {[TEST_EQ] = "SCMP_CMP_EQ",
                                      [TEST_NE] = "SCMP_CMP_NE",
                                      [TEST_MASKED_EQ] = "SCMP_CMP_MASKED_EQ"};

    (void)fputs(p->rules++ ? ",\n    {\n" : "\n    {\n", out);
    names_write(out, s);
    if (answer < 0)
        (void)fputs("      \"action\": \"SCMP_ACT_ALLOW\"", out);
    else
        (void)fprintf(out, "      \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": %d", answer);
    for (size_t i = 0; i < n_tests; i++) {
        const struct test *t = tests[i];
        bool masked = t->op == TEST_MASKED_EQ;
        (void)fprintf(out, "%s{\"index\": %u, \"value\": %" PRIu64,
                      i ? ", " : ",\n      \"args\": [", t->arg, masked ? t->mask : t->value);
        if (masked)
            (void)fprintf(out, ", \"valueTwo\": %" PRIu64, t->value);
        (void)fprintf(out, ", \"op\": \"%s\"}", ops[t->op]);
    }
    (void)fputs(n_tests ? "]\n    }" : "\n    }", out);
}

/* Every combination of one passing test of conditions 0 .. last-1 and one test of `last`, which comes
 * from its passing or its failing side. */
static void combinations_write(struct profile *p, const struct subject *s, int answer,
                               const struct alternative *a, size_t last, bool last_fails)
{
    size_t pick[CONDITIONS_MAX] = {0};
    for (;;) {
        const struct test *tests[CONDITIONS_MAX];
        for (size_t i = 0; i <= last; i++) {
            const struct condition *c = &a->conditions[i];
            tests[i] = i == last && last_fails ? &c->fail[pick[i]] : &c->pass[pick[i]];
        }
        rule_write(p, s, answer, tests, last + 1);

        size_t i = 0;
        for (; i <= last; i++) {
            const struct condition *c = &a->conditions[i];
            if (++pick[i] < (i == last && last_fails ? c->n_fail : c->n_pass))
                break;
            pick[i] = 0;
        }
        if (i > last)
            return;
    }
}

static int conditional_write(struct profile *p, const struct subject *s, const json_t *group,
                             int answer)
{
    const json_t *when = json_object_get(group, "when");
    const char *otherwise = json_string_value(json_object_get(group, "otherwise"));
    struct alternative *a = calloc(1, sizeof *a);
    int r = a ? 0 : -ENOMEM, refusal = 0;
    size_t i;
    json_t *item;

    if (r == 0 && otherwise && json_array_size(when) != 1)
        r = complain("\"otherwise\" needs exactly one alternative");
    if (r == 0 && otherwise)
        r = answer_number(otherwise, &refusal);
    json_array_foreach(when, i, item)
    {
        if (r == 0)
            r = alternative_read(item, otherwise != NULL, a);
        if (r < 0)
            break;
        combinations_write(p, s, answer, a, a->n_conditions - 1, false);
        for (size_t last = 0; otherwise && last < a->n_conditions; last++)
            combinations_write(p, s, refusal, a, last, true);
    }
    free(a);
    return r;
}

static int group_write(struct profile *p, const json_t *group)
{
    const char *answer = json_string_value(json_object_get(group, "answer"));
    const json_t *calls = json_object_get(group, "calls");
    struct subject s = {.n = 0};
    size_t i;
    int number = 0;
    json_t *item;

    json_array_foreach(calls, i, item) s.names[s.n++] = json_string_value(item);
    if (answer_number(answer ? answer : "allow", &number) < 0)
        return -EINVAL;
    if (json_object_get(group, "when"))
        return conditional_write(p, &s, group, number);
    rule_write(p, &s, number, NULL, 0);
    return 0;
}

static int profile_write(FILE *out, const json_t *groups)
{
    struct profile profile = {.out = out};
    size_t i;
    json_t *group;

    (void)fprintf(out,
                  "{\n  \"defaultAction\": \"SCMP_ACT_ERRNO\",\n  \"defaultErrnoRet\": %d,\n"
                  "  \"archMap\": [\n"
                  "    {\"architecture\": \"SCMP_ARCH_X86_64\", \"subArchitectures\": []},\n"
                  "    {\"architecture\": \"SCMP_ARCH_AARCH64\", \"subArchitectures\": []}\n"
                  "  ],\n"
                  "  \"syscalls\": [",
                  ENOSYS);
    json_array_foreach(groups, i, group)
    {
        if (group_write(&profile, group) < 0)
            return complain("in group %s", json_string_value(json_object_get(group, "name")));
    }
    (void)fputs("\n  ]\n}\n", out);
    return 0;
}

/* --- README.md --------------------------------------------------------------------------------- */

static void condition_print(FILE *out, const json_t *c)
{
    bool in = json_object_get(c, "in") != NULL;
    const json_t *bits = json_object_get(c, "bits");
    size_t i;
    json_t *value;

    (void)fprintf(out, "arg%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(c, "arg")));
    if (bits)
        (void)fprintf(out, " & %s", json_string_value(bits));
    (void)fputs(in ? " is " : " is not ", out);
    json_array_foreach(json_object_get(c, in ? "in" : "not"), i, value)(void)
        fprintf(out, "%s%s", i ? " or " : "", json_string_value(value));
}

static void group_print(FILE *out, const json_t *group)
{
    const char *answer = json_string_value(json_object_get(group, "answer"));
    const char *otherwise = json_string_value(json_object_get(group, "otherwise"));
    size_t i, j;
    json_t *item, *condition;

    (void)fprintf(out, "| %s | %s", json_string_value(json_object_get(group, "name")),
                  answer ? answer : "allowed");
    json_array_foreach(json_object_get(group, "when"), i, item)
    {
        (void)fputs(i ? "; or " : " if ", out);
        json_array_foreach(item, j, condition)
        {
            (void)fputs(j ? " and " : "", out);
            condition_print(out, condition);
        }
    }
    if (json_object_get(group, "when"))
        (void)fprintf(out, ", else %s", otherwise ? otherwise : "the default");
    (void)fprintf(out, " | %s | ", json_string_value(json_object_get(group, "reason")));
    json_array_foreach(json_object_get(group, "calls"), i, item)(void)
        fprintf(out, "%s%s", i ? " " : "", json_string_value(item));
    (void)fputs(" |\n", out);
}

static int readme_write(FILE *out, const char *old, const json_t *groups)
{
    const char *begin = strstr(old, TABLE_BEGIN);
    const char *end = begin ? strstr(begin, TABLE_END) : NULL;
    size_t i;
    json_t *group;

    if (!end)
        return complain("README.md lacks the lines that mark its table");
    (void)fwrite(old, 1, (size_t)(begin - old), out);
    (void)fputs(TABLE_BEGIN "| group | answer | reason | calls |\n| --- | --- | --- | --- |\n",
                out);
    json_array_foreach(groups, i, group) group_print(out, group);
    (void)fputs(end, out);
    return 0;
}

/* --- calls.json -------------------------------------------------------------------------------- */

static int known_add(const char *name, const char *group)
{
    for (size_t i = 0; i < n_known; i++) {
        if (strcmp(known[i].name, name) == 0)
            return complain("%s is in %s and in %s", name, known[i].group, group);
    }
    if (n_known == CALLS_MAX)
        return complain("more than %d calls", CALLS_MAX);
    known[n_known].name = name;
    known[n_known++].group = group;
    return 0;
}

/* One group: only known keys, strings where strings belong, no call that another group has. */
static int group_check(const json_t *group)
{
    static const char *const keys[] = {"name", "reason", "answer", "calls", "when", "otherwise"};
    const char *name = json_string_value(json_object_get(group, "name"));
    const json_t *calls = json_object_get(group, "calls");
    size_t i, found = 0;
    json_t *item;

    if (!name || !json_is_string(json_object_get(group, "reason")) || json_array_size(calls) == 0)
        return complain("a group needs a name, a reason and calls (%s)", name ? name : "no name");
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        found += json_object_get(group, keys[i]) != NULL;
    if (found != json_object_size(group))
        return complain("group %s has an unknown key", name);
    json_array_foreach(calls, i, item)
    {
        const char *call = json_string_value(item);
        if (!call || call[strspn(call, "abcdefghijklmnopqrstuvwxyz0123456789_")] != '\0')
            return complain("group %s has a bad call name", name);
        if (known_add(call, name) < 0)
            return -EINVAL;
    }
    return 0;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < n_known; i++) {
        if (strcmp(known[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Every call of the kernels we looked at must be in a group: an old daemon ignores defaultErrnoRet,
 * so what no rule names would answer EPERM there. */
static int coverage_check(const json_t *root)
{
    static const uint32_t architectures[] = {SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64};
    const json_t *newest = json_object_get(root, "newest_number");
    int r = 0;

    if (!json_is_integer(newest) || json_integer_value(newest) < COMMON_NUMBER_MIN)
        return complain("\"newest_number\" must be a number from %d", COMMON_NUMBER_MIN);
    for (size_t a = 0; a < sizeof architectures / sizeof *architectures; a++) {
        for (int number = 0; number < CALL_NUMBER_MAX; number++) {
            char *name = seccomp_syscall_resolve_num_arch(architectures[a], number);
            bool old = number <= OLD_NUMBER_MAX ||
                       (number >= COMMON_NUMBER_MIN && number <= json_integer_value(newest));
            if (name && !is_known(name)) {
                int missing = complain("%s (%d) is in no group of calls.json%s", name, number,
                                       old ? "" : " (note: newer than newest_number)");
                r = old ? missing : r;
            }
            free(name);
        }
    }
    return r;
}

/* --- files ------------------------------------------------------------------------------------- */

static int file_read(const char *path, char **ret)
{
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;

    if (!f) {
        (void)complain("open %s: %s", path, strerrordesc_np(errno));
        return -EINVAL;
    }
    /* No NUL in the file, so this "line" is the whole of it. */
    ssize_t length = getdelim(&text, &size, '\0', f);
    (void)fclose(f); /* only read */
    if (length < 0) {
        free(text);
        (void)complain("read %s", path);
        return -EINVAL;
    }
    *ret = text;
    return 0;
}

static int file_replace(const char *path, const char *text, bool check)
{
    char *old = NULL;
    if (check) {
        int r = file_read(path, &old);
        if (r == 0 && strcmp(old, text) != 0)
            r = complain("%s is not what calls.json makes: run generate", path);
        free(old);
        return r;
    }

    FILE *f = fopen(path, "we");
    if (!f)
        return complain("write %s: %s", path, strerrordesc_np(errno));
    bool failed = fputs(text, f) == EOF;
    failed |= fclose(f) != 0;
    return failed ? complain("write %s", path) : 0;
}

static int profile_make(const char *folder, const json_t *groups, bool check)
{
    char path[4096], *text = NULL;
    size_t size = 0;

    (void)snprintf(path, sizeof path, "%s/profile.json", folder); /* a cut path does not open */
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return -ENOMEM;
    int r = profile_write(out, groups);
    if (fclose(out) != 0 && r == 0)
        r = -ENOMEM;
    if (r == 0)
        r = file_replace(path, text, check);
    free(text);
    return r;
}

static int readme_make(const char *folder, const json_t *groups, bool check)
{
    char path[4096], *old = NULL, *text = NULL;
    size_t size = 0;

    (void)snprintf(path, sizeof path, "%s/README.md", folder);
    if (file_read(path, &old) < 0)
        return -EINVAL;
    FILE *out = open_memstream(&text, &size);
    int r = out ? readme_write(out, old, groups) : -ENOMEM;
    if (out && fclose(out) != 0 && r == 0)
        r = -ENOMEM;
    if (r == 0)
        r = file_replace(path, text, check);
    free(old);
    free(text);
    return r;
}

static int run(const char *folder, bool check)
{
    char path[4096];
    json_error_t error;
    size_t i;
    json_t *group;

    (void)snprintf(path, sizeof path, "%s/calls.json", folder);
    json_auto_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return complain("%s:%d: %s", path, error.line, error.text);
    const json_t *groups = json_object_get(root, "groups");
    if (json_array_size(groups) == 0)
        return complain("%s has no groups", path);
    json_array_foreach(groups, i, group)
    {
        if (group_check(group) < 0)
            return -EINVAL;
    }
    int r = coverage_check(root);
    if (r == 0)
        r = profile_make(folder, groups, check);
    return r < 0 ? r : readme_make(folder, groups, check);
}

int main(int argc, char **argv)
{
    bool check = argc == 3 && strcmp(argv[1], "--check") == 0;
    if (argc != 2 && !check) {
        (void)fprintf(stderr, "usage: %s [--check] FOLDER\n", argv[0]);
        return 2;
    }
    return run(argv[argc - 1], check) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
