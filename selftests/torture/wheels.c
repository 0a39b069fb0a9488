// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheels: one of each kind, made by several users, and all but one with a name.
 * Some have touch words, and one is destroyed and made again. Of the wheels with
 * leases one may have all its tokens held at once, and the others fewer than a read
 * asks for, or one. On wheels with a manual clock the hand is near tick 2^32 or near
 * the last tick.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "torture.h"

#define CLOCK(x)	.clock = TIMEWHEEL_CLOCK_##x
#define MS_TICKS	.slots = 60, .tick = TW_MS

const struct kind kinds[KINDS] = {
	[PLAIN]	= { "plain", { CLOCK(MONOTONIC), MS_TICKS } },
	[LEASED] = { "leased", { CLOCK(MONOTONIC), MS_TICKS, .lease = 40 * TW_MS,
		.max_held = 100 } },
	[MAPPED] = { "mapped", { CLOCK(MONOTONIC), MS_TICKS,
		.flags = TIMEWHEEL_SETUP_TOUCH_WORDS } },
	[BOOT] = { "boot", { CLOCK(BOOTTIME), MS_TICKS,
		.flags = TIMEWHEEL_SETUP_TOUCH_WORDS } },
	[WALL] = { "wall", { CLOCK(REALTIME), MS_TICKS, .slack = TW_MS } },
	[PERIODIC] = { "periodic", { CLOCK(MONOTONIC), MS_TICKS,
		.flags = TIMEWHEEL_SETUP_PERIODS } },
	[JOBS] = { "jobs", { CLOCK(MONOTONIC), .slots = 7, .tick = TW_MS / 10,
		.flags = TIMEWHEEL_SETUP_PERIODS | TIMEWHEEL_SETUP_TOUCH_WORDS,
		.lease = 20 * TW_MS, .max_held = TOKENS } },
	[MANUAL] = { "manual", { CLOCK(MANUAL), .slots = 31, .tick = TW_SEC,
		.flags = TIMEWHEEL_SETUP_TOUCH_WORDS, .start = (1ULL << 32) - 100 } },
	[LATE] = { "late", { CLOCK(MANUAL), .slots = 1, .tick = TW_MS / 10,
		.lease = 50 * TW_MS / 10, .max_held = 1,
		.start = TIMEWHEEL_MAX_TICK - 1000 } },
	[HANDLES] = { "handles", { CLOCK(MONOTONIC), MS_TICKS,
		.flags = TIMEWHEEL_SETUP_NO_IDS } },
	[MORTAL] = { "mortal", { CLOCK(MONOTONIC), .slots = 65536,
		.tick = TW_MS / 10 } },
	[PRIVATE] = { "private", { CLOCK(MONOTONIC), MS_TICKS } },
};

int device = -1, private = -1;

bool is_named(const struct kind *kind)
{
	return kind != &kinds[PRIVATE];
}

static const char *name_of(const struct kind *kind)
{
	static __thread char name[TIMEWHEEL_NAME_SIZE];

	snprintf(name, sizeof(name), "torture-%s", kind->name);
	return name;
}

/* Makes a wheel that all users may use. Returns whether this call has made it. */
bool create_wheel(const struct kind *kind)
{
	struct timewheel_setup setup = kind->setup;
	char path[128];

	setup.size = sizeof(setup);
	setup.max_tokens = TOKENS;
	if (!is_named(kind))
		return !ioctl(private, TIMEWHEEL_IOC_SETUP, &setup);
	snprintf(path, sizeof(path), "/dev/timewheels/%s", name_of(kind));
	return !tw_create_named(device, name_of(kind), setup) &&
	       !chmod(path, 0666);
}

bool destroy_wheel(const struct kind *kind)
{
	return !tw_destroy_named(device, name_of(kind));
}

/* Makes each wheel as another user, in a process that exits. The first user makes MORTAL. */
bool create_wheels(void)
{
	bool ok = true;

	device = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	private = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	for (int i = 0; i < KINDS; i++) {
		pid_t child = fork();

		if (!child)
			_exit(!become(i == MORTAL ? 0 : i % PROCESSES, "wide") ||
			      !create_wheel(&kinds[i]));
		ok &= !tw_reap(child);
	}
	return ok;
}

/* Destroys all wheels as root. MORTAL may be missing. */
bool destroy_wheels(void)
{
	bool ok = true;

	for (int i = 0; i < KINDS; i++)
		if (is_named(&kinds[i]))
			ok &= destroy_wheel(&kinds[i]) || i == MORTAL;
	close(private);
	close(device);
	return ok;
}

static size_t words_size(const struct wheel *wheel)
{
	return (8 * wheel->tokens + 4095UL) & ~4095UL;
}

static void map_wheel(struct wheel *wheel)
{
	void *at;

	if (!(wheel->kind->setup.flags & TIMEWHEEL_SETUP_TOUCH_WORDS))
		return;
	at = mmap(NULL, words_size(wheel), PROT_READ | PROT_WRITE, MAP_SHARED,
		  wheel->fd, TIMEWHEEL_MAP_WORDS);
	/* A process that is short of memory does without the mapping. */
	if (at != MAP_FAILED)
		wheel->words = at;
	else if (errno != ENOMEM && errno != ENODEV)
		fail("mmap of touch words: %d", errno);
}

/* Opens a wheel. @fd is a file of the wheel, or -1 to open the wheel by name. */
void open_wheel(struct wheel *wheel, const struct kind *kind, int fd)
{
	struct timewheel_info info;

	*wheel = (struct wheel) { .kind = kind, .fd = fd };
	if (fd < 0)
		wheel->fd = tw_open_named(name_of(kind), O_RDWR);
	if (wheel->fd < 0)
		return;
	if (tw_info(wheel->fd, &info) < 0) {
		close_wheel(wheel);
		return;
	}
	wheel->number = info.number;
	wheel->tokens = info.max_tokens;
	map_wheel(wheel);
}

void close_wheel(struct wheel *wheel)
{
	if (wheel->words)
		munmap(wheel->words, words_size(wheel));
	if (wheel->fd >= 0)
		close(wheel->fd);
	*wheel = (struct wheel) { .kind = wheel->kind, .fd = -1 };
}
