// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd: keeps jobs with their data until they are due, and hands them out. This
 * file has the keys of the configuration, and starts the other parts, which
 * twjobd.h lists.
 */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "../common/daemon.h"
#include "allow.h"
#include "conn.h"
#include "held.h"
#include "keep.h"
#include "take.h"

/* This many files are open besides connections and wheels. */
#define OTHER_FILES	64
#define QUEUE_FILES	(2 * MAX_QUEUES)

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
	  .defaults = { "/run/twjobd/socket" } },
	{ "store", parse_store, AT(store), SIZE(store),
	  .defaults = { "/var/lib/twjobd/jobs" } },
	{ "node", config_name, AT(node), SIZE(node), .flags = 0 },
	{ "machines", config_number, AT(machines), SIZE(machines), 0, 1, 16, { "2" } },
	{ "wheels", config_wheels, AT(wheels), SIZE(wheels), .flags = 0 },
	{ "wheel-prefix", config_name, AT(prefix), SIZE(prefix),
	  .defaults = { "jobs-" } },
	{ "password", config_text, AT(password), SIZE(password),
	  .flags = CONFIG_LIVE },
	{ "password-file", config_path, AT(password_file), SIZE(password_file),
	  .flags = CONFIG_LIVE },
	{ "allow", allow_parse, AT(allow), SIZE(allow),
	  .flags = CONFIG_MANY | CONFIG_LIVE },
	{ "max-body", config_number, AT(max_body), SIZE(max_body), CONFIG_LIVE, 1,
	  64 << 20, { "1048576" } },
	{ "max-connections", config_number, AT(max_connections),
	  SIZE(max_connections), 0, 1, 1000000, { "10000" } },
};

/* The service manager has passed @all sockets, of which @tcp are for TCP. */
static struct passed {
	int all, tcp;
} count_passed(void)
{
	struct passed passed = { };
	int end = SD_LISTEN_FDS_START + sd_listen_fds(0);

	for (int fd = SD_LISTEN_FDS_START; fd < end; fd++) {
		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
			continue;
		passed.all++;
		passed.tcp += sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) <= 0;
	}
	return passed;
}

/*
 * Listens on the sockets of the service manager or, if there are none, on the configured sockets.
 */
static void listen_all(void)
{
	int end = SD_LISTEN_FDS_START + sd_listen_fds(0);
	bool passed = count_passed().all;

	for (int fd = SD_LISTEN_FDS_START; fd < end; fd++)
		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) > 0)
			conn_listen(fd);
	for (int i = 0; !passed && i < MAX_LISTENERS; i++)
		if (config.listen[i].length)
			conn_listen(address_listen(&config.listen[i]));
}

/* A credential of the unit that has the password has this name. */
#define CREDENTIAL	"twjobd.password"

/* Gets the path of the password's file, if the configuration or the unit names such a file. */
static bool name_password_file(const struct config *fresh, char *path, size_t size)
{
	const char *credentials = getenv("CREDENTIALS_DIRECTORY");

	if (fresh->password_file[0]) {
		snprintf(path, size, "%s", fresh->password_file);
		return true;
	}
	if (!credentials)
		return false;
	snprintf(path, size, "%s/" CREDENTIAL, credentials);
	return !access(path, F_OK);
}

/* The password is the file's first line. */
static const char *read_password(char password[PASSWORD_SIZE], const char *path)
{
	static char error[1300];
	FILE *file = fopen(path, "re");
	char line[PASSWORD_SIZE + 1] = "";

	if (!file || (!fgets(line, sizeof(line), file) && ferror(file))) {
		snprintf(error, sizeof(error), "the password's file %s: %s", path,
			 strerror(errno));
		if (file)
			fclose(file);
		return error;
	}
	fclose(file);
	line[strcspn(line, "\r\n")] = '\0';
	if (line[0] && strlen(line) < PASSWORD_SIZE) {
		strcpy(password, line);
		return NULL;
	}
	snprintf(error, sizeof(error),
		 "the password's file %s has no first line of 1 to %d bytes", path,
		 PASSWORD_SIZE - 1);
	return error;
}

static bool listens_at_tcp(const struct config *fresh)
{
	struct passed passed = count_passed();

	for (int i = 0; !passed.all && i < MAX_LISTENERS; i++)
		if (fresh->listen[i].length &&
		    fresh->listen[i].any.sa_family != AF_UNIX)
			return true;
	return passed.tcp;
}

/*
 * The first message is about the configuration, the second one about the service manager's
 * sockets.
 */
static const char * const without_password[] = {
	"TCP without a password would be open to everybody: give password-file, or listen at a path only; password = none insists",
	"TCP without a password would be open to everybody: give password-file, or remove ListenStream=ADDRESS:PORT by \"systemctl edit twjobd.socket\" and restart twjobd.socket; password = none insists",
};

/* Reads the passwords of the lines "allow". @any tells whether there is such a password. */
static const char *read_allowed(struct config *fresh, bool *any)
{
	const char *error = NULL;

	*any = false;
	for (int i = 0; !error && i < MAX_ALLOW; i++) {
		struct allow *allow = &fresh->allow[i];

		if (!allow->file[0])
			continue;
		*any = true;
		error = read_password(allow->password, allow->file);
	}
	return error;
}

static const char *check_config(void *values)
{
	struct config *fresh = values;
	char path[1100];
	const char *error;
	bool allowed;

	if (fresh->password[0] && fresh->password_file[0])
		return "password and password-file are both given";
	if (!fresh->password[0] && name_password_file(fresh, path, sizeof(path))) {
		error = read_password(fresh->password, path);
		if (error)
			return error;
	}
	error = read_allowed(fresh, &allowed);
	if (error || fresh->password[0] || allowed || !listens_at_tcp(fresh))
		return error;
	return without_password[count_passed().tcp > 0];
}

int main(int argc, char **argv)
{
	static struct daemon daemon = {
		.name = "twjobd",
		.config = { keys, ARRAY_SIZE(keys), &config, sizeof(config),
			    check_config },
		.option_help = "make the tables of a database that has none",
		.run_option = store_init,
	};

	if (store_may_init())
		daemon.option = "init-database";

	event = daemon_start(&daemon, argc, argv);
	max_connections = daemon_connections(config.max_connections,
					     OTHER_FILES + QUEUE_FILES + MORE_FILES);
	if (sodium_init() < 0)
		die(0, "libsodium cannot be used");
	wheels_start(config.wheels);
	store_start();
	conn_start();
	queue_opened = take_listen;
	queue_changed = take_ended;
	keep_start();
	if (store->start)
		store->start();
	listen_all();
	daemon_run();
	held_save();
	store->close();
	return 0;
}
