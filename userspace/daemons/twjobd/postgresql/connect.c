// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the server that commits: see connect.h.
 *
 * All hosts are tried at once, and nothing here waits unless the caller allows it. A host is used
 * when it has committed something. Until then its connection stays open: a connection that waits
 * for a standby keeps a process of the server, which does not hear that the connection is closed.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../twjobd.h"
#include "connect.h"

#define MAX_HOSTS	16
/* A connection string has at most this many options. */
#define MAX_OPTIONS	50
/* A host has PATIENCE ms to take a connection, and is tried again after AGAIN ms. */
#define PATIENCE	2000
#define AGAIN		1000
/* This many ms pass between two looks whether the patience with a host has ended. */
#define LOOK		100

static struct host {
	PGconn *conn;		/* NULL: the host is not being tried */
	bool asked;		/* the host has been asked to commit something */
	PostgresPollingStatusType wants;
	uint64_t begun;		/* ms */
	uint64_t next;		/* ms: when the next try may begin */
} hosts[MAX_HOSTS];

static unsigned int nr_hosts = 1;
static struct host *used = hosts;
static char why[256] = "it does not answer";

/*
 * This statement gives a session its settings, and commits something. It does nothing if the
 * session's process is not the process that the server has named: then a pool of connections is
 * in between, which may give the session to other programs. The server ends the session when this
 * process is gone, and this process does the same when the server is gone. The search path has no
 * schema in which other users may create operators, because a statement would call these
 * operators. Plans are generic and use indexes: a plan for a small table would read the whole
 * table when it is large, and to plan each time costs more than to carry the plan out.
 */
static const char first[] =
	"select set_config('synchronous_commit', case\n"
	" current_setting('synchronous_commit') when 'remote_apply'\n"
	" then 'remote_apply' else 'on' end, false),\n"
	" set_config('default_transaction_isolation', 'read committed', false),\n"
	" set_config('search_path', 'pg_catalog, pg_temp', false),\n"
	" set_config('idle_in_transaction_session_timeout', '4s', false),\n"
	" set_config('tcp_user_timeout', '5s', false),\n"
	" set_config('tcp_keepalives_idle', '3', false),\n"
	" set_config('tcp_keepalives_interval', '1', false),\n"
	" set_config('tcp_keepalives_count', '3', false),\n"
	" set_config('plan_cache_mode', 'force_generic_plan', false),\n"
	" set_config('enable_seqscan', 'off', false),\n"
	" set_config('enable_bitmapscan', 'off', false),\n"
	" set_config('jit', 'off', false),\n"
	" set_config('lock_timeout', '250ms', false),\n"
	" pg_logical_emit_message(true, 'twjobd', '')\n"
	" where pg_backend_pid() = %d";

uint64_t pg_ticks(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * MSEC_PER_SEC + now.tv_nsec / NSEC_PER_MSEC;
}

const char *connect_error(void)
{
	return why;
}

/* Returns the @nth element of a list with commas. After its end the list begins again. */
static char *element(const char *list, unsigned int nth)
{
	unsigned int commas = 0;

	for (const char *c = list; *c; c++)
		commas += *c == ',';
	if (nr_hosts <= commas)
		nr_hosts = commas < MAX_HOSTS ? commas + 1 : MAX_HOSTS;
	for (nth %= commas + 1; nth; nth--)
		list = strchr(list, ',') + 1;
	return strndup(list, strcspn(list, ","));
}

/*
 * Connects by the values of the connection string, to the @nth of its hosts. The settings end the
 * connection within seconds if the peer has gone, also while nothing is sent.
 */
static PGconn *start(const char *where, unsigned int nth)
{
	const char *names[MAX_OPTIONS + 1] = {
		"target_session_attrs", "tcp_user_timeout", "application_name",
		"keepalives_idle", "keepalives_interval", "keepalives_count",
	};
	char *values[MAX_OPTIONS + 1] = {
		strdup("read-write"), strdup("5000"), strdup("twjobd"), strdup("3"),
		strdup("1"), strdup("3"),
	};
	char *error = NULL;
	PQconninfoOption *options = PQconninfoParse(where, &error);
	PGconn *conn;
	int n = 6;

	if (!options)
		die(0, "store: %s", error ?: "no memory");
	for (int i = 0; options[i].keyword && n < MAX_OPTIONS; i++) {
		const char *name = options[i].keyword;
		bool list = !strncmp(name, "host", 4) || !strcmp(name, "port");

		if (!options[i].val)
			continue;
		names[n] = name;
		values[n++] = list ? element(options[i].val, nth) :
				     strdup(options[i].val);
	}
	conn = PQconnectStartParams(names, (const char * const *)values, 0);
	PQconninfoFree(options);
	while (n)
		free(values[--n]);
	return conn;
}

static void end_try(struct host *host, uint64_t next)
{
	PQfinish(host->conn);
	host->conn = NULL;
	host->next = next;
}

/* Ends the try of a host, and returns false: nothing more can be done now. */
static bool refused(struct host *host, const char *text)
{
	snprintf(why, sizeof(why), "%s", text);
	end_try(host, pg_ticks() + AGAIN);
	return false;
}

static void ignore_notice(void *unused, const char *text)
{
	(void)unused;
	(void)text;
}

static bool begin_try(struct host *host, const char *where)
{
	if (pg_ticks() < host->next)
		return false;
	host->conn = start(where, host - hosts);
	host->asked = false;
	host->wants = PGRES_POLLING_WRITING;
	host->begun = pg_ticks();
	if (PQstatus(host->conn) == CONNECTION_BAD)
		return refused(host, PQerrorMessage(host->conn));
	PQsetNoticeProcessor(host->conn, ignore_notice, NULL);
	return true;
}

static struct pollfd poll_of(const struct host *host)
{
	return (struct pollfd) {
		.fd = host->conn ? PQsocket(host->conn) : -1,
		.events = !host->asked && host->wants == PGRES_POLLING_WRITING ?
			  POLLOUT : POLLIN,
	};
}

static bool ask_to_commit(struct host *host)
{
	char text[sizeof(first) + 16];

	snprintf(text, sizeof(text), first, PQbackendPID(host->conn));
	host->asked = PQsendQuery(host->conn, text);
	return host->asked || refused(host, PQerrorMessage(host->conn));
}

static bool go_on_connecting(struct host *host)
{
	struct pollfd poll_fd = poll_of(host);

	if (poll(&poll_fd, 1, 0) <= 0)
		return pg_ticks() > host->begun + PATIENCE &&
		       refused(host, "it does not answer");
	host->wants = PQconnectPoll(host->conn);
	if (host->wants == PGRES_POLLING_FAILED)
		return refused(host, PQerrorMessage(host->conn));
	return host->wants != PGRES_POLLING_OK || ask_to_commit(host);
}

/* Tells whether the host has committed. */
static bool has_committed(struct host *host)
{
	PGresult *result;
	bool good;

	if (!PQconsumeInput(host->conn))
		return refused(host, PQerrorMessage(host->conn));
	if (PQisBusy(host->conn))
		return false;
	result = PQgetResult(host->conn);
	good = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (good && !PQntuples(result))
		die(0, "store: port %s of %s is a pool of connections, such as pgbouncer: %s",
		    PQport(host->conn), PQhost(host->conn),
		    "a node needs a session of its own, at the server itself");
	if (!good)
		refused(host, PQresultErrorMessage(result));
	PQclear(result);
	/* The end of the results has come together with the commit. */
	while (good && (result = PQgetResult(host->conn)))
		PQclear(result);
	return good;
}

static PGconn *use(struct host *host)
{
	PGconn *conn = host->conn;

	used = host;
	host->conn = NULL;
	for (unsigned int i = 0; i < nr_hosts; i++)
		if (hosts[i].conn)
			end_try(&hosts[i], 0);
	return conn;
}

static PGconn *go_on(const char *where)
{
	for (unsigned int i = 0; i < nr_hosts; i++) {
		struct host *host = &hosts[i];

		if (!host->conn && !begin_try(host, where))
			continue;
		while (host->conn && !host->asked && go_on_connecting(host))
			;
		if (host->conn && host->asked && has_committed(host))
			return use(host);
	}
	return NULL;
}

/* Returns whether there is something to wait for. */
static bool wait_for_any(uint64_t until)
{
	struct pollfd poll_fds[MAX_HOSTS];
	uint64_t now = pg_ticks();
	bool any = false;

	for (unsigned int i = 0; i < nr_hosts; i++) {
		poll_fds[i] = poll_of(&hosts[i]);
		any |= !!hosts[i].conn;
	}
	if (!any || now >= until)
		return false;
	poll(poll_fds, nr_hosts, until - now < LOOK ? until - now : LOOK);
	return true;
}

PGconn *connect_try(const char *where, uint64_t until)
{
	PGconn *conn;

	do
		conn = go_on(where);
	while (!conn && wait_for_any(until));
	return conn;
}

void connect_avoid(void)
{
	used->next = pg_ticks() + AGAIN;
}
