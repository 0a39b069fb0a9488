// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Named wheels: functions that make, open and destroy them.
 */
#include "internal.h"

/* The attempts end if other programs destroy the wheel again and again. */
#define OPEN_TRIES	100

static const char name_bytes[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/*
 * Copies a name into a zeroed buffer. The kernel checks names too, but here a name
 * also becomes a path, which must not lead to another folder.
 */
static int copy_name(char *to, const char *name)
{
	size_t length = strnlen(name, TIMEWHEEL_NAME_SIZE);

	if (length == TIMEWHEEL_NAME_SIZE) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (!length || strspn(name, name_bytes) != length) {
		errno = EINVAL;
		return -1;
	}
	memcpy(to, name, length);
	return 0;
}

int tw_wheel_create(const char *name, const struct timewheel_setup *setup,
		    unsigned int flags)
{
	struct timewheel_create create = {
		.size = sizeof(create),
		.flags = flags,
		.setup = (uintptr_t)setup,
	};

	if (copy_name(create.name, name) < 0)
		return -1;
	return tw_device_ioctl(O_RDWR, TIMEWHEEL_IOC_CREATE, &create);
}

int tw_wheel_destroy(const char *name)
{
	struct timewheel_destroy destroy = { .size = sizeof(destroy) };

	if (copy_name(destroy.name, name) < 0)
		return -1;
	return tw_device_ioctl(O_RDWR, TIMEWHEEL_IOC_DESTROY, &destroy);
}

struct tw_wheel *tw_wheel_open_named(const char *name, int access)
{
	char path[sizeof(TW_NODES) + TIMEWHEEL_NAME_SIZE] = TW_NODES;
	struct tw_process_file *file;
	struct tw_wheel *wheel;
	int fd;

	if (access != O_RDONLY && access != O_WRONLY && access != O_RDWR) {
		errno = EINVAL;
		return NULL;
	}
	if (copy_name(path + sizeof(TW_NODES) - 1, name) < 0)
		return NULL;
	if (tw_wants_process())
		return tw_result(tw_process_open_named(name, access, &file)) < 0 ?
		       NULL : tw_process_wheel(file);
	fd = open(path, access | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	wheel = tw_wheel_open_fd(fd);
	if (!wheel)
		tw_close_keep_errno(fd);
	return wheel;
}

static int no_wheel(int err)
{
	return err == ENOENT || err == ENODEV || err == ENXIO;
}

struct tw_wheel *tw_wheel_open_or_create(const char *name,
					 const struct timewheel_setup *setup,
					 int access)
{
	struct tw_wheel *wheel = NULL;
	int tries = OPEN_TRIES;

	do {
		if (tw_wheel_create(name, setup, 0) < 0)
			return NULL;
		wheel = tw_wheel_open_named(name, access);
	} while (!wheel && no_wheel(errno) && --tries);
	return wheel;
}
