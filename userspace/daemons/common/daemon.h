/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a daemon: options, configuration, the loop, signals.
 */
#ifndef COMMON_DAEMON_H
#define COMMON_DAEMON_H

#include <systemd/sd-event.h>

#include "config.h"
#include "log.h"

/*
 * @stop, if not NULL, is called before the loop ends. @reloaded, if not NULL, is called when the
 * configuration has been read again.
 */
struct daemon {
	const char *name;
	struct config_table config;
	void (*stop)(void);
	void (*reloaded)(void);
	/* @option is NULL, or the option that calls @run_option instead of the daemon's work. */
	const char *option, *option_help;
	void (*run_option)(void);
};

/*
 * Reads options and configuration. Exits if they are wrong, or if an option asks for something
 * else than the daemon's work. From then on SIGTERM and SIGINT end the loop, and SIGHUP has the
 * configuration read again.
 */
sd_event *daemon_start(const struct daemon *daemon, int argc, char **argv);
/*
 * Allows as many open files as @want connections need besides @others, or as many
 * as the limits permit. Returns how many connections there may be.
 */
uint64_t daemon_connections(uint64_t want, uint64_t others);
/* Tells the service manager that the daemon is ready, and runs the loop until it ends. */
void daemon_run(void);

#endif /* COMMON_DAEMON_H */
