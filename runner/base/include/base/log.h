/* base/log.h - one JSON object per line on stderr.
 *
 *     log_warn("sandbox.setup_failed", LOG_STR("job_id", id), LOG_INT("status", 500), LOG_ERR(&err));
 *
 * Each line is one write(2) of at most PIPE_BUF bytes, so that lines of several threads never mix.
 * Values are escaped and cut, since user bytes reach them. Event names are stable:
 * module.what_happened. If stderr would block the line is dropped and counted; the count goes out with
 * the next line that fits. Never log source code, stdin, output, environment or tokens.
 * Threads: any; no lock is held while writing. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR, LOG_LEVEL_OFF };

struct log_field {
    const char *key;
    const char *text; /* NULL: number is the value */
    int64_t number;
};

static inline struct log_field log_str(const char *key, const char *value)
{
    return (struct log_field){key, value ? value : "", 0};
}
#define LOG_STR(k, v) log_str((k), (v))
#define LOG_INT(k, v) ((struct log_field){(k), NULL, (int64_t)(v)})
#define LOG_ERR(e)    ((struct log_field){"error", (e)->msg, 0})

void log_set_level(enum log_level level);
/* debug, info, warn, error or off; -EINVAL otherwise. */
int log_level_parse(const char *name, enum log_level *ret);

void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t n);

#define LOG_AT(level, event, ...)                                                                  \
    do {                                                                                           \
        const struct log_field fields_[] = {{NULL, NULL, 0}, ##__VA_ARGS__};                       \
        log_write((level), (event), fields_ + 1, sizeof(fields_) / sizeof(fields_[0]) - 1);        \
    } while (0)
#define log_debug(event, ...) LOG_AT(LOG_LEVEL_DEBUG, event, ##__VA_ARGS__)
#define log_info(event, ...)  LOG_AT(LOG_LEVEL_INFO, event, ##__VA_ARGS__)
#define log_warn(event, ...)  LOG_AT(LOG_LEVEL_WARN, event, ##__VA_ARGS__)
#define log_error(event, ...) LOG_AT(LOG_LEVEL_ERROR, event, ##__VA_ARGS__)

#endif
