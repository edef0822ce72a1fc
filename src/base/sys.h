/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * System calls without libc: the result is the kernel's own, -errno on failure.
 *
 * For the two places where libc must not be touched: clawden-init, which has none, and the child
 * between clone and exec, which shares its memory (and so errno) with the program that made it.
 */
#include <asm/unistd.h>

static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;

    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "sys6: write this for the new architecture"
#endif
}

#define SYS_PICK(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define SYS_L(x)                                        ((long)(x))
#define sys_call0(n)                                    sys6(n, 0, 0, 0, 0, 0, 0)
#define sys_call1(n, a)                                 sys6(n, SYS_L(a), 0, 0, 0, 0, 0)
#define sys_call2(n, a, b)                              sys6(n, SYS_L(a), SYS_L(b), 0, 0, 0, 0)
#define sys_call3(n, a, b, c)                           sys6(n, SYS_L(a), SYS_L(b), SYS_L(c), 0, 0, 0)
#define sys_call4(n, a, b, c, d)                        sys6(n, SYS_L(a), SYS_L(b), SYS_L(c), SYS_L(d), 0, 0)
#define sys_call5(n, a, b, c, d, e)                     sys6(n, SYS_L(a), SYS_L(b), SYS_L(c), SYS_L(d), SYS_L(e), 0)
#define sys_call6(n, a, b, c, d, e, f) \
    sys6(n, SYS_L(a), SYS_L(b), SYS_L(c), SYS_L(d), SYS_L(e), SYS_L(f))
/* sys_call(__NR_write, fd, data, len): as many arguments as the call has. */
#define sys_call(...)                                                                       \
    SYS_PICK(__VA_ARGS__, sys_call6, sys_call5, sys_call4, sys_call3, sys_call2, sys_call1, \
             sys_call0)                                                                     \
    (__VA_ARGS__)

static inline unsigned long sys_length(const char *s)
{
    unsigned long n = 0;

    while (s[n])
        n++;
    return n;
}

/* Closes *fd if it is open, and marks it closed. */
static inline void sys_close_fd(int *fd)
{
    if (*fd >= 0)
        sys_call(__NR_close, *fd);
    *fd = -1;
}

/*
 * clone3 whose child runs fn(arg) on the stack given in `args` and ends with fn's result; the
 * parent gets the pid. Without a stack in `args` (no CLONE_VM) the child gets a copy of this one
 * and does the same.
 */
static inline long sys_clone_call(void *args, unsigned long size, int (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
    register int (*r12)(void *) __asm__("r12") = fn;
    register void *r13 __asm__("r13") = arg;
    long ret;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "and $-16, %%rsp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov $231, %%eax\n\t" /* exit_group */
                     "syscall\n\t"
                     "1:"
                     : "=a"(ret)
                     : "a"((long)__NR_clone3), "D"(args), "S"(size), "r"(r12), "r"(r13)
                     : "rcx", "r11", "memory");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = __NR_clone3;
    register long x0 __asm__("x0") = (long)args;
    register long x1 __asm__("x1") = (long)size;
    register int (*x19)(void *) __asm__("x19") = fn;
    register void *x20 __asm__("x20") = arg;

    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, x20\n\t"
                     "blr x19\n\t"
                     "mov x8, #94\n\t" /* exit_group */
                     "svc #0\n\t"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x19), "r"(x20)
                     : "x30", "memory");
    return x0;
#endif
}

/* The same with clone(2), for flags that it can carry; the child runs on the stack that ends at
 * top. */
static inline long sys_clone_on(unsigned long flags, void *top, int (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
    register int (*r12)(void *) __asm__("r12") = fn;
    register void *r13 __asm__("r13") = arg;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    long ret;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov $231, %%eax\n\t" /* exit_group */
                     "syscall\n\t"
                     "1:"
                     : "=a"(ret)
                     : "a"((long)__NR_clone), "D"(flags), "S"(top), "d"(0L), "r"(r10), "r"(r8),
                       "r"(r12), "r"(r13)
                     : "rcx", "r11", "memory");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = __NR_clone;
    register long x0 __asm__("x0") = (long)flags;
    register void *x1 __asm__("x1") = top;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register int (*x19)(void *) __asm__("x19") = fn;
    register void *x20 __asm__("x20") = arg;

    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, x20\n\t"
                     "blr x19\n\t"
                     "mov x8, #94\n\t" /* exit_group */
                     "svc #0\n\t"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x19), "r"(x20)
                     : "x30", "memory");
    return x0;
#endif
}
