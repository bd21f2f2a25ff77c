/* base/err.h - the words that go with an error code.
 *
 * A function that can fail returns int: 0, a negative errno, or a positive outcome its header names.
 * Where a person will read the failure its last parameter is a struct err *, which may be NULL. The
 * int steers; the struct only carries words. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

struct err {
    int code;      /* the negative errno that was returned; 0 while unset */
    char msg[512]; /* what was attempted, one line, always NUL-terminated */
};

/* Both return code. err_set() starts a message; when code is a negative errno other than -EBADMSG,
 * -EINVAL and -ERANGE (whose texts add nothing to ours) its text is appended after ": ".
 * err_wrap() puts its text and ": " before the message already there. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_wrap(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set(), without the errno's text: for messages that are already whole. */
int err_say(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
