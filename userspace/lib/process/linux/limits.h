/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_LIMITS_H
#define TW_LINUX_LIMITS_H

#include_next <linux/limits.h>
#include <linux/types.h>

#define U16_MAX		((u16)~0U)
#define U32_MAX		((u32)~0U)
#define U64_MAX		((u64)~0ULL)
#define S32_MAX		((s32)(U32_MAX >> 1))
#define S64_MAX		((s64)(U64_MAX >> 1))

#endif /* TW_LINUX_LIMITS_H */
