// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells which right is missing to find connections or to end them, and which
 * connections are passed over.
 */
#include <linux/capability.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "reap.h"

/* Whether this process has a capability, by its number. */
bool may(int capability)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { };

	if (syscall(SYS_capget, &header, data) < 0)
		return true;
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

__printf(3, 4)
static void tell_once(struct reap *reap, enum once what, const char *format, ...)
{
	bool told = reap->told & 1 << what;
	char text[512];
	va_list args;

	reap->told |= 1 << what;
	if (told)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain("%s", text);
}

/* A process may look at another's files in /proc only if ptrace(2) would let it read its memory. */
void tell_ptrace(struct reap *reap, pid_t pid)
{
	const char *why = may(CAP_SYS_PTRACE) ?
		"a security module forbids it, or the process belongs to another user namespace" :
		"it belongs to another user, or has rights, and CAP_SYS_PTRACE is missing";

	reap->denied = true;
	tell_once(reap, ONCE_PTRACE,
		  "process %d: its connections cannot be found: %s. --listen PORT without --pid and --cgroup needs no such right",
		  pid, why);
}

void tell_files(struct reap *reap, pid_t pid)
{
	reap->denied = true;
	tell_once(reap, ONCE_FILES,
		  "process %d: /proc/%d/fd cannot be read: CAP_DAC_READ_SEARCH is missing",
		  pid, pid);
}

void tell_space(struct reap *reap, pid_t pid)
{
	reap->denied = true;
	tell_once(reap, ONCE_SPACE,
		  "process %d: it is in another network namespace: CAP_SYS_ADMIN is missing to ask there",
		  pid);
}

void tell_multipath(struct reap *reap)
{
	tell_once(reap, ONCE_MPTCP, "connections by MPTCP are passed over");
}

void tell_full(struct reap *reap)
{
	tell_once(reap, ONCE_FULL,
		  "too many connections, or too little memory: some wait until others have ended");
}

/* Tells by errno of sock_diag(7) why it does not work. */
enum status diag_trouble(int err)
{
	switch (err) {
	case EPERM:
		if (may(CAP_NET_ADMIN))
			return trouble(STATUS_NOT_ALLOWED,
				       "connections cannot be ended: CAP_NET_ADMIN is missing in the user namespace to which the network namespace belongs");
		return trouble(STATUS_NOT_ALLOWED,
			       "connections cannot be ended: CAP_NET_ADMIN is missing");
	case EOPNOTSUPP:
		return trouble(STATUS_FAILED,
			       "connections cannot be ended: the kernel was built without CONFIG_INET_DIAG_DESTROY");
	case ENOENT:
	case EPROTONOSUPPORT:
		return trouble(STATUS_FAILED,
			       "connections cannot be found: the kernel lacks the module tcp_diag (CONFIG_INET_TCP_DIAG)");
	default:
		return trouble(STATUS_FAILED, "cannot ask for connections: %s",
			       strerror(err));
	}
}
