// SPDX-License-Identifier: GPL-2.0-only
/*
 * Histograms: see histogram.h.
 */
#include <inttypes.h>

#include "histogram.h"
#include "twjobd.h"

#define LAST	(ARRAY_SIZE(((struct histogram *)0)->counts) - 1)

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	unsigned int i = 0;

	while (i < LAST && ns >> (HISTOGRAM_FIRST + i))
		i++;
	histogram->counts[i]++;
	histogram->sum += ns;
}

void histogram_print(FILE *file, const struct histogram *histogram,
		     const char *name, const char *label)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < LAST; i++) {
		count += histogram->counts[i];
		fprintf(file, "%s_bucket{%sle=\"%.9f\"} %" PRIu64 "\n", name,
			label, ((1ULL << (HISTOGRAM_FIRST + i)) - 1) / 1e9,
			count);
	}
	count += histogram->counts[LAST];
	fprintf(file, "%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, label, count);
	fprintf(file, "%s_sum{%s} %.9f\n", name, label, histogram->sum / 1e9);
	fprintf(file, "%s_count{%s} %" PRIu64 "\n", name, label, count);
}
