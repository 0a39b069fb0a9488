// SPDX-License-Identifier: GPL-2.0-only
/*
 * This daemon as a member of the cluster: see member.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "member.h"

/* Clocks that differ by at most this many ms count as equal. */
#define CLOCK_UNSURE	20

static struct {
	int64_t id, epoch;
	unsigned int session;
	uint64_t since, fenced, takeover;
	int64_t way;		/* ms that the answer which told the clock needed */
	int64_t forward;	/* ms by which the clock has been set forward by such answers */
} member;

int64_t member_id(void)
{
	return member.id;
}

uint64_t member_fenced(void)
{
	return member.fenced;
}

void member_note_takeover(uint64_t ms)
{
	member.takeover = ms;
}

uint64_t member_takeover(void)
{
	return member.takeover;
}

uint64_t member_age(void)
{
	return pg_ticks() - member.since;
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

/* Goes on with the epoch that this node has. */
static int renew(void)
{
	int error = pg_begin() ?: send_fence();

	pg_number(member.id);
	error = error ?: pg_send(BEGIN_SESSION);
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
	pg_number(pg_schema());
	error = error ?: pg_ask(JOIN, &rows);
	if (!error) {
		member.id = pg_int(rows, 0, 0);
		member.epoch = pg_int(rows, 0, 1);
		error = send_fence();
	}
	PQclear(rows);
	error = end(error);
	/* The node's epoch in the database is not known. */
	if (error)
		member.epoch = 0;
	return error;
}

/* Asks for the clock, because another server's clock may differ. */
static int ask_clock(void)
{
	uint64_t asked = now_ms();
	PGresult *rows;
	int error = pg_ask(NOW, &rows);

	if (!error) {
		member_set_clock(pg_int(rows, 0, 0), asked);
		store_max_body = pg_int(rows, 0, 1);
	}
	PQclear(rows);
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
	error = error ?: ask_clock();
	if (error) {
		/* This server may be the wrong one, so another server is tried first. */
		pg_close();
		return error;
	}
	member.session = pg_session();
	member.since = pg_ticks();
	return 0;
}

int member_begin(void)
{
	/* The last turn has found that this node is fenced. */
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
 * The server told its time at some moment between @asked and now. This uncertainty, and a little
 * more, counts as no difference.
 */
void member_set_clock(uint64_t now, uint64_t asked)
{
	int64_t way = (now_ms() - asked) / 2, unsure = way + CLOCK_UNSURE;
	int64_t ahead = now - (asked - store_ahead + way), more;

	if (llabs(ahead) <= unsure)
		ahead = 0;
	more = ahead - store_ahead;
	/* Of answers within these bounds the fastest answer is the best one. */
	if (llabs(more) <= unsure && ahead && way >= member.way)
		return;
	member.way = way;
	member.forward += more;
	store_ahead = ahead;
	if (llabs(more) > unsure)
		say("the database's clock is ahead of this machine's by %lld ms",
		    (long long)ahead);
}

int64_t member_set_forward(void)
{
	int64_t forward = member.forward;

	member.forward = 0;
	return forward;
}
