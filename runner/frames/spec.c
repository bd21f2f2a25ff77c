/* SPEC payload: fields of tag u8 | length u32 | bytes. Each list is its entries in order under one
 * tag; the single fields appear exactly once. A tag we do not know is refused: worker and init come
 * from one build, so it can only be damage. */
#include <errno.h>

#include "frames/frames.h"

enum tag { TAG_UID = 1, TAG_GID, TAG_COMPILE, TAG_RUN, TAG_ENV, TAG_CWD, TAG_TERMINAL, TAG_END };

#define FIELD_HEAD_BYTES 5U

static const char *const tag_names[TAG_END] = {
    [TAG_UID] = "uid", [TAG_GID] = "gid", [TAG_COMPILE] = "compile",   [TAG_RUN] = "run",
    [TAG_ENV] = "env", [TAG_CWD] = "cwd", [TAG_TERMINAL] = "terminal",
};

static int put_field(struct buf *out, enum tag tag, const void *bytes, size_t n)
{
    if (n > FRAME_PAYLOAD_MAX)
        return -EMSGSIZE;
    int r = buf_append_byte(out, (uint8_t)tag);
    if (r == 0)
        r = buf_append_u32be(out, (uint32_t)n);
    return r < 0 ? r : buf_append(out, bytes, n);
}

static int put_u32_field(struct buf *out, enum tag tag, uint32_t v)
{
    const uint8_t bytes[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    return put_field(out, tag, bytes, sizeof(bytes));
}

static int put_list(struct buf *out, enum tag tag, char *const *list)
{
    int r = 0;
    for (; list && *list && r == 0; list++)
        r = put_field(out, tag, *list, strlen(*list));
    return r;
}

static bool is_env_entry(const char *s, size_t n)
{
    return n > 0 && s[0] != '=' && memchr(s, '=', n);
}

static bool is_sendable(const struct frame_spec *spec)
{
    if (!spec->run || !spec->run[0] || !spec->cwd || spec->cwd[0] != '/')
        return false;
    if (spec->compile && !spec->compile[0])
        return false;
    if (!spec->run[0][0] || (spec->compile && !spec->compile[0][0]))
        return false;
    for (char **e = spec->env; e && *e; e++)
        if (!is_env_entry(*e, strlen(*e)))
            return false;
    return (spec->uid == FRAME_KEEP_ID) == (spec->gid == FRAME_KEEP_ID);
}

int frame_spec_encode(struct buf *out, const struct frame_spec *spec)
{
    if (!is_sendable(spec))
        return -EINVAL;
    cleanup_buf struct buf payload;
    buf_init(&payload, FRAME_PAYLOAD_MAX);
    int r = put_u32_field(&payload, TAG_UID, spec->uid);
    if (r == 0)
        r = put_u32_field(&payload, TAG_GID, spec->gid);
    if (r == 0)
        r = put_list(&payload, TAG_COMPILE, spec->compile);
    if (r == 0)
        r = put_list(&payload, TAG_RUN, spec->run);
    if (r == 0)
        r = put_list(&payload, TAG_ENV, spec->env);
    if (r == 0)
        r = put_field(&payload, TAG_CWD, spec->cwd, strlen(spec->cwd));
    if (r == 0)
        r = put_u32_field(&payload, TAG_TERMINAL, (uint32_t)spec->rows << 16 | spec->columns);
    return r < 0 ? r : frame_encode(out, FRAME_SPEC, payload.data, payload.len);
}

struct field {
    enum tag tag;
    struct span value;
};

/* 0, FRAME_INCOMPLETE at the clean end, -EBADMSG. Moves *in past the field. */
static int next_field(struct span *in, struct field *ret, struct err *err)
{
    if (in->len == 0)
        return FRAME_INCOMPLETE;
    if (in->len < FIELD_HEAD_BYTES)
        return err_set(err, -EBADMSG, "spec ends inside a field");
    unsigned tag = (uint8_t)in->ptr[0];
    uint32_t n = u32be(in->ptr + 1);
    if (tag < TAG_UID || tag >= TAG_END)
        return err_set(err, -EBADMSG, "spec field %u is unknown", tag);
    if (in->len - FIELD_HEAD_BYTES < n)
        return err_set(err, -EBADMSG, "spec field %s has %u bytes, %zu are there", tag_names[tag],
                       n, in->len - FIELD_HEAD_BYTES);
    *ret = (struct field){(enum tag)tag, {in->ptr + FIELD_HEAD_BYTES, n}};
    in->ptr += FIELD_HEAD_BYTES + n;
    in->len -= FIELD_HEAD_BYTES + n;
    return 0;
}

static int check_field(const struct field *f, size_t nth, struct err *err)
{
    const char *name = tag_names[f->tag];
    struct span v = f->value;
    switch (f->tag) {
    case TAG_UID:
    case TAG_GID:
    case TAG_TERMINAL:
        if (v.len != 4)
            return err_set(err, -EBADMSG, "spec field %s has %zu bytes, must have 4", name, v.len);
        break;
    case TAG_CWD:
        if (v.len == 0 || v.ptr[0] != '/')
            return err_set(err, -EBADMSG, "spec field cwd must be absolute");
        break;
    case TAG_COMPILE:
    case TAG_RUN:
        if (nth == 0 && v.len == 0)
            return err_set(err, -EBADMSG, "spec field %s names no program", name);
        break;
    case TAG_ENV:
        if (!is_env_entry(v.ptr, v.len))
            return err_set(err, -EBADMSG, "spec field env must be NAME=VALUE, entry %zu is not",
                           nth);
        break;
    case TAG_END:
        break;
    }
    bool is_list = f->tag == TAG_COMPILE || f->tag == TAG_RUN || f->tag == TAG_ENV;
    if (!is_list && nth > 0)
        return err_set(err, -EBADMSG, "spec field %s comes twice", name);
    if ((is_list || f->tag == TAG_CWD) && v.len > 0 && memchr(v.ptr, '\0', v.len))
        return err_set(err, -EBADMSG, "spec field %s has a NUL byte", name);
    return 0;
}

/* Checks everything and counts what the allocation must hold. */
static int measure(struct span in, size_t counts[static TAG_END], size_t *ret_text, struct err *err)
{
    struct field f = {0};
    size_t text = 0;
    int r;
    while ((r = next_field(&in, &f, err)) == 0) {
        r = check_field(&f, counts[f.tag], err);
        if (r < 0)
            return r;
        counts[f.tag]++;
        text += f.value.len + 1; /* cannot overflow: the payload is at most FRAME_PAYLOAD_MAX */
    }
    if (r < 0)
        return r;
    static const enum tag needed[] = {TAG_UID, TAG_GID, TAG_RUN, TAG_CWD, TAG_TERMINAL};
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (counts[needed[i]] == 0)
            return err_set(err, -EBADMSG, "spec field %s is missing", tag_names[needed[i]]);
    *ret_text = text;
    return 0;
}

static char *copy_text(char **at, struct span v)
{
    char *start = *at;
    if (v.len > 0)
        memcpy(start, v.ptr, v.len);
    start[v.len] = '\0';
    *at = start + v.len + 1;
    return start;
}

/* in was measured: every field is good. */
static void fill(struct span in, char **slots, const size_t counts[static TAG_END],
                 struct frame_spec *ret)
{
    size_t n_slots = counts[TAG_RUN] + counts[TAG_ENV] + counts[TAG_COMPILE] + 3;
    char *text = (char *)(slots + n_slots);
    struct frame_spec spec = {.run = slots, .env = slots + counts[TAG_RUN] + 1};
    char **compile = spec.env + counts[TAG_ENV] + 1;
    char **ends[TAG_END] = {[TAG_COMPILE] = compile, [TAG_RUN] = spec.run, [TAG_ENV] = spec.env};
    spec.compile = counts[TAG_COMPILE] > 0 ? compile : NULL;

    struct field f = {0};
    while (next_field(&in, &f, NULL) == 0) {
        uint32_t number = f.value.len == 4 ? u32be(f.value.ptr) : 0;
        if (f.tag == TAG_UID) {
            spec.uid = number;
        } else if (f.tag == TAG_GID) {
            spec.gid = number;
        } else if (f.tag == TAG_TERMINAL) {
            spec.rows = (uint16_t)(number >> 16);
            spec.columns = (uint16_t)number;
        } else if (f.tag == TAG_CWD) {
            spec.cwd = copy_text(&text, f.value);
        } else if (ends[f.tag]) {
            *ends[f.tag]++ = copy_text(&text, f.value);
        }
    }
    *ret = spec;
}

int frame_spec_decode(struct span payload, struct frame_spec *ret, struct err *err)
{
    if (payload.len > FRAME_PAYLOAD_MAX)
        return err_set(err, -EBADMSG, "spec has %zu bytes, must have at most %u", payload.len,
                       FRAME_PAYLOAD_MAX);
    size_t counts[TAG_END] = {0};
    size_t text = 0;
    int r = measure(payload, counts, &text, err);
    if (r < 0)
        return r;
    size_t n_slots = counts[TAG_RUN] + counts[TAG_ENV] + counts[TAG_COMPILE] + 3;
    char **slots = calloc(1, n_slots * sizeof(*slots) + text);
    if (!slots)
        return err_set(err, -ENOMEM, "spec");
    struct frame_spec spec = {0};
    fill(payload, slots, counts, &spec);
    if ((spec.uid == FRAME_KEEP_ID) != (spec.gid == FRAME_KEEP_ID)) {
        frame_spec_done(&spec);
        return err_set(err, -EBADMSG, "spec fields uid and gid must both be kept or both be set");
    }
    *ret = spec;
    return 0;
}

void frame_spec_done(struct frame_spec *spec)
{
    free(spec->run); /* the one allocation starts with this list */
    *spec = (struct frame_spec){0};
}
