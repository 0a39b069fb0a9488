/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This file has every command: the layout of its structure, a valid argument, and the
 * promises about the command. The programs abi, sweep, named, named_sharing and
 * named_lifetime try all commands of the table at the end: a new command with a row in
 * this table is tried by all of them.
 */
#ifndef TW_COMMANDS_H
#define TW_COMMANDS_H

#include <stddef.h>

#include "tw_test.h"

#define TW_SAME_LAYOUT(type, field, offset)				\
	_Static_assert(offsetof(struct type, field) == (offset),	\
		       #type "." #field)
#define TW_SAME_SIZE(type, size)					\
	_Static_assert(sizeof(struct type) == (size), #type)

/* Programs that were built years ago depend on these layouts, in 32 and 64 bit. */
TW_SAME_SIZE(timewheel_caps, 72);
TW_SAME_LAYOUT(timewheel_caps, size, 0);
TW_SAME_LAYOUT(timewheel_caps, flags, 4);
TW_SAME_LAYOUT(timewheel_caps, clocks, 8);
TW_SAME_LAYOUT(timewheel_caps, setup_flags, 12);
TW_SAME_LAYOUT(timewheel_caps, codes, 16);
TW_SAME_LAYOUT(timewheel_caps, max_slots, 20);
TW_SAME_LAYOUT(timewheel_caps, min_tick, 24);
TW_SAME_LAYOUT(timewheel_caps, max_tick, 32);
TW_SAME_LAYOUT(timewheel_caps, max_tokens, 40);
TW_SAME_LAYOUT(timewheel_caps, max_word_ticks, 48);
TW_SAME_LAYOUT(timewheel_caps, max_batch, 56);
TW_SAME_LAYOUT(timewheel_caps, op_size, 60);
TW_SAME_LAYOUT(timewheel_caps, token_size, 64);
TW_SAME_LAYOUT(timewheel_caps, event_size, 68);

TW_SAME_SIZE(timewheel_setup, 64);
TW_SAME_LAYOUT(timewheel_setup, size, 0);
TW_SAME_LAYOUT(timewheel_setup, flags, 4);
TW_SAME_LAYOUT(timewheel_setup, clock, 8);
TW_SAME_LAYOUT(timewheel_setup, slots, 12);
TW_SAME_LAYOUT(timewheel_setup, tick, 16);
TW_SAME_LAYOUT(timewheel_setup, max_tokens, 24);
TW_SAME_LAYOUT(timewheel_setup, start, 32);
TW_SAME_LAYOUT(timewheel_setup, lease, 40);
TW_SAME_LAYOUT(timewheel_setup, slack, 48);
TW_SAME_LAYOUT(timewheel_setup, max_held, 56);
TW_SAME_LAYOUT(timewheel_setup, reserved, 60);

TW_SAME_SIZE(timewheel_create, 80);
TW_SAME_LAYOUT(timewheel_create, size, 0);
TW_SAME_LAYOUT(timewheel_create, flags, 4);
TW_SAME_LAYOUT(timewheel_create, setup, 8);
TW_SAME_LAYOUT(timewheel_create, name, 16);

TW_SAME_SIZE(timewheel_destroy, 72);
TW_SAME_LAYOUT(timewheel_destroy, size, 0);
TW_SAME_LAYOUT(timewheel_destroy, flags, 4);
TW_SAME_LAYOUT(timewheel_destroy, name, 8);

TW_SAME_SIZE(timewheel_op, 80);
TW_SAME_LAYOUT(timewheel_op, size, 0);
TW_SAME_LAYOUT(timewheel_op, flags, 4);
TW_SAME_LAYOUT(timewheel_op, code, 8);
TW_SAME_LAYOUT(timewheel_op, result, 12);
TW_SAME_LAYOUT(timewheel_op, id, 16);
TW_SAME_LAYOUT(timewheel_op, handle, 24);
TW_SAME_LAYOUT(timewheel_op, cookie, 32);
TW_SAME_LAYOUT(timewheel_op, time, 40);
TW_SAME_LAYOUT(timewheel_op, timeout, 48);
TW_SAME_LAYOUT(timewheel_op, period, 56);
TW_SAME_LAYOUT(timewheel_op, deadline, 64);
TW_SAME_LAYOUT(timewheel_op, delivery, 72);
TW_SAME_LAYOUT(timewheel_op, reserved, 76);

TW_SAME_SIZE(timewheel_batch, 32);
TW_SAME_LAYOUT(timewheel_batch, size, 0);
TW_SAME_LAYOUT(timewheel_batch, flags, 4);
TW_SAME_LAYOUT(timewheel_batch, ops, 8);
TW_SAME_LAYOUT(timewheel_batch, count, 16);
TW_SAME_LAYOUT(timewheel_batch, op_size, 20);
TW_SAME_LAYOUT(timewheel_batch, done, 24);
TW_SAME_LAYOUT(timewheel_batch, reserved, 28);

TW_SAME_SIZE(timewheel_touch, 16);
TW_SAME_LAYOUT(timewheel_touch, size, 0);
TW_SAME_LAYOUT(timewheel_touch, flags, 4);
TW_SAME_LAYOUT(timewheel_touch, key, 8);

TW_SAME_SIZE(timewheel_touch_many, 24);
TW_SAME_LAYOUT(timewheel_touch_many, size, 0);
TW_SAME_LAYOUT(timewheel_touch_many, flags, 4);
TW_SAME_LAYOUT(timewheel_touch_many, keys, 8);
TW_SAME_LAYOUT(timewheel_touch_many, count, 16);
TW_SAME_LAYOUT(timewheel_touch_many, done, 20);

TW_SAME_SIZE(timewheel_entry, 40);
TW_SAME_LAYOUT(timewheel_entry, id, 0);
TW_SAME_LAYOUT(timewheel_entry, cookie, 8);
TW_SAME_LAYOUT(timewheel_entry, time, 16);
TW_SAME_LAYOUT(timewheel_entry, handle, 24);
TW_SAME_LAYOUT(timewheel_entry, result, 32);
TW_SAME_LAYOUT(timewheel_entry, reserved, 36);

TW_SAME_SIZE(timewheel_register_many, 32);
TW_SAME_LAYOUT(timewheel_register_many, size, 0);
TW_SAME_LAYOUT(timewheel_register_many, flags, 4);
TW_SAME_LAYOUT(timewheel_register_many, entries, 8);
TW_SAME_LAYOUT(timewheel_register_many, timeout, 16);
TW_SAME_LAYOUT(timewheel_register_many, count, 24);
TW_SAME_LAYOUT(timewheel_register_many, done, 28);

TW_SAME_SIZE(timewheel_cancel_many, 32);
TW_SAME_LAYOUT(timewheel_cancel_many, size, 0);
TW_SAME_LAYOUT(timewheel_cancel_many, flags, 4);
TW_SAME_LAYOUT(timewheel_cancel_many, keys, 8);
TW_SAME_LAYOUT(timewheel_cancel_many, results, 16);
TW_SAME_LAYOUT(timewheel_cancel_many, count, 24);
TW_SAME_LAYOUT(timewheel_cancel_many, done, 28);

TW_SAME_SIZE(timewheel_advance, 16);
TW_SAME_LAYOUT(timewheel_advance, size, 0);
TW_SAME_LAYOUT(timewheel_advance, flags, 4);
TW_SAME_LAYOUT(timewheel_advance, tick, 8);

TW_SAME_SIZE(timewheel_info, 248);
TW_SAME_LAYOUT(timewheel_info, size, 0);
TW_SAME_LAYOUT(timewheel_info, flags, 4);
TW_SAME_LAYOUT(timewheel_info, clock, 8);
TW_SAME_LAYOUT(timewheel_info, slots, 12);
TW_SAME_LAYOUT(timewheel_info, tick, 16);
TW_SAME_LAYOUT(timewheel_info, max_tokens, 24);
TW_SAME_LAYOUT(timewheel_info, setup_flags, 32);
TW_SAME_LAYOUT(timewheel_info, number, 36);
TW_SAME_LAYOUT(timewheel_info, now, 40);
TW_SAME_LAYOUT(timewheel_info, hand, 48);
TW_SAME_LAYOUT(timewheel_info, next, 56);
TW_SAME_LAYOUT(timewheel_info, pending, 64);
TW_SAME_LAYOUT(timewheel_info, taken, 72);
TW_SAME_LAYOUT(timewheel_info, bytes, 80);
TW_SAME_LAYOUT(timewheel_info, registered, 88);
TW_SAME_LAYOUT(timewheel_info, cancelled, 96);
TW_SAME_LAYOUT(timewheel_info, moved, 104);
TW_SAME_LAYOUT(timewheel_info, delivered, 112);
TW_SAME_LAYOUT(timewheel_info, put_back, 120);
TW_SAME_LAYOUT(timewheel_info, refiled, 128);
TW_SAME_LAYOUT(timewheel_info, callbacks, 136);
TW_SAME_LAYOUT(timewheel_info, quiet, 144);
TW_SAME_LAYOUT(timewheel_info, touched, 152);
TW_SAME_LAYOUT(timewheel_info, offset, 160);
TW_SAME_LAYOUT(timewheel_info, lease, 168);
TW_SAME_LAYOUT(timewheel_info, slack, 176);
TW_SAME_LAYOUT(timewheel_info, state, 184);
TW_SAME_LAYOUT(timewheel_info, max_held, 188);
TW_SAME_LAYOUT(timewheel_info, held, 192);
TW_SAME_LAYOUT(timewheel_info, acked, 200);
TW_SAME_LAYOUT(timewheel_info, nacked, 208);
TW_SAME_LAYOUT(timewheel_info, lapsed, 216);
TW_SAME_LAYOUT(timewheel_info, returned, 224);
TW_SAME_LAYOUT(timewheel_info, deleted, 232);
TW_SAME_LAYOUT(timewheel_info, missed, 240);

TW_SAME_SIZE(timewheel_control, 16);
TW_SAME_LAYOUT(timewheel_control, size, 0);
TW_SAME_LAYOUT(timewheel_control, flags, 4);
TW_SAME_LAYOUT(timewheel_control, state, 8);
TW_SAME_LAYOUT(timewheel_control, mask, 12);

TW_SAME_SIZE(timewheel_stats, 16);
TW_SAME_LAYOUT(timewheel_stats, size, 0);
TW_SAME_LAYOUT(timewheel_stats, flags, 4);
TW_SAME_LAYOUT(timewheel_stats, lateness, 8);

TW_SAME_SIZE(timewheel_get, 40);
TW_SAME_LAYOUT(timewheel_get, size, 0);
TW_SAME_LAYOUT(timewheel_get, flags, 4);
TW_SAME_LAYOUT(timewheel_get, keys, 8);
TW_SAME_LAYOUT(timewheel_get, tokens, 16);
TW_SAME_LAYOUT(timewheel_get, count, 24);
TW_SAME_LAYOUT(timewheel_get, token_size, 28);
TW_SAME_LAYOUT(timewheel_get, done, 32);
TW_SAME_LAYOUT(timewheel_get, reserved, 36);

TW_SAME_SIZE(timewheel_list, 56);
TW_SAME_LAYOUT(timewheel_list, size, 0);
TW_SAME_LAYOUT(timewheel_list, flags, 4);
TW_SAME_LAYOUT(timewheel_list, cursor, 8);
TW_SAME_LAYOUT(timewheel_list, from, 16);
TW_SAME_LAYOUT(timewheel_list, to, 24);
TW_SAME_LAYOUT(timewheel_list, tokens, 32);
TW_SAME_LAYOUT(timewheel_list, count, 40);
TW_SAME_LAYOUT(timewheel_list, token_size, 44);
TW_SAME_LAYOUT(timewheel_list, listed, 48);
TW_SAME_LAYOUT(timewheel_list, reserved, 52);

TW_SAME_SIZE(timewheel_token, 96);
TW_SAME_LAYOUT(timewheel_token, id, 0);
TW_SAME_LAYOUT(timewheel_token, handle, 8);
TW_SAME_LAYOUT(timewheel_token, cookie, 16);
TW_SAME_LAYOUT(timewheel_token, deadline, 24);
TW_SAME_LAYOUT(timewheel_token, lease_end, 32);
TW_SAME_LAYOUT(timewheel_token, left, 40);
TW_SAME_LAYOUT(timewheel_token, timeout, 48);
TW_SAME_LAYOUT(timewheel_token, period, 56);
TW_SAME_LAYOUT(timewheel_token, base, 64);
TW_SAME_LAYOUT(timewheel_token, cycle, 72);
TW_SAME_LAYOUT(timewheel_token, slot, 80);
TW_SAME_LAYOUT(timewheel_token, state, 84);
TW_SAME_LAYOUT(timewheel_token, delivery, 88);
TW_SAME_LAYOUT(timewheel_token, attempts, 92);

TW_SAME_SIZE(timewheel_event, 56);
TW_SAME_LAYOUT(timewheel_event, id, 0);
TW_SAME_LAYOUT(timewheel_event, handle, 8);
TW_SAME_LAYOUT(timewheel_event, cookie, 16);
TW_SAME_LAYOUT(timewheel_event, deadline, 24);
TW_SAME_LAYOUT(timewheel_event, taken, 32);
TW_SAME_LAYOUT(timewheel_event, delivery, 40);
TW_SAME_LAYOUT(timewheel_event, attempts, 44);
TW_SAME_LAYOUT(timewheel_event, missed, 48);
TW_SAME_LAYOUT(timewheel_event, reserved, 52);

/* Valid arguments use these ids and this name. */
#define TW_ID_THERE	1	/* the id of a token that is there */
#define TW_ID_NEW	2	/* an id that no token has */
#define TW_COMMANDS_NAME	"timewheel-abi"	/* for CREATE and DESTROY */

static struct timewheel_op tw_batch_op;
static const __u64 tw_keys[] = { TW_ID_THERE };
static struct timewheel_token tw_tokens[2];
static struct timewheel_setup tw_named_setup;
static __u64 tw_lateness[TIMEWHEEL_BUCKETS];

static inline void tw_fill_caps(void *arg)
{
	((struct timewheel_caps *)arg)->size = sizeof(struct timewheel_caps);
}

static inline void tw_fill_setup(void *arg)
{
	*(struct timewheel_setup *)arg = (struct timewheel_setup) {
		.size = sizeof(struct timewheel_setup),
		.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60, .tick = TW_SEC,
		.max_tokens = 10,
	};
}

static inline void tw_fill_info(void *arg)
{
	((struct timewheel_info *)arg)->size = sizeof(struct timewheel_info);
}

static inline void tw_fill_op(void *arg)
{
	*(struct timewheel_op *)arg = (struct timewheel_op) {
		.size = sizeof(struct timewheel_op),
		.code = TIMEWHEEL_OP_REGISTER, .id = TW_ID_NEW, .time = 5 * TW_SEC,
	};
}

static inline void tw_fill_batch(void *arg)
{
	tw_fill_op(&tw_batch_op);
	*(struct timewheel_batch *)arg = (struct timewheel_batch) {
		.size = sizeof(struct timewheel_batch),
		.ops = (__u64)(uintptr_t)&tw_batch_op, .count = 1,
		.op_size = sizeof(tw_batch_op),
	};
}

static inline void tw_fill_touch(void *arg)
{
	*(struct timewheel_touch *)arg = (struct timewheel_touch) {
		.size = sizeof(struct timewheel_touch), .key = TW_ID_THERE,
	};
}

static inline void tw_fill_touch_many(void *arg)
{
	*(struct timewheel_touch_many *)arg = (struct timewheel_touch_many) {
		.size = sizeof(struct timewheel_touch_many),
		.keys = (__u64)(uintptr_t)tw_keys,
		.count = ARRAY_SIZE(tw_keys),
	};
}

static inline void tw_fill_register_many(void *arg)
{
	static struct timewheel_entry entry;

	entry = (struct timewheel_entry) { .id = TW_ID_NEW, .time = 5 * TW_SEC };
	*(struct timewheel_register_many *)arg = (struct timewheel_register_many) {
		.size = sizeof(struct timewheel_register_many),
		.entries = (__u64)(uintptr_t)&entry, .count = 1,
	};
}

static inline void tw_fill_cancel_many(void *arg)
{
	static __s32 results[1];
	static const __u64 absent = TW_ID_NEW;

	*(struct timewheel_cancel_many *)arg = (struct timewheel_cancel_many) {
		.size = sizeof(struct timewheel_cancel_many),
		.keys = (__u64)(uintptr_t)&absent,
		.results = (__u64)(uintptr_t)results, .count = 1,
	};
}

static inline void tw_fill_advance(void *arg)
{
	*(struct timewheel_advance *)arg = (struct timewheel_advance) {
		.size = sizeof(struct timewheel_advance), .tick = 2,
	};
}

static inline void tw_fill_list(void *arg)
{
	*(struct timewheel_list *)arg = (struct timewheel_list) {
		.size = sizeof(struct timewheel_list), .to = TIMEWHEEL_NEVER,
		.tokens = (__u64)(uintptr_t)tw_tokens,
		.count = ARRAY_SIZE(tw_tokens),
		.token_size = sizeof(tw_tokens[0]),
	};
}

static inline void tw_fill_get(void *arg)
{
	*(struct timewheel_get *)arg = (struct timewheel_get) {
		.size = sizeof(struct timewheel_get),
		.keys = (__u64)(uintptr_t)tw_keys,
		.tokens = (__u64)(uintptr_t)tw_tokens,
		.count = ARRAY_SIZE(tw_keys), .token_size = sizeof(tw_tokens[0]),
	};
}

static inline void tw_fill_create(void *arg)
{
	tw_fill_setup(&tw_named_setup);
	*(struct timewheel_create *)arg = (struct timewheel_create) {
		.size = sizeof(struct timewheel_create),
		.setup = (__u64)(uintptr_t)&tw_named_setup, .name = TW_COMMANDS_NAME,
	};
}

static inline void tw_fill_destroy(void *arg)
{
	*(struct timewheel_destroy *)arg = (struct timewheel_destroy) {
		.size = sizeof(struct timewheel_destroy), .name = TW_COMMANDS_NAME,
	};
}

static inline void tw_fill_stats(void *arg)
{
	*(struct timewheel_stats *)arg = (struct timewheel_stats) {
		.size = sizeof(struct timewheel_stats),
		.lateness = (__u64)(uintptr_t)tw_lateness,
	};
}

static inline void tw_fill_control(void *arg)
{
	*(struct timewheel_control *)arg = (struct timewheel_control) {
		.size = sizeof(struct timewheel_control),
		.state = TIMEWHEEL_CONTROL_DRAINING,
		.mask = TIMEWHEEL_CONTROL_DRAINING,
	};
}

#define TW_NONE		((size_t)-1)

/* These bits are the needs of a command. */
#define TW_WHEEL	1	/* a file that is set up */
#define TW_READ		2	/* a file that is open for reading */
#define TW_WRITE	4	/* a file that is open for writing */
#define TW_ONLY_DEVICE	8	/* a file of /dev/timewheel */

#define TW_OUT(type, field)						\
	{ offsetof(struct type, field), sizeof(((struct type *)0)->field) }
/* The command writes all fields but size and flags. */
#define TW_ALL_OUT(type)	{ 8, sizeof(struct type) - 8 }

/**
 * struct tw_command - a command
 * @name: its name in messages
 * @number: the second argument of ioctl(2)
 * @size: size of its structure
 * @first: size of its structure in the first release
 * @flags: flags that are defined
 * @reserved: offset of the u32 that has to be zero, or TW_NONE
 * @needs: its needs: TW_WHEEL, TW_READ and so on
 * @fill: fills in a valid argument
 * @outputs: offset and size of each part that it writes
 */
struct tw_command {
	const char	*name;
	unsigned int	number;
	size_t		size;
	size_t		first;
	__u32		flags;
	size_t		reserved;
	__u32		needs;
	void		(*fill)(void *arg);
	size_t		outputs[4][2];
};

#define TW_COMMAND(NAME, type, first, flags, reserved, needs, ...)	\
	{								\
		#NAME, TIMEWHEEL_IOC_##NAME, sizeof(struct timewheel_##type), \
		first, flags, reserved, needs, tw_fill_##type,		\
		{ __VA_ARGS__ }						\
	}
#define TW_RESERVED(type)	offsetof(struct timewheel_##type, reserved)

/* The commands are in the order of their numbers, which are frozen. */
static const struct tw_command tw_commands[] = {
	TW_COMMAND(CAPS, caps, 72, 0, TW_NONE, 0, TW_ALL_OUT(timewheel_caps)),
	TW_COMMAND(SETUP, setup, 64,
		   TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES |
		   TIMEWHEEL_SETUP_TOUCH_WORDS | TIMEWHEEL_SETUP_PERIODS,
		   TW_RESERVED(setup), TW_WRITE),
	TW_COMMAND(INFO, info, 248, 0, TW_NONE, TW_WHEEL,
		   TW_ALL_OUT(timewheel_info)),
	TW_COMMAND(OP, op, 80,
		   TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ABSOLUTE,
		   TW_RESERVED(op), TW_WHEEL | TW_WRITE,
		   TW_OUT(timewheel_op, result), TW_OUT(timewheel_op, handle),
		   TW_OUT(timewheel_op, deadline)),
	TW_COMMAND(BATCH, batch, 32, 0, TW_RESERVED(batch), TW_WHEEL | TW_WRITE,
		   TW_OUT(timewheel_batch, done)),
	TW_COMMAND(TOUCH, touch, 16, TIMEWHEEL_OPF_BY_HANDLE, TW_NONE,
		   TW_WHEEL | TW_WRITE),
	TW_COMMAND(ADVANCE, advance, 16, 0, TW_NONE, TW_WHEEL | TW_WRITE),
	TW_COMMAND(LIST, list, 56, 0, TW_RESERVED(list), TW_WHEEL | TW_READ,
		   TW_OUT(timewheel_list, cursor),
		   TW_OUT(timewheel_list, listed)),
	TW_COMMAND(CREATE, create, 80, TIMEWHEEL_CREATE_EXCLUSIVE, TW_NONE,
		   TW_WRITE | TW_ONLY_DEVICE),
	TW_COMMAND(DESTROY, destroy, 72, 0, TW_NONE, TW_WRITE | TW_ONLY_DEVICE),
	TW_COMMAND(STATS, stats, 16, 0, TW_NONE, TW_WHEEL),
	TW_COMMAND(TOUCH_MANY, touch_many, 24, TIMEWHEEL_OPF_BY_HANDLE, TW_NONE,
		   TW_WHEEL | TW_WRITE, TW_OUT(timewheel_touch_many, done)),
	TW_COMMAND(CONTROL, control, 16, 0, TW_NONE, TW_WHEEL | TW_WRITE),
	TW_COMMAND(GET, get, 40, TIMEWHEEL_OPF_BY_HANDLE, TW_RESERVED(get),
		   TW_WHEEL | TW_READ, TW_OUT(timewheel_get, done)),
	TW_COMMAND(REGISTER_MANY, register_many, 32, TIMEWHEEL_OPF_ABSOLUTE,
		   TW_NONE, TW_WHEEL | TW_WRITE,
		   TW_OUT(timewheel_register_many, done)),
	TW_COMMAND(CANCEL_MANY, cancel_many, 32, TIMEWHEEL_OPF_BY_HANDLE,
		   TW_NONE, TW_WHEEL | TW_WRITE,
		   TW_OUT(timewheel_cancel_many, done)),
};

#define for_each_command(c)						\
	for (c = tw_commands; c < tw_commands + ARRAY_SIZE(tw_commands); c++)

#endif /* TW_COMMANDS_H */
