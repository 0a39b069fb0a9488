// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The event ring, mapped: events are looked at where the kernel has written them.
 * Nothing is kept here of how far it has been consumed: that stands in the ring.
 */
/* Offsets of mappings are beyond 32 bits. */
#define _FILE_OFFSET_BITS 64
#include <sys/mman.h>

#include "internal.h"
#include "wait.h"

/**
 * struct tw_event_ring - an event ring
 * @wheel: the wheel
 * @produced: the kernel's part, which is only read
 * @consumed: the consumers' part
 * @events: the events, in the kernel's part
 * @size: how many there are, a power of two
 */
struct tw_event_ring {
	const struct tw_wheel		*wheel;
	struct timewheel_produced	*produced;
	struct timewheel_consumed	*consumed;
	const struct timewheel_event	*events;
	uint64_t			size;
};

static size_t produced_bytes(const struct tw_event_ring *ring)
{
	return TIMEWHEEL_EVENTS_AT + ring->size * sizeof(ring->events[0]);
}

/* The kernel rounds lengths up to whole pages. */
static int map_parts(struct tw_event_ring *ring)
{
	int fd = ring->wheel->fd;

	ring->produced = mmap(NULL, produced_bytes(ring), PROT_READ, MAP_SHARED,
			      fd, TIMEWHEEL_MAP_PRODUCED);
	if (ring->produced == MAP_FAILED)
		return -1;
	ring->consumed = mmap(NULL, sizeof(*ring->consumed),
			      PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			      TIMEWHEEL_MAP_CONSUMED);
	if (ring->consumed == MAP_FAILED) {
		munmap(ring->produced, produced_bytes(ring));
		return -1;
	}
	ring->events = (const void *)((const char *)ring->produced +
				      TIMEWHEEL_EVENTS_AT);
	return 0;
}

struct tw_event_ring *tw_event_ring_map(struct tw_wheel *wheel)
{
	struct timewheel_info info = { .size = sizeof(info) };
	struct tw_event_ring *ring;

	if (tw_wheel_info(wheel, &info) < 0)
		return NULL;
	ring = malloc(sizeof(*ring));
	if (!ring)
		return NULL;
	*ring = (struct tw_event_ring) { .wheel = wheel, .size = info.events };
	if (map_parts(ring) < 0) {
		free(ring);
		return NULL;
	}
	return ring;
}

void tw_event_ring_unmap(struct tw_event_ring *ring)
{
	if (!ring)
		return;
	munmap(ring->consumed, sizeof(*ring->consumed));
	munmap(ring->produced, produced_bytes(ring));
	free(ring);
}

/* How many events there are from @head on, or -1 and errno. */
static ssize_t count_from(const struct tw_event_ring *ring, uint64_t head)
{
	/* Pairs with the kernel's release: the events are there, whole. */
	uint64_t tail = __atomic_load_n(&ring->produced->tail, __ATOMIC_ACQUIRE);

	if (tail - head > ring->size) {
		errno = EBADMSG;
		return -1;
	}
	return tail - head;
}

static uint64_t head_of(const struct tw_event_ring *ring)
{
	return __atomic_load_n(&ring->consumed->head, __ATOMIC_RELAXED);
}

ssize_t tw_event_ring_peek(const struct tw_event_ring *ring,
			   const struct timewheel_event **events)
{
	uint64_t head = head_of(ring), index = head & (ring->size - 1);
	ssize_t count = count_from(ring, head);

	if (count <= 0)
		return count;
	*events = &ring->events[index];
	return count < (ssize_t)(ring->size - index) ?
		count : (ssize_t)(ring->size - index);
}

int tw_event_ring_advance(struct tw_event_ring *ring, size_t count)
{
	uint64_t head = head_of(ring);
	ssize_t most = count_from(ring, head);

	if (most < 0)
		return -1;
	if (count > (size_t)most) {
		errno = EDOM;
		return -1;
	}
	/* Pairs with the kernel's acquire: they have been read. */
	__atomic_store_n(&ring->consumed->head, head + count, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Polls, which fills the ring. Returns whether there is something, or may be, or
 * -1 and errno.
 */
static int fill(const struct tw_event_ring *ring, uint64_t end)
{
	int revents = tw_wait_until(ring->wheel->fd, end);

	if (revents > 0 && revents & POLLHUP) {
		errno = ENODEV;
		return -1;
	}
	return revents;
}

ssize_t tw_event_ring_wait(const struct tw_event_ring *ring,
			   const struct timewheel_event **events,
			   uint64_t timeout)
{
	uint64_t end = 0;
	ssize_t count;
	int more;

	/* The kernel may say so, and yet have only found the way to it. */
	while (!(count = tw_event_ring_peek(ring, events))) {
		if (!end)
			end = tw_end_of(timeout);
		more = fill(ring, end);
		if (more <= 0)
			return more;
	}
	return count;
}
