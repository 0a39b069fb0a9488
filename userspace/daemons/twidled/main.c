// SPDX-License-Identifier: GPL-2.0-only
/*
 * twidled: tells which of many users have fallen silent. This file has the keys of
 * the configuration, opens the wheel and starts the other parts, which twidled.h
 * lists.
 */
#include <errno.h>
#include <fcntl.h>

#include "../common/daemon.h"
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

#define AT(field)	offsetof(struct config, field)
#define SIZE(field)	sizeof(service.config.field)
#define HOUR		(3600 * NSEC_PER_SEC)

static const struct config_key keys[] = {
	{ "wheel", config_name, AT(wheel), SIZE(wheel), .defaults = { "twidled" } },
	{ "listen", config_listen, AT(listen), SIZE(listen), CONFIG_MANY,
	  .defaults = { "127.0.0.1:7075" } },
	{ "events", config_socket, AT(events), SIZE(events),
	  .defaults = { "/run/twidled/events" } },
	{ "state", config_path, AT(state), SIZE(state),
	  .defaults = { "/run/twidled/state" } },
	{ "timeout", config_time, AT(timeout), SIZE(timeout), CONFIG_LIVE, 1,
	  8760 * HOUR, { "30s" } },
	{ "tick", config_time, AT(tick), SIZE(tick), 0, 1, HOUR, { "1s" } },
	{ "max-users", config_number, AT(max_users), SIZE(max_users), 0, 1,
	  1 << 24, { "100000" } },
	{ "buffer", config_number, AT(buffer), SIZE(buffer), CONFIG_LIVE, 4096,
	  1 << 30, { "1048576" } },
	{ "close", config_bool, AT(close), SIZE(close), CONFIG_LIVE,
	  .defaults = { "yes" } },
};

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

/* Lines not printed yet are kept for the next service, as the wheel is. */
static void stop(void)
{
	outbox_flush();
	subscribers_flush();
}

static void reloaded(void)
{
	service.timeouts++;
}

int main(int argc, char **argv)
{
	static const struct daemon daemon = {
		.name = "twidled",
		.config = { keys, ARRAY_SIZE(keys), &service.config,
			    sizeof(service.config) },
		.stop = stop,
		.reloaded = reloaded,
	};

	service.event = daemon_start(&daemon, argc, argv);
	service.max_connections =
		daemon_connections(service.config.max_users + SPARE, OTHER_FILES);
	/* The state's lock comes first: one service at a time. */
	outbox_open(service.config.state);
	open_wheel(&service.config);
	users_open(&service.config);
	subscribers_open(&service.config.events);
	outbox_flush();
	daemon_run();
	return 0;
}
