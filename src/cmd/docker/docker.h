/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The drop-in `docker`: docker's words in, ClawDen's boxes out. What the verbs share.
 *
 * Each verb gets the words behind its name and returns the exit status, which is docker's: 0, 1 for
 * what "the daemon" refuses, 125 for flags and for what run is refused, 126 and 127 for commands
 * that cannot be executed, 64 for a bad template, else the command's own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct box_record;
struct box_state;
struct buf;
struct error;
struct image;

enum { STATUS_REFUSED = 125, STATUS_BAD_TEMPLATE = 64 };

/* ---- verbs ---- */
int cmd_create(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_container_inspect(int argc, char **argv);
int cmd_start(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_restart(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_unpause(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_port(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_images(int argc, char **argv);
int cmd_image_inspect(int argc, char **argv);
int cmd_rmi(int argc, char **argv);
int cmd_pull(int argc, char **argv);
int cmd_network(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_info(int argc, char **argv);

/* ---- messages (say.c) ---- */

/* "Error response from daemon: ..." on stderr; returns 1. */
int say_daemon(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for create and run, each in docker's way: create 1, run "docker: ..." and 125. */
int say_refused(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From here on refusals are those of run. */
void say_for_run(void);
/* "clawden: ..." on stderr: where a box differs from what was asked for. */
void say_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The box, or a message as docker's; NULL then. */
struct box_record *say_find(const char *ref);
/* Runs fn for every word and prints the word where it went well; 1 if one did not. */
int say_each(char **words, int (*fn)(const struct box_record *r, void *arg, struct error *err),
             void *arg);
/* "2026-11-15T08:04:04.000000000Z"; year 1 for 0, as docker does. */
const char *say_time(int64_t usec, char *text, size_t size);
/* "2026-11-15 08:04:04 +0000 UTC": in lists. */
const char *say_date(int64_t usec, char *text, size_t size);
/* "2.98MB" of 1000, "1.5GiB" of 1024. */
const char *say_size(uint64_t bytes, unsigned base, char *text, size_t size);
/* "5 minutes": how long something took or is ago. */
const char *say_age(int64_t usec, char *text, size_t size);

/* Appends to a list that ends with NULL; everything is owned. */
void strings_add(char ***list, const char *s);
void strings_set(char **s, const char *value);

/* ---- what is printed (show.c) ---- */

/* JSON text, with line breaks and four blanks per level. */
void show_indented(struct buf *out, const char *json, size_t len);
/* Prints one template's result and a line break; the exit status. `json` is one object. */
int show_template(const char *format, const struct buf *json);
/*
 * Rows of `ps`, `images` and the like. Each row is a JSON object; `columns` is the object of the
 * headings; format is NULL (then `table`), a template, "table TEMPLATE" or "json".
 */
int show_rows(const char *format, const char *table, const char *columns, char **rows, size_t n,
              bool quiet);
/* An array of strings, or null when there is none. */
void show_strings(struct buf *b, const char *key, char *const *list);

/* ---- boxes as JSON (describe.c) ---- */
void describe_box(struct buf *b, const struct box_record *r, const struct box_state *s);
/* "running", "paused", "exited", "created". */
const char *describe_status(const struct box_state *s);
/* "127.0.0.1:49153": where a port of the box is offered. */
struct box_port;
void describe_published(const struct box_port *p, uint16_t port, char *text, size_t size);
/* Is this a tmpfs that every box has, not one that was asked for? */
struct box_mount;
bool describe_is_scratch(const struct box_mount *m);

/* ---- images (images.c) ---- */

/* The image, NULL with `*ret_host` set for the one that is served from the host's own folders. */
int images_find(const char *ref, struct image **ret, bool *ret_host, struct error *err);
/* Its JSON; -ERR_NOT_FOUND. */
int images_describe(struct buf *b, const char *ref, struct error *err);
size_t images_count(void);
