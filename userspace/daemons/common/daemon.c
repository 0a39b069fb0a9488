// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a daemon: see daemon.h. There is one daemon in a process.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include "daemon.h"

/* These options have no letter. */
enum { CHECK = 256, OWN };

static const struct daemon *self;
static const char *path;
static sd_event *event;

__noreturn
static void usage(FILE *to, int status)
{
	fprintf(to, "%s [--config FILE] [--check-config]\n"
		"  -c, --config FILE    instead of /etc/%s.conf\n"
		"      --check-config   say whether the file is right, and end\n",
		self->name, self->name);
	if (self->option)
		fprintf(to, "      --%s  %s, and end\n", self->option,
			self->option_help);
	fprintf(to, "  -V, --version\n"
		"  -h, --help\n"
		"See %s(8) and %s.conf(5).\n", self->name, self->name);
	exit(status);
}

/* Returns 0, or the option that replaces the daemon's work: CHECK or OWN. */
static int parse_options(int argc, char **argv)
{
	const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check-config", no_argument, NULL, CHECK },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ self->option, no_argument, NULL, OWN },
		{ }
	};
	static char default_path[64];
	int option, only = 0;

	snprintf(default_path, sizeof(default_path), "/etc/%s.conf", self->name);
	path = default_path;
	while ((option = getopt_long(argc, argv, "c:Vh", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			path = optarg;
			break;
		case CHECK:
		case OWN:
			only = option;
			break;
		case 'V':
			printf("%s " VERSION "\n", self->name);
			exit(0);
		case 'h':
			usage(stdout, 0);
		default:
			usage(stderr, MISUSED);
		}
	}
	if (optind < argc)
		usage(stderr, MISUSED);
	return only;
}

static int on_stop(sd_event_source *source,
		   const struct signalfd_siginfo *signal, void *unused)
{
	sd_notify(0, "STOPPING=1");
	if (self->stop)
		self->stop();
	return sd_event_exit(event, 0);
}

static int on_reload(sd_event_source *source,
		     const struct signalfd_siginfo *signal, void *unused)
{
	sd_notify(0, "RELOADING=1");
	config_reload(&self->config, path);
	if (self->reloaded)
		self->reloaded();
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
	/* A write beyond the limit of file sizes then fails, and no signal ends the daemon. */
	signal(SIGXFSZ, SIG_IGN);
	must(sd_event_default(&event));
	must(sd_event_set_watchdog(event, true));
	must(sd_event_add_signal(event, NULL, SIGTERM, on_stop, NULL));
	must(sd_event_add_signal(event, NULL, SIGINT, on_stop, NULL));
	must(sd_event_add_signal(event, NULL, SIGHUP, on_reload, NULL));
}

sd_event *daemon_start(const struct daemon *daemon, int argc, char **argv)
{
	int only;

	self = daemon;
	only = parse_options(argc, argv);
	if (config_load(&self->config, path) < 0)
		exit(MISUSED);
	if (only == OWN)
		self->run_option();
	if (only)
		exit(0);
	/* Each message is one line, and is written by one write(2). */
	setvbuf(stderr, NULL, _IOLBF, 0);
	open_loop();
	return event;
}

/* Raises the limit of open files to @want if that is permitted. Returns the limit. */
static rlim_t raise_limit(rlim_t want)
{
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
	return limit.rlim_cur;
}

uint64_t daemon_connections(uint64_t want, uint64_t others)
{
	rlim_t limit = raise_limit(want + others);

	if (limit <= others)
		die(0, "the limit of %llu open files is too low",
		    (unsigned long long)limit);
	if (limit >= want + others)
		return want;
	say("no more than %llu connections: the limit of open files is %llu",
	    (unsigned long long)(limit - others), (unsigned long long)limit);
	return limit - others;
}

void daemon_run(void)
{
	sd_notify(0, "READY=1");
	must(sd_event_loop(event));
}
