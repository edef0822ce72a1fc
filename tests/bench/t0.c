/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest payload: no libc, two pages. Alone it only exits, so that what remains of a measured
 * time is the price of the box. With any argument it writes one byte to stdout ("I run") and sleeps
 * until it is killed.
 */
#include <sys/syscall.h>

#if defined(__x86_64__)

__asm__(".globl _start\n"
        "_start: mov (%rsp), %rdi\n"
        "        and $-16, %rsp\n"
        "        call t0_main\n");

static long call3(long nr, long a, long b, long c)
{
    long r;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return r;
}

#elif defined(__aarch64__)

__asm__(".globl _start\n"
        "_start: ldr x0, [sp]\n"
        "        bl t0_main\n");

static long call3(long nr, long a, long b, long c)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}

#else
#error "t0 knows x86_64 and aarch64"
#endif

__attribute__((noreturn, used)) void t0_main(long argc)
{
    if (argc > 1) {
        (void)call3(SYS_write, 1, (long)"1", 1);
        for (;;)
            (void)call3(SYS_ppoll, 0, 0, 0); /* aarch64 has no pause */
    }
    for (;;)
        (void)call3(SYS_exit_group, 0, 0, 0);
}
