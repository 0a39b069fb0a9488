// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded, it lets the kernel's module look like one of another version, and $TWCTL_SKEW
 * names what is different in it. "register" lets one registration fail, the one of number
 * $TWCTL_SKEW_AT.
 */
#include <errno.h>
#include <linux/timewheel.h>
#include <stdarg.h>
#include <stdint.h>
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

/* The kernel refuses an operation with a flag that it does not know. */
static void spoil(const struct timewheel_batch *batch)
{
	struct timewheel_op *op = (void *)(uintptr_t)batch->ops;
	const char *at = getenv("TWCTL_SKEW_AT");
	static int registered;
	unsigned int i;

	for (i = 0; i < batch->count; i++) {
		if (op[i].code == TIMEWHEEL_OP_REGISTER && ++registered == atoi(at))
			op[i].flags |= 1U << 31;
	}
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
	if (what && !strcmp(what, "register") && command == TIMEWHEEL_IOC_BATCH)
		spoil(arg);
	ret = syscall(SYS_ioctl, fd, command, arg);
	if (!ret && what && command == TIMEWHEEL_IOC_CAPS)
		change(arg, what);
	return ret;
}
