// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel, which has a token for each user who is online.
 */
#include <errno.h>
#include <fcntl.h>

#include "twidled.h"

/*
 * The size of the ring. It does not depend on the timeout, because the timeout may
 * change and a named wheel cannot. It is an hour of one-second ticks; the wheel's
 * coarser rings take longer timeouts.
 */
#define SLOTS		3600

/* TELL_ENDED: a user whose connection has ended falls silent as others do. */
#define WATCH		(TIMEWHEEL_SETUP_WATCH | TIMEWHEEL_SETUP_TELL_ENDED)

static bool can_watch(void)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };

	if (!tw_device_caps(&caps))
		return (caps.setup_flags & WATCH) == WATCH;
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		die(0, "there is no /dev/timewheel: is the module loaded?");
	die(errno, "/dev/timewheel");
}

/* @flags: WATCH, or 0 */
static bool open_with(const struct config *config, uint32_t flags)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_NO_COOKIES | flags,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = SLOTS,
		.tick = config->tick,
		.max_tokens = config->max_users,
	};

	service.wheel = tw_wheel_open_or_create(config->wheel, &setup, O_RDWR);
	service.watch = flags && config->watch != WATCH_NO;
	return service.wheel;
}

void wheel_open(const struct config *config)
{
	bool can = can_watch();
	uint32_t flags = can && config->watch != WATCH_NO ? WATCH : 0;

	if (config->watch == WATCH_YES && !can)
		die(0, "watch = yes: this kernel's module cannot watch connections");
	/* An earlier service may have set it up in the other way. */
	if (!open_with(config, flags) && errno == EEXIST && can)
		open_with(config, flags ^ WATCH);
	if (!service.wheel && errno == EEXIST)
		die(0, "the wheel \"%s\" is there, with another tick or max-users",
		    config->wheel);
	if (!service.wheel)
		die(errno, "the wheel \"%s\"", config->wheel);
	if (config->watch == WATCH_YES && !service.watch)
		die(0, "watch = yes: the wheel \"%s\" was set up without watching",
		    config->wheel);
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

bool wheel_drains(void)
{
	return get_info().state & TIMEWHEEL_CONTROL_DRAINING;
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

static void touch_watched(const struct timewheel_token *token)
{
	if (token->socket && tw_wheel_touch(service.wheel, token->id, 0) < 0 &&
	    errno != ENOENT)
		wheel_died(errno);
}

void wheel_touch_watched(void)
{
	each_token(touch_watched);
}
