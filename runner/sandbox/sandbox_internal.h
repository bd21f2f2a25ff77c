/* sandbox_internal.h - what a backend gives to sandbox.c. */
#ifndef SANDBOX_INTERNAL_H
#define SANDBOX_INTERNAL_H

#include "sandbox/sandbox.h"

/* One per backend; the functions are those of sandbox/sandbox.h. */
struct sandbox_ops {
    const char *name;
    int (*open)(struct sandbox_backend *b, const struct sandbox_request *req, struct sandbox **ret,
                struct err *err);
    int (*poll_fd)(const struct sandbox *s);
    bool (*read_pending)(const struct sandbox *s);
    ssize_t (*read)(struct sandbox *s, void *bytes, size_t n);
    ssize_t (*write)(struct sandbox *s, const void *bytes, size_t n);
    uint32_t (*program_uid)(const struct sandbox *s);
    char *const *(*image_env)(const struct sandbox *s);
    int (*kill)(struct sandbox *s, struct err *err);
    int (*close)(struct sandbox *s, struct verdict *ret, struct err *err);

    const char *(*runtime)(const struct sandbox_backend *b);
    int (*check)(struct sandbox_backend *b, struct err *err);
    int (*check_image)(struct sandbox_backend *b, const char *image, struct err *err);
    int (*sweep)(struct sandbox_backend *b, unsigned *ret_removed, struct err *err);
    void (*free)(struct sandbox_backend *b);
};

/* The first member of a backend's own structs. */
struct sandbox_backend {
    const struct sandbox_ops *ops;
};
struct sandbox {
    const struct sandbox_ops *ops;
};

#endif
