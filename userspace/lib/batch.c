// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Batches: operations are collected in an array, which the kernel carries out
 * by one call.
 */
#include "internal.h"

/**
 * struct tw_batch - operations and their results
 * @capacity: room in @ops
 * @count: operations there are, each of which is as it was added or carried out
 * @done: how many of them, from the first on, were carried out
 * @ops: the operations
 */
struct tw_batch {
	size_t			capacity;
	size_t			count;
	size_t			done;
	struct timewheel_op	ops[];
};

struct tw_batch *tw_batch_new(size_t capacity)
{
	struct tw_batch *batch;

	if (!capacity || capacity > TIMEWHEEL_MAX_BATCH) {
		errno = EINVAL;
		return NULL;
	}
	batch = malloc(sizeof(*batch) + capacity * sizeof(batch->ops[0]));
	if (!batch)
		return NULL;
	batch->capacity = capacity;
	tw_batch_clear(batch);
	return batch;
}

void tw_batch_free(struct tw_batch *batch)
{
	free(batch);
}

void tw_batch_clear(struct tw_batch *batch)
{
	batch->count = 0;
	batch->done = 0;
}

/* @key is the token's id or its handle, as @flags say. Returns the index. */
static int add(struct tw_batch *batch, uint32_t code, uint64_t key,
	       uint64_t time, uint64_t cookie, unsigned int flags)
{
	if (batch->count == batch->capacity) {
		errno = ENOBUFS;
		return -1;
	}
	batch->ops[batch->count] = (struct timewheel_op) {
		.size = sizeof(batch->ops[0]),
		.flags = flags,
		.code = code,
		.id = key,
		.handle = flags & TIMEWHEEL_OPF_BY_HANDLE ? key : 0,
		.time = time,
		.cookie = cookie,
	};
	return batch->count++;
}

int tw_batch_register(struct tw_batch *batch, uint64_t id, uint64_t time,
		      uint64_t cookie, unsigned int flags)
{
	return add(batch, TIMEWHEEL_OP_REGISTER, id, time, cookie, flags);
}

int tw_batch_touch(struct tw_batch *batch, uint64_t key, unsigned int flags)
{
	return add(batch, TIMEWHEEL_OP_TOUCH, key, 0, 0, flags);
}

int tw_batch_touch_or_register(struct tw_batch *batch, uint64_t id,
			       uint64_t time, uint64_t cookie,
			       unsigned int flags)
{
	return add(batch, TIMEWHEEL_OP_TOUCH_OR_REGISTER, id, time, cookie, flags);
}

int tw_batch_move(struct tw_batch *batch, uint64_t key, uint64_t time,
		  unsigned int flags)
{
	return add(batch, TIMEWHEEL_OP_MOVE, key, time, 0, flags);
}

int tw_batch_cancel(struct tw_batch *batch, uint64_t key, unsigned int flags)
{
	return add(batch, TIMEWHEEL_OP_CANCEL, key, 0, 0, flags);
}

int tw_batch_get(struct tw_batch *batch, uint64_t key, unsigned int flags)
{
	return add(batch, TIMEWHEEL_OP_GET, key, 0, 0, flags);
}

int tw_batch_register_periodic(struct tw_batch *batch, uint64_t id,
			       uint64_t time, uint64_t period, uint64_t cookie,
			       unsigned int flags)
{
	int index = add(batch, TIMEWHEEL_OP_REGISTER_PERIODIC, id, time, cookie,
			flags);

	if (index >= 0)
		batch->ops[index].period = period;
	return index;
}

/* An operation on delivery @lease. Returns the index. */
static int add_answer(struct tw_batch *batch, uint32_t code, uint64_t key,
		      unsigned int flags, uint32_t lease, uint64_t time)
{
	int index = add(batch, code, key, time, 0, flags);

	if (index >= 0)
		batch->ops[index].lease = lease;
	return index;
}

int tw_batch_ack(struct tw_batch *batch, uint64_t key, unsigned int flags,
		 uint32_t lease)
{
	return add_answer(batch, TIMEWHEEL_OP_ACK, key, flags, lease, 0);
}

int tw_batch_nack(struct tw_batch *batch, uint64_t key, unsigned int flags,
		  uint32_t lease, uint64_t time)
{
	return add_answer(batch, TIMEWHEEL_OP_NACK, key, flags, lease, time);
}

int tw_batch_extend(struct tw_batch *batch, uint64_t key, unsigned int flags,
		    uint32_t lease, uint64_t time)
{
	return add_answer(batch, TIMEWHEEL_OP_EXTEND, key, flags, lease, time);
}

int tw_batch_bury(struct tw_batch *batch, uint64_t key, unsigned int flags,
		  uint32_t lease)
{
	return add_answer(batch, TIMEWHEEL_OP_BURY, key, flags, lease, 0);
}

int tw_batch_kick(struct tw_batch *batch, uint64_t key, unsigned int flags)
{
	return add(batch, TIMEWHEEL_OP_KICK, key, 0, 0, flags);
}

int tw_batch_delete(struct tw_batch *batch, uint64_t key, unsigned int flags)
{
	return add(batch, TIMEWHEEL_OP_DELETE, key, 0, 0, flags);
}

size_t tw_batch_count(const struct tw_batch *batch)
{
	return batch->count;
}

static int failures(const struct tw_batch *batch)
{
	int failed = 0;

	for (size_t i = 0; i < batch->count; i++)
		failed += batch->ops[i].result < 0;
	return failed;
}

int tw_batch_run(struct tw_batch *batch, struct tw_wheel *wheel)
{
	struct timewheel_batch arg = {
		.size = sizeof(arg),
		.ops = (uintptr_t)&batch->ops[batch->done],
		.count = batch->count - batch->done,
		.op_size = sizeof(batch->ops[0]),
	};
	int ret = ioctl(wheel->fd, TIMEWHEEL_IOC_BATCH, &arg);

	batch->done += arg.done;
	if (ret < 0)
		return -1;
	/* Only a signal makes the kernel stop before the end. */
	if (batch->done < batch->count) {
		errno = EINTR;
		return -1;
	}
	return failures(batch);
}

const struct timewheel_op *tw_batch_op(const struct tw_batch *batch,
				       size_t index)
{
	if (index >= batch->count) {
		errno = EDOM;
		return NULL;
	}
	return &batch->ops[index];
}

int tw_batch_result(const struct tw_batch *batch, size_t index)
{
	const struct timewheel_op *op = tw_batch_op(batch, index);

	if (!op)
		return -1;
	if (index >= batch->done) {
		errno = EINPROGRESS;
		return -1;
	}
	if (op->result < 0) {
		errno = -op->result;
		return -1;
	}
	return op->result;
}
