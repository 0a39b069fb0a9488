/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Figures: what TW.STATS and TW.METRICS tell of the daemon, its store, or a queue.
 */
#ifndef TWJOBD_FIGURES_H
#define TWJOBD_FIGURES_H

#include "twjobd.h"

#define MAX_FIGURES	28

/*
 * @name is that of TW.STATS, @metric that of TW.METRICS, or NULL if it is not told there. A
 * metric whose name ends in _total only grows. One that ends in _seconds has its value
 * here in ms.
 */
struct figure {
	const char *name;
	uint64_t value;
	const char *metric, *help;
};

/* @queue: the queue's name, or NULL. */
struct figures {
	const char *queue;
	size_t count;
	struct figure all[MAX_FIGURES];
};

#endif /* TWJOBD_FIGURES_H */
