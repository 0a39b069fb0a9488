// SPDX-License-Identifier: GPL-2.0-only
/*
 * torture SECONDS MODULE...: runs rounds for so many seconds, at least one with each
 * of the modules, and until each action and each evil of world.c has happened. In
 * each round the module is loaded, tortured, audited and unloaded. The program is for
 * guests only, because it uses the whole machine, and unloads the module that is
 * loaded.
 *
 * TW_SEED repeats the choice of actions of an earlier run.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "torture.h"

#define ROUND	6	/* seconds of work */

static unsigned int results, failed, rounds;
static bool all_done;	/* every action and every evil has happened */

static void result(bool ok, const char *what)
{
	tell_faults();
	results++;
	failed += !ok;
	printf("%s %u - round %u: %s\n", ok ? "ok" : "not ok", results, rounds,
	       what);
}

/* Unloads the module. Returns 0 or -errno. */
int unload(void)
{
	return tw_ret(syscall(SYS_delete_module, "timewheel", O_NONBLOCK));
}

static bool load(const char *module)
{
	int fd = open(module, O_RDONLY | O_CLOEXEC);
	int ret = syscall(SYS_finit_module, fd, "", 0);

	close(fd);
	return !ret && !chmod(TW_DEVICE, 0666);
}

static void round_of(const char *module, __u64 seed)
{
	printf("# round %u of seed %llu: %s\n", ++rounds, seed, module);
	ledger_clear();
	if (!load(module) || !world_start(seed)) {
		result(false, "the module loads, and the wheels are made");
		return;
	}
	world_turn(ROUND);
	result(world_end(), "all were killed");
	result(!shared->faults, "no call said what it must not");
	all_done = worked();
	all_done &= world_was_bad();
	result(audit_events(), "each event came once");
	result(audit_wheels(), "each registration ended once, or is there");
	result(audit_left(), "what is there comes, and handles end");
	result(audit_generations(), "each life of a token has its own handle");
	result(audit_deliveries(), "each delivery of a token has its own number");
	result(unload() == -EWOULDBLOCK, "the module stays while it is in use");
	result(destroy_wheels() && audit_limits(),
	       "users and wheels are gone, and the sums are right");
	result(!unload(), "the module goes when nobody uses it");
	result(group_gives_back(), "all memory is given back");
}

int main(int argc, char **argv)
{
	const char *text = getenv("TW_SEED");
	__u64 seed = text ? strtoull(text, NULL, 0) : tw_now(CLOCK_REALTIME);
	__u64 end;

	if (argc < 3) {
		fprintf(stderr, "usage: torture SECONDS MODULE...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	end = tw_now(CLOCK_MONOTONIC) + atof(argv[1]) * TW_SEC;
	ledger_open();
	printf("# TW_SEED=%llu\n", seed);
	if (unload())
		printf("# no module was loaded\n");
	do {
		round_of(argv[2 + rounds % (argc - 2)], seed + rounds);
	} while (!failed && (tw_now(CLOCK_MONOTONIC) < end || !all_done ||
			     rounds < (unsigned int)argc - 2));
	/* The module was loaded before the program began. */
	load(argv[2]);
	printf("1..%u\n", results);
	return failed != 0;
}
