/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What reading spans and points of time have in common: numbers, words, and what
 * to tell when a text is wrong.
 */
#ifndef TOOL_SCAN_H
#define TOOL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

bool take_number(const char **text, int most, uint64_t *number);
bool take_fraction(const char **text, uint64_t *billionths);
bool take_word(const char **text, const char *word);
const char *skip_space(const char *text);

/* Keeps the reason for times_wrong(). Returns false. */
__attribute__((__format__(printf, 1, 2)))
bool refuse(const char *format, ...);

/* A point of time, as the manual of twctl has it, and whether a text may be one. */
bool point_begins(const char *text);
bool point_parse(const char *text, uint64_t real_now, uint64_t *ns);

#endif /* TOOL_SCAN_H */
