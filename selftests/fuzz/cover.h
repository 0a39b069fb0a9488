/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code of the module that a program has run, as the kernel's KCOV tells for each
 * thread. An edge leads from one place to the next. An outcome that is not 0 counts
 * as an edge, too. Without KCOV there are no other edges.
 */
#ifndef COVER_H
#define COVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define COVER_EDGES	65536	/* edges are hashed to this range */
#define COVER_TYPES	64	/* types of calls that are counted */

bool cover_open(void);

/* The process that runs the program calls these functions. They watch it from then on. */
void cover_begin(bool second);
void cover_called(unsigned int type, int outcome);

/* The process that began the program calls these functions. */
void cover_clear(void);
unsigned int cover_hits(const uint32_t **edges);
bool cover_has(uint32_t edge);
unsigned int cover_places(void);
uint64_t cover_calls(unsigned int type);
void cover_print(FILE *file);

#endif /* COVER_H */
