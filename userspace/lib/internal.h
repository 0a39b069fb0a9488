/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations for the files of libtimewheel. The library defines only the functions of
 * the public header, because a static library cannot hide names.
 */
#ifndef TW_INTERNAL_H
#define TW_INTERNAL_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "process/process.h"
#include "timewheel.h"

#define TW_DEVICE	"/dev/timewheel"
#define TW_NODES	"/dev/timewheels/"

/**
 * struct tw_wheel - an open wheel
 * @fd: the fd that a program polls; a wheel of the kernel gets its commands by it, too
 * @process: the file of a wheel of this process, else NULL
 */
struct tw_wheel {
	int			fd;
	struct tw_process_file	*process;
};

/* Whether the user wants wheels of the process. A program with another user's rights ignores it. */
static inline bool tw_wants_process(void)
{
	const char *kind = secure_getenv("TIMEWHEEL");

	return kind && !strcmp(kind, "process");
}

/* Turns the result of a wheel of the process into the result of a system call. */
static inline long tw_result(long ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* Carries out one command on a wheel. */
static inline int tw_wheel_ioctl(const struct tw_wheel *wheel, unsigned long cmd, void *arg)
{
	if (wheel->process)
		return tw_result(tw_process_ioctl(wheel->process, cmd, arg));
	return ioctl(wheel->fd, cmd, arg);
}

/* Closes the fd after an error, and keeps errno. */
static inline void tw_close_keep_errno(int fd)
{
	int err = errno;

	close(fd);
	errno = err;
}

/* Opens the device for one command, and closes it. */
static inline int tw_device_ioctl(int access, unsigned long cmd, void *arg)
{
	int fd, ret;

	if (tw_wants_process())
		return tw_result(tw_process_device(access, cmd, arg));
	fd = open(TW_DEVICE, access | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ret = ioctl(fd, cmd, arg);
	tw_close_keep_errno(fd);
	return ret;
}

/* Makes a wheel of @file, which belongs to the function then, also after an error. */
__attribute__((__visibility__("hidden")))
struct tw_wheel *tw_process_wheel(struct tw_process_file *file);

#endif /* TW_INTERNAL_H */
