/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_RANDOM_H
#define TW_LINUX_RANDOM_H

#include <stdlib.h>
#include <sys/random.h>

#include <linux/types.h>

static inline u32 get_random_u32(void)
{
	u32 number;

	/* getrandom() gives so few bytes at once, and all of them. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		abort();

	return number;
}

#endif /* TW_LINUX_RANDOM_H */
