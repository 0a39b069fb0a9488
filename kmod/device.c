// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device: /dev/timewheel, where each open file is one private wheel, and its
 * ioctls. Everything that comes from user space is copied and checked here.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "clock.h"
#include "events.h"
#include "ops.h"
#include "wheel.h"

#define TW_MAX_SLOTS		65536
#define TW_MAX_TICK_NS		(86400 * NSEC_PER_SEC)
#define TW_SETUP_FLAGS		(TIMEWHEEL_NO_IDS | TIMEWHEEL_NO_COOKIES)

/* Operations of a batch, or listed tokens, that are copied together. */
#define TW_CHUNK_OPS		12

/* Limits of the limits. */
#define TW_LEAST_TICK_NS	1000
#define TW_MOST_TOKENS		BIT(28)

/* Layouts are the same for 32 and 64 bit callers, and do not change. */
static_assert(sizeof(struct timewheel_caps) == 64);
static_assert(sizeof(struct timewheel_setup) == 40);
static_assert(sizeof(struct timewheel_op) == 72);
static_assert(sizeof(struct timewheel_batch) == 32);
static_assert(sizeof(struct timewheel_touch) == 16);
static_assert(sizeof(struct timewheel_advance) == 16);
static_assert(sizeof(struct timewheel_info) == 152);
static_assert(sizeof(struct timewheel_list) == 56);
static_assert(sizeof(struct timewheel_token) == 48);
static_assert(sizeof(struct timewheel_event) == 48);
static_assert(TIMEWHEEL_MAX_TICK == TW_MAX_TICK);
static_assert(TIMEWHEEL_NEVER == TW_NEVER);

static unsigned int min_tick_ns = 100000;
static unsigned int max_tokens = BIT(24);

static int tw_set_min_tick_ns(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, TW_LEAST_TICK_NS, NSEC_PER_SEC);
}

static int tw_set_max_tokens(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, TW_MOST_TOKENS);
}

static const struct kernel_param_ops tw_min_tick_ns_ops = {
	.set = tw_set_min_tick_ns,
	.get = param_get_uint,
};

static const struct kernel_param_ops tw_max_tokens_ops = {
	.set = tw_set_max_tokens,
	.get = param_get_uint,
};

module_param_cb(min_tick_ns, &tw_min_tick_ns_ops, &min_tick_ns, 0644);
MODULE_PARM_DESC(min_tick_ns,
		 "shortest tick of a new wheel, in ns (1000..1000000000)");
module_param_cb(max_tokens, &tw_max_tokens_ops, &max_tokens, 0644);
MODULE_PARM_DESC(max_tokens,
		 "most tokens that a new wheel may have (1..268435456)");

static void tw_caller_init(struct tw_caller *caller, const struct file *file)
{
	const struct tw_wheel *wheel = file->private_data;

	caller->offset = tw_clock_offset(wheel->clock);
	caller->may_write = file->f_mode & FMODE_WRITE;
}

static int tw_ioctl_caps(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_caps *caps = arg;

	if (caps->reserved)
		return -EINVAL;
	caps->clocks = BIT(TIMEWHEEL_CLOCK_MONOTONIC) |
		       BIT(TIMEWHEEL_CLOCK_BOOTTIME) |
		       BIT(TIMEWHEEL_CLOCK_REALTIME) |
		       BIT(TIMEWHEEL_CLOCK_MANUAL);
	caps->setup_flags = TW_SETUP_FLAGS;
	caps->codes = BIT(TIMEWHEEL_GET + 1) - 1;
	caps->max_slots = TW_MAX_SLOTS;
	caps->min_tick = READ_ONCE(min_tick_ns);
	caps->max_tick = TW_MAX_TICK_NS;
	caps->max_tokens = READ_ONCE(max_tokens);
	caps->max_batch = TIMEWHEEL_MAX_BATCH;
	caps->op_size = sizeof(struct timewheel_op);
	caps->event_size = sizeof(struct timewheel_event);

	return 0;
}

static int tw_ioctl_setup(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_setup *setup = arg;

	if (setup->clock > TIMEWHEEL_CLOCK_MANUAL ||
	    setup->slots < 1 || setup->slots > TW_MAX_SLOTS ||
	    setup->tick < READ_ONCE(min_tick_ns) ||
	    setup->tick > TW_MAX_TICK_NS ||
	    setup->max_tokens < 1 ||
	    setup->max_tokens > READ_ONCE(max_tokens) ||
	    (setup->start && setup->clock != TIMEWHEEL_CLOCK_MANUAL))
		return -EINVAL;

	return tw_wheel_setup(file->private_data, setup);
}

/* The wheel's state, as the calling process sees it. */
static void tw_info_fill(const struct file *file, struct timewheel_info *info)
{
	struct tw_caller caller;

	tw_caller_init(&caller, file);
	tw_wheel_info(file->private_data, info);
	info->now = tw_clock_to_user(info->now, caller.offset);
	if (info->next != TIMEWHEEL_NEVER)
		info->next = tw_clock_to_user(info->next, caller.offset);
}

static int tw_ioctl_info(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_info *info = arg;

	if (info->reserved)
		return -EINVAL;
	tw_info_fill(file, info);

	return 0;
}

static int tw_ioctl_advance(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_advance *advance = arg;

	return tw_wheel_advance(file->private_data, advance->tick);
}

static int tw_ioctl_touch(struct file *file, void *arg, void __user *uarg)
{
	const struct timewheel_touch *touch = arg;

	return tw_ops_touch(file->private_data, touch->flags, touch->key);
}

static int tw_ioctl_op(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_op *op = arg;
	struct tw_caller caller;

	op->result = 0;
	tw_caller_init(&caller, file);
	tw_ops_run(file->private_data, &caller, op, 1);

	return min(op->result, 0);
}

/* Copies an operation in. Returns 0, -EFAULT, or what is wrong with its size. */
static int tw_op_copy_in(struct timewheel_op *op, void __user *from, u32 op_size)
{
	int known;

	if (copy_from_user(op, from, sizeof(*op)))
		return -EFAULT;
	known = check_zeroed_user(from + sizeof(*op), op_size - sizeof(*op));
	if (known < 0)
		return known;
	if (op->size != op_size)
		return -EINVAL;

	return known ? 0 : -E2BIG;
}

/*
 * Copies up to @n operations in. One whose size or unknown rest is not right
 * gets the error as its result. Returns how many could be read.
 */
static unsigned int tw_ops_copy_in(struct timewheel_op *ops, unsigned int n,
				   void __user *from, u32 op_size)
{
	unsigned int i;

	if (op_size == sizeof(*ops)) {
		n -= DIV_ROUND_UP(copy_from_user(ops, from, n * sizeof(*ops)),
				  sizeof(*ops));
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

static int tw_ops_copy_out(const struct timewheel_op *ops, unsigned int n,
			   void __user *to, u32 op_size)
{
	unsigned int i;

	if (op_size == sizeof(*ops))
		return copy_to_user(to, ops, n * sizeof(*ops)) ? -EFAULT : 0;

	for (i = 0; i < n; i++)
		if (copy_to_user(to + (size_t)i * op_size, &ops[i],
				 sizeof(*ops)))
			return -EFAULT;

	return 0;
}

/* Whether a user's array may have elements of this size, ours being @least. */
static bool tw_stride_ok(u32 size, u32 least)
{
	return size >= least && size <= PAGE_SIZE && !(size % sizeof(u64));
}

static int tw_batch_run(struct file *file, struct timewheel_batch *batch)
{
	struct timewheel_op ops[TW_CHUNK_OPS];
	void __user *at = u64_to_user_ptr(batch->ops);
	struct tw_caller caller;

	tw_caller_init(&caller, file);
	batch->done = 0;
	while (batch->done < batch->count) {
		unsigned int want = min_t(u32, batch->count - batch->done,
					  TW_CHUNK_OPS);
		unsigned int n = tw_ops_copy_in(ops, want, at, batch->op_size);

		tw_ops_run(file->private_data, &caller, ops, n);
		batch->done += n;
		if (tw_ops_copy_out(ops, n, at, batch->op_size) || n < want)
			return -EFAULT;
		if (signal_pending(current))
			break;
		at += (size_t)n * batch->op_size;
		cond_resched();
	}

	return 0;
}

static int tw_ioctl_batch(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_batch __user *ubatch = uarg;
	struct timewheel_batch *batch = arg;
	int err;

	if (batch->reserved || batch->count > TIMEWHEEL_MAX_BATCH ||
	    !tw_stride_ok(batch->op_size, sizeof(struct timewheel_op)))
		return -EINVAL;

	err = tw_batch_run(file, batch);
	/* Told even on an error: that much was done. */
	if (put_user(batch->done, &ubatch->done))
		err = -EFAULT;

	return err;
}

/* Copies listed tokens out; what a larger one has beyond ours is zeroed. */
static int tw_tokens_copy_out(const struct timewheel_token *tokens,
			      unsigned int n, void __user *to, u32 size)
{
	unsigned int i;

	for (i = 0; i < n; i++, to += size)
		if (copy_to_user(to, &tokens[i], sizeof(*tokens)) ||
		    clear_user(to + sizeof(*tokens), size - sizeof(*tokens)))
			return -EFAULT;

	return 0;
}

static int tw_ioctl_list(struct file *file, void *arg, void __user *uarg)
{
	struct timewheel_token tokens[TW_CHUNK_OPS];
	struct timewheel_list *list = arg;
	void __user *to = u64_to_user_ptr(list->tokens);
	struct tw_caller caller;

	if (list->reserved || !list->count ||
	    !tw_stride_ok(list->token_size, sizeof(struct timewheel_token)) ||
	    (list->cursor > U32_MAX && list->cursor != TIMEWHEEL_NEVER))
		return -EINVAL;

	tw_caller_init(&caller, file);
	list->listed = 0;
	while (list->listed < list->count && list->cursor != TIMEWHEEL_NEVER) {
		unsigned int want = min_t(u32, list->count - list->listed,
					  ARRAY_SIZE(tokens));
		unsigned int n = tw_ops_list(file->private_data, &caller, list,
					     tokens, want);

		if (tw_tokens_copy_out(tokens, n, to, list->token_size))
			return -EFAULT;
		list->listed += n;
		to += (size_t)n * list->token_size;
		if (signal_pending(current))
			break;
		cond_resched();
	}

	return 0;
}

/* Argument of any ioctl. */
union tw_arg {
	struct {
		u32	size;
		u32	flags;
	};
	struct timewheel_caps		caps;
	struct timewheel_setup		setup;
	struct timewheel_info		info;
	struct timewheel_op		op;
	struct timewheel_batch		batch;
	struct timewheel_touch		touch;
	struct timewheel_advance	advance;
	struct timewheel_list		list;
};

enum tw_ioctl_needs {
	TW_NEEDS_WHEEL	= BIT(0),
	TW_NEEDS_WRITE	= BIT(1),
	TW_ANSWERS	= BIT(2),	/* the argument is copied back */
};

/**
 * struct tw_ioctl - one command
 * @run: carries it out; the size has been checked, and the flags against @flags
 * @size: of its argument here; the first release's is the least accepted, and
 *	is the same as long as none has grown
 * @flags: flags that it knows
 * @needs: enum tw_ioctl_needs
 */
struct tw_ioctl {
	int	(*run)(struct file *file, void *arg, void __user *uarg);
	u32	size;
	u32	flags;
	u32	needs;
};

static const struct tw_ioctl tw_ioctls[] = {
	[_IOC_NR(TIMEWHEEL_CAPS)] = {
		tw_ioctl_caps, sizeof(struct timewheel_caps), 0, TW_ANSWERS,
	},
	[_IOC_NR(TIMEWHEEL_SETUP)] = {
		tw_ioctl_setup, sizeof(struct timewheel_setup), TW_SETUP_FLAGS,
		TW_NEEDS_WRITE,
	},
	[_IOC_NR(TIMEWHEEL_INFO)] = {
		tw_ioctl_info, sizeof(struct timewheel_info), 0,
		TW_NEEDS_WHEEL | TW_ANSWERS,
	},
	[_IOC_NR(TIMEWHEEL_OP)] = {
		tw_ioctl_op, sizeof(struct timewheel_op),
		TIMEWHEEL_BY_HANDLE | TIMEWHEEL_ABSOLUTE,
		TW_NEEDS_WHEEL | TW_ANSWERS,
	},
	[_IOC_NR(TIMEWHEEL_BATCH)] = {
		tw_ioctl_batch, sizeof(struct timewheel_batch), 0,
		TW_NEEDS_WHEEL,
	},
	[_IOC_NR(TIMEWHEEL_TOUCH)] = {
		tw_ioctl_touch, sizeof(struct timewheel_touch),
		TIMEWHEEL_BY_HANDLE, TW_NEEDS_WHEEL | TW_NEEDS_WRITE,
	},
	[_IOC_NR(TIMEWHEEL_ADVANCE)] = {
		tw_ioctl_advance, sizeof(struct timewheel_advance), 0,
		TW_NEEDS_WHEEL | TW_NEEDS_WRITE,
	},
	[_IOC_NR(TIMEWHEEL_LIST)] = {
		tw_ioctl_list, sizeof(struct timewheel_list), 0,
		TW_NEEDS_WHEEL | TW_ANSWERS,
	},
};

static int tw_ioctl_may(const struct file *file, const struct tw_ioctl *ioctl)
{
	if (ioctl->needs & TW_NEEDS_WRITE && !(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (ioctl->needs & TW_NEEDS_WHEEL &&
	    !tw_wheel_ready(file->private_data))
		return -EBADFD;

	return 0;
}

/* Copies an argument in and checks what all arguments have in common. */
static int tw_arg_copy_in(union tw_arg *arg, const struct tw_ioctl *ioctl,
			  void __user *uarg)
{
	u32 size;
	int err;

	if (get_user(size, (u32 __user *)uarg))
		return -EFAULT;
	if (size < ioctl->size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(arg, ioctl->size, uarg, size);
	if (err)
		return err;

	return arg->flags & ~ioctl->flags ? -EINVAL : 0;
}

static long tw_ioctl_run(struct file *file, const struct tw_ioctl *ioctl,
			 void __user *uarg)
{
	union tw_arg arg;
	int ret;

	ret = tw_ioctl_may(file, ioctl);
	if (!ret)
		ret = tw_arg_copy_in(&arg, ioctl, uarg);
	if (!ret)
		ret = ioctl->run(file, &arg, uarg);
	if (ret >= 0 && ioctl->needs & TW_ANSWERS &&
	    copy_to_user(uarg, &arg, ioctl->size))
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
	       !(touch->flags & ~TIMEWHEEL_BY_HANDLE);

fault:
	user_access_end();
	return false;
}

static long tw_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	unsigned int nr = _IOC_NR(cmd);
	struct timewheel_touch touch;

	/* The hottest call by the shortest way; the other finds what is wrong. */
	if (cmd == TIMEWHEEL_TOUCH && file->f_mode & FMODE_WRITE &&
	    tw_wheel_ready(file->private_data) &&
	    tw_touch_copy_in(&touch, (void __user *)uarg))
		return tw_ops_touch(file->private_data, touch.flags, touch.key);

	if (cmd != _IO(TIMEWHEEL_IOC_TYPE, nr) || nr >= ARRAY_SIZE(tw_ioctls))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(tw_ioctls));

	return tw_ioctl_run(file, &tw_ioctls[nr], (void __user *)uarg);
}

static int tw_open(struct inode *inode, struct file *file)
{
	struct tw_wheel *wheel = tw_wheel_new();

	if (!wheel)
		return -ENOMEM;
	file->private_data = wheel;
	file->f_mode |= FMODE_NOWAIT;

	return stream_open(inode, file);
}

static int tw_release(struct inode *inode, struct file *file)
{
	tw_wheel_free(file->private_data);

	return 0;
}

static void tw_show_fdinfo(struct seq_file *m, struct file *file)
{
	static const char * const clocks[] = {
		[TIMEWHEEL_CLOCK_MONOTONIC]	= "monotonic",
		[TIMEWHEEL_CLOCK_BOOTTIME]	= "boottime",
		[TIMEWHEEL_CLOCK_REALTIME]	= "realtime",
		[TIMEWHEEL_CLOCK_MANUAL]	= "manual",
	};
	struct timewheel_info info = { };

	if (!tw_wheel_ready(file->private_data))
		return;
	tw_info_fill(file, &info);
	seq_printf(m, "wheel:\t%u\n",
		   ((struct tw_wheel *)file->private_data)->number);
	seq_printf(m, "clock:\t%s\n", clocks[info.clock]);
	seq_printf(m, "slots:\t%u\n", info.slots);
	seq_printf(m, "tick_ns:\t%llu\n", info.tick);
	seq_printf(m, "hand:\t%llu\n", info.hand);
	if (info.next == TIMEWHEEL_NEVER)
		seq_puts(m, "next_ns:\tnever\n");
	else
		seq_printf(m, "next_ns:\t%llu\n", info.next);
	seq_printf(m, "pending:\t%llu\n", info.pending);
	seq_printf(m, "max_tokens:\t%llu\n", info.max_tokens);
	seq_printf(m, "bytes:\t%llu\n", info.bytes);
}

static const struct file_operations tw_fops = {
	.owner		= THIS_MODULE,
	.open		= tw_open,
	.release	= tw_release,
	.read_iter	= tw_events_read,
	.poll		= tw_events_poll,
	.unlocked_ioctl	= tw_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= tw_show_fdinfo,
};

static struct miscdevice tw_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "timewheel",
	.mode	= 0660,
	.fops	= &tw_fops,
};

module_misc_device(tw_device);

MODULE_DESCRIPTION("Timing wheels: millions of timeouts behind a file descriptor");
MODULE_AUTHOR("The timewheel maintainers");
MODULE_LICENSE("GPL");
