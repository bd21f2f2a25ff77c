/* tests/support/fake_sandbox.h - a sandbox backend without a sandbox: init is a function of the test,
 * in a thread, at the other end of a socket pair. Defines the functions of sandbox/sandbox.h that a
 * session calls. */
#ifndef TESTS_SUPPORT_FAKE_SANDBOX_H
#define TESTS_SUPPORT_FAKE_SANDBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "sandbox/sandbox.h"

struct sandbox_backend {
    void (*init)(int fd); /* blocking; returns when it is done with the stream */
    int open_error;       /* sandbox_open() fails with it */
    bool out_of_memory;   /* what the verdict says */
    atomic_uint opened, killed, closed;
};

#endif
