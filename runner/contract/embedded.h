/* embedded.h - the schema files' texts in the order of CMakeLists.txt; made at build time. */
#ifndef CONTRACT_EMBEDDED_H
#define CONTRACT_EMBEDDED_H

struct embedded {
    const char *name; /* without ".schema.json" */
    const char *text;
};
extern const struct embedded embedded_schemas[];

#endif
