// SPDX-License-Identifier: GPL-2.0-only
/*
 * The world around the workers. They are killed, stopped, interrupted and short of
 * memory. A CPU is unplugged and plugged in, the clock is set, and an unload of the
 * module is tried again and again.
 */
#define _GNU_SOURCE
#include <glob.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "torture.h"
#include "../tw_clock.h"

#define TW_GROUP	"/sys/fs/cgroup/torture"
#include "../tw_group.h"

#define OTHER	"/sys/fs/cgroup/torture-other"
#define TIGHT	(PROCESSES - 1)	/* the process whose group gets a small limit */
#define CPU	"/sys/devices/system/cpu/cpu1/online"

static struct {
	struct worker dice;
	__u64 seed;
	__u32 lives;
	pid_t process[PROCESSES];
	struct tw_wall wall;
} world;

/*
 * Makes this process a user's process in one of the groups. It is killed when its
 * parent exits.
 */
bool become(int user, const char *group)
{
	char path[128];

	snprintf(path, sizeof(path), TW_GROUP "/%s/cgroup.procs", group);
	if (!tw_write_file(path, "0") || setgroups(0, NULL) ||
	    setgid(USER + user) || setuid(USER + user))
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return true;
}

/* Returns the value behind @key in a file of the kernel's, or -1. */
long long value_of(const char *path, const char *key)
{
	char name[64];
	long long value, found = -1;
	FILE *file = fopen(path, "r");

	while (file && fscanf(file, "%63s %lld", name, &value) == 2)
		if (!strcmp(name, key))
			found = value;
	if (file)
		fclose(file);
	return found;
}

static void start(int i)
{
	__u64 seed = world.seed + 1000 * ++world.lives;

	world.process[i] = fork();
	if (world.process[i])
		return;
	if (!become(i, i == TIGHT ? "tight" : "wide"))
		_exit(1);
	work(i * THREADS, seed);
}

/* Replaces processes that have died. The kernel may have killed one for want of memory. */
static void replace_dead(void)
{
	int status;

	for (int i = 0; i < PROCESSES; i++) {
		if (waitpid(world.process[i], &status, WNOHANG) <= 0)
			continue;
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			fail("process %d ended with status %x", i, status);
		start(i);
	}
}

/* The following functions are the evils. Each returns whether it has happened. */

static bool kill_one(void)
{
	int i = below(&world.dice, PROCESSES);

	if (!tw_kill(world.process[i]))
		return false;
	start(i);
	return true;
}

static bool stop_one(void)
{
	pid_t pid = world.process[below(&world.dice, PROCESSES)];
	bool stopped = !kill(pid, SIGSTOP);

	tw_sleep_ms(below(&world.dice, 40));
	return !kill(pid, SIGCONT) && stopped;
}

/* Interrupts the threads in any call, in reads and batches too. */
static bool interrupt_all(void)
{
	bool done = false;

	for (int i = 0; i < 200; i++) {
		int slot = below(&world.dice, VICTIM);

		done |= !syscall(SYS_tgkill, world.process[slot / THREADS],
				 shared->slot[slot].tid, SIGUSR1);
		if (i % 16 == 0)
			sched_yield();
	}
	return done;
}

static bool plug_cpu(void)
{
	bool done = tw_write_file(CPU, "0");

	tw_sleep_ms(below(&world.dice, 20));
	return tw_write_file(CPU, "1") && done;
}

/* Sets the clock up to two hours off, or by less than most tokens' delays. */
static bool step_clock(void)
{
	__s64 most = once(&world.dice, 2) ? 7200 * TW_SEC : 200 * TW_MS;

	return !tw_shift_wall(&world.wall, tw_random(&world.dice.random) %
			      (2 * most) - most);
}

/* Lowers the limit so far that registrations fail, or that a process is killed. */
static bool squeeze(void)
{
	bool done = tw_group_set("tight/memory.max",
				 (256 + below(&world.dice, 4096)) << 10);

	tw_sleep_ms(below(&world.dice, 40));
	return tw_group_set("tight/memory.max", 64 << 20) && done;
}

/* Works, and then allocates memory until it is killed, with all files that it has open. */
static void be_victim(__u64 seed)
{
	struct worker *w = malloc(sizeof(*w));

	if (!become(PROCESSES, "victim"))
		_exit(1);
	work_briefly(w, VICTIM, seed, 60);
	for (;;)
		memset(malloc(1 << 20), 1, 1 << 20);
}

static bool exhaust(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		be_victim(world.seed + 1000 * (world.lives + 1));
	world.lives++;
	while (!waitpid(child, &status, WNOHANG)) {
		/* The signal wakes the victim if it sleeps in a read. */
		if (shared->slot[VICTIM].tid == child)
			kill(child, SIGUSR1);
		tw_sleep_ms(5);
	}
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* P10: an unload fails while a process uses the module. */
static bool unload_in_use(void)
{
	int ret = unload();

	if (ret != -EWOULDBLOCK)
		fail("to unload the module in use: %d", ret);
	return ret;
}

static const struct {
	const char *name;
	unsigned int weight;
	bool (*act)(void);
} evils[] = {
	{ "killed", 8, kill_one },
	{ "stopped", 4, stop_one },
	{ "interrupted", 10, interrupt_all },
	{ "CPU unplugged", 3, plug_cpu },
	{ "clock set", 8, step_clock },
	{ "memory squeezed", 4, squeeze },
	{ "memory exhausted", 1, exhaust },
	{ "unload refused", 4, unload_in_use },
};

static unsigned int suffered[ARRAY_SIZE(evils)];

void world_turn(double seconds)
{
	__u64 end = tw_now(CLOCK_MONOTONIC) + seconds * TW_SEC;

	while (tw_now(CLOCK_MONOTONIC) < end && !shared->faults) {
		unsigned int i = below(&world.dice, ARRAY_SIZE(evils));

		if (below(&world.dice, 10) < evils[i].weight)
			suffered[i] += evils[i].act();
		replace_dead();
		tw_sleep_ms(below(&world.dice, 20));
	}
}

bool world_start(__u64 seed)
{
	memset(&world, 0, sizeof(world));
	world.seed = seed;
	world.dice.random = seed;
	if (tw_save_wall(&world.wall) || mkdir(TW_GROUP, 0755) ||
	    !tw_write_file(TW_GROUP "/cgroup.subtree_control", "+memory") ||
	    mkdir(TW_GROUP "/wide", 0755) || mkdir(TW_GROUP "/tight", 0755) ||
	    mkdir(TW_GROUP "/victim", 0755) ||
	    !tw_group_set("victim/memory.max", 16 << 20) ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets) ||
	    !create_wheels())
		return false;
	for (int i = 0; i < PROCESSES; i++)
		start(i);
	return true;
}

/*
 * Kills all workers at once, and closes the sockets with the files on their way. A
 * process that was just forked is not in the group yet. It is killed by itself, and
 * then its children are killed.
 */
bool world_end(void)
{
	bool ok = tw_group_set("cgroup.kill", 1);

	for (int i = 0; i < PROCESSES; i++)
		ok &= tw_kill(world.process[i]);
	ok &= tw_group_set("cgroup.kill", 1);
	while (value_of(TW_GROUP "/cgroup.events", "populated") > 0)
		tw_sleep_ms(1);
	close(sockets[0]);
	close(sockets[1]);
	return !tw_restore_wall(&world.wall) && ok;
}

/* Prints how often each evil has happened. Returns whether each has. */
bool world_was_bad(void)
{
	bool all = true;

	printf("#");
	for (unsigned int i = 0; i < ARRAY_SIZE(evils); i++) {
		printf(" %s %u,", evils[i].name, suffered[i]);
		all &= suffered[i] > 0;
	}
	printf(" in all so far\n");
	return all;
}

/*
 * Returns whether the group is no longer charged for memory of wheels. It may still
 * be charged a little for other objects of the kernel and for the kernel's reserves.
 */
static bool group_is_empty(void)
{
	const char *const stat = TW_GROUP "/memory.stat";

	return !value_of(stat, "percpu") && !value_of(stat, "vmalloc") &&
	       value_of(stat, "kernel") < 64 << 10 &&
	       !value_of(TW_GROUP "/cgroup.stat", "nr_dying_descendants");
}

/*
 * Uses memory of another group on each CPU, because a CPU remembers the group that it
 * charged last.
 */
static void use_cpus(void)
{
	cpu_set_t one;

	if (!tw_write_file(OTHER "/cgroup.procs", "0"))
		_exit(1);
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		munmap(mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
		       4096);
	}
	_exit(0);
}

/*
 * Makes the kernel release its reserves: caches of files, freed memory that KASAN
 * keeps to find later uses, and charges that CPUs remember for a group.
 */
static void settle(void)
{
	glob_t found;
	pid_t child;

	tw_write_file("/proc/sys/vm/drop_caches", "7");
	if (!glob("/sys/kernel/slab/*/shrink", 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			tw_write_file(found.gl_pathv[i], "1");
		globfree(&found);
	}
	tw_group_set("memory.high", 0);
	mkdir(OTHER, 0755);
	child = fork();
	if (!child)
		use_cpus();
	tw_reap(child);
	rmdir(OTHER);
}

/*
 * P9: all charges are given back. A group that was removed leaves its remaining
 * charges to its parent.
 */
bool group_gives_back(void)
{
	bool ok = !rmdir(TW_GROUP "/wide") && !rmdir(TW_GROUP "/tight") &&
		  !rmdir(TW_GROUP "/victim");

	for (int tries = 0; tries < 100 && !group_is_empty(); tries++) {
		settle();
		tw_sleep_ms(20);
	}
	if (!group_is_empty()) {
		fail("not given back: percpu %lld, vmalloc %lld, kernel %lld, of groups %lld",
		     value_of(TW_GROUP "/memory.stat", "percpu"),
		     value_of(TW_GROUP "/memory.stat", "vmalloc"),
		     value_of(TW_GROUP "/memory.stat", "kernel"),
		     value_of(TW_GROUP "/cgroup.stat", "nr_dying_descendants"));
		ok = false;
	}
	return !rmdir(TW_GROUP) && ok;
}
