// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stats: all wheels at a glance, in debugfs, for root:
 *
 *	timewheel/wheels	a line for each wheel
 *	timewheel/users		a line for each user that has wheels
 *	timewheel/namespaces	a line for each user namespace that pays for wheels
 *	timewheel/stats		sums and a histogram since the module was loaded,
 *				wheels that have ended included
 *
 * Wheels are set up through here, and removed before their end.
 */
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "clock.h"
#include "limits.h"
#include "stats.h"

/**
 * struct tw_sums - what wheels have counted
 * @info: sums of the counters; of living wheels also of what they have
 * @lateness: the sum of the histograms
 */
struct tw_sums {
	struct timewheel_info	info;
	struct tw_histogram	lateness;
};

static DEFINE_MUTEX(tw_stats_lock);	/* guards the sums; a wheel stays as long as it is held */
static DEFINE_XARRAY_ALLOC1(tw_wheels);	/* by number */
static u32 tw_next_number;		/* under the lock of tw_wheels */
static struct tw_sums tw_ended;		/* of wheels that are gone */
static struct dentry *tw_debugfs __ro_after_init;

static DEFINE_MUTEX(tw_summing_lock);	/* one reader at a time sums wheels up; taken first */

/* The sums that a reader makes, under tw_stats_lock. */
static struct {
	struct tw_sums	*sums;	/* NULL: no reader is at work */
	unsigned long	next;	/* living wheels from this number on are not summed up yet */
} tw_summing;

#define TW_COUNTER(field)						\
	{ #field, offsetof(struct timewheel_info, field) }

/* These are the counters that a wheel leaves behind. */
static const struct {
	const char	*name;
	size_t		at;
} tw_counters[] = {
	TW_COUNTER(registered),
	TW_COUNTER(touched),
	TW_COUNTER(moved),
	TW_COUNTER(cancelled),
	TW_COUNTER(delivered),
	TW_COUNTER(put_back),
	TW_COUNTER(refiled),
	TW_COUNTER(callbacks),
	TW_COUNTER(quiet),
	TW_COUNTER(acked),
	TW_COUNTER(nacked),
	TW_COUNTER(lapsed),
	TW_COUNTER(returned),
	TW_COUNTER(deleted),
	TW_COUNTER(missed),
};

static u64 tw_counter(const struct timewheel_info *info, unsigned int i)
{
	return *(const u64 *)((const void *)info + tw_counters[i].at);
}

static void tw_sums_add(struct tw_sums *sums, const struct timewheel_info *info,
			const struct tw_histogram *lateness)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw_counters); i++)
		*(u64 *)((void *)&sums->info + tw_counters[i].at) +=
			tw_counter(info, i);
	tw_histogram_add(&sums->lateness, lateness);
}

/* Sets a new wheel up, as tw_wheel_setup() does, and numbers it. May sleep. */
int tw_stats_setup(struct tw_wheel *wheel, const struct timewheel_setup *setup)
{
	u32 number;
	int err;

	/* The place is taken first, because a wheel that is set up is never taken back. */
	err = xa_alloc_cyclic(&tw_wheels, &number, NULL, xa_limit_32b,
			      &tw_next_number, GFP_KERNEL);
	if (err < 0)
		return -ENOMEM;
	err = tw_wheel_setup(wheel, setup, number);
	if (err)
		xa_erase(&tw_wheels, number);
	else
		xa_store(&tw_wheels, number, wheel, GFP_KERNEL);

	return err;
}

/* Removes a wheel that no thread uses any more, set up or not. May sleep. */
void tw_stats_remove(struct tw_wheel *wheel)
{
	struct timewheel_info info;

	if (wheel->stage == TW_NEW)
		return;
	tw_wheel_info(wheel, &info);
	mutex_lock(&tw_stats_lock);
	xa_erase(&tw_wheels, wheel->number);
	tw_sums_add(&tw_ended, &info, wheel->lateness);
	/* A reader that has not come to the wheel does not find it any more. */
	if (tw_summing.sums && wheel->number >= tw_summing.next)
		tw_sums_add(tw_summing.sums, &info, wheel->lateness);
	mutex_unlock(&tw_stats_lock);
}

/*
 * Returns the first wheel from a number on, or NULL. The wheel stays until tw_stats_lock is
 * let go.
 */
static struct tw_wheel *tw_wheels_from(unsigned long *number)
{
	lockdep_assert_held(&tw_stats_lock);

	return xa_find(&tw_wheels, number, U32_MAX, XA_PRESENT);
}

/* Positions are numbers of wheels, and 0 is the head. */
static void *tw_wheels_at(loff_t *pos)
{
	unsigned long number = *pos;
	void *wheel;

	if (!number)
		return SEQ_START_TOKEN;
	wheel = tw_wheels_from(&number);
	*pos = number;

	return wheel;
}

static void *tw_wheels_start(struct seq_file *m, loff_t *pos)
{
	mutex_lock(&tw_stats_lock);

	return tw_wheels_at(pos);
}

static void *tw_wheels_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;

	return tw_wheels_at(pos);
}

static void tw_wheels_stop(struct seq_file *m, void *v)
{
	mutex_unlock(&tw_stats_lock);
}

static void tw_wheels_show_head(struct seq_file *m)
{
	unsigned int i;

	seq_puts(m, "number name uid clock slots tick_ns max_tokens pending bytes");
	for (i = 0; i < ARRAY_SIZE(tw_counters); i++)
		seq_printf(m, " %s", tw_counters[i].name);
	seq_putc(m, '\n');
}

static int tw_wheels_show(struct seq_file *m, void *v)
{
	struct tw_wheel *wheel = v;
	struct timewheel_info info;
	unsigned int i;

	if (v == SEQ_START_TOKEN) {
		tw_wheels_show_head(m);
		return 0;
	}

	tw_wheel_info(wheel, &info);
	seq_printf(m, "%u %s %u %s %u %llu %llu %llu %llu", info.number,
		   wheel->name ?: "-",
		   from_kuid_munged(seq_user_ns(m), tw_charge_uid(&wheel->charge)),
		   tw_clock_name(info.clock), info.slots, info.tick,
		   info.max_tokens, info.pending, info.bytes);
	for (i = 0; i < ARRAY_SIZE(tw_counters); i++)
		seq_printf(m, " %llu", tw_counter(&info, i));
	seq_putc(m, '\n');

	return 0;
}

static const struct seq_operations tw_wheels_sops = {
	.start	= tw_wheels_start,
	.next	= tw_wheels_next,
	.stop	= tw_wheels_stop,
	.show	= tw_wheels_show,
};

DEFINE_SEQ_ATTRIBUTE(tw_wheels);

/* A file's private data tells whether it is about namespaces, or about users. */
static int tw_accounts_show(struct seq_file *m, void *v)
{
	tw_limits_show(m, m->private);

	return 0;
}

DEFINE_SHOW_ATTRIBUTE(tw_accounts);

static void tw_histogram_show(struct seq_file *m,
			      const struct tw_histogram *histogram)
{
	unsigned int i;

	for (i = 0; i < TIMEWHEEL_BUCKETS; i++)
		if (histogram->bucket[i])
			seq_printf(m, "lateness_ns %llu %llu %llu\n",
				   tw_bucket_low(i), tw_bucket_low(i + 1) - 1,
				   histogram->bucket[i]);
}

/*
 * Begins with what wheels that have ended have counted, and adds what living ones have. A
 * wheel that was destroyed lives until its last file is closed. A wheel that ends meanwhile
 * waits while one other wheel is looked at, no longer. Returns how many live.
 */
static unsigned int tw_sums_fill(struct tw_sums *sums,
				 struct tw_histogram *lateness)
{
	struct tw_wheel *wheel;
	unsigned int n;

	mutex_lock(&tw_summing_lock);
	mutex_lock(&tw_stats_lock);
	*sums = tw_ended;
	tw_summing.sums = sums;
	tw_summing.next = 1;
	for (n = 0; (wheel = tw_wheels_from(&tw_summing.next)); n++) {
		struct timewheel_info info;

		tw_wheel_info(wheel, &info);
		tw_wheel_lateness(wheel, lateness);
		tw_sums_add(sums, &info, lateness);
		sums->info.pending += info.pending;
		sums->info.bytes += info.bytes;
		tw_summing.next++;
		mutex_unlock(&tw_stats_lock);
		cond_resched();
		mutex_lock(&tw_stats_lock);
	}
	tw_summing.sums = NULL;
	mutex_unlock(&tw_stats_lock);
	mutex_unlock(&tw_summing_lock);

	return n;
}

static int tw_stats_show(struct seq_file *m, void *v)
{
	struct tw_sums *sums = kmalloc(sizeof(*sums), GFP_KERNEL);
	struct tw_histogram *lateness = kmalloc(sizeof(*lateness), GFP_KERNEL);
	int err = -ENOMEM;
	unsigned int i;

	if (!sums || !lateness)
		goto free;
	seq_printf(m, "wheels %u\n", tw_sums_fill(sums, lateness));
	seq_printf(m, "pending %llu\nbytes %llu\n", sums->info.pending,
		   sums->info.bytes);
	for (i = 0; i < ARRAY_SIZE(tw_counters); i++)
		seq_printf(m, "%s %llu\n", tw_counters[i].name,
			   tw_counter(&sums->info, i));
	tw_histogram_show(m, &sums->lateness);
	err = 0;
free:
	kfree(lateness);
	kfree(sums);
	return err;
}

DEFINE_SHOW_ATTRIBUTE(tw_stats);

/* A kernel without debugfs has no such files, and nothing else changes. */
void __init tw_stats_init(void)
{
	tw_debugfs = debugfs_create_dir("timewheel", NULL);
	debugfs_create_file("wheels", 0400, tw_debugfs, NULL, &tw_wheels_fops);
	debugfs_create_file("users", 0400, tw_debugfs, NULL, &tw_accounts_fops);
	debugfs_create_file("namespaces", 0400, tw_debugfs, &tw_debugfs,
			    &tw_accounts_fops);
	debugfs_create_file("stats", 0400, tw_debugfs, NULL, &tw_stats_fops);
}

void tw_stats_exit(void)
{
	debugfs_remove(tw_debugfs);
	/* A number that could not be given for want of memory may have left nodes. */
	xa_destroy(&tw_wheels);
}
