/* code-runner - the host program: what to do is its first argument. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "config/config.h"
#include "serve.h"

struct command {
    const char *name;
    int (*run)(void);
    const char *help;
};
static const struct command commands[5];

static int help(void)
{
    (void)fputs("usage: code-runner COMMAND\n\nCommands:\n", stdout);
    for (size_t i = 0; commands[i].name; i++)
        (void)printf("  %-10s %s\n", commands[i].name, commands[i].help);
    (void)fputs("\nSettings come from the environment; `code-runner settings` lists them all.\n",
                stdout);
    return 0;
}

static int version(void)
{
    (void)puts("code-runner " CODE_RUNNER_VERSION);
    return 0;
}

static int settings(void)
{
    cleanup_buf struct buf text;
    buf_init(&text, 1 << 20);
    if (config_markdown(&text) < 0)
        return 1;
    return fwrite(text.data, 1, text.len, stdout) == text.len ? 0 : 1;
}

static const struct command commands[] = {
    {"serve", serve, "Run the whole service: gateway, bus, worker and hub in one process"},
    {"settings", settings, "List every setting, its default and its bounds, as Markdown"},
    {"version", version, "Print the version"},
    {"help", help, "Print this"},
    {NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
    const char *name = argc == 2 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; commands[i].name; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run();
    if (argc > 2)
        (void)fprintf(stderr, "code-runner: %s takes no arguments\n", argv[1]);
    else if (argc == 2)
        (void)fprintf(stderr, "code-runner: no command is called \"%s\"\n", argv[1]);
    (void)fputs("code-runner: `code-runner help` lists the commands\n", stderr);
    return 2;
}
