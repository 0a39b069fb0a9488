/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Named wheels: /dev/timewheels/NAME.
 */
#ifndef TW_NAMED_H
#define TW_NAMED_H

#include <linux/fs.h>

#include "wheel.h"

int tw_named_create(const char *name, const struct timewheel_setup *setup,
		    bool exclusive);
int tw_named_destroy(const char *name);
struct tw_wheel *tw_named_of(const struct inode *inode);
int tw_named_init(const struct file_operations *fops);
void tw_named_exit(void);

#endif /* TW_NAMED_H */
