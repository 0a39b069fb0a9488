// SPDX-License-Identifier: GPL-2.0-only
/*
 * All named wheels, which end with the module and are made again. Declared wheels that are
 * saved use their usual file, so that they also come back after a crash.
 */
#include "upgrade.h"

#define FOLDER		"/var/lib/timewheel"
#define SAVES		FOLDER "/upgrade"

/*
 * Saves of an upgrade that did not come to its end are not replaced, and errors in
 * declarations are told before anything is stopped.
 */
enum status wheels_begin(void)
{
	enum status status;

	free(declared_saved(&status));
	if (status)
		return status;
	mkdir(FOLDER, 0700);
	if (!mkdir(SAVES, 0700))
		return STATUS_OK;
	if (errno == EEXIST && !rmdir(SAVES) && !mkdir(SAVES, 0700))
		return STATUS_OK;
	if (errno == ENOTEMPTY || errno == EEXIST)
		return trouble(STATUS_EXISTS,
			       SAVES
			       " has saves of an upgrade that did not come to its end: 'twctl restore WHEEL FILE' or remove them; nothing has been changed");
	return trouble(STATUS_FAILED, SAVES ": %s", strerror(errno));
}

static bool is_one_of(char **names, const char *name)
{
	for (; *names; names++) {
		if (!strcmp(*names, name))
			return true;
	}
	return false;
}

static bool look(struct kept *kept)
{
	struct wheel wheel;

	if (wheel_try_open(&wheel, kept->name, O_RDONLY))
		return false;
	kept->manual = wheel.info.clock == TIMEWHEEL_CLOCK_MANUAL;
	kept->draining = wheel.info.state & TIMEWHEEL_CONTROL_DRAINING;
	wheel_close(&wheel);
	return true;
}

/* Saves all wheels, and replaces older saves. Later steps use the list that it makes. */
bool wheels_save(struct wheels *wheels)
{
	enum status status;
	char **declared = declared_saved(&status), **names = all_names(), **name;

	*wheels = (struct wheels) { };
	if (status || (*declared && save_all()))
		return false;
	for (name = names; *name; name++) {
		struct kept *kept;

		wheels->wheel = reallocarray(wheels->wheel, wheels->count + 1,
					     sizeof(*wheels->wheel));
		if (!wheels->wheel)
			die(STATUS_FAILED, "no memory for names");
		kept = &wheels->wheel[wheels->count++];
		*kept = (struct kept) { .name = *name, .path = saved_path(*name) };
		if (!look(kept))
			return false;
		if (is_one_of(declared, *name))
			continue;
		if (asprintf(&kept->path, SAVES "/%s.save", *name) < 0)
			die(STATUS_FAILED, "no memory for names");
		if (save(*name, kept->path))
			return false;
	}
	return true;
}

/* Destroys all wheels there are, also wheels that a restore has begun to make. */
bool wheels_destroy(void)
{
	char **names = all_names(), **name;
	bool good = true;

	for (name = names; *name && good; name++) {
		good = tw_wheel_destroy(*name) >= 0 || errno == ENOENT;
		if (!good)
			wheel_trouble(*name);
	}
	wheel_names_free(names);
	return good;
}

static bool restore_kept(const struct kept *kept)
{
	struct args args = { .count = 2 };
	struct wheel wheel;
	bool good;

	args.option[OPT_FORCE] = "";
	if (!kept->manual)
		args.option[OPT_WALL] = "";
	if (restore(kept->name, kept->path, &args))
		return false;
	if (!kept->draining)
		return true;
	if (wheel_try_open(&wheel, kept->name, O_WRONLY))
		return false;
	good = tw_wheel_drain(wheel.wheel) >= 0;
	wheel_close(&wheel);
	return good;
}

/* Restores the wheels that are not there. */
bool wheels_restore(const struct wheels *wheels)
{
	bool good = true;
	struct stat node;
	size_t i;

	for (i = 0; i < wheels->count; i++)
		if (!node_stat(wheels->wheel[i].name, &node))
			good &= restore_kept(&wheels->wheel[i]);
	return good;
}

/* The wheels are there again: their saves are removed if nothing else uses them. */
bool wheels_end(const struct wheels *wheels)
{
	size_t i;

	for (i = 0; i < wheels->count; i++)
		if (!strncmp(wheels->wheel[i].path, SAVES "/", strlen(SAVES "/")))
			unlink(wheels->wheel[i].path);
	return !rmdir(SAVES);
}
