/* Versions are lists of components, divided by ".", "-" or "+". Missing components count as there
 * for ever and stand between text and numbers: 3.13-rc1 < 3.13 < 3.13.0 < 3.13.1. */
#include "manifest/manifest.h"

#include <string.h>

#include "base/buf.h"

#define COMPONENT_ENDS ".-+"

/* Takes the next component off *at; its ptr is NULL after the last one. */
static struct span next_component(const char **at)
{
    if (!*at)
        return (struct span){NULL, 0};
    struct span c = {*at, strcspn(*at, COMPONENT_ENDS)};
    *at = c.ptr[c.len] ? c.ptr + c.len + 1 : NULL;
    return c;
}

static bool is_number(struct span c)
{
    for (size_t i = 0; i < c.len; i++)
        if (c.ptr[i] < '0' || c.ptr[i] > '9')
            return false;
    return c.len > 0;
}

/* Text, nothing, number: the order of kinds. */
static int kind(struct span c)
{
    if (!c.ptr)
        return 1;
    return is_number(c) ? 2 : 0;
}

static struct span without_zeros(struct span c)
{
    while (c.len > 1 && *c.ptr == '0') {
        c.ptr++;
        c.len--;
    }
    return c;
}

static int component_compare(struct span a, struct span b)
{
    if (kind(a) != kind(b))
        return kind(a) - kind(b);
    if (!a.ptr || !b.ptr)
        return 0;
    if (is_number(a)) {
        a = without_zeros(a);
        b = without_zeros(b);
        if (a.len != b.len)
            return a.len < b.len ? -1 : 1;
    }
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

int version_compare(const char *a, const char *b)
{
    while (a || b) {
        int order = component_compare(next_component(&a), next_component(&b));
        if (order != 0)
            return order;
    }
    return 0;
}

/* Whether the first n components of both are the same; all that wanted has for n = SIZE_MAX. */
static bool agrees(const char *version, const char *wanted, size_t n)
{
    for (size_t i = 0; i < n && wanted; i++)
        if (component_compare(next_component(&version), next_component(&wanted)) != 0)
            return false;
    return true;
}

/* ^: how many components must stay: up to the first that is not zero, else all of them. */
static size_t caret_components(const char *wanted)
{
    size_t n = 0;
    while (wanted) {
        struct span c = without_zeros(next_component(&wanted));
        n++;
        if (c.len != 1 || *c.ptr != '0')
            break;
    }
    return n;
}

static bool ends_with(const char *s, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len > n && memcmp(s + len - n, end, n) == 0;
}

/* "3.x", "3.*": what is before it must agree. */
static bool matches_wildcard(const char *version, const char *wanted, size_t len)
{
    char prefix[64]; /* versions are at most 63 bytes: a longer prefix can't match */
    if (len - 2 >= sizeof(prefix))
        return false;
    memcpy(prefix, wanted, len - 2);
    prefix[len - 2] = '\0';
    return agrees(version, prefix, SIZE_MAX);
}

static bool matches(const char *version, const char *wanted)
{
    size_t len = strlen(wanted);
    if (len == 0)
        return false;
    if (strcmp(wanted, "*") == 0 || strcmp(wanted, "x") == 0)
        return true;
    if (wanted[0] == '^' && len > 1)
        return version_compare(version, wanted + 1) >= 0 &&
               agrees(version, wanted + 1, caret_components(wanted + 1));
    if (wanted[0] == '~' && len > 1)
        return version_compare(version, wanted + 1) >= 0 && agrees(version, wanted + 1, 2);
    if (strncmp(wanted, ">=", 2) == 0 && len > 2)
        return version_compare(version, wanted + 2) >= 0;
    if (ends_with(wanted, len, ".x") || ends_with(wanted, len, ".*"))
        return matches_wildcard(version, wanted, len);
    return agrees(version, wanted, SIZE_MAX);
}

static bool answers_to(const struct language *l, const char *name)
{
    if (strcmp(l->name, name) == 0)
        return true;
    for (char **a = l->aliases; *a; a++)
        if (strcmp(*a, name) == 0)
            return true;
    return false;
}

int languages_find(const struct languages *l, const char *name, const char *version,
                   const struct language **ret)
{
    const struct language *best = NULL;
    int outcome = LANGUAGE_UNKNOWN;
    for (size_t i = 0; i < l->len; i++) {
        const struct language *it = &l->items[i];
        if (!answers_to(it, name))
            continue;
        outcome = LANGUAGE_VERSION_UNKNOWN;
        if (version && strcmp(it->version, version) == 0) {
            best = it;
            break;
        }
        if (version && !matches(it->version, version))
            continue;
        if (!best || version_compare(it->version, best->version) > 0)
            best = it;
    }
    if (!best)
        return outcome;
    *ret = best;
    return 0;
}
