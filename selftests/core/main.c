// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the tests of random operations begin with: their arguments, the same dice
 * for the same seed, and where to go on when one has failed.
 *
 *	model_test [--seed=N] [--steps=N] [--only=TEST]
 */
#include <getopt.h>
#include <signal.h>
#include <unistd.h>

#include "dice.h"
#include "main.h"

/* Of the sanitizer, when built with one. */
extern void __sanitizer_set_death_callback(void (*callback)(void))
	__attribute__((weak));

u64 seed = 1, steps = 10000000, test, step;
u64 random_state;

void print_context(void)
{
	printf("not ok %llu\n", test);
	printf("# again: --seed=%llu --steps=%llu --only=%llu; step %llu: ",
	       seed, steps, test, step);
	print_state();
	fflush(stdout);
}

static void on_abort(int signal)
{
	(void)signal;
	print_context();
	_exit(1);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'n' },
		{ "only", required_argument, NULL, 'o' },
		{ 0 }
	};
	u64 only = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			steps = strtoull(optarg, NULL, 0);
		else if (option == 'o')
			only = strtoull(optarg, NULL, 0);
		else
			return 2;
	}

	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(print_context);
	signal(SIGABRT, on_abort);
	printf("TAP version 13\n1..%u\n", nr_tests);
	for (test = 1; test <= nr_tests; test++) {
		if (only && test != only)
			continue;
		random_state = seed << 32 ^ test;
		step = 0;
		run_test();
		fflush(stdout);
	}

	return 0;
}
