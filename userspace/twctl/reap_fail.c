// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells which right is missing to take connections or to end them, and which
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

/* Yama's restriction of ptrace(2), 0 without Yama. */
static int yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	return scope;
}

/* pidfd_getfd(2) asks for the right to attach to the process by ptrace(2). */
void tell_ptrace(struct reap *reap, pid_t pid)
{
	int scope = yama_scope();

	reap->denied = true;
	if (scope == 3)
		tell_once(reap, ONCE_PTRACE,
			  "process %d: its connections cannot be taken: kernel.yama.ptrace_scope is 3, which forbids it until the next boot",
			  pid);
	else if (may(CAP_SYS_PTRACE))
		tell_once(reap, ONCE_PTRACE,
			  "process %d: its connections cannot be taken although CAP_SYS_PTRACE is there: a security module forbids it, or the process belongs to another user namespace",
			  pid);
	else if (scope)
		tell_once(reap, ONCE_PTRACE,
			  "process %d: its connections cannot be taken: CAP_SYS_PTRACE is missing, which kernel.yama.ptrace_scope = %d asks for",
			  pid, scope);
	else
		tell_once(reap, ONCE_PTRACE,
			  "process %d: its connections cannot be taken: it belongs to another user, or has rights, and CAP_SYS_PTRACE is missing",
			  pid);
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

/* By errno of WATCH: why a connection is not watched, and what is done with it. */
enum conn_state tell_refused(struct reap *reap, int err)
{
	switch (err) {
	case ENOTCONN:		/* ended just now */
		return CONN_NEW;
	case ENOSPC:
	case ENOMEM:
		tell_once(reap, ONCE_FULL,
			  "too many connections, or too little memory: some are not watched until others have ended");
		return CONN_NEW;
	case EBUSY:
		tell_once(reap, ONCE_SOCKMAP,
			  "connections in a sockmap of BPF are passed over: the kernel does not know when they carry data");
		return CONN_LEFT;
	case EPROTONOSUPPORT:
		tell_once(reap, ONCE_MPTCP,
			  "connections by MPTCP are passed over");
		return CONN_LEFT;
	default:
		tell_once(reap, ONCE_OTHER, "a connection is passed over: %s",
			  tw_strerror(err));
		return CONN_LEFT;
	}
}

/* By errno of sock_diag(7): why it does not work. */
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
		return trouble(STATUS_FAILED,
			       "connections cannot be found: the kernel lacks the module tcp_diag (CONFIG_INET_TCP_DIAG)");
	default:
		return trouble(STATUS_FAILED, "cannot ask for connections: %s",
			       strerror(err));
	}
}
