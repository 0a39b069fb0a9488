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
 * @fd: what a program polls; of a wheel of the kernel it is also what a command goes to
 * @process: of a wheel of this process, else NULL
 */
struct tw_wheel {
	int			fd;
	struct tw_process_file	*process;
};

/* Whether the user wants wheels of the process. Not read with another user's rights. */
static inline bool tw_wants_process(void)
{
	const char *kind = secure_getenv("TIMEWHEEL");

	return kind && !strcmp(kind, "process");
}

/* Turns what a wheel of the process says into what a system call does. */
static inline long tw_result(long ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* One command on a wheel. */
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

/* Opens the device for one command on it. */
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

/* Takes a file of a wheel of the process over, also in case of an error. */
__attribute__((__visibility__("hidden")))
struct tw_wheel *tw_process_wheel(struct tw_process_file *file);

#endif /* TW_INTERNAL_H */
