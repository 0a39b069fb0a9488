/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations for the files of libtimewheel. The library defines only the functions of
 * the public header, because a static library cannot hide names.
 */
#ifndef TW_INTERNAL_H
#define TW_INTERNAL_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "timewheel.h"

#define TW_DEVICE	"/dev/timewheel"
#define TW_NODES	"/dev/timewheels/"

struct tw_wheel {
	int	fd;
};

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
	int fd = open(TW_DEVICE, access | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -1;
	ret = ioctl(fd, cmd, arg);
	tw_close_keep_errno(fd);
	return ret;
}

#endif /* TW_INTERNAL_H */
