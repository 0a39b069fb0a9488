// SPDX-License-Identifier: GPL-2.0-only
/*
 * create, destroy and advance: verbs on whole wheels.
 */
#include "twctl.h"

static uint32_t clock_of(const struct args *args)
{
	const char *text = args->option[OPT_CLOCK];
	uint32_t clock;

	if (!text)
		return TIMEWHEEL_CLOCK_MONOTONIC;
	for (clock = 0; clock <= TIMEWHEEL_CLOCK_MANUAL; clock++) {
		if (!strcmp(text, clock_name(clock)))
			return clock;
	}
	die_usage("--clock", text, "monotonic, boottime, realtime or manual");
}

/* What the module says it can do is what numbers are checked against. */
static enum status setup_of(const struct args *args,
			    struct timewheel_setup *setup)
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
					    caps.max_tokens, 100000),
		.start = option_number(args, OPT_START, 0, TIMEWHEEL_MAX_TICK,
				       0),
	};
	if (setup->tick < caps.min_tick || setup->tick > caps.max_tick)
		die(STATUS_USAGE, "--tick '%s': not from %lluns to %llus",
		    args->option[OPT_TICK], (unsigned long long)caps.min_tick,
		    (unsigned long long)(caps.max_tick / NSEC_PER_SEC));
	if (args->option[OPT_START] && setup->clock != TIMEWHEEL_CLOCK_MANUAL)
		die(STATUS_USAGE, "--start '%s': only with --clock manual",
		    args->option[OPT_START]);
	if (args->option[OPT_NO_IDS])
		setup->flags |= TIMEWHEEL_NO_IDS;
	if (args->option[OPT_NO_COOKIES])
		setup->flags |= TIMEWHEEL_NO_COOKIES;
	return STATUS_OK;
}

enum status verb_create(const struct args *args)
{
	unsigned int flags = args->option[OPT_EXCLUSIVE] ? TIMEWHEEL_EXCLUSIVE : 0;
	const char *name = args->arg[0];
	struct timewheel_setup setup;
	enum status status = setup_of(args, &setup);

	if (status)
		return status;
	if (tw_wheel_create(name, &setup, flags) >= 0)
		return STATUS_OK;
	switch (errno) {
	case EINVAL:
	case ENAMETOOLONG:
		return wheel_trouble(name);
	case ERANGE:
		die(STATUS_USAGE,
		    "--tick or --start: with such short ticks the clock is beyond tick 2^46, or 292 years");
	case EEXIST:
		die(STATUS_EXISTS, "there is a wheel '%s'%s", name,
		    flags ? "" : ", with other settings");
	default:
		return device_trouble();
	}
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

enum status verb_destroy(const struct args *args)
{
	enum status status = STATUS_OK, each;
	int i;

	for (i = 0; i < args->count; i++) {
		each = destroy_one(args->arg[i]);
		if (!status)
			status = each;
	}
	return status;
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
