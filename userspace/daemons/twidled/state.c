// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that are mapped, so that all that is stored in them survives a kill. They
 * need not survive a reboot, because the wheel does not survive it either.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "twidled.h"

void state_foreign(const char *path)
{
	die(0, "%s is not a file of this twidled", path);
}

int state_open(const char *path, size_t *size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat) < 0)
		die(errno, "%s", path);
	/* The file descriptor, and with it the lock, stays open until this process ends. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		die(0, "%s is in use by another twidled", path);
	if (!S_ISREG(stat.st_mode))
		state_foreign(path);
	*size = stat.st_size;
	return fd;
}

void *state_map(int fd, const char *path, size_t size, int flags)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | flags, fd, 0);

	if (map == MAP_FAILED)
		die(errno, "%s", path);
	return map;
}
