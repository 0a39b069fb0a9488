// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Mapped touch words, and the tick for touches. The touches themselves are in the
 * public header.
 */
#include <sys/mman.h>
#include <time.h>

#include "internal.h"

/**
 * struct mapping - touch words and their wheel
 * @words: the part that programs see
 * @wheel: the wheel
 * @bytes: length of the mapping
 * @clock: one of enum timewheel_clock
 * @tick: ns per tick
 * @offset: ns that the clock here is ahead of the time by which the wheel counts ticks
 * @hold: keeps the words of a wheel of this process, else NULL
 */
struct mapping {
	struct tw_words		words;
	const struct tw_wheel	*wheel;
	size_t			bytes;
	uint32_t		clock;
	uint64_t		tick;
	int64_t			offset;
	void			*hold;
};

struct tw_words *tw_words_map(struct tw_wheel *wheel)
{
	struct timewheel_info info = { .size = sizeof(info) };
	struct mapping *mapping;
	void *words = NULL;
	int err = 0;

	if (tw_wheel_info(wheel, &info) < 0)
		return NULL;
	if (info.max_tokens > SIZE_MAX / sizeof(struct tw_word)) {
		errno = ENOMEM;
		return NULL;
	}
	mapping = malloc(sizeof(*mapping));
	if (!mapping)
		return NULL;
	*mapping = (struct mapping) {
		.wheel = wheel,
		.bytes = info.max_tokens * sizeof(struct tw_word),
		.clock = info.clock,
		.tick = info.tick,
		.offset = info.offset,
	};
	if (wheel->process)
		err = tw_result(tw_process_map(wheel->process, &words, &mapping->hold));
	else
		words = mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			     wheel->fd, TIMEWHEEL_MAP_WORDS);
	if (err || words == MAP_FAILED) {
		free(mapping);
		return NULL;
	}
	mapping->words.words = words;
	return &mapping->words;
}

/* @words is the first member of its mapping: a NULL stays NULL. */
static struct mapping *mapping_of(const struct tw_words *words)
{
	return (struct mapping *)words;
}

void tw_words_unmap(struct tw_words *words)
{
	if (!words)
		return;
	if (mapping_of(words)->hold)
		tw_process_unmap(mapping_of(words)->hold);
	else
		munmap(words->words, mapping_of(words)->bytes);
	free(words);
}

static uint64_t hand_of(const struct tw_wheel *wheel)
{
	struct timewheel_info info = { .size = sizeof(info) };

	return tw_wheel_info(wheel, &info) < 0 ? 0 : info.hand;
}

uint32_t tw_tick(const struct tw_words *words)
{
	static const clockid_t clocks[] = {
		[TIMEWHEEL_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
		[TIMEWHEEL_CLOCK_BOOTTIME] = CLOCK_BOOTTIME,
		[TIMEWHEEL_CLOCK_REALTIME] = CLOCK_REALTIME,
	};
	const struct mapping *mapping = mapping_of(words);
	struct timespec now;

	/* No clock shows the tick of a MANUAL wheel, and the kernel must tell it. */
	if (mapping->clock == TIMEWHEEL_CLOCK_MANUAL)
		return hand_of(mapping->wheel);
	clock_gettime(clocks[mapping->clock], &now);
	return (now.tv_sec * TW_SEC(1) + now.tv_nsec - mapping->offset) /
	       mapping->tick;
}
