/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header, which includes as much. */
#ifndef TW_LINUX_MM_H
#define TW_LINUX_MM_H

#include <linux/bug.h>
#include <linux/gfp.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#undef PAGE_SIZE
#ifdef TW_PAGE_SIZE
#define PAGE_SIZE		TW_PAGE_SIZE
#else
#define PAGE_SIZE		4096UL
#endif
#define PAGE_ALIGN(size)	(((size) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1))

#endif /* TW_LINUX_MM_H */
