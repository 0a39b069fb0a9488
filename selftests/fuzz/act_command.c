// SPDX-License-Identifier: GPL-2.0-only
/* Acts: the commands of a wheel. */
#include "act.h"

/*
 * Makes a command with a structure whose first word is its size. The bytes behind
 * @known are 0, or not 0 if the upper half of @v[2] is set. @v: file, where, size,
 * ... The structure that comes back is in *arg.
 */
static long act_command(const __u64 *v, unsigned long command, void *arg,
			size_t known)
{
	static __thread char whole[2 * ACT_PAGE];
	__u32 size = v[2];
	size_t most = size > known ? size : known;
	void *at;
	long ret;

	if (most > sizeof(whole))
		most = sizeof(whole);
	memset(whole, v[2] >> 32 ? 0xff : 0, sizeof(whole));
	*(__u32 *)arg = size;
	memcpy(whole, arg, known);
	at = act_where(v[1], (most + 7) & ~7UL, 0);
	act_copy(at, whole, (most + 7) & ~7UL);
	ret = ioctl(act_fd(v[0]), command, at);
	act_copy(arg, at, known);
	return ret;
}

long act_caps(const __u64 *v)
{
	struct timewheel_caps caps = { .flags = v[3] };

	return act_command(v, TIMEWHEEL_IOC_CAPS, &caps, sizeof(caps));
}

/*
 * With a lease the most ordinary max_held is 1: an argument of 0 stands for 1, and 1
 * for 0.
 */
static struct timewheel_setup act_setup_of(const __u64 *v)
{
	return (struct timewheel_setup){
		.size = v[0], .flags = v[1], .clock = v[2], .slots = v[3],
		.tick = v[4], .max_tokens = v[5], .start = v[6],
		.max_held = v[7] ^ !!v[8], .lease = v[8], .slack = v[9],
		.reserved = v[10],
	};
}

long act_setup(const __u64 *v)
{
	struct timewheel_setup setup = act_setup_of(v + 2);
	const struct timewheel_setup wanted = setup;
	long ret = act_command(v, TIMEWHEEL_IOC_SETUP, &setup, sizeof(setup));

	if (!ret)
		act_at_file(v[0])->setup = wanted;
	return ret;
}

/* There are few names, and some of them are invalid. */
static void act_name(char *name, __u64 which)
{
	memset(name, 0, TIMEWHEEL_NAME_SIZE);
	switch (which) {
	case ACT_NAMES:
		break;
	case ACT_NAMES + 1:
		memset(name, 'x', TIMEWHEEL_NAME_SIZE);
		break;
	case ACT_NAMES + 2:
		strcpy(name, "../fuzz");
		break;
	case ACT_NAMES + 3:
		strcpy(name, "fuzz");
		name[TIMEWHEEL_NAME_SIZE - 1] = 'x';
		break;
	default:
		sprintf(name, "fuzz%u", (unsigned int)which % ACT_NAMES);
	}
}

long act_create(const __u64 *v)
{
	struct timewheel_setup setup = act_setup_of(v + 6);
	struct timewheel_create create = {
		.flags = v[3],
		.setup = act_put(v[5], &setup, sizeof(setup), ACT_ARRAY),
	};
	long ret;

	act_name(create.name, v[4]);
	ret = act_command(v, TIMEWHEEL_IOC_CREATE, &create, sizeof(create));
	if (ret >= 0)
		act_named[v[4] % ACT_NAMES] = setup;
	return ret;
}

long act_destroy(const __u64 *v)
{
	struct timewheel_destroy destroy = { .flags = v[3] };

	act_name(destroy.name, v[4]);
	return act_command(v, TIMEWHEEL_IOC_DESTROY, &destroy, sizeof(destroy));
}

long act_info(const __u64 *v)
{
	struct timewheel_info info = { .flags = v[3] };

	return act_command(v, TIMEWHEEL_IOC_INFO, &info, sizeof(info));
}

static bool act_registers(__u32 code)
{
	return code == TIMEWHEEL_OP_REGISTER ||
	       code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;
}

static struct timewheel_op act_op_of(const __u64 *v)
{
	struct timewheel_op op = { 0 };

#define SET(field, ...)	op.field = *v++,
	ACT_OP(SET) (void)0;
#undef SET
	return op;
}

long act_op(const __u64 *v)
{
	struct timewheel_op op = act_op_of(v + 4);
	long ret;

	op.flags = v[3];
	ret = act_command(v, TIMEWHEEL_IOC_OP, &op, sizeof(op));
	if (!ret && act_registers(v[4]))
		act_keep_handle(op.handle);
	return ret;
}

/* Writes operations of two kinds in turn, on consecutive ids. */
static void act_put_ops(char *at, const __u64 *v)
{
	__u32 op_size = v[5];

	for (__u64 i = 0; i < v[4] && i < ACT_FILLED; i++, at += op_size) {
		struct timewheel_op op = act_op_of(v + 12);

		op.size = op_size;
		op.flags = v[8];
		if (i % 2)
			op.code = v[9];
		op.id += i * (v[10] + 1);
		op.time += i * v[11];
		if (!act_copy(at, &op, sizeof(op)))
			return;
	}
}

long act_batch(const __u64 *v)
{
	__u32 op_size = v[5];
	char *ops = act_where(v[7], v[4] * op_size, ACT_ARRAY);
	struct timewheel_batch batch = {
		.flags = v[3], .count = v[4], .op_size = op_size,
		.ops = act_address(v[7], v[4] * op_size, ACT_ARRAY),
		.reserved = v[6],
	};
	long ret;

	act_put_ops(ops, v);
	ret = act_command(v, TIMEWHEEL_IOC_BATCH, &batch, sizeof(batch));
	for (__u32 i = 0; i < batch.done && i < ACT_HANDLES; i++) {
		struct timewheel_op op;

		if (act_copy(&op, ops + i * op_size, sizeof(op)) &&
		    op.result >= 0 && act_registers(op.code))
			act_keep_handle(op.handle);
	}
	return ret;
}

long act_touch(const __u64 *v)
{
	struct timewheel_touch touch = { .flags = v[3], .key = v[4] };

	if (v[3] & TIMEWHEEL_OPF_BY_HANDLE)
		touch.key = v[5];
	return act_command(v, TIMEWHEEL_IOC_TOUCH, &touch, sizeof(touch));
}

/* Writes consecutive ids, or handles. Returns their address. */
static __u64 act_put_keys(const __u64 *v)
{
	const size_t size = v[4] * sizeof(__u64);
	__u64 *keys = act_where(v[5], size, ACT_ARRAY);

	for (__u64 i = 0; i < v[4] && i < ACT_FILLED; i++) {
		__u64 key = v[3] & TIMEWHEEL_OPF_BY_HANDLE ? act_handle(v[6] + i) :
							 v[6] + i * (v[7] + 1);

		if (!act_copy(&keys[i], &key, sizeof(key)))
			break;
	}
	return act_address(v[5], size, ACT_ARRAY);
}

long act_touch_many(const __u64 *v)
{
	struct timewheel_touch_many many = {
		.flags = v[3], .count = v[4], .keys = act_put_keys(v),
	};

	return act_command(v, TIMEWHEEL_IOC_TOUCH_MANY, &many, sizeof(many));
}

long act_get(const __u64 *v)
{
	struct timewheel_get get = {
		.flags = v[3], .count = v[4], .keys = act_put_keys(v),
		.token_size = v[9], .reserved = v[10],
	};

	get.tokens = act_address(v[8], v[4] * get.token_size, ACT_OTHER);
	return act_command(v, TIMEWHEEL_IOC_GET, &get, sizeof(get));
}

long act_advance(const __u64 *v)
{
	struct timewheel_advance advance = { .flags = v[3], .tick = v[4] };

	return act_command(v, TIMEWHEEL_IOC_ADVANCE, &advance, sizeof(advance));
}

long act_list(const __u64 *v)
{
	static __u64 cursor;
	struct timewheel_list list = {
		.flags = v[3], .cursor = v[4] == 1 ? cursor : v[4],
		.from = v[5], .to = v[6], .count = v[8],
		.token_size = v[9], .reserved = v[10],
	};
	long ret;

	list.tokens = act_address(v[7], v[8] * list.token_size, ACT_ARRAY);
	ret = act_command(v, TIMEWHEEL_IOC_LIST, &list, sizeof(list));
	if (!ret)
		cursor = list.cursor;
	return ret;
}

long act_stats(const __u64 *v)
{
	const size_t size = TIMEWHEEL_BUCKETS * sizeof(__u64);
	struct timewheel_stats stats = {
		.flags = v[3],
		.lateness = act_address(v[4], size, ACT_ARRAY),
	};

	return act_command(v, TIMEWHEEL_IOC_STATS, &stats, sizeof(stats));
}

long act_control(const __u64 *v)
{
	struct timewheel_control control = {
		.flags = v[3], .state = v[4], .mask = v[5],
	};

	return act_command(v, TIMEWHEEL_IOC_CONTROL, &control, sizeof(control));
}

/*
 * Makes a command by any number, which may have no act of its own. Its argument is a
 * structure of words. If it has no size, the memory keeps the bytes of earlier calls.
 */
long act_ioctl(const __u64 *v)
{
	const size_t size = v[3] % 8 * sizeof(__u64);
	struct {
		__u32	size, flags;
		__u64	word[6];
	} arg = { size, v[4], { v[5], v[6], v[7], v[8], v[9], v[10] } };
	void *at = act_where(v[1], 80, 0);

	if (size)
		act_copy(at, &arg, size);
	return ioctl(act_fd(v[0]), v[2], at);
}
