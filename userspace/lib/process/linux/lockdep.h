/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. It checks nothing. */
#ifndef TW_LINUX_LOCKDEP_H
#define TW_LINUX_LOCKDEP_H

#define lockdep_assert_held(lock)	((void)(lock))

#endif /* TW_LINUX_LOCKDEP_H */
