// SPDX-License-Identifier: GPL-2.0-only
/*
 * restore: registers the tokens of a save. The wheel delivers nothing meanwhile, so
 * that a buried token can be buried again before a reader gets it, and readers get
 * what is due from all tokens, not from the first of them.
 */
#include <inttypes.h>

#include "twctl.h"

/* Operations of one call. */
#define BATCH	4096

struct tally {
	uint64_t	restored;
	uint64_t	existed;
	uint64_t	failed;
};

/*
 * Finds the point of time of the wheel's clock that the moment of the save stands for:
 * by wall time the moment itself, else now, so that what was left is left. The wall
 * clock is read before the wheel's, so that no token is due too early.
 */
static enum status find_origin(struct wheel *wheel, const struct saved *saved,
			       bool wall, int64_t *origin)
{
	bool manual = wheel->info.clock == TIMEWHEEL_CLOCK_MANUAL;

	wheel->real = real_now();
	if (tw_wheel_info(wheel->wheel, &wheel->info) < 0)
		return wheel_trouble(wheel->name);
	if (wheel->info.clock == TIMEWHEEL_CLOCK_REALTIME)
		*origin = saved->wall;
	else if (wall)
		*origin = wheel->info.now - wheel->real + saved->wall;
	else
		*origin = wheel->info.now;
	if (wall && (manual || saved->setup.clock == TIMEWHEEL_CLOCK_MANUAL))
		return trouble(STATUS_USAGE, "--wall: not with a manual clock");
	return STATUS_OK;
}

static uint64_t time_of(const struct saved_token *token, int64_t origin)
{
	int64_t time;

	if (__builtin_add_overflow(origin, token->left, &time))
		return TIMEWHEEL_NEVER;
	return time > 0 ? time : 0;
}

/* Tells the first one that fails. */
static void tell_failure(const struct wheel *wheel, const struct timewheel_op *op,
			 struct tally *tally)
{
	char id[24];

	if (tally->failed++)
		return;
	snprintf(id, sizeof(id), "%" PRIu64, (uint64_t)op->id);
	if (errno == EINVAL)
		complain("wheel '%s': id %s: the wheel was made without what this token has",
			 wheel->name, id);
	else
		key_trouble(wheel->name, id, false);
}

/*
 * By handle, as a wheel may have no ids. A wheel without leases knows no burials and no
 * kicks: a token that needs them is not restored at all.
 */
static bool finish(const struct wheel *wheel, const struct saved_token *token,
		   uint64_t handle)
{
	struct timewheel_op op;
	int err;

	if (token->state == TIMEWHEEL_STATE_BURIED)
		tw_op_bury(&op, handle, 0, TIMEWHEEL_OPF_BY_HANDLE);
	else if (token->kicked)
		tw_op_kick(&op, handle, TIMEWHEEL_OPF_BY_HANDLE);
	else
		return true;
	if (tw_wheel_run(wheel->wheel, &op) >= 0)
		return true;
	err = errno;
	tw_op_cancel(&op, handle, TIMEWHEEL_OPF_BY_HANDLE);
	tw_wheel_run(wheel->wheel, &op);
	errno = err;
	return false;
}

static void tell_each(const struct wheel *wheel, const struct tw_batch *batch,
		      const struct saved_token *token, struct tally *tally)
{
	size_t i, count = tw_batch_count(batch);

	for (i = 0; i < count; i++, token++) {
		const struct timewheel_op *op = tw_batch_op(batch, i);

		if (tw_batch_result(batch, i) >= 0) {
			if (finish(wheel, token, op->handle))
				tally->restored++;
			else
				tell_failure(wheel, op, tally);
		} else if (errno == EEXIST) {
			tally->existed++;
		} else {
			tell_failure(wheel, op, tally);
		}
	}
}

static enum status register_some(const struct wheel *wheel, struct tw_batch *batch,
				 const struct saved_token *token, size_t count,
				 int64_t origin)
{
	size_t i;

	tw_batch_clear(batch);
	for (i = 0; i < count; i++, token++) {
		struct timewheel_op *op = tw_batch_next(batch);

		tw_op_register_periodic(op, token->id, time_of(token, origin),
					token->period, token->cookie,
					TIMEWHEEL_OPF_ABSOLUTE);
		op->timeout = token->timeout;
	}
	while (tw_batch_run(batch, wheel->wheel) < 0) {
		if (errno != EINTR)
			return wheel_trouble(wheel->name);
	}
	return STATUS_OK;
}

static enum status register_all(const struct wheel *wheel, const struct saved *saved,
				int64_t origin, struct tally *tally)
{
	struct tw_batch *batch = tw_batch_new(BATCH);
	enum status status = STATUS_OK;
	size_t i, count;

	if (!batch)
		die(STATUS_FAILED, "no memory for a batch");
	for (i = 0; i < saved->count && !status; i += count) {
		count = saved->count - i < BATCH ? saved->count - i : BATCH;
		status = register_some(wheel, batch, &saved->token[i], count, origin);
		if (!status)
			tell_each(wheel, batch, &saved->token[i], tally);
	}
	tw_batch_free(batch);
	return status;
}

static enum status tell(const struct wheel *wheel, const struct saved *saved,
			const char *path, const struct tally *tally, bool paused)
{
	char age[TIME_TEXT];

	span_text(age, sizeof(age), wheel->real - saved->wall);
	printf("wheel '%s': %" PRIu64 " tokens restored from %s, saved %s ago\n",
	       wheel->name, tally->restored, path, age);
	if (paused)
		printf("wheel '%s' is paused until 'twctl resume %s'\n", wheel->name,
		       wheel->name);
	if (tally->failed)
		return trouble(STATUS_FAILED,
			       "wheel '%s': %" PRIu64 " tokens could not be restored",
			       wheel->name, tally->failed);
	if (tally->existed)
		return trouble(STATUS_EXISTS,
			       "wheel '%s': %" PRIu64 " ids exist: their tokens stay as they are",
			       wheel->name, tally->existed);
	return STATUS_OK;
}

/*
 * A wheel that has not been used yet stays paused if it was saved so. A signal to end
 * waits, as it would leave the wheel paused otherwise.
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
	status = register_all(wheel, saved, origin, &tally);
	if (!paused && tw_wheel_resume(wheel->wheel) < 0 && !status)
		status = wheel_trouble(wheel->name);
	return status ? status : tell(wheel, saved, path, &tally, paused);
}

/* Makes the wheel as it was, for the user and with the mode that its node had. */
static enum status make(const char *name, const struct saved *saved)
{
	enum status status;
	struct stat node;
	bool made;

	if (node_stat(name, &node))
		return STATUS_OK;
	status = wheel_make(name, &saved->setup, 0, &made);
	if (status)
		return status;
	return node_set(name, &saved->owner);
}

static enum status restore_saved(const char *name, const struct saved *saved,
				 const char *path, const struct args *args)
{
	enum status status = make(name, saved);
	struct wheel wheel;

	if (!status)
		status = wheel_try_open(&wheel, name, O_WRONLY);
	if (status)
		return status;
	if (!args->count && wheel.info.registered)
		printf("wheel '%s' has been in use: it stays as it is\n", name);
	else
		status = restore_open(&wheel, saved, path, args->option[OPT_WALL]);
	wheel_close(&wheel);
	return status;
}

static enum status restore(const char *name, const char *path,
			   const struct args *args)
{
	enum status status = STATUS_FAILED;
	struct saved saved;

	if (saved_read(&saved, path))
		status = restore_saved(name, &saved, path, args);
	free(saved.token);
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
