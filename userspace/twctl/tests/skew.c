// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded, it lets the kernel's module look like one of another version, of
 * which $TWCTL_SKEW names what is other.
 */
#include <errno.h>
#include <linux/timewheel.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void change(struct timewheel_caps *caps, const char *what)
{
	if (!strcmp(what, "op_size"))
		caps->op_size -= 8;
	else if (!strcmp(what, "token_size"))
		caps->token_size -= 8;
	else if (!strcmp(what, "event_size"))
		caps->event_size += 8;
	else if (!strcmp(what, "codes"))
		caps->codes &= ~(1U << TIMEWHEEL_OP_DELETE);
	else if (!strcmp(what, "settings"))
		caps->setup_flags &= ~TIMEWHEEL_SETUP_PERIODS;
	else if (!strcmp(what, "clocks"))
		caps->clocks &= ~(1U << TIMEWHEEL_CLOCK_MANUAL);
}

static int fails(int err)
{
	errno = err;
	return -1;
}

int ioctl(int fd, unsigned long command, ...)
{
	const char *what = getenv("TWCTL_SKEW");
	va_list args;
	void *arg;
	int ret;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	if (what && !strcmp(what, "names") &&
	    (command == TIMEWHEEL_IOC_CREATE || command == TIMEWHEEL_IOC_DESTROY))
		return fails(ENOTTY);
	if (what && !strcmp(what, "caps") && command == TIMEWHEEL_IOC_CAPS)
		return fails(EINVAL);
	ret = syscall(SYS_ioctl, fd, command, arg);
	if (!ret && what && command == TIMEWHEEL_IOC_CAPS)
		change(arg, what);
	return ret;
}
