// SPDX-License-Identifier: GPL-2.0-only
/*
 * Used instead of main.c, with libFuzzer's main(): the fuzzer's bytes are the dice of
 * a test of random operations. The test itself does a finding again: model_test FILE.
 */
#include "dice.h"
#include "main.h"

u64 steps, test, step;

void print_context(void)
{
	printf("# step %llu: ", step);
	print_state();
	fflush(stdout);
}

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t size)
{
	dice_bytes(bytes, size);
	step = 0;
	run_input();

	return 0;
}
