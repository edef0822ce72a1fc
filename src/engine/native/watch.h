/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Looking at a box from outside, through /proc: the supervised grade of limits, for users who have
 * no cgroup of their own. Every process of a box descends from its init (orphans come back to it),
 * so the tree below init is the whole box.
 */
#include <stdbool.h>
#include <sys/types.h>

struct box_usage;

/* Does this kernel list children (CONFIG_PROC_CHILDREN)? */
bool watch_is_possible(void);

/* Processes, memory (private and tmpfs pages, shared ones once) and CPU time of the tree. */
void watch_tree(pid_t init, struct box_usage *ret);
/* Only the CPU time. */
void watch_cpu(pid_t init, struct box_usage *ret);

/* Sends a signal to every process below init, which itself is spared. */
void watch_signal(pid_t init, int signo);
/* The same, init's own children spared too: in a live box those are its reapers. */
void watch_signal_commands(pid_t init, int signo);
/* To the one command that a live box was started for: the first of its oldest reaper. */
void watch_signal_main(pid_t init, int signo);
/* Calls fn for init and every process below it. */
void watch_each(pid_t init, void (*fn)(void *arg, pid_t pid), void *arg);
/* Its state letter in /proc (T: stopped), 0 if it is gone. */
char watch_state(pid_t pid);
/* Stops every process of init's pid namespace; how many were not stopped before. */
unsigned watch_stop_namespace(pid_t init);
