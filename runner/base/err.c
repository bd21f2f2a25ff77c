#include "base/err.h"

#include <errno.h>
#include <stdarg.h>

static size_t end_of(size_t size, int written)
{
    if (written < 0)
        return 0;
    return (size_t)written < size ? (size_t)written : size - 1;
}

__attribute__((format(printf, 3, 0))) static void set_text(struct err *err, int code,
                                                           const char *fmt, va_list ap)
{
    err->code = code;
    if (vsnprintf(err->msg, sizeof(err->msg), fmt, ap) < 0)
        err->msg[0] = '\0';
}

int err_say(struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    set_text(err, code, fmt, ap);
    va_end(ap);
    return code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    set_text(err, code, fmt, ap);
    va_end(ap);

    if (code < 0 && code != -EINVAL && code != -ERANGE && code != -EBADMSG) {
        char text[128];
        size_t at = strlen(err->msg);
#ifdef __GLIBC__
        const char *words = strerror_r(-code, text, sizeof(text));
#else
        const char *words = strerror_r(-code, text, sizeof(text)) == 0 ? text : "unknown error";
#endif
        (void)snprintf(err->msg + at, sizeof(err->msg) - at, ": %s", words); /* cut is fine */
    }
    return code;
}

int err_wrap(struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    struct err outer;
    va_list ap;
    va_start(ap, fmt);
    size_t at = end_of(sizeof(outer.msg), vsnprintf(outer.msg, sizeof(outer.msg), fmt, ap));
    va_end(ap);
    if (snprintf(outer.msg + at, sizeof(outer.msg) - at, ": %s", err->msg) < 0) /* cut is fine */
        outer.msg[at] = '\0';
    outer.code = code;
    *err = outer;
    return code;
}
