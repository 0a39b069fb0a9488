/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Figures that TW.STATS and TW.METRICS tell of the daemon, its store, or a queue.
 */
#ifndef TWJOBD_FIGURES_H
#define TWJOBD_FIGURES_H

#include "twjobd.h"

#define MAX_FIGURES	28

/*
 * @name is the figure's name in TW.STATS, @metric its name in TW.METRICS. A name is NULL if the
 * figure is not told there. A metric whose name ends in _total only grows. A metric whose name
 * ends in _seconds has its value here in ms.
 */
struct figure {
	const char *name;
	uint64_t value;
	const char *metric, *help;
};

/* @queue is the queue's name, or NULL. */
struct figures {
	const char *queue;
	size_t count;
	struct figure all[MAX_FIGURES];
};

#endif /* TWJOBD_FIGURES_H */
