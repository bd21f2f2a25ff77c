#include <errno.h>
#include <string.h>

#include "docker_backend.h"

/* Keeps the first failure's words; the sweep goes on. */
struct tally {
    unsigned removed;
    int first;
    struct err *err;
};

static void count(struct tally *t, int r, const struct err *why)
{
    if (r == 0) {
        t->removed++;
    } else if (t->first == 0) {
        t->first = r;
        if (t->err)
            *t->err = *why;
    }
}

static struct box *take_left(struct docker_backend *b)
{
    (void)pthread_mutex_lock(&b->lock);
    struct box *box = b->boxes;
    while (box && box->state != BOX_LEFT)
        box = box->next;
    if (box)
        box->state = BOX_RETRYING;
    (void)pthread_mutex_unlock(&b->lock);
    return box;
}

/* What failed before. One that fails again ends it: the others would fail for the same reason, each
 * after its time-out. */
static void retry_left(struct docker_backend *b, struct tally *t)
{
    for (struct box *box; t->first == 0 && (box = take_left(b));) {
        struct err why = {0};
        int r = box_remove(b, box, &why);
        count(t, r, &why);
    }
}

static bool has_box(struct docker_backend *b, const char *name)
{
    (void)pthread_mutex_lock(&b->lock);
    const struct box *box = b->boxes;
    while (box && strcmp(box->name, name) != 0)
        box = box->next;
    (void)pthread_mutex_unlock(&b->lock);
    return box != NULL;
}

/* A row's names are like "/name". */
static bool is_ours_alive(struct docker_backend *b, const json_t *row)
{
    const json_t *names = json_object_get(row, "Names");
    size_t n = json_array_size(names);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name && has_box(b, name + (name[0] == '/')))
            return true;
    }
    return false;
}

static void remove_strangers(struct docker_backend *b, const json_t *rows, struct tally *t)
{
    size_t n = json_array_size(rows);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        const char *id = json_string_value(json_object_get(row, "Id"));
        if (!id || is_ours_alive(b, row))
            continue;
        struct err why = {0};
        int r = docker_container_remove(b->docker, id, &why);
        count(t, r, &why);
        if (r == -EHOSTDOWN)
            return;
    }
}

int docker_backend_sweep(struct sandbox_backend *base, unsigned *ret_removed, struct err *err)
{
    struct docker_backend *b = (struct docker_backend *)base;
    struct tally t = {.err = err};
    retry_left(b, &t);

    cleanup_buf struct buf label;
    buf_init(&label, 4096);
    int r = buf_appendf(&label, LABEL_DEPLOYMENT "=%s", b->deployment_id);
    if (r < 0)
        return err_set(err, r, "name the deployment's containers");
    const char *const labels[] = {label.data, NULL};
    json_t *rows = NULL;
    struct err why = {0};
    r = docker_container_list(b->docker, labels, &rows, &why);
    if (r < 0)
        count(&t, r, &why);
    else
        remove_strangers(b, rows, &t);
    json_decref(rows);
    if (ret_removed)
        *ret_removed = t.removed;
    return t.first;
}
