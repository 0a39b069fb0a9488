// SPDX-License-Identifier: GPL-2.0-only
/* The beginning and the end: where the server listens, and for how long. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "web.h"

#define FORM	"a socket's path, or 127.0.0.1:PORT"

struct settings web;

const struct route routes[] = {
	{ "", false, page_queues },
	{ "style.css", false, page_style },
	{ "rules", false, page_rules },
	{ "connections", false, page_connections },
	{ "queue/*", false, page_queue },
	{ "queue/*/find", false, page_find },
	{ "queue/*/done", false, page_done },
	{ "queue/*/job/*", false, page_job },
	{ "queue/*/pause", true, change_queue },
	{ "queue/*/drain", true, change_queue },
	{ "queue/*/resume", true, change_queue },
	{ "queue/*/job/*/kick", true, change_job },
	{ "queue/*/job/*/cancel", true, change_job },
	{ "queue/*/job/*/delete", true, change_job },
	{ "queue/*/job/*/move", true, change_move },
	{ }
};

static void make_token(void)
{
	unsigned char bytes[(TOKEN_SIZE - 1) / 2];
	size_t i;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		die(STATUS_FAILED, "there are no random bytes: %s", strerror(errno));
	for (i = 0; i < sizeof(bytes); i++)
		sprintf(web.token + 2 * i, "%02x", bytes[i]);
	snprintf(web.prefix, sizeof(web.prefix), "/%s", web.token);
}

static __noreturn void cannot_listen(const char *address)
{
	die(errno == EACCES || errno == EPERM ? STATUS_NOT_ALLOWED : STATUS_FAILED,
	    "--listen '%s': %s", address, strerror(errno));
}

/* Listens for this machine only, because HTTP can be read on its way. Port 0 means any port. */
static int listen_port(const char *address)
{
	struct sockaddr_in where = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(where);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
	uint64_t port;

	if (strncmp(address, "127.0.0.1:", 10) || !number_parse(address + 10, 0, 65535, &port))
		die_usage("--listen", address, FORM);
	where.sin_port = htons(port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (fd < 0 || bind(fd, (struct sockaddr *)&where, size) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&where, &size))
		cannot_listen(address);
	web.port = ntohs(where.sin_port);
	make_token();
	printf("http://127.0.0.1:%u%s/\n", web.port, web.prefix);
	return fd;
}

/* A socket at which nobody listens was left by a process that has gone. */
static void remove_old(const struct sockaddr_un *where)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat found;

	if (!lstat(where->sun_path, &found) && S_ISSOCK(found.st_mode) &&
	    connect(fd, (struct sockaddr *)where, sizeof(*where)) && errno == ECONNREFUSED)
		unlink(where->sun_path);
	close(fd);
}

/* The socket has the right mode from the beginning. */
static int listen_path(const char *path)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177);

	if (strlen(path) >= sizeof(where.sun_path))
		die(STATUS_USAGE, "--listen '%s': longer than the %zu bytes of a socket's path",
		    path, sizeof(where.sun_path) - 1);
	strcpy(where.sun_path, path);
	remove_old(&where);
	if (fd < 0 || bind(fd, (struct sockaddr *)&where, sizeof(where)) ||
	    listen(fd, SOMAXCONN))
		cannot_listen(path);
	umask(mask);
	web.unix_socket = true;
	printf("%s\n", path);
	return fd;
}

static char *default_path(void)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	char *path;

	if (!folder && getuid())
		die(STATUS_USAGE, "there is no XDG_RUNTIME_DIR: --listen tells where, as %s", FORM);
	if (asprintf(&path, "%s/twjob-web", folder ? folder : "/run") < 0)
		die(STATUS_FAILED, "no memory for a path");
	return path;
}

static void serve(struct MHD_Daemon *daemon)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fd = { .fd = info->epoll_fd, .events = POLLIN };
	MHD_UNSIGNED_LONG_LONG ms;

	while (!stop_signal) {
		uint64_t end = NEVER;

		if (MHD_get_timeout(daemon, &ms) == MHD_YES)
			end = end_after(ms * NSEC_PER_MSEC);
		wait_for(&fd, 1, end);
		MHD_run(daemon);
	}
}

enum status verb_serve(const struct args *args)
{
	const char *given = args->option[OPT_LISTEN];
	char *address = given ? strdup(given) : default_path();
	struct MHD_Daemon *daemon;
	int fd;

	server_settings(args);
	web.read_only = args->option[OPT_READ_ONLY];
	signals_begin();
	fd = strchr(address, '/') ? listen_path(address) : listen_port(address);
	daemon = http_start(fd);
	if (!daemon)
		die(STATUS_FAILED, "the server for browsers cannot start");
	fflush(stdout);
	serve(daemon);
	MHD_stop_daemon(daemon);
	if (web.unix_socket)
		unlink(address);
	free(address);
	return STATUS_OK;
}
