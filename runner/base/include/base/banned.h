/* base/banned.h - functions nobody here may call; force-included before every source file.
 *
 * Each entry either has no bound (strcpy, sprintf), hides errors (atoi) or shares static state between
 * threads (strtok, localtime). The headers that declare them come first, so that only our own use is
 * an error. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* glibc and musl both define it as a macro, and poisoning a macro is a warning. */
#undef alloca

#pragma GCC poison strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atoll atof scanf sscanf fscanf vsscanf
#pragma GCC poison localtime gmtime ctime asctime tmpnam tempnam mktemp alloca system popen

#endif
