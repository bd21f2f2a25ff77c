/* serve.h - the whole service in one process. */
#ifndef CODE_RUNNER_SERVE_H
#define CODE_RUNNER_SERVE_H

/* Runs until SIGINT or SIGTERM; the exit code. 2: the configuration is wrong. */
int serve(void);

#endif
