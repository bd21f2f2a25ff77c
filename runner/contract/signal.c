#include <signal.h>

#include "contract/job.h"

/* By number, as the kernel counts on x86-64 and arm64. 32 and 33 belong to the C library, whose
 * SIGRTMIN is 34. */
static const char *const names[] = {
    [SIGHUP] = "SIGHUP",
    [SIGINT] = "SIGINT",
    [SIGQUIT] = "SIGQUIT",
    [SIGILL] = "SIGILL",
    [SIGTRAP] = "SIGTRAP",
    [SIGABRT] = "SIGABRT",
    [SIGBUS] = "SIGBUS",
    [SIGFPE] = "SIGFPE",
    [SIGKILL] = "SIGKILL",
    [SIGUSR1] = "SIGUSR1",
    [SIGSEGV] = "SIGSEGV",
    [SIGUSR2] = "SIGUSR2",
    [SIGPIPE] = "SIGPIPE",
    [SIGALRM] = "SIGALRM",
    [SIGTERM] = "SIGTERM",
    [SIGSTKFLT] = "SIGSTKFLT",
    [SIGCHLD] = "SIGCHLD",
    [SIGCONT] = "SIGCONT",
    [SIGSTOP] = "SIGSTOP",
    [SIGTSTP] = "SIGTSTP",
    [SIGTTIN] = "SIGTTIN",
    [SIGTTOU] = "SIGTTOU",
    [SIGURG] = "SIGURG",
    [SIGXCPU] = "SIGXCPU",
    [SIGXFSZ] = "SIGXFSZ",
    [SIGVTALRM] = "SIGVTALRM",
    [SIGPROF] = "SIGPROF",
    [SIGWINCH] = "SIGWINCH",
    [SIGIO] = "SIGIO",
    [SIGPWR] = "SIGPWR",
    [SIGSYS] = "SIGSYS",
    [32] = "SIG32",
    [33] = "SIG33",
    [34] = "SIGRTMIN",
#define RT(n) [34 + (n)] = "SIGRTMIN+" #n
    RT(1),
    RT(2),
    RT(3),
    RT(4),
    RT(5),
    RT(6),
    RT(7),
    RT(8),
    RT(9),
    RT(10),
    RT(11),
    RT(12),
    RT(13),
    RT(14),
    RT(15),
    RT(16),
    RT(17),
    RT(18),
    RT(19),
    RT(20),
    RT(21),
    RT(22),
    RT(23),
    RT(24),
    RT(25),
    RT(26),
    RT(27),
    RT(28),
    RT(29),
    RT(30),
#undef RT
};

const char *signal_name(int number)
{
    return number >= 1 && (size_t)number < ARRAY_LEN(names) ? names[number] : NULL;
}
