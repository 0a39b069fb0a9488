/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits: how many wheels and tokens a user, and all users, may have, and how a
 * wheel may be set up. Module parameters, which may be changed at any time.
 */
#ifndef TW_LIMITS_H
#define TW_LIMITS_H

#include <linux/seq_file.h>
#include <linux/types.h>
#include <linux/uidgid.h>

struct tw_user;

/* Read with READ_ONCE(): ns, and tokens of one wheel. */
extern unsigned int tw_min_tick_ns;
extern unsigned int tw_max_tokens;

struct tw_user *tw_limits_charge(u32 tokens);
void tw_limits_uncharge(struct tw_user *user, u32 tokens);
kuid_t tw_user_uid(const struct tw_user *user);
void tw_limits_show(struct seq_file *m);

#endif /* TW_LIMITS_H */
