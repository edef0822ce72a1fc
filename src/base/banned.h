/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Force-included everywhere: calls that have a safer way to the same end do not compile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol gets
#pragma GCC poison gmtime localtime mktemp tmpnam system popen
