/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program is a short sequence of calls. A program is simpler if it is shorter, or
 * if its calls have more zeros.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "call.h"

#define PROGRAM_CALLS	20	/* most calls in a program */
#define PROGRAM_TEXT	2048	/* longest program as text, with the final 0 */

struct program {
	struct call	call[PROGRAM_CALLS];
	unsigned int		calls;
};

/**
 * struct program_hooks - functions that watch programs that run
 * @begin: a thread is about to make its first call; @second: it is not the first thread
 * @called: the thread has made a call, with this outcome
 */
struct program_hooks {
	void (*begin)(bool second);
	void (*called)(unsigned int type, int outcome);
};

void program_run(const struct program *program,
		 const struct program_hooks *hooks);
void program_print(const struct program *program, FILE *file);
void program_print_simpler(const struct program *program, FILE *file);

bool program_parse(struct program *program, const char *text);
void program_format(const struct program *program, char *text);

void program_random(struct program *program);
void program_mutate(struct program *program, const struct program *other);
void program_drop(struct program *program, unsigned int call);

/* The dice are the same for the same seed. */
extern uint64_t random_state;

uint64_t random_below(uint64_t n);

#endif /* PROGRAM_H */
