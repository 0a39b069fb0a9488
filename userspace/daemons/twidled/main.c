// SPDX-License-Identifier: GPL-2.0-only
/*
 * twidled: tells which of many users have fallen silent. This file reads the
 * configuration, opens the wheel, runs the loop and handles signals. twidled.h lists
 * the other parts.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include "twidled.h"

/*
 * The size of the ring. It does not depend on the timeout, because the timeout may
 * change and a named wheel cannot. It is an hour of one-second ticks; the wheel's
 * coarser rings take longer timeouts.
 */
#define SLOTS		3600

/* Open files besides connections: sockets, subscribers, the wheel and a few more. */
#define OTHER_FILES	(MAX_LISTENERS + MAX_SUBSCRIBERS + 56)
/* Connections beyond max-users: of users who come back, and of unnamed clients. */
#define SPARE		1024

static const char *config_path = "/etc/twidled.conf";

__noreturn
static void usage(FILE *to, int status)
{
	fputs("twidled [--config FILE] [--check-config]\n"
	      "  -c, --config FILE    instead of /etc/twidled.conf\n"
	      "      --check-config   say whether the file is right, and end\n"
	      "  -h, --help\n"
	      "See twidled(8) and twidled.conf(5).\n", to);
	exit(status);
}

/* Returns whether the configuration is only to be checked. */
static bool parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check-config", no_argument, NULL, 'C' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	bool check = false;
	int option;

	while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			config_path = optarg;
			break;
		case 'C':
			check = true;
			break;
		case 'h':
			usage(stdout, 0);
		default:
			usage(stderr, MISUSED);
		}
	}
	if (optind < argc)
		usage(stderr, MISUSED);
	return check;
}

/* Allows as many files as all users need, or as many as the limits permit. */
static void raise_limit(void)
{
	rlim_t want = service.config.max_users + SPARE + OTHER_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		die(errno, "getrlimit");
	if (limit.rlim_cur < want) {
		struct rlimit more = {
			.rlim_cur = want,
			.rlim_max = want > limit.rlim_max ? want :
							    limit.rlim_max,
		};

		/* The hard limit can be raised only with the privilege for it. */
		if (setrlimit(RLIMIT_NOFILE, &more) < 0) {
			more = limit;
			more.rlim_cur = limit.rlim_max;
			setrlimit(RLIMIT_NOFILE, &more);
		}
		if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
			die(errno, "getrlimit");
	}
	if (limit.rlim_cur <= OTHER_FILES)
		die(0, "the limit of %llu open files is too low",
		    (unsigned long long)limit.rlim_cur);
	if (limit.rlim_cur < want)
		say("no more than %llu connections: the limit of open files is %llu",
		    (unsigned long long)limit.rlim_cur - OTHER_FILES,
		    (unsigned long long)limit.rlim_cur);
	else
		limit.rlim_cur = want;
	service.max_connections = limit.rlim_cur - OTHER_FILES;
}

static int on_wheel(sd_event_source *source, int fd, uint32_t events,
		    void *unused)
{
	struct timewheel_event *silent;
	size_t i, n;

	(void)source;
	(void)fd;
	(void)unused;
	if (events & (EPOLLHUP | EPOLLERR))
		die(0, "the wheel \"%s\" has been destroyed",
		    service.config.wheel);
	/* First the connections with packets: a user who sent one in time is not silent. */
	users_accept();
	users_turn();
	n = outbox_read(&silent);
	for (i = 0; i < n; i++) {
		if (users_silent(silent[i].id))
			subscribers_tell(&silent[i]);
		else
			silent[i].missed = NEWS_NONE;
	}
	users_flush();
	return 0;
}

static void open_wheel(const struct config *config)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_NO_COOKIES,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = SLOTS,
		.tick = config->tick,
		.max_tokens = config->max_users,
	};

	service.wheel = tw_wheel_open_or_create(config->wheel, &setup, O_RDWR);
	if (!service.wheel && errno == EEXIST)
		die(0, "the wheel \"%s\" is there, with another tick or max-users",
		    config->wheel);
	if (!service.wheel && (errno == ENOENT || errno == ENODEV ||
			       errno == ENXIO))
		die(0, "there is no /dev/timewheel: is the module loaded?");
	if (!service.wheel)
		die(errno, "the wheel \"%s\"", config->wheel);
	must(sd_event_add_io(service.event, &service.silent,
			     tw_wheel_fd(service.wheel), EPOLLIN, on_wheel,
			     NULL));
}

static int on_stop(sd_event_source *source,
		   const struct signalfd_siginfo *signal, void *unused)
{
	(void)source;
	(void)signal;
	(void)unused;
	sd_notify(0, "STOPPING=1");
	/* Lines not printed yet are kept for the next service, as the wheel is. */
	outbox_flush();
	subscribers_flush();
	return sd_event_exit(service.event, 0);
}

static int on_reload(sd_event_source *source,
		     const struct signalfd_siginfo *signal, void *unused)
{
	uint64_t timeout = service.config.timeout;

	(void)source;
	(void)signal;
	(void)unused;
	sd_notify(0, "RELOADING=1");
	config_reload(config_path, &service.config);
	if (service.config.timeout != timeout)
		service.timeouts++;
	sd_notify(0, "READY=1");
	return 0;
}

static void open_loop(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	must(sd_event_default(&service.event));
	must(sd_event_set_watchdog(service.event, true));
	must(sd_event_add_signal(service.event, NULL, SIGTERM, on_stop, NULL));
	must(sd_event_add_signal(service.event, NULL, SIGINT, on_stop, NULL));
	must(sd_event_add_signal(service.event, NULL, SIGHUP, on_reload, NULL));
}

int main(int argc, char **argv)
{
	bool check = parse_options(argc, argv);

	if (config_load(config_path, &service.config) < 0)
		return MISUSED;
	if (check)
		return 0;
	/* Each line is one write(2), messages too. */
	setvbuf(stderr, NULL, _IOLBF, 0);
	open_loop();
	raise_limit();
	/* The state's lock comes first: one service at a time. */
	outbox_open(service.config.state);
	open_wheel(&service.config);
	users_open(&service.config);
	subscribers_open(&service.config.events);
	sd_notify(0, "READY=1");
	outbox_flush();
	must(sd_event_loop(service.event));
	return 0;
}
