/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/test.h"

static void make_pair(int pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_pair(int pair[2])
{
    (void)close(pair[0]);
    (void)close(pair[1]);
}

static void test_read_full(void **state)
{
    char data[8] = {0};
    int p[2];

    (void)state;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "abc", 3), 3);
    assert_int_equal(write(p[1], "def", 3), 3);
    assert_int_equal(fd_read_full(p[0], data, 4), 4);
    assert_memory_equal(data, "abcd", 4);
    (void)close(p[1]);
    assert_int_equal(fd_read_full(p[0], data, 8), 2); /* end of file */
    assert_int_equal(fd_read_full(p[0], data, 8), 0);
    (void)close(p[0]);
    assert_int_equal(fd_read_full(p[0], data, 8), -EBADF);
}

/* More than a pipe holds: the writer must come back for the rest. */
static void test_write_full(void **state)
{
    static char data[300000], got[300000];
    int p[2], status;
    pid_t pid;

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 31 >> 3);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(p[0]);
        _exit(fd_write_full(p[1], data, sizeof(data)) == 0 ? 0 : 1);
    }
    (void)close(p[1]);
    assert_int_equal(fd_read_full(p[0], got, sizeof(got)), sizeof(got));
    assert_memory_equal(got, data, sizeof(got));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(p[0]);
    assert_int_equal(fd_write_full(p[0], data, 1), -EBADF);
}

static void test_text(void **state)
{
    struct temp *t = *state;
    char text[8];

    temp_write(t, "seven", "1234567", 7);
    temp_write(t, "eight", "12345678", 8);
    temp_write(t, "empty", "", 0);
    assert_int_equal(fd_read_text(t->fd, "seven", text, sizeof(text)), 7);
    assert_string_equal(text, "1234567");
    assert_int_equal(fd_read_text(t->fd, "eight", text, sizeof(text)), -EFBIG);
    assert_int_equal(fd_read_text(t->fd, "empty", text, sizeof(text)), 0);
    assert_string_equal(text, "");
    assert_int_equal(fd_read_text(t->fd, "none", text, sizeof(text)), -ENOENT);
    assert_int_equal(fd_read_text(t->fd, ".", text, sizeof(text)), -EISDIR);
    assert_int_equal(fd_read_text(t->fd, "seven", text, 0), -EFBIG);
}

static void test_text_of_slow_pipe(void **state)
{
    char text[16] = "", path[32];
    int p[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(p, 0), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)usleep(50000);
        _exit(write(p[1], "A=1\n", 4) == 4 ? 0 : 1);
    }
    (void)close(p[1]);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", p[0]);
    assert_int_equal(fd_read_text(AT_FDCWD, path, text, sizeof(text)), 4);
    assert_string_equal(text, "A=1\n");
    (void)close(p[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_write_text(void **state)
{
    struct temp *t = *state;
    char text[16];

    temp_write(t, "f", "", 0);
    assert_int_equal(fd_write_text(t->fd, "f", "max"), 0);
    assert_int_equal(fd_read_text(t->fd, "f", text, sizeof(text)), 3);
    assert_string_equal(text, "max");
    assert_int_equal(fd_write_text(t->fd, "none", "x"), -ENOENT); /* never made */
    assert_int_equal(faccessat(t->fd, "none", F_OK, 0), -1);
}

static void test_pass(void **state)
{
    size_t before = open_fds();
    int pair[2], p[2], got[3];
    char data[16] = "", byte = 0;

    (void)state;
    make_pair(pair);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(fd_send(pair[0], "hello", 5, p, 2), 0);
    assert_int_equal(fd_recv(pair[1], data, sizeof(data), got, 3), 5);
    assert_memory_equal(data, "hello", 5);
    assert_true(got[0] >= 0 && got[1] >= 0);
    assert_int_equal(got[2], -1);
    assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(got[1], "x", 1), 1);
    assert_int_equal(read(p[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    for (int i = 0; i < 2; i++) {
        (void)close(got[i]);
        (void)close(p[i]);
    }
    close_pair(pair);
    assert_int_equal(open_fds(), before);
}

static void test_too_many_fds(void **state)
{
    int pair[2], fds[FD_PASS_MAX + 1], got[2] = {5, 5};
    char data[4];
    size_t before;

    (void)state;
    make_pair(pair);
    for (size_t i = 0; i < COUNT(fds); i++)
        fds[i] = pair[0];
    assert_int_equal(fd_send(pair[0], "x", 1, fds, COUNT(fds)), -EMSGSIZE);
    before = open_fds();
    assert_int_equal(fd_send(pair[0], "x", 1, fds, 3), 0);
    assert_int_equal(fd_recv(pair[1], data, sizeof(data), got, 2), -EMSGSIZE);
    assert_int_equal(got[0], -1);
    assert_int_equal(got[1], -1);
    assert_int_equal(fd_send(pair[0], "x", 1, fds, FD_PASS_MAX), 0);
    assert_int_equal(fd_recv(pair[1], data, sizeof(data), NULL, 0), -EMSGSIZE);
    assert_int_equal(open_fds(), before);
    close_pair(pair);
}

static void test_long_message(void **state)
{
    int pair[2], got[1];
    char data[4];
    size_t before;

    (void)state;
    make_pair(pair);
    before = open_fds();
    assert_int_equal(fd_send(pair[0], "12345", 5, pair, 1), 0);
    assert_int_equal(fd_recv(pair[1], data, sizeof(data), got, 1), -EMSGSIZE);
    assert_int_equal(open_fds(), before);
    assert_int_equal(fd_send(pair[0], "1234", 4, NULL, 0), 0); /* the next one is whole */
    assert_int_equal(fd_recv(pair[1], data, sizeof(data), got, 1), 4);
    assert_int_equal(got[0], -1);
    close_pair(pair);
}

static void test_peer_gone(void **state)
{
    int pair[2], got[1];
    char data[4];

    (void)state;
    make_pair(pair);
    (void)close(pair[0]);
    assert_int_equal(fd_recv(pair[1], data, sizeof(data), got, 1), 0);
    assert_int_equal(fd_send(pair[1], "x", 1, NULL, 0), -EPIPE); /* and no SIGPIPE */
    (void)close(pair[1]);
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("a full read waits for every byte or the end", test_read_full),
        CLAIM("a full write comes back for the rest", test_write_full),
        CLAIM_IN_TEMP("a text that does not fit is an error, never cut", test_text),
        CLAIM("a text is read to its end even if its writer is slow", test_text_of_slow_pipe),
        CLAIM_IN_TEMP("a setting is written to an existing file only", test_write_text),
        CLAIM("descriptors travel with their message and are close-on-exec", test_pass),
        CLAIM("descriptors that do not fit are closed, all of them", test_too_many_fds),
        CLAIM("a message that does not fit leaves nothing open", test_long_message),
        CLAIM("a peer that is gone is the end of the stream, not a signal", test_peer_gone),
    };

    return RUN_CLAIMS("base/fd", claims);
}
