/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header: flags for memory. */
#ifndef TW_LINUX_GFP_H
#define TW_LINUX_GFP_H

#include <linux/types.h>

#define __GFP_ZERO		1U
#define GFP_KERNEL		2U
#define GFP_KERNEL_ACCOUNT	6U
#define __GFP_RETRY_MAYFAIL	8U
#define __GFP_NOWARN		16U

#endif /* TW_LINUX_GFP_H */
