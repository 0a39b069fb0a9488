// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stats: all wheels at a glance, in debugfs, for root:
 *
 *	timewheel/wheels	a line for each wheel
 *	timewheel/users		a line for each user that has wheels
 *	timewheel/namespaces	a line for each user namespace that pays for wheels
 *	timewheel/stats		sums and histograms since the module was loaded,
 *				wheels that have ended included
 *
 * The code that sets a wheel up adds it here, and removes it before its end.
 */
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "clock.h"
#include "limits.h"
#include "stats.h"

/**
 * struct tw_sums - what wheels have counted
 * @info: sums of the counters; of living wheels also of what they have
 * @lateness: sums of the histograms
 */
struct tw_sums {
	struct timewheel_info	info;
	struct tw_lateness	lateness;
};

static DEFINE_MUTEX(tw_stats_lock);	/* guards the list and the sums */
static LIST_HEAD(tw_wheels);		/* those set up */
static struct tw_sums tw_ended;		/* of those that are gone */
static struct dentry *tw_debugfs __ro_after_init;

#define TW_COUNTER(field)						\
	{ #field, offsetof(struct timewheel_info, field) }

/* The counters: what a wheel leaves behind. */
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
	TW_COUNTER(kicked),
	TW_COUNTER(deleted),
	TW_COUNTER(missed),
};

static u64 tw_counter(const struct timewheel_info *info, unsigned int i)
{
	return *(const u64 *)((const void *)info + tw_counters[i].at);
}

static void tw_sums_add(struct tw_sums *sums, const struct timewheel_info *info,
			const struct tw_lateness *lateness)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw_counters); i++)
		*(u64 *)((void *)&sums->info + tw_counters[i].at) +=
			tw_counter(info, i);
	tw_histogram_add(&sums->lateness.events, &lateness->events);
	tw_histogram_add(&sums->lateness.looks, &lateness->looks);
}

/* Enters a wheel that has just been set up. May sleep. */
void tw_stats_add(struct tw_wheel *wheel)
{
	mutex_lock(&tw_stats_lock);
	list_add_tail(&wheel->entry, &tw_wheels);
	mutex_unlock(&tw_stats_lock);
}

/* Removes a wheel that no thread uses any more, set up or not. May sleep. */
void tw_stats_remove(struct tw_wheel *wheel)
{
	struct timewheel_info info;

	if (wheel->stage == TW_NEW)
		return;
	tw_wheel_info(wheel, &info);
	mutex_lock(&tw_stats_lock);
	list_del(&wheel->entry);
	tw_sums_add(&tw_ended, &info, wheel->lateness);
	mutex_unlock(&tw_stats_lock);
}

static void *tw_wheels_start(struct seq_file *m, loff_t *pos)
{
	mutex_lock(&tw_stats_lock);

	return seq_list_start_head(&tw_wheels, *pos);
}

static void *tw_wheels_next(struct seq_file *m, void *v, loff_t *pos)
{
	return seq_list_next(v, &tw_wheels, pos);
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
	struct timewheel_info info;
	struct tw_wheel *wheel;
	unsigned int i;

	if (v == &tw_wheels) {
		tw_wheels_show_head(m);
		return 0;
	}

	wheel = list_entry(v, struct tw_wheel, entry);
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

static int tw_users_show(struct seq_file *m, void *v)
{
	tw_limits_show_users(m);

	return 0;
}

DEFINE_SHOW_ATTRIBUTE(tw_users);

static int tw_namespaces_show(struct seq_file *m, void *v)
{
	tw_limits_show_namespaces(m);

	return 0;
}

DEFINE_SHOW_ATTRIBUTE(tw_namespaces);

static void tw_histogram_show(struct seq_file *m, const char *name,
			      const struct tw_histogram *histogram)
{
	unsigned int i;

	for (i = 0; i < TIMEWHEEL_BUCKETS; i++)
		if (histogram->bucket[i])
			seq_printf(m, "%s %llu %llu %llu\n", name,
				   tw_bucket_low(i), tw_bucket_low(i + 1) - 1,
				   histogram->bucket[i]);
}

/*
 * Adds what all living wheels have counted. A wheel that was destroyed lives until
 * its last file is closed. Returns how many there are.
 */
static unsigned int tw_sums_add_living(struct tw_sums *sums,
				       struct tw_lateness *lateness)
{
	struct timewheel_info info;
	struct tw_wheel *wheel;
	unsigned int n = 0;

	list_for_each_entry(wheel, &tw_wheels, entry) {
		tw_wheel_info(wheel, &info);
		tw_wheel_lateness(wheel, lateness);
		tw_sums_add(sums, &info, lateness);
		sums->info.pending += info.pending;
		sums->info.bytes += info.bytes;
		n++;
		cond_resched();
	}

	return n;
}

static int tw_stats_show(struct seq_file *m, void *v)
{
	struct tw_sums *sums = kmalloc(sizeof(*sums), GFP_KERNEL);
	struct tw_lateness *lateness = kmalloc(sizeof(*lateness), GFP_KERNEL);
	unsigned int n, i;
	int err = -ENOMEM;

	if (!sums || !lateness)
		goto free;
	mutex_lock(&tw_stats_lock);
	*sums = tw_ended;
	n = tw_sums_add_living(sums, lateness);
	mutex_unlock(&tw_stats_lock);

	seq_printf(m, "wheels %u\npending %llu\nbytes %llu\n", n,
		   sums->info.pending, sums->info.bytes);
	for (i = 0; i < ARRAY_SIZE(tw_counters); i++)
		seq_printf(m, "%s %llu\n", tw_counters[i].name,
			   tw_counter(&sums->info, i));
	tw_histogram_show(m, "lateness_ns", &sums->lateness.events);
	tw_histogram_show(m, "wake_ns", &sums->lateness.looks);
	err = 0;
free:
	kfree(lateness);
	kfree(sums);
	return err;
}

DEFINE_SHOW_ATTRIBUTE(tw_stats);

/* Without debugfs there are no such files, and nothing else changes. */
void __init tw_stats_init(void)
{
	tw_debugfs = debugfs_create_dir("timewheel", NULL);
	debugfs_create_file("wheels", 0400, tw_debugfs, NULL, &tw_wheels_fops);
	debugfs_create_file("users", 0400, tw_debugfs, NULL, &tw_users_fops);
	debugfs_create_file("namespaces", 0400, tw_debugfs, NULL,
			    &tw_namespaces_fops);
	debugfs_create_file("stats", 0400, tw_debugfs, NULL, &tw_stats_fops);
}

void tw_stats_exit(void)
{
	debugfs_remove(tw_debugfs);
}
