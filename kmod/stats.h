/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Stats: all wheels at a glance, in debugfs.
 */
#ifndef TW_STATS_H
#define TW_STATS_H

#include "wheel.h"

int tw_stats_setup(struct tw_wheel *wheel, const struct timewheel_setup *setup);
void tw_stats_remove(struct tw_wheel *wheel);
void tw_stats_init(void);
void tw_stats_exit(void);

#endif /* TW_STATS_H */
