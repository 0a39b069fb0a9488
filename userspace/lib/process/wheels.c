// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All that a process needs to keep wheels itself, as one unit: the module's files and
 * stand-ins for the kernel. names.h, which is made from the module's headers, gives each of
 * its functions a name that no program and no other file of the library has.
 *
 * The module is for 64-bit kernels, and its files for 64-bit processes.
 */
#include <stdint.h>

#if UINTPTR_MAX > UINT32_MAX

#include "names.h"
#include "kernel.h"

#include "arena.c"
#include "list.c"
#include "levels.c"
#include "ids.c"
#include "held.c"
#include "ring.c"
#include "delivery.c"
#include "look.c"
#include "clock.c"
#include "wheel.c"
#include "ops.c"
#include "touch.c"
#include "describe.c"
#include "events.c"
#include "ioctl.c"

#include "row.c"
#include "blocks.c"
#include "timer.c"
#include "process.c"

#else

#include "none.c"

#endif
