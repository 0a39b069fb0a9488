// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device: /dev/timewheel, where each open file is one private wheel, the files of
 * named wheels, and the module's beginning and end.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "blocks.h"
#include "clock.h"
#include "file.h"
#include "named.h"
#include "stats.h"
#include "wheel.h"

static int tw_open_wheel(struct inode *inode, struct file *file,
			 struct tw_wheel *wheel)
{
	struct tw_file *opened = kzalloc(sizeof(*opened), TW_GFP);

	if (!opened)
		return -ENOMEM;
	opened->wheel = wheel;
	file->private_data = opened;
	file->f_mode |= FMODE_NOWAIT;

	return stream_open(inode, file);
}

static int tw_open(struct inode *inode, struct file *file)
{
	struct tw_wheel *wheel = tw_wheel_new();
	int err = wheel ? tw_open_wheel(inode, file, wheel) : -ENOMEM;

	if (wheel && err)
		tw_wheel_free(wheel);

	return err;
}

static int tw_release(struct inode *inode, struct file *file)
{
	struct tw_wheel *wheel = tw_file_wheel(file);

	tw_stats_remove(wheel);
	tw_wheel_free(wheel);
	kfree(file->private_data);

	return 0;
}

/* Tokens that this file has read, and that were not answered, come again. */
static int tw_named_release(struct inode *inode, struct file *file)
{
	tw_wheel_return(tw_file_wheel(file), tw_file_holder(file));
	kfree(file->private_data);

	return 0;
}

/* The file refers to the wheel by its cdev, until after its release. */
static int tw_named_open(struct inode *inode, struct file *file)
{
	struct tw_wheel *wheel = tw_named_of(inode);
	int err = tw_wheel_check(wheel);

	return err ?: tw_open_wheel(inode, file, wheel);
}

static void tw_show_fdinfo(struct seq_file *m, struct file *file)
{
	const struct tw_wheel *wheel = tw_file_wheel(file);
	struct timewheel_info info;

	if (tw_wheel_check(wheel))
		return;
	tw_info_fill(file, &info);
	seq_printf(m, "wheel:\t%u\n", info.number);
	if (wheel->name)
		seq_printf(m, "name:\t%s\n", wheel->name);
	seq_printf(m, "clock:\t%s\n", tw_clock_name(info.clock));
	seq_printf(m, "slots:\t%u\n", info.slots);
	seq_printf(m, "tick_ns:\t%llu\n", info.tick);
	seq_printf(m, "hand:\t%llu\n", info.hand);
	if (info.next == TIMEWHEEL_NEVER)
		seq_puts(m, "next_ns:\tnever\n");
	else
		seq_printf(m, "next_ns:\t%llu\n", info.next);
	seq_printf(m, "pending:\t%llu\n", info.pending);
	seq_printf(m, "held:\t%llu\n", info.held);
	seq_printf(m, "max_tokens:\t%llu\n", info.max_tokens);
	seq_printf(m, "bytes:\t%llu\n", info.bytes);
	seq_printf(m, "registered:\t%llu\n", info.registered);
	seq_printf(m, "touched:\t%llu\n", info.touched);
	seq_printf(m, "delivered:\t%llu\n", info.delivered);
}

#define TW_FOPS								\
	.owner		= THIS_MODULE,					\
	.read_iter	= tw_events_read,				\
	.poll		= tw_events_poll,				\
	.mmap		= tw_map,					\
	.unlocked_ioctl	= tw_ioctl,					\
	.compat_ioctl	= compat_ptr_ioctl,				\
	.show_fdinfo	= tw_show_fdinfo

static const struct file_operations tw_fops = {
	TW_FOPS,
	.open		= tw_open,
	.release	= tw_release,
};

static const struct file_operations tw_named_fops = {
	TW_FOPS,
	.open		= tw_named_open,
	.release	= tw_named_release,
};

static struct miscdevice tw_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "timewheel",
	.mode	= 0660,
	.fops	= &tw_fops,
};

static int __init tw_init(void)
{
	int err = tw_blocks_start();

	if (err)
		return err;
	err = tw_named_init(&tw_named_fops);
	if (err)
		goto stop_blocks;
	err = misc_register(&tw_device);
	if (err)
		goto exit_named;
	tw_stats_init();

	return 0;

exit_named:
	tw_named_exit();
stop_blocks:
	tw_blocks_stop();
	return err;
}

/* The kernel calls this only when no file is open and there is no named wheel. */
static void __exit tw_exit(void)
{
	tw_stats_exit();
	misc_deregister(&tw_device);
	tw_named_exit();
	tw_blocks_stop();
}

module_init(tw_init);
module_exit(tw_exit);

MODULE_DESCRIPTION("Timing wheels: millions of timeouts behind a file descriptor");
MODULE_AUTHOR("The timewheel maintainers");
MODULE_LICENSE("GPL");
