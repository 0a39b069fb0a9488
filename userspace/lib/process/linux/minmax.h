/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header, as strict about types. */
#ifndef TW_LINUX_MINMAX_H
#define TW_LINUX_MINMAX_H

#define tw_select(x, op, y) ({						\
	__typeof__(x) x_ = (x);						\
	__typeof__(y) y_ = (y);						\
	_Static_assert(__builtin_types_compatible_p(__typeof__(x_),	\
						    __typeof__(y_)),	\
		       "min or max of two types");			\
	x_ op y_ ? x_ : y_;						\
})

#define min(x, y)		tw_select(x, <, y)
#define max(x, y)		tw_select(x, >, y)
#define min_t(type, x, y)	min((type)(x), (type)(y))
#define max_t(type, x, y)	max((type)(x), (type)(y))

#endif /* TW_LINUX_MINMAX_H */
