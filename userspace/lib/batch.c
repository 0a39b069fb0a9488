// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Batches: the program collects operations in an array, and the kernel carries them
 * out in one call.
 */
#include "internal.h"

/**
 * struct tw_batch - operations and their results
 * @capacity: room in @ops
 * @count: operations in @ops, carried out or not
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

struct timewheel_op *tw_batch_next(struct tw_batch *batch)
{
	struct timewheel_op *op = &batch->ops[batch->count];

	if (batch->count == batch->capacity) {
		errno = ENOSPC;
		return NULL;
	}
	batch->count++;
	/* Without a size the kernel refuses an operation that was not prepared. */
	memset(op, 0, sizeof(*op));
	return op;
}

int tw_batch_touch_many(struct tw_batch *batch, const uint64_t *keys, size_t count,
			unsigned int flags)
{
	if (count > batch->capacity - batch->count) {
		errno = ENOSPC;
		return -1;
	}
	for (size_t i = 0; i < count; i++)
		tw_op_touch(&batch->ops[batch->count++], keys[i], flags);
	return 0;
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

/* A program that was built with an older header has prepared shorter operations. */
static void set_sizes(struct tw_batch *batch)
{
	for (size_t i = batch->done; i < batch->count; i++)
		if (batch->ops[i].size)
			batch->ops[i].size = sizeof(batch->ops[i]);
}

int tw_batch_run(struct tw_batch *batch, struct tw_wheel *wheel)
{
	struct timewheel_batch arg = {
		.size = sizeof(arg),
		.ops = (uintptr_t)&batch->ops[batch->done],
		.count = batch->count - batch->done,
		.op_size = sizeof(batch->ops[0]),
	};
	int ret;

	set_sizes(batch);
	ret = tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_BATCH, &arg);
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
