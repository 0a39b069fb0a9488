/* SPDX-License-Identifier: GPL-2.0-only */
/* The interface between main.c or fuzz.c and a test of random operations. */
#ifndef MAIN_H
#define MAIN_H

#include "tap.h"

extern u64 seed, steps;		/* arguments of the user */
extern u64 test, step;		/* number of the test and of its step */

extern const unsigned int nr_tests;

/* Runs test number @test, with dice of its own. */
void run_test(void);

/* Runs the test that the dice choose, as long as there are dice. */
void run_input(void);

/* Prints the state of the test, up to the end of a line. */
void print_state(void);

#endif /* MAIN_H */
