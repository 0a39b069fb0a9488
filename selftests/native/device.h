/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The real system calls, by the names that the linker gives them beside the calls of
 * device.c (--wrap).
 */
#ifndef TW_NATIVE_DEVICE_H
#define TW_NATIVE_DEVICE_H

#include <sys/types.h>

struct iovec;

int __real_openat(int dir, const char *path, int flags, ...);
int __real_close(int fd);
int __real_dup(int fd);
int __real_dup2(int fd, int to);
int __real_dup3(int fd, int to, int flags);
int __real_fcntl(int fd, int cmd, ...);
int __real_ioctl(int fd, unsigned long cmd, ...);
ssize_t __real_read(int fd, void *to, size_t bytes);
ssize_t __real_write(int fd, const void *from, size_t bytes);
ssize_t __real_readv(int fd, const struct iovec *iov, int count);
ssize_t __real_preadv2(int fd, const struct iovec *iov, int count, off_t at, int flags);
void *__real_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t length);

#endif /* TW_NATIVE_DEVICE_H */
