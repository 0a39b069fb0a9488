// SPDX-License-Identifier: GPL-2.0-only
/*
 * What all parts know of the service. main.c fills it in before it opens them;
 * nothing is done here.
 */
#include "twidled.h"

struct service service = { .timeouts = 1 };
