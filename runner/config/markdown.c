#include "config/config.h"

#include <inttypes.h>

#include "config_internal.h"

static const char head[] =
    "# Configuration\n"
    "\n"
    "Every setting is an environment variable. A bad value stops the start, with the name of the\n"
    "variable and what it must be. An empty variable counts as unset; for a secret it is an "
    "error.\n"
    "\n"
    "This page is made from the table in `runner/config/settings.c` by `ninja config_docs`.\n";

static int put_bounds(struct buf *out, const struct setting *s)
{
    switch (s->type) {
    case SETTING_U16:
    case SETTING_U32:
    case SETTING_U64:
    case SETTING_I64:
    case SETTING_SECONDS:
        return buf_appendf(out, "%" PRIu64 " to %" PRIu64 "%s%s", s->min, s->max,
                           s->unit ? " " : "", s->unit ? s->unit : "");
    case SETTING_BOOL:
        return buf_append_str(out, "`true`, `false`");
    case SETTING_SWITCH:
        return buf_append_str(out, "`on`, `off`");
    case SETTING_TEXT:
    case SETTING_WORD:
    case SETTING_HOST:
    case SETTING_DOCKER:
    case SETTING_LEVEL:
    case SETTING_SECRET:
        return buf_appendf(out, "%" PRIu64 " to %" PRIu64 " bytes", s->min, s->max);
    case SETTING_REFUSED:
        return buf_append_str(out, "none");
    }
    return 0;
}

static int put_row(struct buf *out, const struct setting *s)
{
    int r = 0;
    if (s->section)
        r = buf_appendf(out,
                        "\n## %s\n\n| variable | default | values | meaning |\n"
                        "| --- | --- | --- | --- |\n",
                        s->section);
    r = r ? r : buf_appendf(out, "| `%s` | ", s->name);
    if (s->shown)
        r = r ? r : buf_append_str(out, s->shown);
    else
        r = r ? r : buf_appendf(out, "`%s`", s->value);
    r = r ? r : buf_append_str(out, " | ");
    r = r ? r : put_bounds(out, s);
    return r ? r : buf_appendf(out, " | %s |\n", s->about);
}

int config_markdown(struct buf *out)
{
    size_t before = out->len;
    int r = buf_append_str(out, head);
    for (size_t i = 0; r == 0 && i < config_settings_len; i++)
        r = put_row(out, &config_settings[i]);
    if (r < 0 && out->data) {
        out->len = before;
        out->data[before] = '\0';
    }
    return r;
}
