// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls on tokens: operations that the public header prepares, touches, and questions about
 * tokens. Batches of operations are in batch.c.
 */
#include "internal.h"

int tw_wheel_run(struct tw_wheel *wheel, struct timewheel_op *op)
{
	if (tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_OP, op) < 0)
		return -1;
	return op->result;
}

int tw_wheel_touch(struct tw_wheel *wheel, uint64_t key, unsigned int flags)
{
	struct timewheel_touch touch = {
		.size = sizeof(touch),
		.flags = flags,
		.key = key,
	};

	return tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_TOUCH, &touch);
}

/* Returns the count of keys for the kernel. A count of more than 32 bits stays too large. */
static uint32_t key_count(size_t count)
{
	return count > UINT32_MAX ? UINT32_MAX : count;
}

/*
 * Ends a call about @count keys. The call returned @ret, and the kernel has told how many keys
 * are done. Only a signal makes the kernel stop early without an error.
 */
static int end_many(int ret, size_t count, uint32_t told, size_t *done)
{
	if (done)
		*done = told;
	if (!ret && told < count) {
		errno = EINTR;
		return -1;
	}
	return ret;
}

int tw_wheel_touch_many(struct tw_wheel *wheel, const uint64_t *keys,
			size_t count, unsigned int flags, size_t *done)
{
	struct timewheel_touch_many many = {
		.size = sizeof(many),
		.flags = flags,
		.keys = (uintptr_t)keys,
		.count = key_count(count),
	};
	int ret = tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_TOUCH_MANY, &many);

	return end_many(ret, count, many.done, done);
}

int tw_wheel_get_many(const struct tw_wheel *wheel, const uint64_t *keys,
		      size_t count, unsigned int flags,
		      struct timewheel_token *tokens, size_t *done)
{
	struct timewheel_get get = {
		.size = sizeof(get),
		.flags = flags,
		.keys = (uintptr_t)keys,
		.tokens = (uintptr_t)tokens,
		.count = key_count(count),
		.token_size = sizeof(*tokens),
	};
	int ret = tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_GET, &get);

	return end_many(ret, count, get.done, done);
}

int tw_wheel_get(const struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		 struct timewheel_token *token)
{
	if (tw_wheel_get_many(wheel, &key, 1, flags, token, NULL) < 0)
		return -1;
	if (token->state == TIMEWHEEL_STATE_NONE) {
		errno = flags & TIMEWHEEL_OPF_BY_HANDLE ? ESTALE : ENOENT;
		return -1;
	}
	return 0;
}
