// SPDX-License-Identifier: GPL-2.0-only
/*
 * twidled: tells which of many users have fallen silent. This file has the keys of
 * the configuration, and starts the other parts, which twidled.h lists.
 */
#include <errno.h>

#include "../common/daemon.h"
#include "twidled.h"

/*
 * The service opens this many files besides connections: sockets, subscribers, commands and a few
 * more.
 */
#define OTHER_FILES	(MAX_LISTENERS + MAX_SUBSCRIBERS + MAX_COMMANDS + 40)
/*
 * This many connections may exist beyond max-users, for users who come back and for unnamed
 * clients.
 */
#define SPARE		1024

#define AT(field)	offsetof(struct config, field)
#define SIZE(field)	sizeof(service.config.field)
#define HOUR		(3600 * NSEC_PER_SEC)

static const char *config_watch(const struct config_key *key, void *field,
				const char *value)
{
	enum watch *watch = field;
	bool yes;
	const char *error = config_bool(key, &yes, value);

	*watch = yes ? WATCH_YES : WATCH_NO;
	return error;
}

static const struct config_key keys[] = {
	{ "wheels", config_wheels, AT(wheels), SIZE(wheels), .flags = 0 },
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
	{ "watch", config_watch, AT(watch), SIZE(watch), .flags = 0 },
	{ "close", config_bool, AT(close), SIZE(close), CONFIG_LIVE,
	  .defaults = { "yes" } },
	{ "exec", config_command, AT(exec), SIZE(exec),
	  .flags = CONFIG_LIVE },
	{ "exec-timeout", config_time, AT(exec_timeout), SIZE(exec_timeout),
	  CONFIG_LIVE, 1, HOUR, { "30s" } },
};

static void ids_in_use(void (*mark)(uint64_t id))
{
	wheel_each(mark);
	outbox_each(mark);
	users_each(mark);
}

static int on_wheel(sd_event_source *source, int fd, uint32_t events,
		    void *unused)
{
	struct timewheel_event *silent;
	size_t i, n;

	if (events & (EPOLLHUP | EPOLLERR))
		wheel_died(ENODEV);
	/* Connections with packets come first: a user who sent a packet in time is not silent. */
	users_accept();
	users_turn();
	n = outbox_read(&silent);
	for (i = 0; i < n; i++) {
		bool silence = users_silent(&silent[i]);

		outbox_judge(&silent[i], silence ? NEWS_OFFLINE : NEWS_NONE);
		if (silence)
			subscribers_tell(&silent[i]);
	}
	users_flush();
	return 0;
}

/* Lines that are not printed yet are kept for the next service, and so is the wheel. */
static void stop(void)
{
	users_stop();
	users_say_saved();
	outbox_flush();
	subscribers_flush();
}

static void reloaded(void)
{
	service.timeouts++;
	users_say_saved();
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
	service.ids_in_use = ids_in_use;
	service.max_connections =
		daemon_connections(service.config.max_users + SPARE, OTHER_FILES);
	wheels_start(service.config.wheels);
	/* The lock of the state comes first, because only one service may run at a time. */
	outbox_open(service.config.state);
	wheel_open(&service.config);
	outbox_settle();
	wheel_each(names_adopt);
	must(sd_event_add_io(service.event, &service.silent,
			     tw_wheel_fd(service.wheel), EPOLLIN, on_wheel,
			     NULL));
	command_open(outbox_flush);
	users_open(&service.config);
	subscribers_open(&service.config.events);
	if (wheel_is_new())
		outbox_tell(NEWS_ANEW, 0, 1);
	outbox_flush();
	daemon_run();
	return 0;
}
