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
#define LIMIT_PLACES       64u  /* mounts that one box is asked to have */
#define LIMIT_RLIMITS      16u  /* RLIMIT_* that exist */
#define LIMIT_BERTH_TEXT   (640u << 10) /* 64 places with two paths each, and a page of /etc/hosts */
#define LIMIT_STEPS        640u /* steps of one plan: 64 image entries, 30 masks, 64 places of three each */
#define LIMIT_AUDIT_LINE   (32u << 10) /* one audit line: argv is cut to fit */
#define LIMIT_AUDIT_ARGV   (4u << 10)  /* bytes of argv shown in an audit line */
#define LIMIT_JSON_RESULT  (16u << 10) /* the --json object of one run */
#define LIMIT_STREAM_CHUNK  (64u << 10) /* bytes moved per wake-up and stream: one full pipe */
#define LIMIT_SLOTS        10u         /* ready and busy slots and berths of one user */
#define LIMIT_PROC_TREE    8192u       /* processes of one box that the supervisor looks at */
#define LIMIT_KILL_TABLE   4096u       /* processes that a reaper looks at in one round */
#define LIMIT_KILL_ROUNDS  2147483647  /* it does not give up: a process that waits for a disk dies late */
#define LIMIT_ORPHAN_ROUNDS 64         /* init itself has others to serve */
#define LIMIT_BACKLOG      1024        /* commands of one live box that may wait to be started */
#define LIMIT_JSON_DEPTH   32u         /* our own records nest three levels */
#define LIMIT_JSON_NODES   16384u      /* values in one record: its keys are compared pairwise */

/* ---- images: src/image and src/cmd/pull ---- */
#define LIMIT_IMAGE_NAME       200u        /* a reference; encoded it must still be a file name */
#define LIMIT_IMAGE_RECORD     (8u << 20)  /* our image.json: a config and its list of layers */
#define LIMIT_IMAGE_MANIFEST   (4u << 20)  /* manifest or index: what registries accept at most */
#define LIMIT_IMAGE_CONFIG     (4u << 20)  /* config: history and labels are most of it */
#define LIMIT_IMAGE_LAYERS     256u        /* layers of one image; builders stop at 127 */
#define LIMIT_IMAGE_WORDS      1024u       /* words of env, cmd, entrypoint, labels and ports, each */
#define LIMIT_IMAGE_ENTRIES    (4u << 20)  /* files, folders and links that one image unpacks */
#define LIMIT_IMAGE_BYTES      (64ull << 30) /* bytes that one image unpacks */
#define LIMIT_IMAGE_BLOB       (64ull << 30) /* one layer as it is stored or sent */
#define LIMIT_IMAGE_DEPTH      256u          /* folders above a file; removal holds one fd each */
#define LIMIT_IMAGE_RATIO      200u          /* a layer grows at most so many times ... */
#define LIMIT_IMAGE_RATIO_FREE (64u << 20)   /* ... beyond what every layer may have anyway */
#define LIMIT_IMAGE_MEMBERS    4096u         /* files inside a saved image (docker save, OCI tar) */
#define LIMIT_IMAGE_PASSWD     (1u << 20)    /* /etc/passwd and /etc/group of an image */
#define LIMIT_IMAGE_LIST       65536u        /* images and names of one store */
#define LIMIT_PULL_TRIES       4u            /* of one request to a registry */
#define LIMIT_PULL_REDIRECTS   5u            /* registries send blobs from one other host */
#define LIMIT_PULL_TOKEN       (64u << 10)   /* a registry's answer with a token, one header */
#define LIMIT_PULL_AUTH_FILE   (1u << 20)    /* config.json with the passwords of registries */

/* The drop-in `docker`. */
#define LIMIT_DOCKER_ENV_FILE   (4u << 20)  /* an --env-file: what one program can be given at all */
#define LIMIT_DOCKER_ENV_STRING 131071u     /* NAME=VALUE: the kernel refuses a longer one (E2BIG) */
#define LIMIT_DOCKER_ENV_COUNT  8192u       /* variables: their names are compared pairwise */
#define LIMIT_DOCKER_TEXT       (16u << 20) /* one inspect object, one table */
#define LIMIT_TEMPLATE_TEXT     (32u << 20) /* what a --format prints, and what its functions make */
#define LIMIT_TEMPLATE_STEPS    1000000u    /* actions of a template: ranges nest */
#define LIMIT_TEMPLATE_DEPTH    32u         /* blocks and parentheses in each other */
#define LIMIT_TEMPLATE_VARS     16u         /* $variables visible at once */
#define LIMIT_TEMPLATE_ARGS     16u         /* words of one function call */
#define LIMIT_DOCKER_DEPTH      64u         /* folders in folders that cp follows: one descriptor each */
#define LIMIT_DOCKER_NETWORKS   256u        /* names that `network create` records */

/* Live boxes. */
#define LIMIT_BOX_NAME   128u        /* bytes of a name */
#define LIMIT_BOX_RECORD (8u << 20)  /* box.json: mostly its environment and labels */
#define LIMIT_BOX_LOG    (16u << 20) /* output kept of a main command; then the older half goes */
#define LIMIT_REAPERS_FREE 32u      /* processes of init's own that a pids limit does not count */

/* clawden-fs, which works in a box under the box's own limits. */
#define LIMIT_FS_MESSAGE  (64u << 10)  /* one line about two paths, every byte escaped */
#define LIMIT_FS_CHUNK    (64u << 10)  /* bytes of a file moved at once */
#define LIMIT_FS_ENTRIES  (32u << 10)  /* bytes of a folder read at once */
#define LIMIT_FS_NAMES    (64u << 20)  /* names in one folder: the client takes 100 MiB of output */
#define LIMIT_FS_MANIFEST (256u << 20) /* a folder moved between mounts: a million files */
#define LIMIT_FS_DEPTH    1000u        /* folders in folders: a descriptor each, 1024 are usual */
#define LIMIT_FS_LINKS    1024u        /* links in one path: the kernel follows 40, readlink more */
#define LIMIT_FS_REST     (64u << 10)  /* what is left of a path while its links are put in */
#define LIMIT_FS_TRIES    128u         /* temporary names, before somebody is doing it on purpose */

/* Configuration files: src/json, src/toml, src/config. */
#define LIMIT_CONFIG_BYTES (2u << 20) /* one file; OpenClaw's own limit */
#define LIMIT_CONFIG_DEPTH 64u        /* objects and arrays in each other; settings nest seven */
#define LIMIT_CONFIG_KEYS  65536u     /* members of all objects of one file */
#define LIMIT_COMMAND_LINE (128u << 10) /* a command line that is split into words: one kernel string */

/* Workspace file tools: src/files. The other side of each is a program that wants it to hurt. */
#define LIMIT_FILES_READ     (256u << 10) /* text or bytes that one read gives back */
#define LIMIT_FILES_LINES    2000u        /* lines of one read when nobody says how many */
#define LIMIT_FILES_CHUNK    (64u << 10)  /* bytes of a file read at once */
#define LIMIT_FILES_SCAN     (64u << 20)  /* bytes looked through to count lines */
#define LIMIT_FILES_HASH     (8u << 20)   /* larger files are known by their stat alone */
#define LIMIT_FILES_WRITE    (128u << 20) /* one written, edited or patched file; held in memory */
#define LIMIT_FILES_EDITS    256u         /* replacements of one edit */
#define LIMIT_FILES_NEAR     (1u << 20)   /* near misses are looked for in files up to this */
#define LIMIT_FILES_XATTRS   (64u << 10)  /* each attribute carried over; their names, 4 KiB */
#define LIMIT_FILES_LINKS    40u          /* links at the end of one path; the kernel's own number */
#define LIMIT_FILES_TRIES    128u         /* temporary names, before somebody is doing it on purpose */
#define LIMIT_FILES_NAMES    65536u       /* names of one folder that are sorted */
#define LIMIT_FILES_HELD     262144u      /* names held at once by a walk, of all its folders */
#define LIMIT_FILES_AT_ONCE  1024u        /* names of a folder that remove holds, at each depth */
#define LIMIT_FILES_DEPTH    128u         /* folders in folders: one descriptor each */
#define LIMIT_FILES_VISIT    1000000u     /* entries that one find, grep or remove looks at */
#define LIMIT_FILES_ENTRIES  10000u       /* entries that one list or find gives back */
#define LIMIT_FILES_OUT      (4u << 20)   /* names and lines that one list, find or grep gives back */
#define LIMIT_CHANGED_NAMES  256u         /* names of changed files in one receipt ... */
#define LIMIT_CHANGED_TEXT   (8u << 10)   /* ... and their bytes: it is a part of one audit line */
#define LIMIT_CHANGED_QUICK  512u         /* entries looked at while others wait: a millisecond ... */
#define LIMIT_CHANGED_QUICK_MS 5          /* ... unless the disk is slow */
#define LIMIT_CHANGED_MS     200          /* for more of them, in a process of its own: the answer waits */
#define LIMIT_CHANGED_WALKS  4u           /* such processes at once; who comes then has what the quick look saw */
#define LIMIT_FILES_MATCHES  10000u       /* lines that one grep gives back */
#define LIMIT_FILES_CONTEXT  20u          /* lines around a match */
#define LIMIT_FILES_LINE     (1u << 20)   /* longer lines are searched in pieces of this */
#define LIMIT_FILES_LINE_OUT 500u         /* bytes shown of a line that matches */
#define LIMIT_FILES_PATTERN  4096u        /* a pattern as it is written */
#define LIMIT_FILES_PROGRAM  20000u       /* its steps: counted repetitions multiply */
#define LIMIT_FILES_NESTING  64u          /* parentheses, braces in each other */
#define LIMIT_FILES_REPEAT   1000u        /* the largest number in {m,n} */
#define LIMIT_FILES_STATES   1024u        /* sets of steps remembered while matching, 1 KiB each ... */
#define LIMIT_FILES_STEPS    (1u << 20)   /* ... and the steps in them */
#define LIMIT_FILES_DIFF     (64u << 10)  /* text of a diff; the rest is counted only */
#define LIMIT_FILES_DIFF_TRY 400u         /* changed lines that a diff tells apart: its work is quadratic */
#define LIMIT_FILES_DIFF_LINES 200000u    /* lines between the first and the last change */
#define LIMIT_PATCH_BYTES    (16u << 20)  /* one patch */
#define LIMIT_PATCH_FILES    128u         /* files of one patch: six descriptors each at most */
#define LIMIT_PATCH_LINES    500000u      /* lines of one patch */
#define LIMIT_PATCH_WORK     50000000u    /* lines compared while the places of a patch are looked for */
