// SPDX-License-Identifier: GPL-2.0-only
/*
 * The main program of the tests of random operations. It reads the arguments, seeds
 * the dice, and prints how to repeat a test that has failed. With files, which a
 * fuzzer has written, the bytes of the files are the dice.
 *
 *	model_test [--seed=N] [--steps=N] [--only=TEST]
 *	model_test FILE...
 */
#include <getopt.h>
#include <signal.h>
#include <unistd.h>

#include "blocks.h"
#include "dice.h"
#include "main.h"

/* The function is the sanitizer's, and is missing without a sanitizer. */
extern void __sanitizer_set_death_callback(void (*callback)(void))
	__attribute__((weak));

u64 seed = 1, steps = 10000000, test, step;

static const char *program, *file;

void print_context(void)
{
	printf("not ok %llu\n", test);
	if (file)
		printf("# again: %s %s; ", program, file);
	else
		printf("# again: --seed=%llu --steps=%llu --only=%llu; ", seed,
		       steps, test);
	printf("step %llu: ", step);
	print_state();
	fflush(stdout);
}

static void on_abort(int signal)
{
	(void)signal;
	print_context();
	_exit(1);
}

static void run_tests(u64 only)
{
	printf("TAP version 13\n1..%u\n", nr_tests);
	for (test = 1; test <= nr_tests; test++) {
		if (only && test != only)
			continue;
		dice_seed(seed << 32 ^ test);
		step = 0;
		run_test();
		fflush(stdout);
	}
}

static bool run_file(void)
{
	static u8 bytes[1 << 16];
	FILE *input = fopen(file, "r");

	if (!input) {
		perror(file);
		return false;
	}
	dice_bytes(bytes, fread(bytes, 1, sizeof(bytes), input));
	fclose(input);
	step = 0;
	run_input();

	return true;
}

static bool run_files(char **files, int n)
{
	int i;

	printf("TAP version 13\n1..1\n");
	for (i = 0, test = 1; i < n; i++) {
		file = files[i];
		if (!run_file())
			return false;
	}
	printf("ok 1 - %d inputs that a fuzzer has found\n", n);

	return true;
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

	program = argv[0];
	if (tw_blocks_start())
		return 1;
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(print_context);
	signal(SIGABRT, on_abort);
	if (optind < argc)
		return !run_files(argv + optind, argc - optind);
	run_tests(only);

	return 0;
}
