/* manifest/manifest.h - languages: one folder each, described by manifest.json.
 *
 * The manifest's shape is contract/manifest.schema.json; beyond it no text may contain a NUL, a
 * program must have a name, and env holds at most 64 KiB under names [A-Za-z_][A-Za-z0-9_]*. A
 * manifest has at most 256 KiB. contract_init() comes first. Threads: read-only after loading. */
#ifndef MANIFEST_MANIFEST_H
#define MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "contract/limits.h"

struct language {
    char *name;
    char *version;
    char *image;
    char *entrypoint;
    char **aliases; /* NULL-terminated, possibly empty */
    char **compile; /* NULL: no compile stage */
    char **run;
    char **env; /* NAME=VALUE */
    bool interactive;
    struct limits defaults;
};

struct languages {
    struct language *items; /* folder-name order */
    size_t len;
};

/* Folders without a manifest, files and hidden entries are skipped; the first bad manifest is an
 * error that names file, path and reason. Refused too: two manifests with the same language and
 * version (-EEXIST), a name or alias that two different languages would answer to (-EEXIST;
 * versions of one language may share theirs), a symbolic link as folder or manifest (-ELOOP), a
 * manifest that is no regular file (-EINVAL) or too large (-EFBIG), more than 1000 folders
 * (-E2BIG), no manifest at all (-ENOENT). */
int languages_load(const char *dir, struct languages **ret, struct err *err);
void languages_free(struct languages *l); /* NULL is fine */
DEFINE_CLEANUP(struct languages *, languages_free)
#define cleanup_languages CLEANUP(languages_free_slot)

/* One manifest from its text; where names it in errors. Pure. -EINVAL, -ENOMEM. */
int manifest_parse(const char *text, size_t len, const char *where, struct language *ret,
                   struct err *err);
void language_done(struct language *l);

enum { LANGUAGE_UNKNOWN = 1, LANGUAGE_VERSION_UNKNOWN = 2 };

/* name: language or alias, case-sensitive. version: NULL for the newest by version order; an exact
 * version, which wins over all that follows; or one of these, of which the newest match wins:
 *   3  3.13         a prefix of whole components
 *   3.x  3.*  *     the same, the long way
 *   ~3.12  ~3.12.4  that or newer, with the same first two components (as far as given)
 *   ^3.12  ^0.4     that or newer, with the same components up to the first that is not 0
 *   >=3.12          that or newer
 * Anything else, the empty string too, matches no version. 0, LANGUAGE_UNKNOWN,
 * LANGUAGE_VERSION_UNKNOWN; *ret is borrowed from l. */
int languages_find(const struct languages *l, const char *name, const char *version,
                   const struct language **ret);

/* Order of versions: components are divided by ".", "-" or "+"; numbers are compared as numbers,
 * others as text; text is older than nothing and nothing is older than a number:
 * 3.13-rc1 < 3.13 < 3.13.0 < 3.13.1. Returns < 0, 0, > 0. */
int version_compare(const char *a, const char *b);

#endif
