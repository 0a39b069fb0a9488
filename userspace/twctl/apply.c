// SPDX-License-Identifier: GPL-2.0-only
/*
 * apply: makes the wheels that files declare. Nothing is changed if one of the files
 * has an error.
 */
#include "twctl.h"

static enum status foretell(const struct declared *declared)
{
	struct wheel wheel;
	struct stat stat;
	enum status status;
	bool same;

	if (!node_stat(declared->name, &stat)) {
		printf("wheel '%s' would be made\n", declared->name);
		return STATUS_OK;
	}
	status = wheel_try_open(&wheel, declared->name, O_RDONLY);
	if (status)
		return status;
	same = has_settings(&wheel.info, &declared->setup);
	wheel_close(&wheel);
	if (!same)
		return trouble(STATUS_EXISTS,
			       "there is a wheel '%s', with other settings",
			       declared->name);
	printf("wheel '%s' is there\n", declared->name);
	return STATUS_OK;
}

/* A wheel with other settings is left alone, and its node as well. */
static enum status make(const struct declared *declared)
{
	enum status status;
	bool made;

	status = wheel_make(declared->name, &declared->setup, 0, &made);
	if (status)
		return status;
	printf("wheel '%s' %s\n", declared->name, made ? "has been made" : "is there");
	return node_set(declared->name, &declared->owner);
}

enum status verb_apply(const struct args *args)
{
	enum status status, each;
	struct declarations all;
	size_t i;

	status = declared_read(&all, args->arg, args->count);
	for (i = 0; i < all.count && !status; i++)
		status = setup_of(&all.wheel[i].settings, &all.wheel[i].setup);
	if (status)
		return status;
	for (i = 0; i < all.count; i++) {
		each = args->option[OPT_DRY_RUN] ? foretell(&all.wheel[i]) :
						   make(&all.wheel[i]);
		if (!status)
			status = each;
	}
	return status;
}
