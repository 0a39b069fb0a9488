/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a program talks to /dev/timewheel: one function per call. A call that
 * fails ends the demonstration with a message: none of them should.
 */
#ifndef DEVICE_H
#define DEVICE_H

#include <stddef.h>
#include <time.h>

#include <linux/timewheel.h>

#define SEC	1000000000ULL	/* ns */
#define MS	1000000ULL	/* ns */

/* Opens a wheel of 1 s ticks whose hand starts, if it is MANUAL, on tick 0. */
int wheel_open(__u32 clock, __u32 slots, __u64 max_tokens);

/* One call for any number of operations; each gets its own .result. */
void wheel_batch(int wheel, struct timewheel_op *ops, __u32 count);

/* Gets the state of each token of @ids. All of them must exist. */
void wheel_get(int wheel, const __u64 *ids, struct timewheel_token *tokens,
	       __u32 count);

/* Reads the events that are due now, up to @room. Returns how many there were. */
size_t wheel_read(int wheel, struct timewheel_event *events, size_t room);

/* Puts the hand of a MANUAL wheel on @tick. */
void wheel_advance(int wheel, __u64 tick);

struct timewheel_info wheel_info(int wheel);

/* Prepare an operation for wheel_batch(); times are in ns. */
struct timewheel_op op_register(__u64 id, __u64 delay);
struct timewheel_op op_register_at(__u64 id, __u64 time);
struct timewheel_op op_touch_or_register(__u64 id, __u64 timeout, void *cookie);
struct timewheel_op op_move_to(__u64 id, __u64 time);
struct timewheel_op op_cancel(__u64 id);

/* Reads the clock that turns the wheel, without a call to the wheel. */
static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * SEC + t.tv_nsec;
}

#endif /* DEVICE_H */
