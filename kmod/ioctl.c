// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Ioctls: everything that comes from user space by ioctl(2) is copied and checked
 * here. Other files carry it out.
 */
#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "blocks.h"
#include "clock.h"
#include "file.h"
#include "limits.h"
#include "named.h"
#include "ops.h"
#include "stats.h"
#include "describe.h"
#include "touch.h"

#define TW_MAX_SLOTS		65536
#define TW_MAX_TICK_NS		(86400 * NSEC_PER_SEC)
#define TW_SETUP_FLAGS		(TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES | \
				 TIMEWHEEL_SETUP_TOUCH_WORDS | TIMEWHEEL_SETUP_PERIODS)
#define TW_CONTROL_STATES	(TIMEWHEEL_CONTROL_PAUSED | TIMEWHEEL_CONTROL_DRAINING)

/* The sizes in the first release are the least that are accepted. */
#define TW_FIRST_SETUP		64
#define TW_FIRST_OP		80
#define TW_FIRST_TOKEN		96
#define TW_FIRST_INFO		248

/* Programs read arrays of events, which carry no size. */
static_assert(sizeof(struct timewheel_event) == 56);
static_assert(TIMEWHEEL_MAX_TICK == TW_MAX_TICK);
static_assert(TIMEWHEEL_NEVER == TW_NEVER);

/*
 * Copies a structure in and checks what all of them have in common. The module knows
 * @known_size bytes of it, and zeroes the bytes that the caller does not know. In the first
 * release it had @first_size bytes. Returns 0; -EFAULT; -EINVAL; -E2BIG.
 */
static int tw_copy_in(void *to, u32 known_size, u32 first_size,
		      u32 known_flags, void __user *from)
{
	const struct {
		u32	size;
		u32	flags;
	} *head = to;
	u32 size;
	int err;

	if (get_user(size, (u32 __user *)from))
		return -EFAULT;
	if (size < first_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(to, known_size, from, size);
	if (!err && head->flags & ~known_flags)
		err = -EINVAL;

	return err;
}

/* Returns a call of a process, still without the time. */
static struct tw_call tw_call(const struct file *file)
{
	struct tw_wheel *wheel = tw_file_wheel(file);

	return (struct tw_call) { wheel, tw_clock_offset(wheel->clock) };
}

static int tw_ioctl_caps(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_caps *caps = arg;

	caps->clocks = BIT(TIMEWHEEL_CLOCK_MONOTONIC) |
		       BIT(TIMEWHEEL_CLOCK_BOOTTIME) |
		       BIT(TIMEWHEEL_CLOCK_REALTIME) |
		       BIT(TIMEWHEEL_CLOCK_MANUAL);
	caps->setup_flags = TW_SETUP_FLAGS;
	caps->codes = BIT(TIMEWHEEL_OP_DELETE + 1) - 1;
	caps->max_slots = TW_MAX_SLOTS;
	caps->min_tick = READ_ONCE(tw_min_tick_ns);
	caps->max_tick = TW_MAX_TICK_NS;
	caps->max_tokens = READ_ONCE(tw_max_tokens);
	caps->max_word_ticks = TW_MAX_STAMPED;
	caps->max_batch = TIMEWHEEL_MAX_BATCH;
	caps->op_size = sizeof(struct timewheel_op);
	caps->token_size = sizeof(struct timewheel_token);
	caps->event_size = sizeof(struct timewheel_event);

	return 0;
}

static int tw_setup_check(const struct timewheel_setup *setup)
{
	bool manual = setup->clock == TIMEWHEEL_CLOCK_MANUAL;

	if (setup->clock > TIMEWHEEL_CLOCK_MANUAL ||
	    setup->slots < 1 || setup->slots > TW_MAX_SLOTS ||
	    setup->tick < 1 || setup->tick > TW_MAX_TICK_NS ||
	    setup->max_tokens < 1 || setup->max_tokens > U32_MAX ||
	    setup->slack > S64_MAX || setup->reserved ||
	    (manual ? setup->slack : setup->start))
		return -EINVAL;
	if (!setup->lease)
		return setup->max_held ? -EINVAL : 0;

	return setup->lease < setup->tick || setup->lease > S64_MAX ||
	       !setup->max_held || setup->max_held > setup->max_tokens ?
	       -EINVAL : 0;
}

static int tw_ioctl_setup(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_setup *setup = arg;
	int err = tw_setup_check(setup);

	return err ?: tw_stats_setup(tw_file_wheel(file), setup);
}

static bool tw_name_has(char c)
{
	return (isascii(c) && isalnum(c)) || c == '-' || c == '_';
}

static int tw_name_check(const char *name)
{
	size_t len = strnlen(name, TIMEWHEEL_NAME_SIZE);
	size_t i;

	if (len == TIMEWHEEL_NAME_SIZE)
		return -ENAMETOOLONG;
	if (!len || memchr_inv(name + len, 0, TIMEWHEEL_NAME_SIZE - len))
		return -EINVAL;
	for (i = 0; i < len; i++)
		if (!tw_name_has(name[i]))
			return -EINVAL;

	return 0;
}

static int tw_ioctl_create(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_create *create = arg;
	struct timewheel_setup setup;
	int err = tw_name_check(create->name);

	if (!err)
		err = tw_copy_in(&setup, sizeof(setup), TW_FIRST_SETUP,
				 TW_SETUP_FLAGS,
				 u64_to_user_ptr(create->setup));
	if (!err)
		err = tw_setup_check(&setup);

	return err ?: tw_named_create(create->name, &setup,
				      create->flags & TIMEWHEEL_CREATE_EXCLUSIVE);
}

static int tw_ioctl_destroy(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_destroy *destroy = arg;

	return tw_name_check(destroy->name) ?: tw_named_destroy(destroy->name);
}

/* Fills in all of a wheel's state, except size and flags, as the calling process sees it. */
void tw_info_fill(const struct file *file, struct timewheel_info *info)
{
	struct tw_wheel *wheel = tw_file_wheel(file);
	s64 offset = tw_clock_offset(wheel->clock);

	tw_wheel_info(wheel, info);
	info->offset = offset;
	info->now = tw_clock_to_user(info->now, offset);
	if (info->next != TIMEWHEEL_NEVER)
		info->next = tw_clock_to_user(info->next, offset);
}

static int tw_ioctl_info(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_info info;
	int err = tw_copy_in(&info, sizeof(info), TW_FIRST_INFO, 0, uarg);

	if (err)
		return err;
	tw_info_fill(file, &info);

	return copy_to_user(uarg, &info, min_t(u32, info.size, sizeof(info))) ?
	       -EFAULT : 0;
}

static int tw_ioctl_stats(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_stats *stats = arg;
	struct tw_histogram *lateness = kmalloc(sizeof(*lateness), TW_GFP);
	int err = 0;

	if (!lateness)
		return -ENOMEM;
	tw_wheel_lateness(tw_file_wheel(file), lateness);
	if (copy_to_user(u64_to_user_ptr(stats->lateness), lateness,
			 sizeof(*lateness)))
		err = -EFAULT;
	kfree(lateness);

	return err;
}

static int tw_ioctl_advance(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_advance *advance = arg;

	return tw_wheel_advance(tw_file_wheel(file), advance->tick);
}

static int tw_ioctl_control(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_control *control = arg;

	if (control->mask & ~TW_CONTROL_STATES ||
	    control->state & ~control->mask)
		return -EINVAL;

	return tw_wheel_control(tw_file_wheel(file), control->state,
				control->mask);
}

static int tw_ioctl_touch(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_touch *touch = arg;

	return tw_touch_key(tw_file_wheel(file),
			    touch->flags & TIMEWHEEL_OPF_BY_HANDLE, touch->key);
}

static int tw_ioctl_op(struct file *file, void *arg, void __user *uarg)
{
	struct tw_call call = tw_call(file);
	struct timewheel_op *op = arg;

	op->result = 0;
	tw_ops_run(&call, op, 1);

	return min(op->result, 0);
}

/*
 * The elements of a call that are copied at a time. They are on the stack only once, because
 * some kernels zero all of the stack that a function uses.
 */
union tw_some {
	struct timewheel_op	ops[TW_MAX_OPS];
	struct timewheel_entry	entries[TW_MAX_ENTRIES];
	u64			touched[TW_MAX_KEYS];
	struct {
		u64	keys[TW_MAX_CANCELS];
		s32	results[TW_MAX_CANCELS];
	} cancel;
	struct {
		u64			keys[TW_MAX_TOLD];
		struct timewheel_token	tokens[TW_MAX_TOLD];
	} get;
};

typedef int tw_some_fn(struct tw_call *call, void *many, union tw_some *some,
		       unsigned int n);

/*
 * Calls about many elements: @run deals with @n of them from element *@done on, at most
 * @most, and counts them there. The count is told also when the call ends with an error: the
 * error is at this element.
 */
static int tw_each(struct file *file, void *many, u32 count, u32 *done, u32 most,
		   tw_some_fn *run, void __user *umany)
{
	u32 __user *udone = umany + ((void *)done - many);
	struct tw_call call = tw_call(file);
	union tw_some some;
	int err = 0;

	if (count > TIMEWHEEL_MAX_BATCH)
		return -EINVAL;
	*done = 0;
	while (*done < count) {
		err = run(&call, many, &some, min(count - *done, most));
		if (err || task_sigpending(current))
			break;
		cond_resched();
	}

	return put_user(*done, udone) ? -EFAULT : err;
}

/* Copies an operation in. Returns 0, -EFAULT, or what is wrong with its size. */
static int tw_op_copy_in(struct timewheel_op *op, void __user *from, u32 op_size)
{
	u32 known = min_t(u32, op_size, sizeof(*op));
	int zeroed;

	if (copy_from_user(op, from, known))
		return -EFAULT;
	memset((void *)op + known, 0, sizeof(*op) - known);
	zeroed = check_zeroed_user(from + known, op_size - known);
	if (zeroed < 0)
		return zeroed;
	if (op->size != op_size)
		return -EINVAL;

	return zeroed ? 0 : -E2BIG;
}

/*
 * Copies up to @n operations in. One whose size or unknown rest is not right gets the error as
 * its result. Returns how many operations could be read. If the copy of all of them meets a
 * fault, each is copied by itself, to find the one that faults.
 */
static unsigned int tw_ops_copy_in(struct timewheel_op *ops, unsigned int n,
				   void __user *from, u32 op_size)
{
	unsigned int i;

	if (op_size == sizeof(*ops) &&
	    !copy_from_user(ops, from, n * sizeof(*ops))) {
		for (i = 0; i < n; i++)
			ops[i].result = ops[i].size != op_size ? -EINVAL : 0;
		return n;
	}

	for (i = 0; i < n; i++) {
		int err = tw_op_copy_in(&ops[i], from + (size_t)i * op_size,
					op_size);

		if (err == -EFAULT)
			break;
		ops[i].result = err;
	}

	return i;
}

/* Tells the caller what operations fill in. Their other fields stay as the caller has them. */
static int tw_ops_copy_out(const struct timewheel_op *ops, unsigned int n,
			   void __user *to, u32 op_size)
{
	unsigned int i;

	if (!user_write_access_begin(to, (size_t)n * op_size))
		return -EFAULT;
	for (i = 0; i < n; i++) {
		struct timewheel_op __user *op = to + (size_t)i * op_size;

		unsafe_put_user(ops[i].handle, &op->handle, fault);
		unsafe_put_user(ops[i].deadline, &op->deadline, fault);
		unsafe_put_user(ops[i].result, &op->result, fault);
	}
	user_write_access_end();

	return 0;

fault:
	user_write_access_end();

	return -EFAULT;
}

/* Whether a user's array may have elements of this size. */
static bool tw_stride_ok(u32 size, u32 least)
{
	return size >= least && size <= PAGE_SIZE && !(size % sizeof(u64));
}

static int tw_batch_some(struct tw_call *call, void *arg, union tw_some *some,
			 unsigned int n)
{
	struct timewheel_batch *batch = arg;
	void __user *at = u64_to_user_ptr(batch->ops) +
			  (size_t)batch->done * batch->op_size;
	unsigned int got = tw_ops_copy_in(some->ops, n, at, batch->op_size);

	if (got)
		tw_ops_run(call, some->ops, got);
	batch->done += got;

	return tw_ops_copy_out(some->ops, got, at, batch->op_size) || got < n ?
	       -EFAULT : 0;
}

static int tw_ioctl_batch(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_batch *batch = arg;

	if (batch->reserved || !tw_stride_ok(batch->op_size, TW_FIRST_OP))
		return -EINVAL;

	return tw_each(file, batch, batch->count, &batch->done, TW_MAX_OPS,
		       tw_batch_some, uarg);
}

/* Copies up to @n elements of an array in, as tw_ops_copy_in() does. */
static unsigned int tw_array_copy_in(void *to, const void __user *from,
				     unsigned int n, size_t size)
{
	unsigned int i;

	if (!copy_from_user(to, from, n * size))
		return n;

	for (i = 0; i < n; i++)
		if (copy_from_user(to + i * size, from + i * size, size))
			break;

	return i;
}

static int tw_touch_some(struct tw_call *call, void *arg, union tw_some *some,
			 unsigned int n)
{
	struct timewheel_touch_many *many = arg;
	u64 __user *from = u64_to_user_ptr(many->keys);
	unsigned int got = tw_array_copy_in(some->touched, from + many->done,
					    n, sizeof(*from));
	unsigned int done;
	int err = tw_touch_keys(call->wheel, many->flags & TIMEWHEEL_OPF_BY_HANDLE,
				some->touched, got, &done);

	many->done += done;

	return !err && got < n ? -EFAULT : err;
}

static int tw_ioctl_touch_many(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_touch_many *many = arg;

	return tw_each(file, many, many->count, &many->done, TW_MAX_KEYS,
		       tw_touch_some, uarg);
}

static int tw_register_some(struct tw_call *call, void *arg, union tw_some *some,
			    unsigned int n)
{
	struct timewheel_register_many *many = arg;
	struct timewheel_entry __user *at = u64_to_user_ptr(many->entries);
	unsigned int got = tw_array_copy_in(some->entries, at + many->done, n,
					    sizeof(*at));
	bool fault;

	tw_register_many(call, many, some->entries, got);
	fault = copy_to_user(at + many->done, some->entries, got * sizeof(*at));
	many->done += got;

	return fault || got < n ? -EFAULT : 0;
}

static int tw_ioctl_register_many(struct file *file, void *arg,
				  void __user *uarg)
{
	struct timewheel_register_many *many = arg;

	return tw_each(file, many, many->count, &many->done, TW_MAX_ENTRIES,
		       tw_register_some, uarg);
}

static int tw_cancel_some(struct tw_call *call, void *arg, union tw_some *some,
			  unsigned int n)
{
	struct timewheel_cancel_many *many = arg;
	const u64 __user *from = u64_to_user_ptr(many->keys);
	s32 __user *to = u64_to_user_ptr(many->results);
	unsigned int got = tw_array_copy_in(some->cancel.keys, from + many->done,
					    n, sizeof(*from));
	bool fault;

	tw_cancel_many(call, many->flags & TIMEWHEEL_OPF_BY_HANDLE,
		       some->cancel.keys, some->cancel.results, got);
	fault = copy_to_user(to + many->done, some->cancel.results, got * sizeof(*to));
	many->done += got;

	return fault || got < n ? -EFAULT : 0;
}

static int tw_ioctl_cancel_many(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_cancel_many *many = arg;

	return tw_each(file, many, many->count, &many->done, TW_MAX_CANCELS,
		       tw_cancel_some, uarg);
}

/* Copies listed tokens out. The caller's tokens may be larger, and the rest of each is zeroed. */
static int tw_tokens_copy_out(const struct timewheel_token *tokens,
			      unsigned int n, void __user *to, u32 size)
{
	u32 known = min_t(u32, size, sizeof(*tokens));
	unsigned int i;

	for (i = 0; i < n; i++, to += size)
		if (copy_to_user(to, &tokens[i], known) ||
		    clear_user(to + known, size - known))
			return -EFAULT;

	return 0;
}

static int tw_get_some(struct tw_call *call, void *arg, union tw_some *some,
		       unsigned int n)
{
	struct timewheel_get *get = arg;
	const u64 __user *from = u64_to_user_ptr(get->keys);
	void __user *to = u64_to_user_ptr(get->tokens) +
			  (size_t)get->done * get->token_size;
	unsigned int got = tw_array_copy_in(some->get.keys, from + get->done, n,
					    sizeof(*from));

	tw_describe_keys(call, get->flags & TIMEWHEEL_OPF_BY_HANDLE,
			 some->get.keys, some->get.tokens, got);
	if (tw_tokens_copy_out(some->get.tokens, got, to, get->token_size))
		return -EFAULT;
	get->done += got;

	return got < n ? -EFAULT : 0;
}

static int tw_ioctl_get(struct file *file, void *arg, void __user *uarg)
{
	const struct tw_wheel *wheel = tw_file_wheel(file);
	struct timewheel_get *get = arg;

	if (get->reserved || !tw_stride_ok(get->token_size, TW_FIRST_TOKEN) ||
	    (!(get->flags & TIMEWHEEL_OPF_BY_HANDLE) &&
	     wheel->flags & TIMEWHEEL_SETUP_NO_IDS))
		return -EINVAL;

	return tw_each(file, get, get->count, &get->done, TW_MAX_TOLD,
		       tw_get_some, uarg);
}

static int tw_ioctl_list(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_token tokens[TW_MAX_TOLD];
	struct tw_call call = tw_call(file);
	struct timewheel_list *list = arg;
	void __user *to = u64_to_user_ptr(list->tokens);

	if (list->reserved || !list->count ||
	    !tw_stride_ok(list->token_size, TW_FIRST_TOKEN) ||
	    (list->cursor > U32_MAX && list->cursor != TIMEWHEEL_NEVER))
		return -EINVAL;

	list->listed = 0;
	while (list->listed < list->count && list->cursor != TIMEWHEEL_NEVER) {
		unsigned int want = min_t(u32, list->count - list->listed,
					  ARRAY_SIZE(tokens));
		unsigned int n = tw_describe_next(&call, list, tokens, want);

		if (tw_tokens_copy_out(tokens, n, to, list->token_size))
			return -EFAULT;
		list->listed += n;
		to += (size_t)n * list->token_size;
		if (task_sigpending(current))
			break;
		cond_resched();
	}

	return 0;
}

/*
 * The argument of any ioctl that does not copy its argument itself. Larger arguments are not
 * in here, because some kernels zero all of the stack that a call uses.
 */
union tw_arg {
	struct timewheel_caps		caps;
	struct timewheel_setup		setup;
	struct timewheel_create		create;
	struct timewheel_destroy	destroy;
	struct timewheel_stats		stats;
	struct timewheel_op		op;
	struct timewheel_batch		batch;
	struct timewheel_touch		touch;
	struct timewheel_touch_many	touch_many;
	struct timewheel_register_many	register_many;
	struct timewheel_cancel_many	cancel_many;
	struct timewheel_advance	advance;
	struct timewheel_get		get;
	struct timewheel_list		list;
	struct timewheel_control	control;
};

enum tw_ioctl_needs {
	TW_NEEDS_WHEEL	= BIT(0),
	TW_NEEDS_READ	= BIT(1),
	TW_NEEDS_WRITE	= BIT(2),
	TW_NEEDS_DEVICE	= BIT(3),	/* the file is one of /dev/timewheel */
	TW_ANSWERS	= BIT(4),	/* the argument is copied back */
	TW_COPIES	= BIT(5),	/* the command copies its argument itself */
};

/**
 * struct tw_ioctl - one command
 * @run: carries it out; the size has been checked, and the flags against @flags
 * @size: the size of its argument here
 * @first: the size of its argument in the first release, which is the least that is accepted
 * @flags: flags that it knows
 * @needs: enum tw_ioctl_needs
 */
struct tw_ioctl {
	int	(*run)(struct file *file, void *arg, void __user *uarg);
	u32	size;
	u32	first;
	u32	flags;
	u32	needs;
};

#define TW_IOCTL(cmd, run, arg, first, flags, needs)			\
	[_IOC_NR(cmd)] = {						\
		run, sizeof(struct arg), first, flags, needs,		\
	}

static const struct tw_ioctl tw_ioctls[] = {
	TW_IOCTL(TIMEWHEEL_IOC_CAPS, tw_ioctl_caps, timewheel_caps, 72, 0,
		 TW_ANSWERS),
	TW_IOCTL(TIMEWHEEL_IOC_SETUP, tw_ioctl_setup, timewheel_setup,
		 TW_FIRST_SETUP, TW_SETUP_FLAGS, TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_INFO, tw_ioctl_info, timewheel_info,
		 TW_FIRST_INFO, 0, TW_NEEDS_WHEEL | TW_COPIES),
	TW_IOCTL(TIMEWHEEL_IOC_OP, tw_ioctl_op, timewheel_op, TW_FIRST_OP,
		 TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ABSOLUTE,
		 TW_NEEDS_WHEEL | TW_NEEDS_WRITE | TW_ANSWERS),
	TW_IOCTL(TIMEWHEEL_IOC_BATCH, tw_ioctl_batch, timewheel_batch, 32, 0,
		 TW_NEEDS_WHEEL | TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_TOUCH, tw_ioctl_touch, timewheel_touch, 16,
		 TIMEWHEEL_OPF_BY_HANDLE, TW_NEEDS_WHEEL | TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_ADVANCE, tw_ioctl_advance, timewheel_advance, 16,
		 0, TW_NEEDS_WHEEL | TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_LIST, tw_ioctl_list, timewheel_list, 56, 0,
		 TW_NEEDS_WHEEL | TW_NEEDS_READ | TW_ANSWERS),
	TW_IOCTL(TIMEWHEEL_IOC_CREATE, tw_ioctl_create, timewheel_create, 80,
		 TIMEWHEEL_CREATE_EXCLUSIVE, TW_NEEDS_DEVICE | TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_DESTROY, tw_ioctl_destroy, timewheel_destroy, 72,
		 0, TW_NEEDS_DEVICE | TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_STATS, tw_ioctl_stats, timewheel_stats, 16, 0,
		 TW_NEEDS_WHEEL),
	TW_IOCTL(TIMEWHEEL_IOC_TOUCH_MANY, tw_ioctl_touch_many,
		 timewheel_touch_many, 24, TIMEWHEEL_OPF_BY_HANDLE,
		 TW_NEEDS_WHEEL | TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_CONTROL, tw_ioctl_control, timewheel_control, 16,
		 0, TW_NEEDS_WHEEL | TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_GET, tw_ioctl_get, timewheel_get, 40,
		 TIMEWHEEL_OPF_BY_HANDLE, TW_NEEDS_WHEEL | TW_NEEDS_READ),
	TW_IOCTL(TIMEWHEEL_IOC_REGISTER_MANY, tw_ioctl_register_many,
		 timewheel_register_many, 32, TIMEWHEEL_OPF_ABSOLUTE,
		 TW_NEEDS_WHEEL | TW_NEEDS_WRITE),
	TW_IOCTL(TIMEWHEEL_IOC_CANCEL_MANY, tw_ioctl_cancel_many,
		 timewheel_cancel_many, 32, TIMEWHEEL_OPF_BY_HANDLE,
		 TW_NEEDS_WHEEL | TW_NEEDS_WRITE),
};

static int tw_ioctl_may(const struct file *file, const struct tw_ioctl *ioctl)
{
	const struct tw_wheel *wheel = tw_file_wheel(file);

	if (ioctl->needs & TW_NEEDS_DEVICE && wheel->name)
		return -ENOTTY;
	if (ioctl->needs & TW_NEEDS_READ && !(file->f_mode & FMODE_READ))
		return -EBADF;
	if (ioctl->needs & TW_NEEDS_WRITE && !(file->f_mode & FMODE_WRITE))
		return -EBADF;

	return ioctl->needs & TW_NEEDS_WHEEL ? tw_wheel_check(wheel) : 0;
}

static noinline_for_stack long tw_ioctl_run(struct file *file,
					    const struct tw_ioctl *ioctl,
					    void __user *uarg)
{
	union tw_arg arg;
	int ret;

	ret = tw_ioctl_may(file, ioctl);
	if (!ret && !(ioctl->needs & TW_COPIES))
		ret = tw_copy_in(&arg, ioctl->size, ioctl->first, ioctl->flags,
				 uarg);
	if (ret)
		return ret;
	ret = ioctl->run(file, &arg, uarg);
	if (ret >= 0 && ioctl->needs & TW_ANSWERS &&
	    copy_to_user(uarg, &arg, min(arg.caps.size, ioctl->size)))
		ret = -EFAULT;

	return ret;
}

/* Reads the argument of a touch if there is nothing to object to. */
static bool tw_touch_copy_in(struct timewheel_touch *touch,
			     struct timewheel_touch __user *utouch)
{
	if (!user_access_begin(utouch, sizeof(*utouch)))
		return false;
	unsafe_get_user(touch->size, &utouch->size, fault);
	unsafe_get_user(touch->flags, &utouch->flags, fault);
	unsafe_get_user(touch->key, &utouch->key, fault);
	user_access_end();

	return touch->size == sizeof(*touch) &&
	       !(touch->flags & ~TIMEWHEEL_OPF_BY_HANDLE);

fault:
	user_access_end();
	return false;
}

/* ioctl(2) of any wheel; the contract is <linux/timewheel.h>. */
long tw_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	struct tw_wheel *wheel = tw_file_wheel(file);
	struct timewheel_touch touch;
	unsigned int nr;

	/* The most frequent call takes a short way, of 738 instead of 955 instructions
	 * (selftests/counts.c). The long way finds errors.
	 */
	if (cmd == TIMEWHEEL_IOC_TOUCH && file->f_mode & FMODE_WRITE &&
	    tw_wheel_ready(wheel) &&
	    tw_touch_copy_in(&touch, (void __user *)uarg))
		return tw_touch_key(wheel, touch.flags, touch.key);

	nr = _IOC_NR(cmd);
	if (cmd != _IO(TIMEWHEEL_IOC_TYPE, nr) || nr >= ARRAY_SIZE(tw_ioctls))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(tw_ioctls));

	return tw_ioctl_run(file, &tw_ioctls[nr], (void __user *)uarg);
}
