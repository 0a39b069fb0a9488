// SPDX-License-Identifier: GPL-2.0-only
/*
 * The place of the wheels: see wheels.h. The library reads it from the environment.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "wheels.h"

static const char * const names[] = {
	[WHEELS_KERNEL] = "kernel",
	[WHEELS_PROCESS] = "process",
};

static bool in_process;

const char *config_wheels(const struct config_key *key, void *field, const char *value)
{
	enum wheels *wheels = field;

	for (*wheels = WHEELS_KERNEL; *wheels <= WHEELS_PROCESS; ++*wheels)
		if (!strcmp(value, names[*wheels]))
			return NULL;
	return "is neither kernel nor process";
}

static void use(enum wheels wheels)
{
	if (setenv("TIMEWHEEL", names[wheels], 1) < 0)
		die(errno, "the environment");
}

/* The library looks the name up in the same way. */
static enum wheels in_use(void)
{
	const char *name = secure_getenv("TIMEWHEEL");

	return name && !strcmp(name, names[WHEELS_PROCESS]) ? WHEELS_PROCESS :
							      WHEELS_KERNEL;
}

void wheels_start(enum wheels wheels)
{
	if (wheels)
		use(wheels);
	if (wheels && in_use() != wheels)
		die(0, "wheels = process is not for a program that has more rights than its user");
	in_process = in_use() == WHEELS_PROCESS;
	if (in_process)
		say("wheels = process: the wheels are in this process, and end with it");
}

bool wheels_in_process(void)
{
	return in_process;
}

void wheels_forget_kernels(void (*forget)(void *of), void *of)
{
	use(WHEELS_KERNEL);
	forget(of);
	use(WHEELS_PROCESS);
}
