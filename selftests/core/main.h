/* SPDX-License-Identifier: GPL-2.0-only */
/* What main.c, or fuzz.c, and a test of random operations know of each other. */
#ifndef MAIN_H
#define MAIN_H

#include "tap.h"

extern u64 seed, steps;		/* as the user has it */
extern u64 test, step;		/* where the test is; it counts its steps */

extern const unsigned int nr_tests;

/* Runs test number @test, with dice of its own. */
void run_test(void);

/* Runs whatever the dice say, as long as there are some. */
void run_input(void);

/* Prints what the test is about, to the end of a line. */
void print_state(void);

#endif /* MAIN_H */
