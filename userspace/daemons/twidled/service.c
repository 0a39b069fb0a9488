// SPDX-License-Identifier: GPL-2.0-only
/*
 * The data that all parts share. main.c fills it in before it starts the parts.
 */
#include "twidled.h"

struct service service = { .timeouts = 1 };
