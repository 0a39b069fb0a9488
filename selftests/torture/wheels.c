// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheels: one of each kind, all but one by name, made by several users. One has
 * touch words, one an event ring, one comes and goes. Ticks of 2^32 and the last
 * one are near the hands of those that are turned by hand.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "torture.h"

#define CLOCK(x)	.clock = TIMEWHEEL_CLOCK_##x
#define MS_TICKS	.slots = 60, .tick = TW_MS

const struct kind kinds[KINDS] = {
	[PLAIN]	= { "plain", { CLOCK(MONOTONIC), MS_TICKS } },
	[LEASED] = { "leased", { CLOCK(MONOTONIC), MS_TICKS, .lease = 40 * TW_MS,
		.max_attempts = 6 } },
	[MAPPED] = { "mapped", { CLOCK(MONOTONIC), MS_TICKS,
		.flags = TIMEWHEEL_SETUP_TOUCH_WORDS } },
	[RINGED] = { "ringed", { CLOCK(BOOTTIME), MS_TICKS, .events = 256 } },
	[WALL] = { "wall", { CLOCK(REALTIME), MS_TICKS, .slack = TW_MS } },
	[KEPT] = { "kept", { CLOCK(REALTIME), MS_TICKS,
		.flags = TIMEWHEEL_SETUP_KEEP_DURATION | TIMEWHEEL_SETUP_TOUCH_WORDS } },
	[PERIODIC] = { "periodic", { CLOCK(MONOTONIC), MS_TICKS,
		.flags = TIMEWHEEL_SETUP_PERIODS, .misfire = TIMEWHEEL_MISFIRE_SKIP } },
	[JOBS] = { "jobs", { CLOCK(MONOTONIC), .slots = 7, .tick = TW_MS / 10,
		.flags = TIMEWHEEL_SETUP_PERIODS | TIMEWHEEL_SETUP_TOUCH_WORDS,
		.lease = 20 * TW_MS } },
	[MANUAL] = { "manual", { CLOCK(MANUAL), .slots = 31, .tick = TW_SEC,
		.flags = TIMEWHEEL_SETUP_TOUCH_WORDS, .start = (1ULL << 32) - 100 } },
	[LATE] = { "late", { CLOCK(MANUAL), .slots = 1, .tick = TW_MS / 10,
		.lease = 50 * TW_MS / 10, .start = TIMEWHEEL_MAX_TICK - 1000 } },
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

/* Makes it, for all to use. Returns whether it was this one who did. */
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

/* Where the event ring starts: it need not be 0. */
static bool find_first(void)
{
	struct wheel wheel;

	open_wheel(&wheel, &kinds[RINGED], -1);
	if (!wheel.consumed)
		return false;
	shared->first = wheel.consumed->head;
	close_wheel(&wheel);
	return true;
}

/* Each by another user, who comes and goes: MORTAL by the first. */
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
	return ok && find_first();
}

/* By root. MORTAL may not be there. */
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

static void *map(int fd, size_t size, int prot, off_t offset)
{
	void *at = mmap(NULL, size, prot, MAP_SHARED, fd, offset);

	/* Who is short of memory does without. */
	if (at == MAP_FAILED && errno != ENOMEM && errno != ENODEV)
		fail("mmap at %llx: %d", (__u64)offset, errno);
	return at == MAP_FAILED ? NULL : at;
}

static size_t words_size(const struct wheel *wheel)
{
	return (8 * wheel->tokens + 4095UL) & ~4095UL;
}

static size_t produced_size(const struct kind *kind)
{
	return (TIMEWHEEL_EVENTS_AT + kind->setup.events * EVENT_SIZE + 4095UL) &
	       ~4095UL;
}

static void map_wheel(struct wheel *wheel)
{
	const struct timewheel_setup *setup = &wheel->kind->setup;

	if (setup->flags & TIMEWHEEL_SETUP_TOUCH_WORDS)
		wheel->words = map(wheel->fd, words_size(wheel),
				   PROT_READ | PROT_WRITE, TIMEWHEEL_MAP_WORDS);
	if (!setup->events)
		return;
	wheel->produced = map(wheel->fd, produced_size(wheel->kind), PROT_READ,
			      TIMEWHEEL_MAP_PRODUCED);
	wheel->consumed = map(wheel->fd, 4096, PROT_READ | PROT_WRITE,
			      TIMEWHEEL_MAP_CONSUMED);
}

/* @fd is a file of the wheel, or -1 for a new one of what is there by name. */
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
	if (wheel->produced)
		munmap(wheel->produced, produced_size(wheel->kind));
	if (wheel->consumed)
		munmap(wheel->consumed, 4096);
	if (wheel->fd >= 0)
		close(wheel->fd);
	*wheel = (struct wheel) { .kind = wheel->kind, .fd = -1 };
}

/*
 * Consumes from the event ring: an event has its place in the ledger by its number,
 * so that it does not matter if it was consumed, and the ring not told.
 */
void consume(struct wheel *wheel, __u32 most)
{
	const struct timewheel_event *events;
	__u64 head, tail;

	if (!wheel->produced || !wheel->consumed)
		return;
	events = (void *)wheel->produced + TIMEWHEEL_EVENTS_AT;
	tail = __atomic_load_n(&wheel->produced->tail, __ATOMIC_ACQUIRE);
	head = wheel->consumed->head;
	for (; head != tail && head - shared->first < most; head++)
		shared->consumed[head - shared->first] =
			events[head % wheel->produced->size];
	__atomic_store_n(&wheel->consumed->head, head, __ATOMIC_RELEASE);
}
