// SPDX-License-Identifier: GPL-2.0-only
/*
 * News: the line for a user that has fallen silent, the line for a user that has come, and the
 * line for a wheel that is new. Standard output and the subscribers get the same lines; this file
 * knows neither standard output nor the subscribers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "twidled.h"

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

uint64_t news_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t news_wall_now(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t news_wall(uint64_t deadline)
{
	return news_wall_now() - news_now() + deadline;
}

void news_time(uint64_t wall, char text[TIME_SIZE])
{
	time_t seconds = wall / NSEC_PER_SEC;
	struct tm tm;
	size_t length;

	gmtime_r(&seconds, &tm);
	length = strftime(text, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + length, TIME_SIZE - length, ".%03uZ",
		 (unsigned int)(wall % NSEC_PER_SEC / NSEC_PER_MSEC));
}

void news_deadline(uint64_t deadline, char text[DEADLINE_SIZE])
{
	snprintf(text, DEADLINE_SIZE, "%" PRIu64 ".%09" PRIu64,
		 deadline / (uint64_t)NSEC_PER_SEC,
		 deadline % (uint64_t)NSEC_PER_SEC);
}

size_t news_format(const struct timewheel_event *news, char *line)
{
	char time[TIME_SIZE], deadline[DEADLINE_SIZE], name[NAME_SIZE];

	news_time(news->cookie, time);
	switch (news->missed) {
	case NEWS_OFFLINE:
		news_deadline(news->deadline, deadline);
		return sprintf(line, "offline %s %s %s\n",
			       names_text(news->id, name), deadline, time);
	case NEWS_ONLINE:
		return sprintf(line, "online %s %s\n",
			       names_text(news->id, name), time);
	case NEWS_ANEW:
		return sprintf(line, "anew %s\n", time);
	default:
		return 0;
	}
}
