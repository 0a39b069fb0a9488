// SPDX-License-Identifier: GPL-2.0-only
/* Servers, only one of which runs at a time, and the disk that they write to. */
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define SECTORS		"$(cat /sys/block/nvme0n1/size)"
#define SLOW		"slow"
#define SLOW_NODE	"/dev/dm-0"	/* the only device of the mapper */
#define DMSETUP		"dmsetup --noudevsync --noudevrules"

/* Makes a device of the mapper, with delays for reads, for writes and for flushes. */
static void make_slow(const char *disk, int flush)
{
	char command[512];

	snprintf(command, sizeof(command),
		 DMSETUP " create " SLOW " --table \"0 " SECTORS " delay %s 0 0 %s 0 0 %s 0 %d\"",
		 disk, disk, disk, flush);
	NEED(!system(command));
}

void disk_mount(int flush)
{
	const char *disk = getenv("TW_VM_DISK");

	NEED(disk);
	if (flush)
		make_slow(disk, flush);
	mkdir(DISK, 0755);
	NEED(!mount(flush ? SLOW_NODE : disk, DISK, "ext4", 0, NULL));
}

void disk_unmount(void)
{
	NEED(!umount(DISK));
	if (!access(SLOW_NODE, F_OK))
		NEED(!system(DMSETUP " remove " SLOW));
}

static void run(const struct kind *kind)
{
	char command[512];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	NEED(!kind->user || !setuid(kind->user));
	snprintf(command, sizeof(command), "exec %s >/tmp/server.log 2>&1",
		 kind->command);
	execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(127);
}

struct server server_start(const struct kind *kind, bool fresh)
{
	struct server server = { .kind = kind };
	struct conn conn = { };

	unlink(SOCKET);
	NEED(!fresh || !system("rm -rf " STORE " && mkdir " STORE));
	unlink("/tmp/server.log");
	if (kind->prepare)
		kind->prepare();
	sync();
	fflush(stdout);
	server.pid = fork();
	if (!server.pid)
		run(kind);
	kind->speaker->connect(&conn);
	if (kind->set_up && fresh)
		kind->set_up(&conn);
	kind->speaker->close(&conn);
	return server;
}

void server_end(struct server *server)
{
	kill(server->pid, SIGTERM);
	NEED(waitpid(server->pid, NULL, 0) == server->pid);
}

/* A line "NAME: NUMBER" of a process' status. */
static long long status_of(pid_t pid, const char *name)
{
	char path[64], line[256];
	long long number = 0;
	size_t length = strlen(name);
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, length) && line[length] == ':')
			number = atoll(line + length + 1);
	if (file)
		fclose(file);
	return number;
}

long long server_memory(const struct server *server)
{
	return status_of(server->pid, "RssAnon");
}
