/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages on standard error. They need nothing of the other parts.
 */
#ifndef TWIDLED_LOG_H
#define TWIDLED_LOG_H

#define __printf(text, first) __attribute__((\
	__format__(printf, text, first)))
#define __noreturn	__attribute__((__noreturn__))

/* Exit statuses besides 0. A unit does not restart for the second. */
#define FAILED		1
#define MISUSED		2

__printf(1, 2)
void say(const char *format, ...);
/* Says what failed, and why by @err (0: no more is known), and exits. */
__noreturn __printf(2, 3)
void die(int err, const char *format, ...);
/* For calls to sd-event that fail only for want of memory. */
void must(int result);

#endif /* TWIDLED_LOG_H */
