// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes of wheels in /dev/timewheels: whose they are.
 */
#include <spawn.h>
#include <sys/wait.h>

#include "twctl.h"

#define NODE_PATH	(sizeof("/dev/timewheels/") + TIMEWHEEL_NAME_SIZE)

static void node_path(char *path, const char *name)
{
	snprintf(path, NODE_PATH, "/dev/timewheels/%s", name);
}

bool node_stat(const char *name, struct stat *stat_of)
{
	char path[NODE_PATH];

	node_path(path, name);
	return !stat(path, stat_of);
}

/*
 * udev gives a new node the mode that the kernel names, which is 0600, and may do so when the
 * mode has been changed already. This function waits until udev has given it.
 */
void node_settle(void)
{
	static char * const command[] = { "udevadm", "settle", "--timeout=30", NULL };
	int status;
	pid_t pid;

	if (access("/run/udev/control", F_OK) < 0)
		return;
	if (posix_spawnp(&pid, command[0], NULL, NULL, command, environ))
		return;
	if (waitpid(pid, &status, 0) < 0 || status)
		complain("udevadm settle has failed: udev may set the mode back to 600");
}

enum status node_set(const char *name, const struct owner *owner)
{
	char path[NODE_PATH];
	struct stat old;

	node_path(path, name);
	if (stat(path, &old) < 0)
		return trouble(STATUS_NOT_THERE, "%s: %s", path, strerror(errno));
	if ((old.st_uid != owner->uid || old.st_gid != owner->gid) &&
	    chown(path, owner->uid, owner->gid) < 0)
		return trouble(STATUS_NOT_ALLOWED, "chown %u:%u %s: %s",
			       owner->uid, owner->gid, path, strerror(errno));
	if ((old.st_mode & 0777) != owner->mode && chmod(path, owner->mode) < 0)
		return trouble(STATUS_NOT_ALLOWED, "chmod %o %s: %s",
			       owner->mode, path, strerror(errno));
	return STATUS_OK;
}
