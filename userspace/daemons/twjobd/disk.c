// SPDX-License-Identifier: GPL-2.0-only
/*
 * The disk under a store's file: see disk.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "disk.h"

#define BALLAST		(16 << 20)

static bool full;
static char path[sizeof(config.store) + 16];
static int ballast;

void disk_open(const char *store)
{
	snprintf(path, sizeof(path), "%s-ballast", store);
	ballast = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ballast < 0)
		die(errno, "%s", path);
	if (flock(ballast, LOCK_EX | LOCK_NB) < 0)
		die(0, "%s is in use by another twjobd", store);
}

void disk_give_ballast(void)
{
	if (!full)
		say("the disk of %s is full: no new jobs until there is room",
		    config.store);
	full = true;
	if (ftruncate(ballast, 0) < 0)
		say("%s: %s", path, strerror(errno));
}

/*
 * There must be more room than the ballast takes. Otherwise the disk would be full again at once.
 */
static bool has_room(void)
{
	struct statvfs disk;
	struct stat file;

	return !fstatvfs(ballast, &disk) && !fstat(ballast, &file) &&
	       disk.f_bavail * disk.f_frsize + file.st_blocks * 512ULL >=
	       BALLAST + BALLAST / 4;
}

void disk_take_ballast(void)
{
	bool was_full = full;

	full = !has_room() || posix_fallocate(ballast, 0, BALLAST);
	if (was_full && !full)
		say("there is room on the disk again");
	else if (full && !was_full)
		say("no new jobs until there is room on the disk of %s",
		    config.store);
}

bool disk_is_full(void)
{
	return full;
}

bool disk_is_read_only(void)
{
	struct statvfs disk;

	return fstatvfs(ballast, &disk) || disk.f_flag & ST_RDONLY;
}
