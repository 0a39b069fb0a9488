/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram counts by powers of two how long something took. This part knows no other part.
 */
#ifndef TWJOBD_HISTOGRAM_H
#define TWJOBD_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

/* The counts are for times from 2^10 ns, which is 1 us, to 2^40 ns, which is 18 min. */
#define HISTOGRAM_FIRST	10
#define HISTOGRAM_LAST	40

/*
 * @counts[i] is the number of times less than 2^(HISTOGRAM_FIRST + i) ns that no smaller i
 * counts. The last count is for all longer times.
 */
struct histogram {
	uint64_t counts[HISTOGRAM_LAST - HISTOGRAM_FIRST + 2];
	uint64_t sum;		/* ns */
};

void histogram_add(struct histogram *histogram, uint64_t ns);
/*
 * Prints the histogram in Prometheus' text format, without the lines HELP and TYPE. @label is "",
 * or ends in a comma as in "queue=\"sms\",".
 */
void histogram_print(FILE *file, const struct histogram *histogram,
		     const char *name, const char *label);

#endif /* TWJOBD_HISTOGRAM_H */
