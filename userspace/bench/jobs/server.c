// SPDX-License-Identifier: GPL-2.0-only
/* Servers, only one of which runs at a time, and the disk that they write to. */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define BLOCK		"/sys/block/nvme0n1/"
#define SLOW		"slow"
#define SLOW_NODE	"/dev/dm-0"	/* the only device of the mapper */
#define DMSETUP		"dmsetup --noudevsync --noudevrules"

/* Numbers in a file from the word @first on, 1 for the first one. */
static bool read_words(const char *path, int first, long long *numbers, int count)
{
	FILE *file = fopen(path, "r");
	bool good = file;

	for (int i = 1; good && i < first; i++)
		good = fscanf(file, "%*s") != EOF;
	for (int i = 0; good && i < count; i++)
		good = fscanf(file, "%lld", &numbers[i]) == 1;
	if (file)
		fclose(file);
	return good;
}

/* Makes a device of the mapper, with delays for reads, for writes and for flushes. */
static void make_slow(const char *disk, int flush)
{
	char command[512];
	long long sectors;

	NEED(read_words(BLOCK "size", 1, &sectors, 1));
	snprintf(command, sizeof(command),
		 DMSETUP " create " SLOW " --table '0 %lld delay %s 0 0 %s 0 0 %s 0 %d'",
		 sectors, disk, disk, disk, flush);
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

long long disk_flushes(void)
{
	long long flushes;

	NEED(read_words(BLOCK "stat", 16, &flushes, 1));
	return flushes;
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

void server_end(struct server *server, int signal)
{
	kill(server->pid, signal);
	NEED(waitpid(server->pid, NULL, 0) == server->pid);
}

/*
 * Calls @add for the server's process, and for all that it has started. The numbers below
 * count words of /proc/PID/stat: the second word is the name, and no server has a space in it.
 */
#define PARENT		4
#define CPU_TIMES	14
static void each_process(const struct server *server, void (*add)(pid_t pid, void *sum),
			 void *sum)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;

	NEED(processes);
	while ((entry = readdir(processes))) {
		long long parent = 0;
		char path[300];
		pid_t pid = atoi(entry->d_name);

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		read_words(path, PARENT, &parent, 1);
		if (pid == server->pid || parent == server->pid)
			add(pid, sum);
	}
	closedir(processes);
}

static void add_cpu(pid_t pid, void *sum)
{
	long long times[2];
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_words(path, CPU_TIMES, times, 2))
		*(double *)sum += (double)(times[0] + times[1]) / sysconf(_SC_CLK_TCK);
}

double server_cpu(const struct server *server)
{
	double sum = 0;

	each_process(server, add_cpu, &sum);
	return sum;
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

static void add_switches(pid_t pid, void *sum)
{
	*(long long *)sum += status_of(pid, "voluntary_ctxt_switches");
}

long long server_switches(const struct server *server)
{
	long long sum = 0;

	each_process(server, add_switches, &sum);
	return sum;
}

static void add_memory(pid_t pid, void *sum)
{
	*(long long *)sum += status_of(pid, "RssAnon");
}

long long server_memory(const struct server *server)
{
	long long sum = 0;

	each_process(server, add_memory, &sum);
	return sum;
}
