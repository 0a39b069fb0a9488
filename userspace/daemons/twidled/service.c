// SPDX-License-Identifier: GPL-2.0-only
/*
 * The data that all parts share. main.c fills it in before it starts the parts.
 */
#include "twidled.h"

#define SAY_EVERY	60000000	/* us between two messages of the same kind */

struct service service = { .timeouts = 1 };

uint64_t now_us(void)
{
	uint64_t now;

	must(sd_event_now(service.event, CLOCK_MONOTONIC, &now));
	return now;
}

bool worth_saying(uint64_t *said)
{
	uint64_t now = now_us();

	if (*said && now - *said < SAY_EVERY)
		return false;
	*said = now;
	return true;
}
