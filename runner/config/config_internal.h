/* The table of settings: read by config.c, documented by markdown.c, checked by the tests. */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

enum setting_type {
    SETTING_TEXT,    /* char *; no control characters, at most max bytes */
    SETTING_WORD,    /* char *; letters, digits, "_", "-" and "." */
    SETTING_HOST,    /* char *; an IP address; "localhost" becomes 127.0.0.1 */
    SETTING_DOCKER,  /* char *; unix:///path or tcp://host:port */
    SETTING_LEVEL,   /* char *; a log level */
    SETTING_SECRET,  /* char *; visible ASCII, which a header can carry; never shown */
    SETTING_U16,     /* uint16_t */
    SETTING_U32,     /* uint32_t */
    SETTING_U64,     /* uint64_t */
    SETTING_I64,     /* int64_t */
    SETTING_SECONDS, /* int64_t milliseconds; given in seconds */
    SETTING_BOOL,    /* bool; true or false */
    SETTING_SWITCH,  /* bool; on or off */
    SETTING_REFUSED, /* nothing; must be unset: this build can't do what it asks for */
};

struct setting {
    const char *section; /* heading in the documentation, NULL: as the row before */
    const char *name;
    enum setting_type type;
    const char *unit;  /* of numbers */
    const char *value; /* default as it would be written; NULL: none, see shown */
    uint64_t min, max; /* of numbers; of the length of text in bytes */
    size_t offset;     /* in struct config */
    const char *shown; /* the default in words, where value is not it; NULL: value */
    const char *about; /* the sentence users read */
};

#define SETTINGS_MAX 64
extern const struct setting config_settings[];
extern const size_t config_settings_len;

/* Where the state lives when STATE_DIR is not set. */
int config_state_dir(const char *(*getenv_fn)(const char *name), bool is_root, char **ret,
                     struct err *err);

#endif
