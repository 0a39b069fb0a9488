/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Program: a short sequence of calls, as bytes, of which any make a program. A 0
 * stands for the most ordinary argument: so what is shorter, and has more zeros, is
 * simpler.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PROGRAM_CALLS	20	/* most in one program */
#define PROGRAM_BYTES	24	/* of arguments, in one call */
#define PROGRAM_TEXT	2048	/* longest as text, with a zero */

struct program_call {
	uint8_t	type;
	uint8_t	byte[PROGRAM_BYTES];
};

struct program {
	struct program_call	call[PROGRAM_CALLS];
	unsigned int		calls;
};

/**
 * struct program_hooks - who watches programs that run
 * @begin: a thread is to make its first call; @second: it is not the first thread
 * @called: it has made a call
 */
struct program_hooks {
	void (*begin)(bool second);
	void (*called)(unsigned int type);
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

unsigned int program_types(void);
const char *program_type_name(unsigned int type);

/* Dice: the same for the same seed. */
extern uint64_t random_state;

uint64_t random_below(uint64_t n);

#endif /* PROGRAM_H */
