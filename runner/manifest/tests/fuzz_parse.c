/* manifest_parse() never crashes, says why it refuses, and what it takes is whole. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "contract/contract.h"
#include "manifest/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    if (!ready) {
        assert(contract_init(NULL) == 0);
        ready = true;
    }

    struct language l;
    struct err err = {0};
    if (manifest_parse((const char *)data, size, "fuzz", &l, &err) < 0) {
        assert(strncmp(err.msg, "fuzz: ", 6) == 0 && err.msg[6] != '\0');
        return 0;
    }
    assert(*l.name && *l.version && *l.image && *l.entrypoint && *l.run[0]);
    assert(!l.compile || *l.compile[0]);
    for (char **e = l.env; *e; e++)
        assert(strchr(*e, '=') > *e);

    struct languages one = {&l, 1};
    const struct language *found = NULL;
    assert(languages_find(&one, l.name, l.version, &found) == 0 && found == &l);
    assert(languages_find(&one, l.name, NULL, &found) == 0);
    assert(version_compare(l.version, l.version) == 0);
    language_done(&l);
    return 0;
}
