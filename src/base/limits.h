/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Every size that the outside chooses has its maximum here: one line, one reason. */

#define LIMIT_ARG_BYTES \
    (4u << 20) /* argv and environment of one command; the kernel stops at 6 MiB */
#define LIMIT_ARG_COUNT    131072u /* words of argv and environment; bounds init's pointer table */
#define LIMIT_ENV_FILE     (1u << 20)  /* an --env-file: a page of settings, not a data set */
#define LIMIT_SMALL_FILE   (64u << 10) /* /proc and /sys texts, our own state files */
#define LIMIT_CGROUP_FILE  (8u << 10)  /* /proc/self/cgroup: a dozen lines of one path each */
#define LIMIT_PATH         4096u       /* PATH_MAX, with its NUL */
#define LIMIT_ROOT_ENTRIES 64u         /* names in the top folder of an image */
#define LIMIT_STEPS        310u /* steps of one plan: 64 image entries and 30 masks need about 305 */
#define LIMIT_AUDIT_LINE   (32u << 10) /* one audit line: argv is cut to fit */
#define LIMIT_AUDIT_ARGV   (4u << 10)  /* bytes of argv shown in an audit line */
#define LIMIT_JSON_RESULT  (16u << 10) /* the --json object of one run */
#define LIMIT_RELAY_CHUNK  (64u << 10) /* bytes moved per wake-up and stream: one full pipe */
#define LIMIT_SLOTS        8u          /* boxes one user can start from ready slots at once */
#define LIMIT_PROC_TREE    8192u       /* processes of one box that the supervisor looks at */
#define LIMIT_JSON_DEPTH   32u         /* our own records nest three levels */
#define LIMIT_JSON_NODES   16384u      /* values in one record: its keys are compared pairwise */
