/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The values of docker's flags, which the drop-in and OpenClaw's configuration use, read by
 * docker's rules (they differ from ours: a bare size is bytes). Pure; what is wrong is said in
 * docker's words.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct box_mount;
struct box_port;
struct box_ulimit;
struct error;

/* "512m", "1.5 GiB", "1048576": units of 1024. */
int values_size(const char *s, uint64_t *ret_bytes, struct error *err);
/* "1.5"; 0 is "as many as there are". In thousandths, never less than asked for by more than one.
 */
int values_cpus(const char *s, uint32_t *ret_milli, struct error *err);
/* "256"; 0 and below are "unlimited", and give 0. */
int values_pids(const char *s, uint32_t *ret, struct error *err);
/* "nofile=1024:2048". */
int values_ulimit(const char *s, struct box_ulimit *ret, struct error *err);
/* "127.0.0.1::9222/tcp", "8080:80", "80": without ranges. */
int values_port(const char *s, struct box_port *ret, struct error *err);

/* "/host:/box:ro,z". */
int values_volume(const char *s, struct box_mount *ret, struct error *err);
/* "type=bind,source=/host,target=/box,readonly". */
int values_mount(const char *s, struct box_mount *ret, struct error *err);
/* "/run:size=64m,mode=755". */
int values_tmpfs(const char *s, struct box_mount *ret, struct error *err);
void values_mount_done(struct box_mount *m);
void values_port_done(struct box_port *p);

/* [a-zA-Z0-9][a-zA-Z0-9_.-]+ */
bool values_is_name(const char *s);
