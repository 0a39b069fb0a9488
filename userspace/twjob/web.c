// SPDX-License-Identifier: GPL-2.0-only
/*
 * web: runs the program that shows queues and jobs to a browser.
 */
#include "twjob.h"

enum status verb_web(const struct args *args)
{
	program_run("twjob-web", "timewheel-web", args);
}
