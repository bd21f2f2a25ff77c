/* Nothing is decided here: each call goes to the backend the sandbox belongs to. */
#include "sandbox/sandbox.h"

#include "sandbox_internal.h"

int sandbox_open(struct sandbox_backend *b, const struct sandbox_request *req, struct sandbox **ret,
                 struct err *err)
{
    return b->ops->open(b, req, ret, err);
}

int sandbox_poll_fd(const struct sandbox *s)
{
    return s->ops->poll_fd(s);
}

bool sandbox_read_pending(const struct sandbox *s)
{
    return s->ops->read_pending(s);
}

ssize_t sandbox_read(struct sandbox *s, void *bytes, size_t n)
{
    return s->ops->read(s, bytes, n);
}

ssize_t sandbox_write(struct sandbox *s, const void *bytes, size_t n)
{
    return s->ops->write(s, bytes, n);
}

uint32_t sandbox_program_uid(const struct sandbox *s)
{
    return s->ops->program_uid(s);
}

char *const *sandbox_image_env(const struct sandbox *s)
{
    return s->ops->image_env(s);
}

int sandbox_kill(struct sandbox *s, struct err *err)
{
    return s->ops->kill(s, err);
}

int sandbox_close(struct sandbox *s, struct verdict *ret, struct err *err)
{
    return s->ops->close(s, ret, err);
}

const char *sandbox_backend_name(const struct sandbox_backend *b)
{
    return b->ops->name;
}

const char *sandbox_backend_runtime(const struct sandbox_backend *b)
{
    return b->ops->runtime(b);
}

int sandbox_backend_check(struct sandbox_backend *b, struct err *err)
{
    return b->ops->check(b, err);
}

int sandbox_backend_check_image(struct sandbox_backend *b, const char *image, struct err *err)
{
    return b->ops->check_image(b, image, err);
}

int sandbox_backend_sweep(struct sandbox_backend *b, unsigned *ret_removed, struct err *err)
{
    return b->ops->sweep(b, ret_removed, err);
}

void sandbox_backend_free(struct sandbox_backend *b)
{
    if (b)
        b->ops->free(b);
}
