// SPDX-License-Identifier: GPL-2.0-only
/*
 * Probe: a module that makes an error when it is told to, one fault at a time, by its
 * parameter "fault". The script "negative" has each fault found and reported.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/uaccess.h>

#define TW_PROBE_SIZE	40
#define TW_PROBE_PERIOD	(200 * NSEC_PER_USEC)

static DEFINE_MUTEX(tw_probe_a);	/* taken before and after tw_probe_b */
static DEFINE_MUTEX(tw_probe_b);	/* taken after and before tw_probe_a */
static DEFINE_SPINLOCK(tw_probe_lock);
static DEFINE_RAW_SPINLOCK(tw_probe_raw);

/* Returns a cache of the probe's own, whose objects are not mixed with the kernel's. */
static struct kmem_cache *tw_probe_cache(void)
{
	return kmem_cache_create("tw_probe", TW_PROBE_SIZE, 0, 0, NULL);
}

/* Writes a byte. The compiler does not see the object, and cannot see the error. */
static noinline void tw_probe_write(u8 *object, unsigned int at)
{
	OPTIMIZER_HIDE_VAR(object);
	OPTIMIZER_HIDE_VAR(at);
	WRITE_ONCE(object[at], 0x17);
}

static void tw_probe_none(void)
{
}

static void tw_probe_use_after_free(void)
{
	struct kmem_cache *cache = tw_probe_cache();
	u8 *object = kmem_cache_alloc(cache, GFP_KERNEL);

	kmem_cache_free(cache, object);
	tw_probe_write(object, 8);
	kmem_cache_destroy(cache);
}

static void tw_probe_out_of_bounds(void)
{
	struct kmem_cache *cache = tw_probe_cache();
	u8 *object = kmem_cache_alloc(cache, GFP_KERNEL);

	tw_probe_write(object, TW_PROBE_SIZE);
	kmem_cache_free(cache, object);
	kmem_cache_destroy(cache);
}

/* Leaks several objects, because the address of one may stay in a register or on a stack. */
static void tw_probe_leak(void)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		tw_probe_write(kmalloc(TW_PROBE_SIZE, GFP_KERNEL), 0);
}

static void tw_probe_objects_left(void)
{
	struct kmem_cache *cache = tw_probe_cache();

	tw_probe_write(kmem_cache_alloc(cache, GFP_KERNEL), 0);
	kmem_cache_destroy(cache);
}

static enum hrtimer_restart tw_probe_expired(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

static void tw_probe_armed_timer(void)
{
	struct hrtimer *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = tw_probe_expired;
	hrtimer_start(timer, ms_to_ktime(3600 * 1000), HRTIMER_MODE_REL);
	kfree(timer);
}

static void tw_probe_lock_order(void)
{
	mutex_lock(&tw_probe_a);
	mutex_lock(&tw_probe_b);
	mutex_unlock(&tw_probe_b);
	mutex_unlock(&tw_probe_a);

	mutex_lock(&tw_probe_b);
	mutex_lock(&tw_probe_a);
	mutex_unlock(&tw_probe_a);
	mutex_unlock(&tw_probe_b);
}

static void tw_probe_tick(struct timer_list *timer)
{
	spin_lock(&tw_probe_lock);
	spin_unlock(&tw_probe_lock);
}

/*
 * Takes a lock that a timer also takes. The timer could interrupt the owner, and wait
 * for it.
 */
static void tw_probe_lock_in_timer(void)
{
	static DEFINE_TIMER(timer, tw_probe_tick);

	spin_lock(&tw_probe_lock);
	spin_unlock(&tw_probe_lock);
	mod_timer(&timer, jiffies);
	msleep(100);
	del_timer_sync(&timer);
}

/* Takes a lock that sleeps on PREEMPT_RT inside of a lock that does not sleep. */
static void tw_probe_lock_in_raw(void)
{
	raw_spin_lock(&tw_probe_raw);
	spin_lock(&tw_probe_lock);
	spin_unlock(&tw_probe_lock);
	raw_spin_unlock(&tw_probe_raw);
}

static void tw_probe_sleep_in_lock(void)
{
	spin_lock(&tw_probe_lock);
	might_sleep();
	spin_unlock(&tw_probe_lock);
}

static void tw_probe_no_rcu_lock(void)
{
	static int number;
	static int __rcu *pointer = RCU_INITIALIZER(&number);

	WRITE_ONCE(number, *rcu_dereference(pointer) + 1);
}

static void tw_probe_list(void)
{
	static LIST_HEAD(list);
	static LIST_HEAD(entry);

	list_add(&entry, &list);
	list_del(&entry);
	list_del(&entry);
}

static void tw_probe_shift(void)
{
	static int result;
	unsigned int bits = 40;

	OPTIMIZER_HIDE_VAR(bits);
	WRITE_ONCE(result, 1 << bits);
}

static void tw_probe_references(void)
{
	static refcount_t references = REFCOUNT_INIT(1);

	refcount_dec(&references);
}

static void tw_probe_warn(void)
{
	WARN_ON(1);
}

/* Two threads share these variables. */
static struct {
	unsigned long	number;
	unsigned long	ready;
} tw_probe_shared;

/*
 * Runs a function in two threads, numbered 0 and 1. On a busy machine KCSAN needs
 * seconds to see both threads at the same time.
 */
static void tw_probe_twice(int (*function)(void *which))
{
	struct task_struct *task[2];
	long i;

	for (i = 0; i < 2; i++)
		task[i] = kthread_run(function, (void *)i, "tw_probe/%ld", i);
	msleep(5000);
	for (i = 0; i < 2; i++)
		kthread_stop(task[i]);
}

static int tw_probe_count(void *which)
{
	while (!kthread_should_stop()) {
		tw_probe_shared.number++;
		cond_resched();
	}

	return 0;
}

static void tw_probe_race(void)
{
	tw_probe_twice(tw_probe_count);
}

/* Hands the number from one thread to the other and back. Each time needs a release. */
static int tw_probe_hand_over(void *which)
{
	while (!kthread_should_stop()) {
		if (READ_ONCE(tw_probe_shared.ready) == (unsigned long)which) {
			tw_probe_shared.number++;
			WRITE_ONCE(tw_probe_shared.ready, !which);
		}
		cond_resched();
	}

	return 0;
}

static void tw_probe_barrier(void)
{
	tw_probe_twice(tw_probe_hand_over);
}

static enum hrtimer_restart tw_probe_count_again(struct hrtimer *timer)
{
	tw_probe_shared.number++;
	hrtimer_forward_now(timer, ns_to_ktime(TW_PROBE_PERIOD));

	return HRTIMER_RESTART;
}

/* Races with a timer that interrupts this thread on the same CPU. */
static void tw_probe_race_with_timer(void)
{
	unsigned long end = jiffies + HZ;
	struct hrtimer timer;

	hrtimer_init_on_stack(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
	timer.function = tw_probe_count_again;
	preempt_disable();
	hrtimer_start(&timer, ns_to_ktime(TW_PROBE_PERIOD), HRTIMER_MODE_REL_PINNED);
	while (time_before(jiffies, end)) {
		tw_probe_shared.number++;
		barrier();
	}
	preempt_enable();
	hrtimer_cancel(&timer);
	destroy_hrtimer_on_stack(&timer);
}

/* The compiler leaves a hole before the number, which is not initialised. */
struct tw_probe_answer {
	u8	code;
	u64	number;
};

/* Copies bytes to user space, to a page of its own. */
static void tw_probe_give(const void *bytes, size_t size)
{
	unsigned long page = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, 0);

	if (IS_ERR_VALUE(page))
		return;
	if (!copy_to_user((void __user *)page, bytes, size))
		vm_munmap(page, PAGE_SIZE);
}

static void tw_probe_stack_to_user(void)
{
	struct tw_probe_answer answer;

	answer.code = 1;
	answer.number = 2;
	tw_probe_give(&answer, sizeof(answer));
}

static void tw_probe_heap_to_user(void)
{
	u8 *object = kmalloc(TW_PROBE_SIZE, GFP_KERNEL);

	tw_probe_write(object, 0);
	tw_probe_give(object, TW_PROBE_SIZE);
	kfree(object);
}

static void tw_probe_decision(void)
{
	u8 *object = kmalloc(TW_PROBE_SIZE, GFP_KERNEL);

	if (READ_ONCE(object[8]))
		tw_probe_write(object, 0);
	kfree(object);
}

#define TW_PROBE_FAULT(name) { #name, tw_probe_##name }

static const struct {
	const char	*name;
	void		(*act)(void);
} tw_probe_faults[] = {
	TW_PROBE_FAULT(none),
	TW_PROBE_FAULT(use_after_free),
	TW_PROBE_FAULT(out_of_bounds),
	TW_PROBE_FAULT(leak),
	TW_PROBE_FAULT(objects_left),
	TW_PROBE_FAULT(armed_timer),
	TW_PROBE_FAULT(lock_order),
	TW_PROBE_FAULT(lock_in_timer),
	TW_PROBE_FAULT(lock_in_raw),
	TW_PROBE_FAULT(sleep_in_lock),
	TW_PROBE_FAULT(no_rcu_lock),
	TW_PROBE_FAULT(list),
	TW_PROBE_FAULT(shift),
	TW_PROBE_FAULT(references),
	TW_PROBE_FAULT(warn),
	TW_PROBE_FAULT(race),
	TW_PROBE_FAULT(barrier),
	TW_PROBE_FAULT(race_with_timer),
	TW_PROBE_FAULT(stack_to_user),
	TW_PROBE_FAULT(heap_to_user),
	TW_PROBE_FAULT(decision),
};

static int tw_probe_set(const char *value, const struct kernel_param *param)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw_probe_faults); i++) {
		if (!sysfs_streq(value, tw_probe_faults[i].name))
			continue;
		tw_probe_faults[i].act();
		return 0;
	}

	return -EINVAL;
}

static const struct kernel_param_ops tw_probe_ops = { .set = tw_probe_set };

module_param_cb(fault, &tw_probe_ops, NULL, 0200);
MODULE_PARM_DESC(fault, "what to do wrong");

MODULE_DESCRIPTION("Does what a kernel must find");
MODULE_LICENSE("GPL");
