// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd: keeps jobs with their data until they are due, and hands them out. This
 * file has the keys of the configuration, and starts the other parts, which
 * twjobd.h lists.
 */
#include <sodium.h>
#include <systemd/sd-daemon.h>

#include "../common/daemon.h"
#include "conn.h"
#include "keep.h"
#include "verbs.h"

/* So many files are open besides connections and wheels. */
#define OTHER_FILES	64
#define QUEUE_FILES	(2 * MAX_QUEUES)

sd_event *event;
struct config config;
uint64_t max_connections;

#define AT(field)	offsetof(struct config, field)
#define SIZE(field)	sizeof(config.field)

/* Takes a path, or a text that another kind of store takes. */
static const char *parse_store(const struct config_key *key, void *field,
			       const char *value)
{
	if (value[0] != '/' && !store_find(value)->name)
		return "is neither a path that begins with \"/\" nor a store that this program has";
	return config_text(key, field, value);
}

static const struct config_key keys[] = {
	{ "listen", config_listen, AT(listen), SIZE(listen), CONFIG_MANY,
	  .defaults = { "/run/twjobd/socket", "127.0.0.1:7076" } },
	{ "store", parse_store, AT(store), SIZE(store),
	  .defaults = { "/var/lib/twjobd/jobs" } },
	{ "node", config_name, AT(node), SIZE(node), .flags = 0 },
	{ "machines", config_number, AT(machines), SIZE(machines), 0, 1, 16, { "2" } },
	{ "wheel-prefix", config_name, AT(prefix), SIZE(prefix),
	  .defaults = { "jobs-" } },
	{ "password", config_text, AT(password), SIZE(password),
	  .flags = CONFIG_LIVE },
	{ "max-body", config_number, AT(max_body), SIZE(max_body), CONFIG_LIVE, 1,
	  64 << 20, { "1048576" } },
	{ "max-connections", config_number, AT(max_connections),
	  SIZE(max_connections), 0, 1, 1000000, { "10000" } },
};

/* Listens on the sockets that the service manager has passed, else on those configured. */
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
			conn_listen(address_listen(&config.listen[i]));
}

int main(int argc, char **argv)
{
	static struct daemon daemon = {
		.name = "twjobd",
		.config = { keys, ARRAY_SIZE(keys), &config, sizeof(config) },
		.option_help = "make the tables of a database that has none",
		.run_option = store_init,
	};

	if (store_may_init())
		daemon.option = "init-database";

	event = daemon_start(&daemon, argc, argv);
	max_connections = daemon_connections(config.max_connections,
					     OTHER_FILES + QUEUE_FILES);
	if (sodium_init() < 0)
		die(0, "libsodium cannot be used");
	store_start();
	conn_start();
	keep_start(take_listen);
	if (store->start)
		store->start();
	listen_all();
	daemon_run();
	store->close();
	return 0;
}
