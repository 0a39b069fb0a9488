/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for named wheels: they create, open and destroy them. @device is a file of
 * the device that is not set up.
 */
#ifndef TW_NAMED_H
#define TW_NAMED_H

#include "tw_test.h"

#define TW_NODES	"/dev/timewheels/"

/* Returns the result of CREATE: 0, TIMEWHEEL_RES_EXISTED or -1 and errno. */
static inline int tw_create(int device, const char *name, __u32 flags,
			    const struct timewheel_setup *setup)
{
	struct timewheel_create create = {
		.size = sizeof(create), .flags = flags,
		.setup = (uintptr_t)setup,
	};

	memcpy(create.name, name, strlen(name));
	return ioctl(device, TIMEWHEEL_IOC_CREATE, &create);
}

/* Creates a new wheel. A name that exists is an error. */
static inline int tw_create_named(int device, const char *name,
				  struct timewheel_setup setup)
{
	setup.size = sizeof(setup);
	return tw_create(device, name, TIMEWHEEL_CREATE_EXCLUSIVE, &setup);
}

static inline int tw_destroy_named(int device, const char *name)
{
	struct timewheel_destroy destroy = { .size = sizeof(destroy) };

	memcpy(destroy.name, name, strlen(name));
	return ioctl(device, TIMEWHEEL_IOC_DESTROY, &destroy);
}

static inline int tw_open_named(const char *name, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), TW_NODES "%s", name);
	return open(path, flags | O_CLOEXEC);
}

#endif /* TW_NAMED_H */
