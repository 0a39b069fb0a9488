/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Limits: how many wheels and tokens a user, a user namespace, and all users may
 * have, and how a wheel may be set up. Module parameters, which may be changed at
 * any time.
 */
#ifndef TW_LIMITS_H
#define TW_LIMITS_H

#include <linux/seq_file.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct tw_account;

/**
 * struct tw_charge - what a wheel is charged to
 * @user: the user
 * @ns: the user namespace, NULL if it does not pay
 * @tokens: the number of tokens
 */
struct tw_charge {
	struct tw_account	*user;
	struct tw_account	*ns;
	u32			tokens;
};

/* Readers use READ_ONCE(). The first is in ns, the second counts tokens of one wheel. */
extern unsigned int tw_min_tick_ns;
extern unsigned int tw_max_tokens;

int tw_limits_charge(struct tw_charge *charge, u32 tokens);
void tw_limits_uncharge(const struct tw_charge *charge);
kuid_t tw_charge_uid(const struct tw_charge *charge);
void tw_limits_show(struct seq_file *m, bool namespaces);

#endif /* TW_LIMITS_H */
