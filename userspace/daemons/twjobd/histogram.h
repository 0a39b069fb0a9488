/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long something took, counted by powers of two. This knows no other part.
 */
#ifndef TWJOBD_HISTOGRAM_H
#define TWJOBD_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

/* From 2^10 ns, which is 1 us, to 2^40 ns, which is 18 min. */
#define HISTOGRAM_FIRST	10
#define HISTOGRAM_LAST	40

/*
 * @counts[i] is the number of times less than 2^(HISTOGRAM_FIRST + i) ns that no smaller
 * i counts. The last one counts all longer times.
 */
struct histogram {
	uint64_t counts[HISTOGRAM_LAST - HISTOGRAM_FIRST + 2];
	uint64_t sum;		/* ns */
};

void histogram_add(struct histogram *histogram, uint64_t ns);
/*
 * In Prometheus' text format, without the lines HELP and TYPE. @label: "", or as in
 * "queue=\"sms\",".
 */
void histogram_print(FILE *file, const struct histogram *histogram,
		     const char *name, const char *label);

#endif /* TWJOBD_HISTOGRAM_H */
