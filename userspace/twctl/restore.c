// SPDX-License-Identifier: GPL-2.0-only
/*
 * restore: makes the wheel of a save, and its tokens. The wheel delivers nothing
 * meanwhile, so that readers get what is due from all tokens, not from the first of
 * them.
 */
#include <inttypes.h>

#include "twctl.h"

/*
 * Finds the point of time of the wheel's clock that the moment of the save stands for: by wall
 * time the moment itself, else now, so that each token has as much time left as it had. The
 * wall clock is read before the wheel's, so that no token is due too early.
 */
static enum status find_origin(struct wheel *wheel, const struct saved *saved,
			       bool wall, int64_t *origin)
{
	bool manual = wheel->info.clock == TIMEWHEEL_CLOCK_MANUAL;

	wheel->real = real_now();
	if (tw_wheel_info(wheel->wheel, &wheel->info) < 0)
		return wheel_trouble(wheel->name);
	if (wheel->info.clock == TIMEWHEEL_CLOCK_REALTIME)
		*origin = saved->made.wall;
	else if (wall)
		*origin = wheel->info.now - wheel->real + saved->made.wall;
	else
		*origin = wheel->info.now;
	if (wall && (manual || saved->setup.clock == TIMEWHEEL_CLOCK_MANUAL))
		return trouble(STATUS_USAGE, "--wall: not with a manual clock");
	return STATUS_OK;
}

static enum status tell(const struct wheel *wheel, const struct saved *saved,
			const char *path, const struct tally *tally, bool paused)
{
	char age[TIME_TEXT];

	span_text(age, sizeof(age), wheel->real - saved->made.wall);
	printf("wheel '%s': %" PRIu64 " tokens restored from %s, saved %s ago\n",
	       wheel->name, tally->restored, path, age);
	if (paused)
		printf("wheel '%s' is paused until 'twctl resume %s'\n", wheel->name,
		       wheel->name);
	if (tally->existed)
		return trouble(STATUS_EXISTS,
			       "wheel '%s': %" PRIu64 " ids exist: their tokens stay as they are",
			       wheel->name, tally->existed);
	return STATUS_OK;
}

/*
 * Tells of delays that count anew, as the clock stands still or begins anew while the machine
 * is off.
 */
static void tell_delays(const struct wheel *wheel, bool wall)
{
	if (wall || (wheel->info.clock != TIMEWHEEL_CLOCK_MONOTONIC &&
		     wheel->info.clock != TIMEWHEEL_CLOCK_BOOTTIME))
		return;
	printf("wheel '%s': as its clock is %s, what was left of each delay counts from now on\n",
	       wheel->name, clock_name(wheel->info.clock));
	printf("wheel '%s': clock = realtime in its declaration, or --wall, keeps the wall time\n",
	       wheel->name);
}

/*
 * A wheel that has not been used yet stays paused if it was saved so. The save is
 * marked before readers get anything. A signal to end waits, as it would leave the
 * wheel paused otherwise.
 */
static enum status restore_open(struct wheel *wheel, const struct saved *saved,
				const char *path, bool wall)
{
	bool paused = wheel->info.state & TIMEWHEEL_CONTROL_PAUSED ||
		      (saved->paused && !wheel->info.registered);
	struct tally tally = { };
	enum status status;
	int64_t origin = 0;

	signals_begin();
	status = find_origin(wheel, saved, wall, &origin);
	if (status)
		return status;
	if (tw_wheel_pause(wheel->wheel) < 0)
		return wheel_trouble(wheel->name);
	status = tokens_register(wheel, saved, origin, &tally);
	if (!status)
		age_mark(saved, path);
	else
		paused = wheel->info.state & TIMEWHEEL_CONTROL_PAUSED;
	if (!paused && tw_wheel_resume(wheel->wheel) < 0 && !status)
		status = wheel_trouble(wheel->name);
	if (status)
		return status;
	tell_delays(wheel, wall);
	return tell(wheel, saved, path, &tally, paused);
}

/* Makes the wheel as it was, for the user and with the mode that its node had. */
static enum status make(struct wheel *wheel, const char *name, const struct saved *saved,
			bool *made)
{
	enum status status = wheel_make(name, &saved->setup, 0, made);

	if (!status)
		status = node_set(name, &saved->owner);
	return status ? status : wheel_try_open(wheel, name, O_RDWR);
}

static enum status restore_saved(const char *name, struct saved *saved,
				 const char *path, const struct args *args)
{
	struct wheel wheel = { };
	enum status status = STATUS_OK;
	bool made = false;
	struct stat node;

	if (node_stat(name, &node))
		status = wheel_try_open(&wheel, name, O_RDWR);
	if (!status && !args->count && wheel.info.registered) {
		printf("wheel '%s' has been in use: it stays as it is\n", name);
		wheel_close(&wheel);
		return STATUS_OK;
	}
	if (!status && !args->option[OPT_FORCE])
		status = age_check(saved, path);
	if (!status && !wheel.wheel)
		status = make(&wheel, name, saved, &made);
	if (!status)
		status = restore_open(&wheel, saved, path, args->option[OPT_WALL]);
	wheel_close(&wheel);
	if (status && made)
		tw_wheel_destroy(name);
	return status;
}

enum status restore(const char *name, const char *path, const struct args *args)
{
	enum status status = STATUS_FAILED;
	struct saved saved;

	if (saved_read(&saved, path))
		status = restore_saved(name, &saved, path, args);
	free(saved.token);
	if (!args->count && !saved.stale && status && status != STATUS_EXISTS &&
	    status != STATUS_NO_DEVICE)
		age_keep(name, path);
	return status;
}

static enum status restore_all(const struct args *args)
{
	enum status status, each;
	char **name;

	for (name = declared_saved(&status); *name; name++) {
		const char *path = saved_path(*name);

		if (access(path, F_OK) < 0 && errno == ENOENT) {
			printf("wheel '%s' has no save\n", *name);
			continue;
		}
		each = restore(*name, path, args);
		if (!status)
			status = each;
	}
	return status;
}

enum status verb_restore(const struct args *args)
{
	const char *name = args->arg[0];

	if (!args->count)
		return restore_all(args);
	if (!can_be_name(name))
		return wheel_trouble(name);
	return restore(name, args->count > 1 ? args->arg[1] : saved_path(name), args);
}
