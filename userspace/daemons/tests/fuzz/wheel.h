/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wheels in memory: the linker has all calls of read() go to the second of these.
 */
#ifndef FUZZ_WHEEL_H
#define FUZZ_WHEEL_H

#include <sys/types.h>

ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size);

#endif /* FUZZ_WHEEL_H */
