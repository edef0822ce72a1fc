/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A program of ours gives up what it does not need, before it reads what strangers send. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* No capability is left, whoever we are: root without any is the owner of his files. */
int confine_privileges(struct error *err);

/* What Landlock may be asked for (a kernel's own version says how much of it there is). */
enum confine_access {
    CONFINE_READ = 1,
    CONFINE_WRITE = 2, /* and make, rename and remove plain files and folders */
};

struct confine_place {
    int fd; /* a folder: it, and all below */
    unsigned access;
};

/*
 * No new privileges; nothing is executed; files are written, and, with `reads`, read, in these
 * places alone. 1: this kernel has no Landlock (or its first version, which knows no renames), and
 * only the first holds.
 */
int confine_files(const struct confine_place *places, size_t n, bool reads, struct error *err);

/* Only these system calls are left; others fail with EPERM. */
int confine_calls(const uint16_t *numbers, size_t n, struct error *err);
