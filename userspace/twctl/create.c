// SPDX-License-Identifier: GPL-2.0-only
/*
 * create, destroy, pause, resume, drain and advance: verbs on whole wheels.
 */
#include "twctl.h"

static uint32_t clock_of(const struct args *args)
{
	const char *text = args->option[OPT_CLOCK];
	int clock = text ? clock_of_name(text) : TIMEWHEEL_CLOCK_MONOTONIC;

	if (clock < 0)
		die_usage(option_label(args, OPT_CLOCK), text,
			  "monotonic, boottime, realtime or manual");
	return clock;
}

static void set_flags(const struct args *args, struct timewheel_setup *setup)
{
	size_t i;

	for (i = 0; i < settings_count; i++) {
		if (settings[i].kind == SETTING_FLAG)
			setting_set(&settings[i], setup, !!args->option[settings[i].option]);
	}
}

/* The default of max_held: the kernel needs 2 MB for what it keeps about so many held tokens. */
static uint32_t max_held_of(uint64_t max_tokens)
{
	return max_tokens < 65536 ? max_tokens : 65536;
}

/*
 * Sets how tokens are delivered. @setup has its clock, its tick and its maximum of tokens
 * already.
 */
static void set_delivery(const struct args *args, struct timewheel_setup *setup)
{
	setup->lease = option_span(args, OPT_LEASE, 0);
	setup->slack = option_span(args, OPT_SLACK, 0);
	if (setup->lease && setup->lease < setup->tick)
		die_usage(option_label(args, OPT_LEASE), args->option[OPT_LEASE],
			  "as long as a tick, or longer");
	if (setup->lease)
		setup->max_held = option_number(args, OPT_MAX_HELD, 1,
						setup->max_tokens,
						max_held_of(setup->max_tokens));
	else if (args->option[OPT_MAX_HELD])
		die(STATUS_USAGE, "%s '%s': only with a lease",
		    option_label(args, OPT_MAX_HELD), args->option[OPT_MAX_HELD]);
	if (setup->slack && setup->clock == TIMEWHEEL_CLOCK_MANUAL)
		die(STATUS_USAGE, "%s '%s': not with a manual clock, which has no timer",
		    option_label(args, OPT_SLACK), args->option[OPT_SLACK]);
}

static void check_tick(const struct args *args, const struct timewheel_caps *caps,
		       uint64_t tick)
{
	const char *given = args->option[OPT_TICK];
	char least[TIME_TEXT], most[TIME_TEXT];

	if (tick >= caps->min_tick && tick <= caps->max_tick)
		return;
	span_text_like(least, sizeof(least), caps->min_tick, given);
	span_text_like(most, sizeof(most), caps->max_tick, given);
	die(STATUS_USAGE, "%s '%s': not from %s to %s", option_label(args, OPT_TICK), given,
	    least, most);
}

/* Numbers are checked against what the module says it can do. */
enum status setup_of(const struct args *args, struct timewheel_setup *setup)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };

	if (tw_device_caps(&caps) < 0)
		return device_trouble();
	*setup = (struct timewheel_setup) {
		.size = sizeof(*setup),
		.clock = clock_of(args),
		.slots = option_number(args, OPT_SLOTS, 1, caps.max_slots, 3600),
		.tick = option_span(args, OPT_TICK, NSEC_PER_SEC),
		.max_tokens = option_number(args, OPT_MAX_TOKENS, 1,
					    caps.max_tokens, 10000),
		.start = option_number(args, OPT_START, 0, TIMEWHEEL_MAX_TICK,
				       0),
	};
	set_flags(args, setup);
	check_tick(args, &caps, setup->tick);
	if (args->option[OPT_START] && setup->clock != TIMEWHEEL_CLOCK_MANUAL)
		die(STATUS_USAGE, "%s '%s': only with a manual clock",
		    option_label(args, OPT_START), args->option[OPT_START]);
	set_delivery(args, setup);
	return STATUS_OK;
}

/*
 * Makes a wheel. *@made becomes false if a wheel with the same settings exists. A mode that
 * the caller gives the node afterwards stays.
 */
enum status wheel_make(const char *name, const struct timewheel_setup *setup,
		       unsigned int flags, bool *made)
{
	int ret = tw_wheel_create(name, setup, flags);

	*made = !ret;
	if (*made)
		node_settle();
	if (ret >= 0)
		return STATUS_OK;
	switch (errno) {
	case EINVAL:
	case ENAMETOOLONG:
		return wheel_trouble(name);
	case ERANGE:
		return trouble(STATUS_USAGE,
			       "wheel '%s': tick or start: with such short ticks the clock is beyond tick 2^46, or 292 years",
			       name);
	case EEXIST:
		return trouble(STATUS_EXISTS, "there is a wheel '%s'%s", name,
			       flags ? "" : ", with other settings");
	default:
		return device_trouble();
	}
}

enum status verb_create(const struct args *args)
{
	unsigned int flags = args->option[OPT_EXCLUSIVE] ? TIMEWHEEL_CREATE_EXCLUSIVE : 0;
	struct timewheel_setup setup;
	enum status status = setup_of(args, &setup);
	bool made;

	return status ? status : wheel_make(args->arg[0], &setup, flags, &made);
}

static enum status destroy_one(const char *name)
{
	if (!tw_wheel_destroy(name))
		return STATUS_OK;
	switch (errno) {
	case EPERM:
		return trouble(STATUS_NOT_ALLOWED,
			       "wheel '%s' is not yours: sudo twctl destroy %s",
			       name, name);
	case EINVAL:
	case ENAMETOOLONG:
	case ENOENT:
		return wheel_trouble(name);
	default:
		return device_trouble();
	}
}

/* Does @one for each wheel that the command line names. */
static enum status each_wheel(const struct args *args,
			      enum status (*one)(const char *name))
{
	enum status status = STATUS_OK, each;
	int i;

	for (i = 0; i < args->count; i++) {
		each = one(args->arg[i]);
		if (!status)
			status = each;
	}
	return status;
}

enum status verb_destroy(const struct args *args)
{
	return each_wheel(args, destroy_one);
}

static enum status tell(const char *name, int (*what)(struct tw_wheel *wheel))
{
	struct tw_wheel *wheel = tw_wheel_open_named(name, O_WRONLY);
	enum status status = STATUS_OK;

	if (!wheel && errno == ENODEV)
		errno = ENOENT;
	if (!wheel || what(wheel) < 0)
		status = wheel_trouble(name);
	tw_wheel_close(wheel);
	return status;
}

static enum status pause_one(const char *name)
{
	return tell(name, tw_wheel_pause);
}

static enum status resume_one(const char *name)
{
	return tell(name, tw_wheel_resume);
}

static enum status drain_one(const char *name)
{
	return tell(name, tw_wheel_drain);
}

static enum status undrain_one(const char *name)
{
	return tell(name, tw_wheel_undrain);
}

enum status verb_pause(const struct args *args)
{
	return each_wheel(args, pause_one);
}

enum status verb_resume(const struct args *args)
{
	return each_wheel(args, resume_one);
}

enum status verb_drain(const struct args *args)
{
	return each_wheel(args, args->option[OPT_UNDO] ? undrain_one :
							 drain_one);
}

enum status verb_advance(const struct args *args)
{
	const char *text = args->arg[1];
	struct wheel wheel;
	uint64_t tick;

	tick = number_of("TICK", text + (*text == '+'), 0, TIMEWHEEL_MAX_TICK);
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	if (wheel.info.clock != TIMEWHEEL_CLOCK_MANUAL)
		die(STATUS_USAGE, "WHEEL '%s': not one with --clock manual",
		    wheel.name);
	if (*text == '+')
		tick += wheel.info.hand;
	if (tw_wheel_advance(wheel.wheel, tick) < 0) {
		if (errno == ERANGE)
			die_usage("TICK", text,
				  "within 2^46 ticks and 292 years");
		return wheel_trouble(wheel.name);
	}
	wheel_close(&wheel);
	return STATUS_OK;
}
