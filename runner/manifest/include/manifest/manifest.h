/* manifest/manifest.h - languages: one folder each, described by manifest.json.
 *
 * The manifest's shape is contract/manifest.schema.json. Folders without a manifest are skipped; the
 * first bad one is an error that names file, path and reason. Two manifests may not have the same
 * language and version. Threads: read-only after loading. */
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

int languages_load(const char *dir, struct languages **ret, struct err *err);
void languages_free(struct languages *l); /* NULL is fine */
DEFINE_CLEANUP(struct languages *, languages_free)
#define cleanup_languages CLEANUP(languages_free_slot)

/* One manifest from its text; where names it in errors. Pure. */
int manifest_parse(const char *text, size_t len, const char *where, struct language *ret,
                   struct err *err);
void language_done(struct language *l);

enum { LANGUAGE_UNKNOWN = 1, LANGUAGE_VERSION_UNKNOWN = 2 };

/* name: language or alias, case-sensitive. version: NULL for the newest by version order; otherwise
 * an exact version, or a prefix of whole components ("3" or "3.13" for 3.13.1), or a range
 * ("3.x", "*", "^3.12", "~3.12", ">=3.12"); the newest match wins. */
int languages_find(const struct languages *l, const char *name, const char *version,
                   const struct language **ret);

/* Order of versions: numeric components numerically, others as text; < 0, 0, > 0. */
int version_compare(const char *a, const char *b);

#endif
