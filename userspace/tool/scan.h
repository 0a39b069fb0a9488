/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spans and points of time are both read with this: numbers, words, and the reason why a text
 * is wrong.
 */
#ifndef TOOL_SCAN_H
#define TOOL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

bool take_number(const char **text, int most, uint64_t *number);
bool take_fraction(const char **text, uint64_t *billionths);
bool take_word(const char **text, const char *word);
const char *skip_space(const char *text);

/* Keeps the reason, which times_wrong() returns later. Returns false. */
__attribute__((__format__(printf, 1, 2)))
bool refuse(const char *format, ...);

/* These read a point of time as twctl's manual has it, and tell whether a text may be one. */
bool point_begins(const char *text);
bool point_parse(const char *text, uint64_t real_now, uint64_t *ns);

#endif /* TOOL_SCAN_H */
