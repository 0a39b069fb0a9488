/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The place of a daemon's wheels: the kernel, or the daemon itself, see TIMEWHEEL in
 * libtimewheel(3).
 */
#ifndef COMMON_WHEELS_H
#define COMMON_WHEELS_H

#include <stdbool.h>

#include "config.h"

/* The key "wheels" has these values, and 0 if the file does not give the key. */
enum wheels {
	WHEELS_KERNEL		= 1,
	WHEELS_PROCESS		= 2,
};

/* This text ends messages about errors which mean that there is no module. */
#define WHEELS_WITHOUT_MODULE \
	"load the module, as by \"modprobe timewheel\", or set wheels = process"

const char *config_wheels(const struct config_key *key, void *field, const char *value);
/* Says where the wheels are. A daemon calls this function before any function of the library. */
void wheels_start(enum wheels wheels);
bool wheels_in_process(void);
/* Calls @forget(@of) while the library uses the kernel's wheels and no other. */
void wheels_forget_kernels(void (*forget)(void *of), void *of);

#endif /* COMMON_WHEELS_H */
