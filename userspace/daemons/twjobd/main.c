// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd: keeps jobs with their data until they are due, and hands them out. This
 * is its life: options, the loop, signals. See twjobd.h for the parts.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include "conn.h"
#include "keep.h"
#include "verbs.h"

/* Files besides connections and wheels. */
#define OTHER_FILES	64
/* Two for each queue. */
#define QUEUE_FILES	512

sd_event *event;

static const char *config_path = "/etc/twjobd.conf";

__noreturn
static void usage(FILE *to, int status)
{
	fputs("twjobd [--config FILE] [--check-config]\n"
	      "  -c, --config FILE    instead of /etc/twjobd.conf\n"
	      "      --check-config   say whether the file is right, and end\n"
	      "  -h, --help\n"
	      "See twjobd(8).\n", to);
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

/* As many files as all connections need, or as many as the limits allow. */
static void raise_limit(void)
{
	rlim_t others = OTHER_FILES + QUEUE_FILES, want;
	struct rlimit limit;

	want = config.max_connections + others;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		die(errno, "getrlimit");
	limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		die(errno, "setrlimit");
	if (limit.rlim_cur <= others)
		die(0, "the limit of %llu open files is too low",
		    (unsigned long long)limit.rlim_cur);
	if (limit.rlim_cur == want)
		return;
	config.max_connections = limit.rlim_cur - others;
	say("no more than %llu connections: the limit of open files is %llu",
	    (unsigned long long)config.max_connections,
	    (unsigned long long)limit.rlim_cur);
}

static int on_stop(sd_event_source *source,
		   const struct signalfd_siginfo *signal, void *unused)
{
	(void)source;
	(void)signal;
	(void)unused;
	sd_notify(0, "STOPPING=1");
	return sd_event_exit(event, 0);
}

static void open_loop(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	must(sd_event_default(&event));
	must(sd_event_set_watchdog(event, true));
	must(sd_event_add_signal(event, NULL, SIGTERM, on_stop, NULL));
	must(sd_event_add_signal(event, NULL, SIGINT, on_stop, NULL));
}

/* On the sockets that the service manager has passed, else on those configured. */
static void listen_all(void)
{
	int passed = sd_listen_fds(0), sockets = 0;

	for (int i = 0; i < passed; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
			continue;
		conn_listen(fd);
		sockets++;
	}
	for (int i = 0; !sockets && i < MAX_LISTENERS; i++)
		if (config.listen[i].length)
			conn_listen(config_listen(&config.listen[i]));
}

int main(int argc, char **argv)
{
	bool check = parse_options(argc, argv);

	if (config_load(config_path) < 0)
		return MISUSED;
	if (check)
		return 0;
	/* A line is one write, also of messages. */
	setvbuf(stderr, NULL, _IOLBF, 0);
	open_loop();
	raise_limit();
	store_open(config.store);
	conn_start();
	keep_start(take_listen);
	listen_all();
	sd_notify(0, "READY=1");
	must(sd_event_loop(event));
	conn_stop();
	store_close();
	return 0;
}
