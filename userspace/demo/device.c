// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every call to the device that the demonstration makes. Start reading here to
 * learn how a program uses a timing wheel.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "device.h"

static int open_and_set_up(__u32 flags, __u32 clock, __u32 slots, __u64 max_tokens)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = flags,
		.clock = clock,
		.slots = slots,
		.tick = SEC,
		.max_tokens = max_tokens,
	};
	int wheel = open("/dev/timewheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (wheel < 0)
		err(1, "/dev/timewheel (is the module loaded?)");
	if (ioctl(wheel, TIMEWHEEL_IOC_SETUP, &setup) < 0)
		err(1, "setting up a wheel of %u slots", slots);
	return wheel;
}

int wheel_open(__u32 clock, __u32 slots, __u64 max_tokens)
{
	return open_and_set_up(0, clock, slots, max_tokens);
}

void wheel_batch(int wheel, struct timewheel_op *ops, __u32 count)
{
	__u32 i, done = 0;

	/* A signal ends a batch early: go on from there. */
	while (done < count) {
		struct timewheel_batch batch = {
			.size = sizeof(batch),
			.ops = (uintptr_t)(ops + done),
			.count = count - done,
			.op_size = sizeof(*ops),
		};

		if (ioctl(wheel, TIMEWHEEL_IOC_BATCH, &batch) < 0)
			err(1, "a batch of %u operations", count);
		done += batch.done;
	}
	for (i = 0; i < count; i++)
		if (ops[i].result < 0)
			errx(1, "operation %u on token %llu: %s", ops[i].code,
			     ops[i].id, strerror(-ops[i].result));
}

void wheel_get(int wheel, const __u64 *ids, struct timewheel_token *tokens,
	       __u32 count)
{
	__u32 i, done = 0;

	/* A signal ends this call early, too. */
	while (done < count) {
		struct timewheel_get get = {
			.size = sizeof(get),
			.keys = (uintptr_t)(ids + done),
			.tokens = (uintptr_t)(tokens + done),
			.count = count - done,
			.token_size = sizeof(*tokens),
		};

		if (ioctl(wheel, TIMEWHEEL_IOC_GET, &get) < 0)
			err(1, "asking the wheel for %u tokens", count);
		done += get.done;
	}
	for (i = 0; i < count; i++)
		if (tokens[i].state == TIMEWHEEL_STATE_NONE)
			errx(1, "there is no token %llu", ids[i]);
}

size_t wheel_read(int wheel, struct timewheel_event *events, size_t room)
{
	ssize_t bytes = read(wheel, events, room * sizeof(*events));

	if (bytes < 0 && errno != EAGAIN)
		err(1, "reading events");
	return bytes < 0 ? 0 : bytes / sizeof(*events);
}

void wheel_advance(int wheel, __u64 tick)
{
	struct timewheel_advance advance = {
		.size = sizeof(advance),
		.tick = tick,
	};

	if (ioctl(wheel, TIMEWHEEL_IOC_ADVANCE, &advance) < 0)
		err(1, "advancing the hand to tick %llu", tick);
}

struct timewheel_info wheel_info(int wheel)
{
	struct timewheel_info info = { .size = sizeof(info) };

	if (ioctl(wheel, TIMEWHEEL_IOC_INFO, &info) < 0)
		err(1, "asking the wheel for its state");
	return info;
}

static struct timewheel_op op_make(__u32 code, __u64 id, __u64 time)
{
	return (struct timewheel_op) {
		.size = sizeof(struct timewheel_op),
		.code = code,
		.id = id,
		.time = time,
	};
}

struct timewheel_op op_register(__u64 id, __u64 delay)
{
	return op_make(TIMEWHEEL_OP_REGISTER, id, delay);
}

struct timewheel_op op_register_at(__u64 id, __u64 time)
{
	struct timewheel_op op = op_make(TIMEWHEEL_OP_REGISTER, id, time);

	op.flags = TIMEWHEEL_OPF_ABSOLUTE;
	return op;
}

/* The cookie comes back in the token's event: here the user it stands for. */
struct timewheel_op op_touch_or_register(__u64 id, __u64 timeout, void *cookie)
{
	struct timewheel_op op =
		op_make(TIMEWHEEL_OP_TOUCH_OR_REGISTER, id, timeout);

	op.cookie = (uintptr_t)cookie;
	return op;
}

struct timewheel_op op_move_to(__u64 id, __u64 time)
{
	struct timewheel_op op = op_make(TIMEWHEEL_OP_MOVE, id, time);

	op.flags = TIMEWHEEL_OPF_ABSOLUTE;
	return op;
}

struct timewheel_op op_cancel(__u64 id)
{
	return op_make(TIMEWHEEL_OP_CANCEL, id, 0);
}
