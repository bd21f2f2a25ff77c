/* code-runner-init: process 1 of every sandbox. Its manual is init/init.h. */
#include <unistd.h>

#include "init/init.h"

int main(void)
{
    struct err err = {0};
    if (init_guard(&err) < 0) {
        (void)dprintf(STDERR_FILENO, "code-runner-init: %s\n", err.msg); /* last words */
        return INIT_REFUSED;
    }
    return init_run(STDIN_FILENO, STDOUT_FILENO);
}
