// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations on one token. Batches of them are in batch.c.
 */
#include "internal.h"

int tw_wheel_op(struct tw_wheel *wheel, struct timewheel_op *op)
{
	if (ioctl(wheel->fd, TIMEWHEEL_IOC_OP, op) < 0)
		return -1;
	return op->result;
}

/* Hands out the handle of an operation that has registered a token. */
static int register_op(struct tw_wheel *wheel, struct timewheel_op *op,
		       uint64_t *handle)
{
	int result = tw_wheel_op(wheel, op);

	if (result >= 0 && handle && op->handle)
		*handle = op->handle;
	return result;
}

int tw_wheel_register(struct tw_wheel *wheel, uint64_t id, uint64_t time,
		      uint64_t cookie, unsigned int flags, uint64_t *handle)
{
	struct timewheel_op op = {
		.size = sizeof(op),
		.flags = flags,
		.code = TIMEWHEEL_OP_REGISTER,
		.id = id,
		.time = time,
		.cookie = cookie,
	};

	return register_op(wheel, &op, handle);
}

int tw_wheel_touch_or_register(struct tw_wheel *wheel, uint64_t id,
			       uint64_t time, uint64_t cookie,
			       unsigned int flags, uint64_t *handle)
{
	struct timewheel_op op = {
		.size = sizeof(op),
		.flags = flags,
		.code = TIMEWHEEL_OP_TOUCH_OR_REGISTER,
		.id = id,
		.time = time,
		.cookie = cookie,
	};

	return register_op(wheel, &op, handle);
}

int tw_wheel_register_periodic(struct tw_wheel *wheel, uint64_t id,
			       uint64_t time, uint64_t period, uint64_t cookie,
			       unsigned int flags, uint64_t *handle)
{
	struct timewheel_op op = {
		.size = sizeof(op),
		.flags = flags,
		.code = TIMEWHEEL_OP_REGISTER_PERIODIC,
		.id = id,
		.time = time,
		.period = period,
		.cookie = cookie,
	};

	return register_op(wheel, &op, handle);
}

int tw_wheel_touch(struct tw_wheel *wheel, uint64_t key, unsigned int flags)
{
	struct timewheel_touch touch = {
		.size = sizeof(touch),
		.flags = flags,
		.key = key,
	};

	return ioctl(wheel->fd, TIMEWHEEL_IOC_TOUCH, &touch);
}

int tw_wheel_touch_many(struct tw_wheel *wheel, const uint64_t *keys,
			size_t count, unsigned int flags, size_t *done)
{
	struct timewheel_touch_many many = {
		.size = sizeof(many),
		.flags = flags,
		.keys = (uintptr_t)keys,
		.count = count > UINT32_MAX ? UINT32_MAX : count,
	};
	int ret = ioctl(wheel->fd, TIMEWHEEL_IOC_TOUCH_MANY, &many);

	if (done)
		*done = many.done;
	/* Only a signal makes the kernel stop before the end. */
	if (!ret && many.done < count) {
		errno = EINTR;
		return -1;
	}
	return ret;
}

/* An operation on the token @key, and, if it answers one, on delivery @lease. */
static int key_op(struct tw_wheel *wheel, uint32_t code, uint64_t key,
		  unsigned int flags, uint32_t lease, uint64_t time)
{
	struct timewheel_op op = {
		.size = sizeof(op),
		.flags = flags,
		.code = code,
		.id = key,
		.handle = key,
		.time = time,
		.lease = lease,
	};

	return tw_wheel_op(wheel, &op);
}

int tw_wheel_move(struct tw_wheel *wheel, uint64_t key, uint64_t time,
		  unsigned int flags)
{
	return key_op(wheel, TIMEWHEEL_OP_MOVE, key, flags, 0, time);
}

int tw_wheel_cancel(struct tw_wheel *wheel, uint64_t key, unsigned int flags)
{
	return key_op(wheel, TIMEWHEEL_OP_CANCEL, key, flags, 0, 0);
}

int tw_wheel_ack(struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		 uint32_t lease)
{
	return key_op(wheel, TIMEWHEEL_OP_ACK, key, flags, lease, 0);
}

int tw_wheel_nack(struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		  uint32_t lease, uint64_t time)
{
	return key_op(wheel, TIMEWHEEL_OP_NACK, key, flags, lease, time);
}

int tw_wheel_extend(struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		    uint32_t lease, uint64_t time)
{
	return key_op(wheel, TIMEWHEEL_OP_EXTEND, key, flags, lease, time);
}

int tw_wheel_bury(struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		  uint32_t lease)
{
	return key_op(wheel, TIMEWHEEL_OP_BURY, key, flags, lease, 0);
}

int tw_wheel_kick(struct tw_wheel *wheel, uint64_t key, unsigned int flags)
{
	return key_op(wheel, TIMEWHEEL_OP_KICK, key, flags, 0, 0);
}

int tw_wheel_delete(struct tw_wheel *wheel, uint64_t key, unsigned int flags)
{
	return key_op(wheel, TIMEWHEEL_OP_DELETE, key, flags, 0, 0);
}

/* Field by field: the caller's structure may be shorter or longer than ours. */
int tw_wheel_get(const struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		 struct timewheel_op *op)
{
	op->flags = flags;
	op->code = TIMEWHEEL_OP_GET;
	op->id = key;
	op->handle = key;
	op->lease = 0;
	if (ioctl(wheel->fd, TIMEWHEEL_IOC_OP, op) < 0)
		return -1;
	return op->result;
}
