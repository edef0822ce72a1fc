/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "image/store.h"

#define DIR_FLAGS      (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define LEAST_OF_AN_ID 12

/* Where a reference leads in one store. */
struct found {
    char id[DIGEST_HEX];
    char name[REFERENCE_TEXT]; /* the name it was found by, or "" */
};

static void close_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static DIR *open_dir(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, DIR_FLAGS);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d)
        close_fd(&fd);
    return d;
}

/* The id that a link in names/ holds. */
static bool read_name(const struct image_store *s, const char *file, char id[DIGEST_HEX])
{
    char path[sizeof("names/") + 256];
    ssize_t n;

    (void)snprintf(path, sizeof(path), "names/%s", file);
    n = readlinkat(s->fd, path, id, DIGEST_HEX);
    if (n != 64)
        return false;
    id[64] = 0;
    return digest_is_hex(id, 64);
}

static bool find_name(const struct image_store *s, const char *name, struct found *ret)
{
    char file[256];

    if (reference_encode(name, file, sizeof(file)) < 0 || !read_name(s, file, ret->id))
        return false;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return true;
}

/* 1 found, 0 not there, negative if two begin so. */
static int find_id(const struct image_store *s, const char *prefix, struct found *ret,
                   struct error *err)
{
    cleanup_(close_dir) DIR *d = open_dir(s->fd, ".");
    size_t n = strlen(prefix);
    const struct dirent *e;
    char path[80];
    int found = 0;

    while (d && (e = readdir(d))) {
        if (strlen(e->d_name) != 64 || !digest_is_hex(e->d_name, 64) ||
            strncmp(e->d_name, prefix, n) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "%.64s/image.json", e->d_name);
        if (faccessat(s->fd, path, F_OK, 0) < 0)
            continue; /* killed while it was removed */
        if (found++)
            return error_set(
                err, ERR_INVALID,
                "image '%s': two ids begin so, %.16s... and %.16s...: write more of it", prefix,
                ret->id, e->d_name);
        memcpy(ret->id, e->d_name, DIGEST_HEX);
        ret->name[0] = 0;
    }
    return found;
}

/* Names first, then ids: somebody who calls an image "cafecafecafe" means it. */
static int find_in(const struct image_store *s, const char *text, struct found *ret,
                   struct error *err)
{
    const char *hex = strncmp(text, "sha256:", 7) == 0 ? text + 7 : text;
    size_t n = strlen(hex);
    struct reference ref;

    if (reference_parse(text, &ref, err) == 0) {
        char name[REFERENCE_TEXT];

        reference_format(&ref, name);
        if (find_name(s, name, ret))
            return 1;
    }
    if (n >= LEAST_OF_AN_ID && digest_is_hex(hex, n))
        return find_id(s, hex, ret, err);
    return 0;
}

static int check_reference(const char *text, struct error *err)
{
    const char *hex = strncmp(text, "sha256:", 7) == 0 ? text + 7 : text;
    struct reference ref;

    if (digest_is_hex(hex, strlen(hex)) && (hex == text || strlen(hex) >= LEAST_OF_AN_ID))
        return 0;
    return reference_parse(text, &ref, err);
}

static int not_found(const char *text, struct error *err)
{
    return error_set(err, ERR_NOT_FOUND,
                     "there is no image '%s': 'clawden image list' shows those there are, 'clawden "
                     "image pull' and 'clawden image import' get more",
                     text);
}

static int add_word(char ***list, size_t *n, const char *word)
{
    char **p = realloc(*list, (*n + 2) * sizeof(*p));

    if (!p)
        return -ENOMEM;
    *list = p;
    p[*n] = strdup(word);
    if (!p[*n])
        return -ENOMEM;
    p[++*n] = NULL;
    return 0;
}

/* Tags before digests, then by the alphabet. */
static int compare_names(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    bool dx = strchr(x, '@'), dy = strchr(y, '@');

    return dx != dy ? dx - dy : strcmp(x, y);
}

static int gather_names(const struct image_store *s, struct image *image, struct error *err)
{
    cleanup_(close_dir) DIR *d = open_dir(s->fd, "names");
    const struct dirent *e;
    size_t n = 0;

    while (d && (e = readdir(d))) {
        char id[DIGEST_HEX], text[REFERENCE_TEXT];

        if (e->d_name[0] == '.' || !read_name(s, e->d_name, id) || strcmp(id, image->id) != 0 ||
            reference_decode(e->d_name, text) < 0)
            continue;
        if (n >= LIMIT_IMAGE_LIST || add_word(&image->names, &n, text) < 0)
            return error_set(err, ERR_TOO_LARGE, "image %.12s has too many names", image->id);
    }
    if (n)
        qsort(image->names, n, sizeof(*image->names), compare_names);
    return 0;
}

/* The name it was asked for by, else its first. */
static int choose_name(struct image *image, const char *asked, struct error *err)
{
    const char *name = asked[0] ? asked : image->names[0] ? image->names[0] : "";
    char *copy = strdup(name);

    if (!copy)
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    free(image->name);
    image->name = copy;
    return 0;
}

static int load_found(const struct image_store *s, const struct found *f, bool open_root,
                      struct image **ret, struct error *err)
{
    autoptr(image) image = NULL;
    int r = image_store_load(s, f->id, open_root, &image, err);

    if (r >= 0)
        r = gather_names(s, image, err);
    if (r >= 0)
        r = choose_name(image, f->name, err);
    if (r >= 0)
        *ret = TAKE_PTR(image);
    return r;
}

/* 1 found, 0 not there. */
static int find_and_load(const struct image_store *s, const char *text, struct image **ret,
                         struct error *err)
{
    struct found f;
    int r = find_in(s, text, &f, err);

    if (r <= 0)
        return r;
    r = load_found(s, &f, true, ret, err);
    return r < 0 ? r : 1;
}

int image_find(const char *ref, struct image **ret, struct error *err)
{
    cleanup_(image_store_close) struct image_store own = {.fd = -1}, machine = {.fd = -1};
    int r = check_reference(ref, err);

    if (r < 0)
        return r;
    r = image_store_look_own(&own, err);
    if (r > 0)
        r = find_and_load(&own, ref, ret, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = image_store_look_machine(&machine, err);
    if (r > 0)
        r = find_and_load(&machine, ref, ret, err);
    if (r == 0)
        return not_found(ref, err);
    return r < 0 ? r : 0;
}

/* ---- all of them ---- */

void image_list_free(struct image **images, size_t n)
{
    for (size_t i = 0; i < n; i++)
        image_free(images[i]);
    free(images);
}

static int compare_age(const void *a, const void *b)
{
    const struct image *x = *(struct image *const *)a, *y = *(struct image *const *)b;

    return x->imported_usec < y->imported_usec ? 1 : x->imported_usec > y->imported_usec ? -1 : 0;
}

static int list_store(const struct image_store *s, struct image ***images, size_t *n,
                      struct error *err)
{
    cleanup_(close_dir) DIR *d = open_dir(s->fd, ".");
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        struct found f = {.name = ""};
        struct image **p;
        int r;

        if (strlen(e->d_name) != 64 || !digest_is_hex(e->d_name, 64))
            continue;
        p = *n < LIMIT_IMAGE_LIST ? realloc(*images, (*n + 1) * sizeof(*p)) : NULL;
        if (!p)
            return error_set(err, ERR_TOO_LARGE, "'%s' has too many images", s->path);
        *images = p;
        memcpy(f.id, e->d_name, DIGEST_HEX);
        r = load_found(s, &f, false, &p[*n], err);
        if (r >= 0)
            ++*n;
        else if (err->code != ERR_NOT_FOUND && err->code != ERR_INVALID)
            return r; /* a damaged record must not hide the others; 'inspect' says what it is */
    }
    return 0;
}

int image_list(struct image ***ret, size_t *ret_n, struct error *err)
{
    cleanup_(image_store_close) struct image_store own = {.fd = -1}, machine = {.fd = -1};
    struct image **images = NULL;
    size_t n = 0;
    int r = image_store_look_own(&own, err);

    if (r > 0)
        r = list_store(&own, &images, &n, err);
    if (r >= 0)
        r = image_store_look_machine(&machine, err);
    if (r > 0)
        r = list_store(&machine, &images, &n, err);
    if (r < 0) {
        image_list_free(images, n);
        return r;
    }
    if (n)
        qsort(images, n, sizeof(*images), compare_age);
    *ret = images;
    *ret_n = n;
    return 0;
}

/* ---- removal ---- */

static void remove_name(const struct image_store *s, const char *name)
{
    char file[256], path[sizeof("names/") + 256];

    if (reference_encode(name, file, sizeof(file)) < 0)
        return;
    (void)snprintf(path, sizeof(path), "names/%s", file);
    (void)unlinkat(s->fd, path, 0);
}

static bool has_other_tag(const struct image *image, const char *name)
{
    for (char **p = image->names; *p; p++)
        if (!strchr(*p, '@') && strcmp(*p, name) != 0)
            return true;
    return false;
}

/* The record goes first: from then on nobody can find the image, and what is left is garbage. */
static int remove_image(const struct image_store *s, const struct image *image, struct error *err)
{
    autoclose int hold = openat(s->fd, image->id, DIR_FLAGS);

    if (hold < 0)
        return error_sys(err, -errno, "open '%s/%s'", s->path, image->id);
    if (flock(hold, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERR_DENIED,
                         "image '%s' (%.12s) is in use by a running box: end it first, 'clawden "
                         "image rm' works then",
                         image->name, image->id);
    if (unlinkat(hold, "image.json", 0) < 0)
        return error_sys(err, -errno, "remove '%s/%s/image.json'", s->path, image->id);
    for (char **p = image->names; *p; p++)
        remove_name(s, *p);
    return image_store_collect(s, err);
}

/* As much of an image as removal needs, for one whose record cannot be read. */
static int stand_in(const struct image_store *s, const struct found *f, struct image **ret,
                    struct error *err)
{
    autoptr(image) image = calloc(1, sizeof(*image));
    int r;

    if (!image)
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    image->root_fd = image->hold_fd = -1;
    image->names = calloc(1, sizeof(*image->names));
    if (!image->names)
        return error_set(err, ERR_TOO_LARGE, "out of memory");
    memcpy(image->id, f->id, DIGEST_HEX);
    r = gather_names(s, image, err);
    if (r >= 0)
        r = choose_name(image, f->name, err);
    if (r >= 0)
        *ret = TAKE_PTR(image);
    return r;
}

int image_remove(const char *text, bool all_names, bool *ret_removed, struct error *err)
{
    cleanup_(image_store_close) struct image_store own = {.fd = -1}, machine = {.fd = -1};
    autoptr(image) image = NULL;
    autoclose int lock = -1;
    struct found f, g;
    int r = check_reference(text, err);

    if (r >= 0)
        r = image_store_look_own(&own, err);
    if (r < 0)
        return r;
    if (r > 0) {
        lock = image_store_lock(&own, true, err);
        if (lock < 0)
            return lock;
        image_store_sweep(&own);
        r = find_in(&own, text, &f, err);
        if (r < 0)
            return r;
    }
    if (r == 0) {
        if (image_store_look_machine(&machine, err) > 0 && find_in(&machine, text, &g, err) > 0)
            return error_set(err, ERR_DENIED,
                             "image '%s' stands in '%s', which belongs to the machine: only root "
                             "removes it, with CLAWDEN_DATA_DIR=/var/lib/clawden",
                             text, machine.path);
        return not_found(text, err);
    }
    r = load_found(&own, &f, false, &image, err);
    if (r == -ERR_INVALID) /* a damaged record must not keep its image for ever */
        r = stand_in(&own, &f, &image, err);
    if (r < 0)
        return r;
    if (f.name[0] && !all_names && has_other_tag(image, f.name)) {
        remove_name(&own, f.name);
        *ret_removed = false;
        return 0;
    }
    *ret_removed = true;
    return remove_image(&own, image, err);
}
