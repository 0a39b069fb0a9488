/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cover: which code of the module a program has run, as the kernel's KCOV tells of
 * each thread: edges from one place to the next. An outcome that is not 0 counts as
 * an edge. Without KCOV there are no others.
 */
#ifndef COVER_H
#define COVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define COVER_EDGES	65536	/* they are hashed */
#define COVER_TYPES	64	/* of calls that are counted */

bool cover_open(void);

/* In the process that runs the program: it is watched from here on. */
void cover_begin(bool second);
void cover_called(unsigned int type, int outcome);

/* In the one that began it. */
void cover_clear(void);
unsigned int cover_hits(const uint32_t **edges);
bool cover_has(uint32_t edge);
unsigned int cover_places(void);
uint64_t cover_calls(unsigned int type);
void cover_print(FILE *file);

#endif /* COVER_H */
