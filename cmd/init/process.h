/* process.h - starting one program of the job, and killing all of them.
 *
 * process_start() forks; the child makes itself what the program shall be and execs. A pipe that
 * closes on exec carries the child's {step, errno} when something fails before that, so that nothing
 * which did not happen is reported as the program's.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "frames/frames.h"

enum { PROCESS_PENDING = 1 };

struct process {
    pid_t pid;
    int exec;   /* reading end of the child's report; -1 once read */
    int in;     /* writing end of stdin, or -1 when that is /dev/null */
    int out[2]; /* reading ends of stdout and stderr */
};

/* argv[0] without a slash is tried in each folder of PATH in spec->env (PROCESS_PATH without one);
 * has_stdin: a pipe, otherwise /dev/null. Our ends are non-blocking. 0 or a negative errno. */
#define PROCESS_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
int process_start(const struct frame_spec *spec, char *const *argv, bool has_stdin,
                  struct process *ret, struct err *err);

/* Whether the program runs: 0 (or it died on the way there), PROCESS_PENDING, or the negative errno
 * of what failed. */
int process_check_exec(struct process *p, const struct frame_spec *spec, char *const *argv,
                       struct err *err);

void process_close(struct process *p);

/* SIGKILL to everything in the pid namespace but us. Aborts unless we are its PID 1. */
void process_kill_all(void);

/* Closes every descriptor from first on; async-signal-safe. */
void process_close_from(int first);

#endif
