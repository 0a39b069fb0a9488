/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages on standard error. All other parts use this part, and this part uses no other.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#define __printf(text, first) __attribute__((\
	__format__(printf, text, first)))
#define __noreturn	__attribute__((__noreturn__))

/* These are the exit statuses besides 0. After MISUSED the unit does not start the daemon again. */
#define FAILED		1
#define MISUSED		2

__printf(1, 2)
void say(const char *format, ...);
/* Tells what failed, adds the text for errno @err unless it is 0, and exits. */
__noreturn __printf(2, 3)
void die(int err, const char *format, ...);
/* must() checks a call to sd-event that fails only if there is no memory. */
void must(int result);

#endif /* COMMON_LOG_H */
