// SPDX-License-Identifier: GPL-2.0-only
/*
 * This daemon among others: see member.h.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "member.h"

/* Clocks that differ by so much are as one, ms. */
#define CLOCK_UNSURE	20

static struct {
	int64_t id, epoch;
	unsigned int session;
	uint64_t since, fenced;
} member;

static uint64_t ticks(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * MSEC_PER_SEC + now.tv_nsec / NSEC_PER_MSEC;
}

int64_t member_id(void)
{
	return member.id;
}

uint64_t member_age(void)
{
	return ticks() - member.since;
}

uint64_t member_fenced(void)
{
	return member.fenced;
}

static struct bytes name(void)
{
	static char host[sizeof(config.node)];

	if (config.node[0])
		return (struct bytes) { config.node, strlen(config.node) };
	gethostname(host, sizeof(host) - 1);
	return (struct bytes) { host, strlen(host) };
}

static int send_fence(void)
{
	pg_number(member.id);
	pg_number(member.epoch);
	pg_number(config.machines);
	return pg_send(BEGIN_TURN);
}

static int end(int error)
{
	if (!error)
		error = pg_commit();
	if (error)
		pg_roll_back();
	return error ? -EIO : 0;
}

/* Goes on with the epoch that it has. */
static int renew(void)
{
	int error = pg_begin() ?: send_fence();

	pg_number(member.id);
	pg_number(MEMBER_LEASE);
	return end(error ?: pg_send(RENEW));
}

static int join(void)
{
	PGresult *rows = NULL;
	int error = pg_begin();

	pg_bytes(name());
	pg_number(MEMBER_LEASE);
	error = error ?: pg_ask(JOIN, &rows);
	if (!error) {
		member.id = pg_int(rows, 0, 0);
		member.epoch = pg_int(rows, 0, 1);
		error = send_fence();
	}
	PQclear(rows);
	error = end(error);
	/* It is not known which epoch there is. */
	if (error)
		member.epoch = 0;
	return error;
}

int member_attach(void)
{
	int error = pg_connect();

	if (error || member.session == pg_session())
		return error;
	error = member.epoch ? renew() : join();
	if (error && pg_was_fenced()) {
		say("another node has taken this one's jobs over: it goes on with others");
		member.fenced++;
		error = join();
	}
	if (!error) {
		member.session = pg_session();
		member.since = ticks();
	}
	return error;
}

int member_begin(void)
{
	/* The turn before has found that this node is fenced. */
	if (pg_was_fenced())
		member.session = 0;
	return member_attach() ?: pg_begin() ?: send_fence();
}

void member_leave(void)
{
	if (member_begin()) {
		pg_roll_back();
		return;
	}
	pg_number(member.id);
	end(pg_send(LEAVE));
}

/*
 * A small difference is more likely that of the answer's way than of the clocks: it is
 * left as it is.
 */
int64_t member_set_clock(uint64_t now, uint64_t asked)
{
	uint64_t answered = now_ms();
	int64_t more = now - (asked + (answered - asked) / 2);
	int64_t unsure = CLOCK_UNSURE + (answered - asked) / 2;

	if (more > -unsure && more < unsure)
		return 0;
	store_ahead += more;
	say("the database's clock is ahead of this machine's by %lld ms",
	    (long long)store_ahead);
	return more;
}
