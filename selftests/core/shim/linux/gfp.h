/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header: pages. */
#ifndef SHIM_LINUX_GFP_H
#define SHIM_LINUX_GFP_H

#include <linux/types.h>

#define __GFP_ZERO		1U
#define GFP_KERNEL		2U
#define GFP_KERNEL_ACCOUNT	6U
#define __GFP_RETRY_MAYFAIL	8U
#define __GFP_NOWARN		16U

void *alloc_pages_exact(size_t size, gfp_t gfp);
void free_pages_exact(void *pages, size_t size);

#endif /* SHIM_LINUX_GFP_H */
