// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits: how many wheels and tokens a user, and all users, may have.
 *
 * A wheel counts with all the tokens that it may ever hold, from its set-up to
 * its end, so that no registration has to ask here. Users are those of the
 * host's user namespace. The user that has made a user namespace pays for all in it, so
 * that a user gets no more by the ids of its namespaces. Users of a namespace that
 * root has made pay for themselves.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/limits.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/time64.h>
#include <linux/user_namespace.h>

#include "blocks.h"
#include "limits.h"

/* The values that the module parameters may have. */
#define TW_LEAST_TICK_NS	1000
#define TW_MOST_TOKENS		BIT(28)

unsigned int tw_min_tick_ns = 100000;
unsigned int tw_max_tokens = BIT(24);
static unsigned int tw_max_user_wheels = 1024;
static unsigned int tw_max_user_tokens = BIT(20);
static unsigned int tw_max_all_wheels = BIT(16);
static unsigned int tw_max_all_tokens = BIT(28);

static int tw_set_min_tick(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, TW_LEAST_TICK_NS, NSEC_PER_SEC);
}

static int tw_set_max_tokens(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, TW_MOST_TOKENS);
}

static int tw_set_count(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, UINT_MAX);
}

static const struct kernel_param_ops tw_min_tick_ops = {
	.set = tw_set_min_tick,
	.get = param_get_uint,
};

static const struct kernel_param_ops tw_max_tokens_ops = {
	.set = tw_set_max_tokens,
	.get = param_get_uint,
};

static const struct kernel_param_ops tw_count_ops = {
	.set = tw_set_count,
	.get = param_get_uint,
};

module_param_cb(min_tick_ns, &tw_min_tick_ops, &tw_min_tick_ns, 0644);
MODULE_PARM_DESC(min_tick_ns,
		 "shortest tick of a new wheel, in ns (1000..1000000000)");
module_param_cb(max_tokens, &tw_max_tokens_ops, &tw_max_tokens, 0644);
MODULE_PARM_DESC(max_tokens,
		 "most tokens that a new wheel may have (1..268435456)");
module_param_cb(max_user_wheels, &tw_count_ops, &tw_max_user_wheels, 0644);
MODULE_PARM_DESC(max_user_wheels,
		 "most wheels of a user without CAP_SYS_RESOURCE");
module_param_cb(max_user_tokens, &tw_count_ops, &tw_max_user_tokens, 0644);
MODULE_PARM_DESC(max_user_tokens,
		 "most tokens that the wheels of a user without CAP_SYS_RESOURCE may have");
module_param_cb(max_all_wheels, &tw_count_ops, &tw_max_all_wheels, 0644);
MODULE_PARM_DESC(max_all_wheels, "most wheels of all users");
module_param_cb(max_all_tokens, &tw_count_ops, &tw_max_all_tokens, 0644);
MODULE_PARM_DESC(max_all_tokens,
		 "most tokens that the wheels of all users may have");

/**
 * struct tw_count - wheels, and the tokens that they may have
 * @wheels: how many; tw_limits_lock
 * @tokens: how many; tw_limits_lock
 */
struct tw_count {
	u32	wheels;
	u64	tokens;
};

/**
 * struct tw_user - a user that has wheels; exists as long as it has any
 * @node: in tw_users; tw_limits_lock
 * @uid: the user's id; constant
 * @has: what the user has; tw_limits_lock
 */
struct tw_user {
	struct hlist_node	node;
	kuid_t			uid;
	struct tw_count		has;
};

static DEFINE_MUTEX(tw_limits_lock);	/* guards all of the below; innermost */
static DEFINE_HASHTABLE(tw_users, 8);
static struct tw_count tw_all;

static bool tw_count_allows(const struct tw_count *has, u32 tokens,
			    u32 max_wheels, u32 max_tokens)
{
	return has->wheels < max_wheels && has->tokens + tokens <= max_tokens;
}

static int tw_limits_check(const struct tw_user *user, u32 tokens)
{
	if (!tw_count_allows(&user->has, tokens,
			     READ_ONCE(tw_max_user_wheels),
			     READ_ONCE(tw_max_user_tokens)) &&
	    !capable(CAP_SYS_RESOURCE))
		return -EDQUOT;
	if (!tw_count_allows(&tw_all, tokens, READ_ONCE(tw_max_all_wheels),
			     READ_ONCE(tw_max_all_tokens)))
		return -ENOSPC;

	return 0;
}

/* The user that is charged for what the caller does. */
static kuid_t tw_payer(void)
{
	const struct user_namespace *ns;
	kuid_t uid = current_euid();

	/* Up to the host's, which has no parent. */
	for (ns = current_user_ns(); ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;

	return uid;
}

static struct tw_user *tw_user_find(kuid_t uid)
{
	struct tw_user *user;

	hash_for_each_possible(tw_users, user, node, __kuid_val(uid))
		if (uid_eq(user->uid, uid))
			return user;

	return NULL;
}

/**
 * tw_limits_charge() - count a new wheel
 * @tokens: how many it may have
 *
 * May sleep.
 *
 * Return: the user that is charged, for tw_limits_uncharge(); -EDQUOT; -ENOSPC;
 * -ENOMEM.
 */
struct tw_user *tw_limits_charge(u32 tokens)
{
	struct tw_user *fresh = kzalloc(sizeof(*fresh), TW_GFP);
	struct tw_user *user;
	int err;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	fresh->uid = tw_payer();

	mutex_lock(&tw_limits_lock);
	user = tw_user_find(fresh->uid) ?: fresh;
	err = tw_limits_check(user, tokens);
	if (!err) {
		if (user == fresh)
			hash_add(tw_users, &user->node, __kuid_val(user->uid));
		user->has.wheels++;
		user->has.tokens += tokens;
		tw_all.wheels++;
		tw_all.tokens += tokens;
	}
	mutex_unlock(&tw_limits_lock);
	if (err || user != fresh)
		kfree(fresh);

	return err ? ERR_PTR(err) : user;
}

/**
 * tw_limits_uncharge() - a wheel is gone
 * @user: the user that was charged for it
 * @tokens: how many tokens it was charged for
 */
void tw_limits_uncharge(struct tw_user *user, u32 tokens)
{
	mutex_lock(&tw_limits_lock);
	user->has.wheels--;
	user->has.tokens -= tokens;
	tw_all.wheels--;
	tw_all.tokens -= tokens;
	if (!user->has.wheels) {
		hash_del(&user->node);
		kfree(user);
	}
	mutex_unlock(&tw_limits_lock);
}

/* The id of a user that has a wheel. */
kuid_t tw_user_uid(const struct tw_user *user)
{
	return user->uid;
}

/* A line for each user. */
void tw_limits_show(struct seq_file *m)
{
	struct tw_user *user;
	int i;

	seq_puts(m, "uid wheels tokens\n");
	mutex_lock(&tw_limits_lock);
	hash_for_each(tw_users, i, user, node)
		seq_printf(m, "%u %u %llu\n",
			   from_kuid_munged(seq_user_ns(m), user->uid),
			   user->has.wheels, user->has.tokens);
	mutex_unlock(&tw_limits_lock);
}
