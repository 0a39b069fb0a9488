/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_NOSPEC_H
#define TW_LINUX_NOSPEC_H

#define array_index_nospec(index, size)	((index) < (size) ? (index) : 0)

#endif /* TW_LINUX_NOSPEC_H */
