// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel from C++: the header is taken, with its inline functions, and the
 * others are found by their names in C. Exits with 0, or with 4 (skipped) without the device.
 */
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "timewheel.h"

int main()
{
	timewheel_setup setup = {};

	setup.size = sizeof(setup);
	setup.clock = TIMEWHEEL_CLOCK_MANUAL;
	setup.slots = 60;
	setup.tick = TW_SEC(1);
	setup.max_tokens = 10;
	setup.start = 100;
	setup.flags = TIMEWHEEL_SETUP_TOUCH_WORDS;

	std::unique_ptr<tw_wheel, void (*)(tw_wheel *)>
		wheel(tw_wheel_open(&setup), tw_wheel_close);
	std::unique_ptr<tw_events, void (*)(tw_events *)>
		events(tw_events_new(4), tw_events_free);

	timewheel_op op;

	if (!wheel && (errno == ENOENT || errno == ENODEV))
		return 4;
	std::unique_ptr<tw_words, void (*)(tw_words *)>
		words(wheel ? tw_words_map(wheel.get()) : nullptr,
		      tw_words_unmap);
	tw_op_register(&op, 7, TW_SEC(1), 0, 0);
	if (!words || !events ||
	    tw_wheel_run(wheel.get(), &op) ||
	    !tw_touch_checked(words.get(), op.handle, tw_tick(words.get())) ||
	    tw_wheel_advance(wheel.get(), 101) ||
	    tw_events_read(events.get(), wheel.get(), 0) != 0 ||
	    tw_wheel_advance(wheel.get(), 102) ||
	    tw_events_read(events.get(), wheel.get(), 0) != 1 ||
	    tw_events_at(events.get(), 0)->id != 7) {
		std::perror("cxx");
		return 1;
	}
	return 0;
}
