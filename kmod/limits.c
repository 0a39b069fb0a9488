// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits: how many wheels and tokens a user, a user namespace, and all users may
 * have.
 *
 * A wheel counts with all the tokens that it may ever hold, from its set-up to
 * its end, so that no registration has to ask here. Users are counted by their ids on
 * the host. The user that has made a user namespace pays for all in it, and gets no more
 * by the ids of its namespaces. Users of a namespace that root has made pay for
 * themselves. Such users can be very many, and their namespace pays, too: all users of
 * the namespace together may have as much as they leave to others.
 */
#include <linux/capability.h>
#include <linux/cred.h>
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

/* One part in TW_RESERVE of all wheels and tokens is kept for CAP_SYS_RESOURCE. */
#define TW_RESERVE		8

unsigned int tw_min_tick_ns = 100000;
unsigned int tw_max_tokens = BIT(24);
static unsigned int tw_max_user_wheels = 1024;
static unsigned int tw_max_user_tokens = BIT(20);
static unsigned int tw_max_all_wheels = BIT(16);
static unsigned int tw_max_all_tokens = BIT(28);

static int tw_set_param(const char *val, const struct kernel_param *kp)
{
	if (kp->arg == &tw_min_tick_ns)
		return param_set_uint_minmax(val, kp, TW_LEAST_TICK_NS,
					     NSEC_PER_SEC);

	return param_set_uint_minmax(val, kp, 1, kp->arg == &tw_max_tokens ?
						 TW_MOST_TOKENS : UINT_MAX);
}

static const struct kernel_param_ops tw_param_ops = {
	.set = tw_set_param,
	.get = param_get_uint,
};

module_param_cb(min_tick_ns, &tw_param_ops, &tw_min_tick_ns, 0644);
MODULE_PARM_DESC(min_tick_ns,
		 "shortest tick of a new wheel, in ns (1000..1000000000)");
module_param_cb(max_tokens, &tw_param_ops, &tw_max_tokens, 0644);
MODULE_PARM_DESC(max_tokens,
		 "most tokens that a new wheel may have (1..268435456)");
module_param_cb(max_user_wheels, &tw_param_ops, &tw_max_user_wheels, 0644);
MODULE_PARM_DESC(max_user_wheels,
		 "most wheels of a user without CAP_SYS_RESOURCE");
module_param_cb(max_user_tokens, &tw_param_ops, &tw_max_user_tokens, 0644);
MODULE_PARM_DESC(max_user_tokens,
		 "most tokens that the wheels of a user without CAP_SYS_RESOURCE may have");
module_param_cb(max_all_wheels, &tw_param_ops, &tw_max_all_wheels, 0644);
MODULE_PARM_DESC(max_all_wheels, "most wheels of all users");
module_param_cb(max_all_tokens, &tw_param_ops, &tw_max_all_tokens, 0644);
MODULE_PARM_DESC(max_all_tokens,
		 "most tokens that the wheels of all users may have");

/**
 * struct tw_count - wheels, and the tokens that they may have
 * @wheels: how many; tw_limits_lock
 * @tokens: how many; tw_limits_lock
 */
struct tw_count {
	u64	wheels;
	u64	tokens;
};

/**
 * struct tw_account - what a user or a user namespace has, if it has any wheels
 * @node: its node in tw_accounts; tw_limits_lock
 * @ns: the namespace, with a reference to it; NULL for a user; constant
 * @uid: the user's id; invalid for a namespace; constant
 * @has: its wheels and tokens; tw_limits_lock
 */
struct tw_account {
	struct hlist_node	node;
	struct user_namespace	*ns;
	kuid_t			uid;
	struct tw_count		has;
};

static DEFINE_MUTEX(tw_limits_lock);	/* guards all of the below; innermost */
static DEFINE_HASHTABLE(tw_accounts, 8);
static struct tw_count tw_all;

static bool tw_count_allows(const struct tw_count *has, u32 tokens,
			    u64 max_wheels, u64 max_tokens)
{
	return has->wheels < max_wheels && has->tokens + tokens <= max_tokens;
}

static void tw_count_add(struct tw_count *has, u32 tokens)
{
	has->wheels++;
	has->tokens += tokens;
}

static void tw_count_sub(struct tw_count *has, u32 tokens)
{
	has->wheels--;
	has->tokens -= tokens;
}

/* Whether there may be another wheel in all, with or without the reserve. */
static bool tw_all_allows(const struct tw_count *has, u32 tokens, bool reserve)
{
	u32 wheels = READ_ONCE(tw_max_all_wheels);
	u32 max_tokens = READ_ONCE(tw_max_all_tokens);

	if (!reserve) {
		wheels -= wheels / TW_RESERVE;
		max_tokens -= max_tokens / TW_RESERVE;
	}

	return tw_count_allows(has, tokens, wheels, max_tokens);
}

static int tw_limits_check(const struct tw_charge *charge, u32 tokens)
{
	struct tw_count has = tw_all;

	if (!tw_count_allows(&charge->user->has, tokens,
			     READ_ONCE(tw_max_user_wheels),
			     READ_ONCE(tw_max_user_tokens)) &&
	    !capable(CAP_SYS_RESOURCE))
		return -EDQUOT;

	/* The rest for others must then be at least what the namespace has already. */
	if (charge->ns) {
		has.wheels += charge->ns->has.wheels;
		has.tokens += charge->ns->has.tokens;
		tw_count_add(&has, tokens);
	}
	if (!tw_all_allows(&has, tokens, false) &&
	    !(tw_all_allows(&tw_all, tokens, true) &&
	      capable(CAP_SYS_RESOURCE)))
		return -ENOSPC;

	return 0;
}

/*
 * Finds who is charged for the caller: a user, and the outermost namespace of the caller if
 * root has made it.
 */
static void tw_payers(kuid_t *uid, struct user_namespace **payer)
{
	struct user_namespace *ns;

	*uid = current_euid();
	*payer = NULL;
	/* The loop goes up to the host's namespace, which has no parent. */
	for (ns = current_user_ns(); ns->parent; ns = ns->parent) {
		*payer = uid_eq(ns->owner, GLOBAL_ROOT_UID) ? ns : NULL;
		if (!*payer)
			*uid = ns->owner;
	}
}

static unsigned long tw_account_key(const struct user_namespace *ns, kuid_t uid)
{
	return ns ? (unsigned long)ns : __kuid_val(uid);
}

static struct tw_account *tw_account_find(const struct user_namespace *ns,
					  kuid_t uid)
{
	struct tw_account *account;

	hash_for_each_possible(tw_accounts, account, node,
			       tw_account_key(ns, uid))
		if (account->ns == ns && uid_eq(account->uid, uid))
			return account;

	return NULL;
}

/*
 * Finds the account of a namespace, or of a user. If there is none, *spare becomes it, and is
 * NULL then.
 */
static struct tw_account *tw_account_get(struct user_namespace *ns, kuid_t uid,
					 struct tw_account **spare)
{
	struct tw_account *account = tw_account_find(ns, uid);

	if (account)
		return account;
	account = *spare;
	*spare = NULL;
	account->ns = ns ? get_user_ns(ns) : NULL;
	account->uid = uid;
	hash_add(tw_accounts, &account->node, tw_account_key(ns, uid));

	return account;
}

/* Ends an account, which may be NULL, unless it has wheels. */
static void tw_account_put(struct tw_account *account)
{
	if (!account || account->has.wheels)
		return;
	hash_del(&account->node);
	if (account->ns)
		put_user_ns(account->ns);
	kfree(account);
}

/* The caller holds the lock. @user, @ns: memory for accounts, NULL afterwards if used. */
static int tw_limits_enter(struct tw_charge *charge, u32 tokens,
			   struct tw_account **user, struct tw_account **ns)
{
	struct user_namespace *payer;
	kuid_t uid;
	int err;

	tw_payers(&uid, &payer);
	charge->tokens = tokens;
	charge->user = tw_account_get(NULL, uid, user);
	charge->ns = payer ? tw_account_get(payer, INVALID_UID, ns) : NULL;
	err = tw_limits_check(charge, tokens);
	if (!err) {
		tw_count_add(&tw_all, tokens);
		tw_count_add(&charge->user->has, tokens);
		if (charge->ns)
			tw_count_add(&charge->ns->has, tokens);
	} else {
		tw_account_put(charge->user);
		tw_account_put(charge->ns);
	}

	return err;
}

/*
 * Counts a new wheel of so many tokens, and tells what is charged for it. May sleep. Returns
 * 0; -EDQUOT; -ENOSPC; -ENOMEM.
 */
int tw_limits_charge(struct tw_charge *charge, u32 tokens)
{
	/* Memory comes before the lock: a cgroup at its limit may take long to find it. */
	struct tw_account *user = kzalloc(sizeof(*user), TW_GFP);
	struct tw_account *ns = kzalloc(sizeof(*ns), TW_GFP);
	int err = -ENOMEM;

	if (user && ns) {
		mutex_lock(&tw_limits_lock);
		err = tw_limits_enter(charge, tokens, &user, &ns);
		mutex_unlock(&tw_limits_lock);
	}
	kfree(user);
	kfree(ns);

	return err;
}

/* Counts a wheel that is gone. */
void tw_limits_uncharge(const struct tw_charge *charge)
{
	mutex_lock(&tw_limits_lock);
	tw_count_sub(&tw_all, charge->tokens);
	tw_count_sub(&charge->user->has, charge->tokens);
	tw_account_put(charge->user);
	if (charge->ns)
		tw_count_sub(&charge->ns->has, charge->tokens);
	tw_account_put(charge->ns);
	mutex_unlock(&tw_limits_lock);
}

/* Returns the id of the user that is charged. */
kuid_t tw_charge_uid(const struct tw_charge *charge)
{
	return charge->user->uid;
}

/*
 * Writes for debugfs a line for each user, or for each namespace, which is named by the number
 * that its file in /proc has.
 */
void tw_limits_show(struct seq_file *m, bool namespaces)
{
	struct tw_account *account;
	int i;

	seq_printf(m, "%s wheels tokens\n", namespaces ? "user_ns" : "uid");
	mutex_lock(&tw_limits_lock);
	hash_for_each(tw_accounts, i, account, node)
		if (!account->ns == !namespaces)
			seq_printf(m, "%u %llu %llu\n",
				   namespaces ? account->ns->ns.inum :
				   from_kuid_munged(seq_user_ns(m), account->uid),
				   account->has.wheels, account->has.tokens);
	mutex_unlock(&tw_limits_lock);
}
