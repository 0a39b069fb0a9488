// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data and functions that all parts share: see twjobd.h.
 */
#include <time.h>

#include "twjobd.h"

struct config config;
uint64_t max_connections;
unsigned char store_secret[16];
int64_t store_ahead;
uint64_t store_max_body = UINT64_MAX;
sd_event *event;

uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * MSEC_PER_SEC + now.tv_nsec / NSEC_PER_MSEC +
	       store_ahead;
}
