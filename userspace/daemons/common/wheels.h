/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a daemon's wheels are: in the kernel, or in the daemon itself, see TIMEWHEEL in
 * libtimewheel(3).
 */
#ifndef COMMON_WHEELS_H
#define COMMON_WHEELS_H

#include <stdbool.h>

#include "config.h"

/* The key wheels: 0 if the file does not give it. */
enum wheels {
	WHEELS_KERNEL		= 1,
	WHEELS_PROCESS		= 2,
};

/* For errors that mean that there is no module. */
#define WHEELS_WITHOUT_MODULE \
	"load the module, as by \"modprobe timewheel\", or set wheels = process"

const char *config_wheels(const struct config_key *key, void *field, const char *value);
/* Comes before the first call of the library. Says where the wheels are. */
void wheels_start(enum wheels wheels);
bool wheels_in_process(void);
/* Calls @forget(@of), for which the library knows the kernel's wheels and no other. */
void wheels_forget_kernels(void (*forget)(void *of), void *of);

#endif /* COMMON_WHEELS_H */
