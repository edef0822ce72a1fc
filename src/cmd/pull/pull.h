/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * clawden-pull brings images into the store: the only program that speaks to registries and reads
 * archives, so that the parsers of what strangers send (libcurl, libarchive, jansson) are in no
 * other. It runs with the caller's privileges, writes below the store only, and is one process.
 *
 *     main.c      words of the command line, signals
 *     import.c    what a SOURCE is; members.c reads saved images (docker save, tar of an OCI
 * layout) registry.c  a pull: manifest, token, blobs; http.c one request; auth.c who we are there
 *     manifest.c  index and manifest; config.c the image's config, checked
 *     blob.c      blobs/: nothing gets its name there before its digest is right
 *     assemble.c  layers -> roots/<chain>, then the record, then the name
 *     layer.c     one layer's stream: decompress, hash, tar; unpack.c: the only writer into a root
 *     confine.c   the belt around it all: Landlock
 *     clone.c     a root as hard links of its parent; copy.c: a root from a folder
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "image/reference.h"
#include "image/store.h"

/* ---- main.c ---- */

enum progress_mode { PROGRESS_AUTO, PROGRESS_PLAIN, PROGRESS_JSON, PROGRESS_NONE };

struct options {
    const char *what;   /* SOURCE or NAME */
    const char *name;   /* --name, or NULL */
    const char *config; /* --config: a file, or NULL */
    bool drop_layers, plain_http, json;
    enum progress_mode progress;
    uint64_t max_bytes, max_entries;
    uint64_t idle_usec; /* a registry that sends nothing for so long is given up */
};

extern volatile sig_atomic_t interrupted; /* the signal that asks us to stop, or 0 */
int check_interrupt(struct error *err);

/* ---- one import or pull ---- */

/* What a root did not get, to be said at the end. */
struct dropped {
    uint64_t specials, set_ids, xattrs, owners, mounts;
};

struct progress {
    enum progress_mode mode;
    bool terminal, drawn;
    int64_t said_usec; /* when the last line was written */
};

struct work {
    const struct options *o;
    struct image_store store;
    int lock, temp;
    char temp_name[STORE_TEMP_NAME];
    struct dropped dropped;
    struct progress progress;
    uint64_t bytes, entries;   /* unpacked so far: the caps count over all layers */
    char (*blobs)[DIGEST_HEX]; /* that this work has put into the store */
    size_t n_blobs;
    bool drop_blobs; /* the image was refused: they are nobody's */
};

int work_begin(struct work *w, const struct options *o, struct error *err);
/* Removes the temporary folder; may be called on a work that did not begin. */
void work_end(struct work *w);

/* confine.c: from here on nothing but the store can be written, and nothing executed. */
int confine(int store, struct error *err);

void progress_init(struct progress *p, enum progress_mode mode);
/* `what` is a word ("download"), `hex` what it is about; total 0 if it is not known. */
void progress_say(struct progress *p, const char *what, const char *hex, uint64_t done,
                  uint64_t total);
/* Ends the line on a terminal. */
void progress_end(struct progress *p);

/* ---- blob.c ---- */

/*
 * Bytes on their way into blobs/: written to a file without a name there, hashed as they come.
 * Embedded; blob_writer_done() drops what was not committed (a download's file stays, to be
 * resumed).
 */
struct blob_writer {
    struct work *work;
    int fd;
    struct sha256 hash;
    uint64_t got, size;
    char hex[DIGEST_HEX];
    bool partial; /* blobs/partial/<hex>, not a file of the temporary folder */
};

bool blob_have(const struct work *w, const char *hex, uint64_t size);
/* An open blob. */
int blob_open(const struct work *w, const char *hex, struct error *err);
int blob_writer_init(struct blob_writer *b, struct work *w, const char *hex, uint64_t size,
                     struct error *err);
/*
 * The same over blobs/partial/<hex>, with what is there already; waits for another pull of the same
 * blob. 1 if that pull has brought it meanwhile.
 */
int blob_writer_resume(struct blob_writer *b, struct work *w, const char *hex, uint64_t size,
                       struct error *err);
int blob_writer_add(struct blob_writer *b, const void *data, size_t len, struct error *err);
int blob_writer_restart(struct blob_writer *b, struct error *err);
/* Checks size and digest; only then the blob gets its name. */
int blob_writer_commit(struct blob_writer *b, struct error *err);
/* A download that is known to be wrong is not resumed. */
void blob_writer_forget(struct blob_writer *b);
void blob_writer_done(struct blob_writer *b);
/* Takes away what this work has put; the caller has the store for itself. */
void blob_drop_all(struct work *w);
/* A small one that is in memory. */
int blob_put(struct work *w, const char *hex, const void *data, size_t len, struct error *err);

/* ---- manifest.c ---- */

enum media { MEDIA_UNKNOWN, MEDIA_MANIFEST, MEDIA_INDEX, MEDIA_CONFIG, MEDIA_LAYER };

struct descriptor {
    enum media media;
    char hex[DIGEST_HEX];
    uint64_t size;
    char ref_name[REFERENCE_TEXT]; /* its annotation in an index, or "" */
};

struct manifest {
    char hex[DIGEST_HEX]; /* its own digest; "" if there is none */
    struct descriptor config;
    struct descriptor layers[LIMIT_IMAGE_LAYERS];
    size_t n_layers;
};

enum media media_parse(const char *type);
/* Manifest or index? By the fields it has, which must agree with every type that was said. */
int manifest_kind(const char *text, size_t len, enum media said, enum media *ret,
                  struct error *err);
int manifest_parse(const char *text, size_t len, struct manifest *ret, struct error *err);
/* The entry for this machine; with a tag, the one that is annotated so if there are several. */
int index_choose(const char *text, size_t len, const char *tag, struct descriptor *ret,
                 struct error *err);
/* "amd64", as images spell it. */
const char *machine_architecture(void);

/* The manifest.json of "docker save": names of members. */
struct saved {
    char config[256];
    char layers[LIMIT_IMAGE_LAYERS][256];
    size_t n_layers;
    char name[REFERENCE_TEXT]; /* the first of its names, or "" */
};
/* The image with this name if there are several; name may be NULL. */
int saved_parse(const char *text, size_t len, const char *name, struct saved *ret,
                struct error *err);

/* ---- config.c ---- */

struct config {
    char id[DIGEST_HEX];
    char (*diff_ids)[DIGEST_HEX];
    size_t n_diff_ids;
    void *json; /* json_t: the checked config object */
    char workdir[LIMIT_PATH];
    unsigned uid, gid;
    int64_t created_usec;
};

int config_parse(const char *text, size_t len, struct config *ret, struct error *err);
void config_done(struct config *c);
/* What can only be checked in the unpacked root: who the user is, where the work folder leads. */
int config_resolve(struct config *c, int root, struct error *err);
/* The config of a root file system that came without one; `path` (or NULL) has its "config". */
int config_synthesize(const char *diff_id, const char *path, struct buf *ret, struct error *err);

struct measure {
    uint64_t bytes, entries;
};
/* The text of image.json; stored[i] says whether the blob of layer i is kept. */
void config_record(const struct config *c, const struct manifest *m, const char *chain,
                   const struct measure *size, const bool *stored, struct buf *ret);

/* ---- assemble.c ---- */

/* Makes sure that blobs/ has a layer. */
typedef int (*fetch_layer)(void *ctx, struct work *w, const struct descriptor *d,
                           struct error *err);

/* Manifest and config are known to be right; everything else is done here. */
int assemble(struct work *w, const struct manifest *m, struct config *c, fetch_layer fetch,
             void *ctx, struct error *err);
/*
 * The end of every import: `root` becomes roots/<chain> if it is not there yet (it stands in the
 * temporary folder as "root" then), and the record is written.
 */
int assemble_finish(struct work *w, const struct manifest *m, struct config *c, const char *chain,
                    int root, struct error *err);
/* Points name (and name@digest, if it has a manifest) at the image. */
int work_name(struct work *w, const struct config *c, const struct manifest *m, const char *name,
              struct error *err);
/* What was made, on stdout; what was left out, on stderr. */
void work_report(const struct work *w, const struct config *c, const char *name);

/* ---- unpack.c: the only writer into a root ---- */

enum entry_type { ENTRY_FILE, ENTRY_FOLDER, ENTRY_SYMLINK, ENTRY_HARD_LINK, ENTRY_SPECIAL };

struct entry {
    enum entry_type type;
    const char *name, *target;
    unsigned mode;
    int64_t uid, gid, mtime_sec;
    long mtime_nsec;
    uint64_t size;
};

struct seen {
    uint64_t *keys;
    size_t n, cap;
};

struct folder_time {
    char *path;
    int64_t sec;
    long nsec;
};

struct unpacker {
    struct work *work;
    int root;
    char root_path[LIMIT_PATH];
    const char *what; /* for messages: which layer */
    bool whiteouts;   /* names beginning with .wh. take away what lower layers have */
    bool own_ids;     /* we are root: ownership is kept */
    int parent;       /* the folder of the last entry, and its name */
    uint64_t parent_ino;
    char parent_name[LIMIT_PATH];
    struct seen seen; /* names that this layer has made */
    struct folder_time *times;
    size_t n_times, cap_times;
};

int unpack_begin(struct unpacker *u, struct work *w, int root, const char *what, struct error *err);
/* Makes one entry; for a file *ret_fd is open for its data, else -1. */
int unpack_entry(struct unpacker *u, const struct entry *e, int *ret_fd, struct error *err);
int unpack_write(struct unpacker *u, const struct entry *e, int fd, const void *data, size_t len,
                 uint64_t offset, struct error *err);
/* Mode, owner and times of a file, once its data is there. */
int unpack_file_end(struct unpacker *u, const struct entry *e, int fd, struct error *err);
/* Times of folders, which every entry in them changes. */
void unpack_end(struct unpacker *u);
void unpack_done(struct unpacker *u);

int seen_add(struct seen *s, uint64_t key); /* 1 if it is new, 0 if not, -ENOMEM */
bool seen_has(const struct seen *s, uint64_t key);
void seen_done(struct seen *s);

/* ---- layer.c ---- */

struct layer_result {
    char diff_id[DIGEST_HEX];
};

/* What a tar holds, by its first names. */
enum tar_kind { TAR_ROOT, TAR_OCI, TAR_DOCKER };
int layer_look(int fd, enum tar_kind *ret, struct error *err);

/* Unpacks the tar in fd onto root. With whole_tar its end must be there: no digest would tell. */
int layer_unpack(struct work *w, int fd, int root, const char *what, bool whole_tar,
                 struct layer_result *ret, struct error *err);

/* Calls on_file for every entry of a tar; it reads the data of files through layer_read(). */
struct archive;
struct archive_entry;
typedef int (*on_member)(void *ctx, struct archive *a, struct archive_entry *e, struct error *err);
int layer_each(struct work *w, int fd, on_member fn, void *ctx, struct layer_result *ret,
               struct error *err);

/* ---- clone.c, copy.c ---- */

int clone_root(int from, int to, struct error *err);
int measure_root(int root, struct measure *ret, struct error *err);
/* Copies a folder into root; its identity is the hash of what was copied. */
int copy_folder(struct work *w, int from, int root, char ret_hex[DIGEST_HEX], struct error *err);

/* ---- members.c ---- */

/* The files of a saved image, each under a number of ours: their names never become paths. */
struct members;
int members_read(struct work *w, int fd, struct members **ret, struct error *err);
void members_free(struct members *m);
DEFINE_AUTOPTR(members)
/* An open file, or -ENOENT; links among members are followed. */
int members_open(const struct members *m, const char *name);

/* ---- verbs ---- */

int import(const struct options *o, struct error *err);
int pull(const struct options *o, struct error *err);

/* ---- http.c, auth.c ---- */

struct http;

struct http_request {
    const char *url;
    const char *accept; /* a whole header line, or NULL */
    const char *auth;   /* a whole header line, or NULL; never printed */
    uint64_t from;      /* ask for what comes after so many bytes */
    /* Called once before data, with what the server really sends. */
    int (*on_start)(void *ctx, bool resumed, struct error *err);
    int (*on_data)(void *ctx, const void *data, size_t len, struct error *err);
    void *ctx;
};

struct http_answer {
    long status;
    bool transient; /* trying again may help */
    char type[128], digest[128], challenge[1024];
    uint64_t range_start;
    unsigned retry_after;
};

int http_new(const struct options *o, bool plain, struct http **ret, struct error *err);
void http_free(struct http *h);
DEFINE_AUTOPTR(http)
/* 0 if an answer came, whatever its status; transient is set also when it fails. */
int http_get(struct http *h, const struct http_request *r, struct http_answer *ret,
             struct error *err);
/* May this address be spoken to? https always, http only on this machine or when asked for. */
bool url_is_allowed(const char *url, bool plain_http);
bool host_is_loopback(const char *host);

#define AUTH_LINE 16384
/* "Authorization: Basic ..." for a registry, or "" */
int auth_basic(const char *registry, char line[AUTH_LINE], struct error *err);
/* Follows a challenge; `line` is what the next request carries. */
int auth_answer(struct http *h, const struct options *o, const char *registry,
                const char *repository, const char *challenge, char line[AUTH_LINE],
                struct error *err);
