/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One call of a program, as bytes. Any bytes make a call, and a 0 stands for the most
 * ordinary argument.
 */
#ifndef CALL_H
#define CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CALL_BYTES	32	/* bytes of all arguments */

struct call {
	uint8_t	type;
	uint8_t	byte[CALL_BYTES];
};

/* Types are numbers. A name without a type has the number call_types(). */
unsigned int call_types(void);
unsigned int call_type(const char *name);
const char *call_name(unsigned int type);
unsigned int call_weight(unsigned int type);
bool call_runs_others(const struct call *call);

int call_run(const struct call *call);
void call_print(const struct call *call, FILE *file);

#endif /* CALL_H */
