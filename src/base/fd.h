/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reading, writing and passing file descriptors. Results are -errno on failure. */
#include <stddef.h>
#include <sys/types.h>

/* Until len bytes or end-of-file; the number of bytes read. */
ssize_t fd_read_full(int fd, void *data, size_t len);
/* All of it, or -errno. */
int fd_write_full(int fd, const void *data, size_t len);

/* The whole text of dirfd/name, at most size - 1 bytes, NUL-terminated; the length, or -EFBIG. */
ssize_t fd_read_text(int dirfd, const char *name, char *text, size_t size);
/* The same for a kernel file of one small piece: what one read() gives is all of it. */
ssize_t fd_read_value(int dirfd, const char *name, char *text, size_t size);
/* Writes text in one write() to the existing file dirfd/name (kernel settings). */
int fd_write_text(int dirfd, const char *name, const char *text);

/* Closes every descriptor from first to last. */
void fd_close_range(unsigned first, unsigned last);

/* Sends one message with up to FD_PASS_MAX descriptors. */
#define FD_PASS_MAX 96 /* the trees of a live box, or the sockets of its network */
int fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds);
/*
 * Receives one message: its length (0 = the peer is gone), with the descriptors that came along in
 * fds and -1 in the rest. A message or a list of descriptors that does not fit is -EMSGSIZE;
 * nothing of it is kept open.
 */
ssize_t fd_recv(int sock, void *data, size_t size, int *fds, size_t max_fds);
