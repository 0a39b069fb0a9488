// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <stdio.h>

#include <timewheel.h>

int main(void)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };

	if (tw_device_caps(&caps) < 0)
		err(1, "tw_device_caps");
	printf("ticks from %llu to %llu ns, %u slots, %llu tokens\n",
	       caps.min_tick, caps.max_tick, caps.max_slots,
	       caps.max_tokens);
	if (!(caps.clocks & 1U << TIMEWHEEL_CLOCK_BOOTTIME))
		puts("no clock that goes on while suspended");
	return 0;
}
