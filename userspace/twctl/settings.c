// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of a wheel's settings. All code that creates, compares, lists, saves and restores
 * settings goes through this table. The start of a manual clock is none of them, since a wheel
 * does not tell it.
 */
#include <stddef.h>

#include "twctl.h"

#define SETUP(field)	offsetof(struct timewheel_setup, field)
#define INFO(field)	offsetof(struct timewheel_info, field)

/* A flag has the name of its option. */
#define FLAG(option, column, shown) {					\
	SETTING_FLAG, OPT_##option, WHEEL_##column, shown, 32,		\
	SETUP(flags), INFO(setup_flags), TIMEWHEEL_SETUP_##option	\
}

const struct setting settings[] = {
	{ SETTING_CLOCK, OPT_CLOCK, WHEEL_CLOCK, SHOWN, 32, SETUP(clock), INFO(clock), 0 },
	{ SETTING_SPAN, OPT_TICK, WHEEL_TICK, SHOWN, 64, SETUP(tick), INFO(tick), 0 },
	{ SETTING_NUMBER, OPT_SLOTS, WHEEL_SLOTS, SHOWN, 32, SETUP(slots), INFO(slots), 0 },
	{ SETTING_NUMBER, OPT_MAX_TOKENS, WHEEL_MAX, SHOWN, 64,
	  SETUP(max_tokens), INFO(max_tokens), 0 },
	{ SETTING_SPAN, OPT_LEASE, WHEEL_LEASE, SHOWN_IF_SET, 64, SETUP(lease), INFO(lease), 0 },
	{ SETTING_NUMBER, OPT_MAX_HELD, WHEEL_MAX_HELD, SHOWN_IF_SET, 32,
	  SETUP(max_held), INFO(max_held), 0 },
	{ SETTING_SPAN, OPT_SLACK, WHEEL_SLACK, SHOWN, 64, SETUP(slack), INFO(slack), 0 },
	FLAG(NO_IDS, IDS, SHOWN_INVERSE),
	FLAG(NO_COOKIES, COOKIES, SHOWN_INVERSE),
	FLAG(TOUCH_WORDS, TOUCH_WORDS, SHOWN),
	FLAG(PERIODS, PERIODS, SHOWN),
};

const size_t settings_count = ARRAY_SIZE(settings);

/* An option, a key of a declared file, and a member of a save have one name. */
const char *setting_name(const struct setting *setting)
{
	return option_texts[setting->option].name;
}

static uint64_t read_at(const struct setting *setting, const void *at)
{
	uint64_t number = setting->bits == 32 ? *(const uint32_t *)at :
						*(const uint64_t *)at;

	return setting->kind == SETTING_FLAG ? !!(number & setting->flag) : number;
}

uint64_t setting_of_info(const struct setting *setting, const struct timewheel_info *info)
{
	return read_at(setting, (const char *)info + setting->in_info);
}

/* Sets a setting. A flag that is set in @setup already stays. */
void setting_set(const struct setting *setting, struct timewheel_setup *setup,
		 uint64_t value)
{
	void *at = (char *)setup + setting->in_setup;

	if (setting->kind == SETTING_FLAG)
		*(uint32_t *)at |= value ? setting->flag : 0;
	else if (setting->bits == 32)
		*(uint32_t *)at = value;
	else
		*(uint64_t *)at = value;
}

/* Returns the most that the field has room for. The kernel may refuse such a value. */
uint64_t setting_most(const struct setting *setting)
{
	if (setting->kind == SETTING_SPAN)
		return INT64_MAX;
	return setting->bits == 32 ? UINT32_MAX : UINT64_MAX;
}

/* Returns the setup of a wheel that is like another one. */
struct timewheel_setup setup_like(const struct timewheel_info *info)
{
	struct timewheel_setup setup = { .size = sizeof(setup) };
	size_t i;

	for (i = 0; i < settings_count; i++)
		setting_set(&settings[i], &setup, setting_of_info(&settings[i], info));
	return setup;
}

/* Compares what the kernel compares, too, except the start of a manual clock. */
bool has_settings(const struct timewheel_info *info, const struct timewheel_setup *setup)
{
	size_t i;

	for (i = 0; i < settings_count; i++) {
		if (setting_of_info(&settings[i], info) !=
		    read_at(&settings[i], (const char *)setup + settings[i].in_setup))
			return false;
	}
	return true;
}
