// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel, which has a token for each user who is online.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "twidled.h"

/*
 * The size of the ring. It does not depend on the timeout, because the timeout may
 * change and a named wheel cannot. It is an hour of one-second ticks; the wheel's
 * coarser rings take longer timeouts.
 */
#define SLOTS		3600

/*
 * An earlier service of this configuration used the kernel's wheel, and this service does not.
 * The wheel is destroyed, but a wheel that another service still uses, as its lock tells, stays.
 */
static void destroy_left(void *name)
{
	struct tw_wheel *wheel = tw_wheel_open_named(name, O_RDONLY);

	if (wheel && !flock(tw_wheel_fd(wheel), LOCK_EX | LOCK_NB))
		tw_wheel_destroy(name);
	tw_wheel_close(wheel);
}

void wheel_open(const struct config *config)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_NO_COOKIES,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = SLOTS,
		.tick = config->tick,
		.max_tokens = config->max_users,
	};

	if (wheels_in_process())
		wheels_forget_kernels(destroy_left, service.config.wheel);
	service.watch = config->watch != WATCH_NO;
	service.wheel = tw_wheel_open_or_create(config->wheel, &setup, O_RDWR);
	if (service.wheel) {
		/* destroy_left() looks at this lock. */
		if (!wheels_in_process())
			flock(tw_wheel_fd(service.wheel), LOCK_SH | LOCK_NB);
		return;
	}
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		die(0, "there is no /dev/timewheel: " WHEELS_WITHOUT_MODULE);
	if (errno == EEXIST)
		die(0, "the wheel \"%s\" is there, with another tick or max-users",
		    config->wheel);
	die(errno, "the wheel \"%s\"", config->wheel);
}

void wheel_died(int err)
{
	if (err == ENODEV)
		die(0, "the wheel \"%s\" has been destroyed",
		    service.config.wheel);
	die(err, "the wheel \"%s\"", service.config.wheel);
}

static struct timewheel_info get_info(void)
{
	struct timewheel_info info = { .size = sizeof(info) };

	if (tw_wheel_info(service.wheel, &info) < 0)
		wheel_died(errno);
	return info;
}

bool wheel_is_new(void)
{
	return !get_info().registered;
}

bool wheel_register(uint64_t id, uint64_t delay)
{
	struct timewheel_op op;

	tw_op_register(&op, id, delay, 0, 0);
	op.timeout = service.config.timeout;
	if (tw_wheel_run(service.wheel, &op) >= 0 || errno == EEXIST)
		return true;
	if (errno == ENODEV)
		wheel_died(errno);
	return false;
}

static void each_token(void (*each)(const struct timewheel_token *token))
{
	struct tw_cursor *cursor = tw_cursor_open(service.wheel, 0,
						  TIMEWHEEL_NEVER);
	const struct timewheel_token *token;
	int more;

	if (!cursor)
		die(errno, "a list of users");
	while ((more = tw_cursor_next(cursor, &token)) > 0)
		each(token);
	if (more < 0)
		wheel_died(errno);
	tw_cursor_close(cursor);
}

static void (*each_user)(uint64_t id);

static void call_each(const struct timewheel_token *token)
{
	each_user(token->id);
}

void wheel_each(void (*each)(uint64_t id))
{
	each_user = each;
	each_token(call_each);
}

static void touch(const struct timewheel_token *token)
{
	if (tw_wheel_touch(service.wheel, token->id, 0) < 0 && errno == ENODEV)
		wheel_died(errno);
}

void wheel_touch_all(void)
{
	each_token(touch);
}
