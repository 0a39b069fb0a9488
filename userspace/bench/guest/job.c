// SPDX-License-Identifier: GPL-2.0-only
/*
 * The whole job: 100,000 users send 3,300 packets a second, and a user that was silent
 * for 30 s is offline. It runs on the real clock; sleeping costs nothing in this guest.
 * At first 20 users fall silent for good each second; all other users send a packet at
 * least each 30 s. Exactly the silent users must be reported.
 *
 * The counts are the instructions of the process and of the kernel for it, less those
 * of the same program with no timeouts at all.
 */
#include <string.h>

#include "bench.h"

#define USERS		100000
#define PER_SECOND	3300
#define TURNS		10	/* turns of the program's loop in a second */
#define QUIT		20	/* users who fall silent in a second */
#define TIMEOUT		30	/* s, within which all users have a turn */
#define SETTLE		33	/* s, until the last silent user is reported */

struct way {
	const char *name;
	const struct kind *kind;	/* NULL: no timeouts */
	void (*packet)(unsigned int user);
	void (*turn)(u64 now);		/* called at the end of each turn */
};

static const struct way *way;
static u32 *order;		/* the active users, in the order of their packets */
static bool *silent, *reported;
static unsigned int wrong, found;

static void offline(unsigned int user)
{
	found++;
	if (!silent[user] || reported[user])
		wrong++;
	reported[user] = true;
}

static void rearm_user(unsigned int user)
{
	way->kind->arm(user, TIMEOUT * SEC, false);
}

static void touch_user(unsigned int user)
{
	way->kind->rearm(user);
}

static void upsert_user(unsigned int user)
{
	way->kind->upsert(user);
}

static unsigned int batched;

static void batch_user(unsigned int user)
{
	way->kind->upsert(user);
	if (++batched == BATCH) {
		way->kind->flush();
		batched = 0;
	}
}

static void read_expired(u64 now)
{
	(void)now;
	if (batched)
		way->kind->flush();
	batched = 0;
	while (way->kind->drain(false, offline))
		;
}

/*
 * The scan: the program keeps a map from a user's id to the time of the last packet, and looks
 * through all of it each second. The map is one array with open addressing, half full at most:
 * a simple one and a fast one.
 */
#define PLACES	262144

static struct entry {
	u64 id, last;
} *map;

static u64 map_now;

static u64 id_of(unsigned int user)
{
	return (user + 1) * 2654435761ULL;
}

static unsigned int user_of(u64 id)
{
	return id / 2654435761ULL - 1;
}

static void map_user(unsigned int user)
{
	u64 id = id_of(user);
	struct entry *e = map + (id * 0x9e3779b97f4a7c15ULL >> 46);

	while (e->id && e->id != id)
		e = e == map + PLACES - 1 ? map : e + 1;
	e->id = id;
	e->last = map_now;
}

/* A time of 0 marks a user that is offline: in this program the map only shrinks. */
static void scan(u64 now)
{
	static u64 next;

	map_now = now;
	if (now < next)
		return;
	next = now + SEC;
	for (struct entry *e = map; e < map + PLACES; e++) {
		if (e->last && now - e->last > TIMEOUT * SEC) {
			e->last = 0;
			offline(user_of(e->id));
		}
	}
}

static void no_packet(unsigned int user)
{
	(void)user;
}

static void no_turn(u64 now)
{
	(void)now;
}

/* All users send a packet first. The cost of these packets is left out. */
static void everybody(u64 now)
{
	if (way->kind)
		arm_all(way->kind, USERS, TIMEOUT * SEC, false);
	map_now = now;
	for (unsigned int user = 0; !way->kind && user < USERS; user++)
		way->packet(user);
}

static u64 play(unsigned int seconds)
{
	unsigned int active = USERS, at = 0;
	u64 begin, used;

	silent = grab(USERS * sizeof(*silent));
	reported = grab(USERS * sizeof(*reported));
	order = shuffled(USERS);
	map = grab(PLACES * sizeof(*map));
	found = 0;
	wrong = 0;
	if (way->kind)
		way->kind->open(way->kind, USERS, SEC);
	everybody(now_of(CLOCK_MONOTONIC));

	/* So many users are silent from the start that each other user has its turn in time. */
	for (; active > PER_SECOND * (TIMEOUT - 2); active--)
		silent[order[active - 1]] = true;
	begin = now_of(CLOCK_MONOTONIC);
	used = now_of(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned int t = 0; t < seconds * TURNS; t++) {
		sleep_until(begin + (t + 1) * (SEC / TURNS));
		if (t % TURNS == 0 && t / TURNS + SETTLE < seconds) {
			for (int i = 0; i < QUIT; i++)
				silent[order[--active]] = true;
		}
		for (int i = 0; i < PER_SECOND / TURNS; i++) {
			at = at + 1 < active ? at + 1 : 0;
			way->packet(order[at]);
		}
		way->turn(now_of(CLOCK_MONOTONIC));
	}
	used = now_of(CLOCK_PROCESS_CPUTIME_ID) - used;
	if (way->turn != no_turn) {
		put("silent users reported", way->name, seconds, found);
		if (wrong || found != USERS - active)
			printf("not ok - %s: %u reported of %u, %u wrong\n",
			       way->name, found, USERS - active, wrong);
		NEED(!wrong && found == USERS - active);
	}
	if (way->kind)
		way->kind->close();
	free(silent);
	free(reported);
	free(order);
	free(map);
	return used;
}

void run_job(unsigned int seconds)
{
	static const struct way ways[] = {
		{ "nothing", NULL, no_packet, no_turn },
		{ "wheel: ioctl, id", &wheel_id, upsert_user, read_expired },
		{ "wheel: ioctl TOUCH, id", &wheel_id, touch_user, read_expired },
		{ "wheel: ioctl TOUCH, handle", &wheel_handle, touch_user,
		  read_expired },
		{ "wheel: batch, id", &wheel_batch_id, batch_user, read_expired },
		{ "wheel: touch word", &wheel_word, touch_user, read_expired },
		{ "map and scan", NULL, map_user, scan },
		{ "timerfd", &timerfd, rearm_user, read_expired },
	};
	const double packets = (double)seconds * PER_SECOND;
	u64 nothing = 0;

	NEED(seconds > SETTLE);
	for (unsigned int i = 0; i < ARRAY_SIZE(ways); i++) {
		u64 used;

		way = &ways[i];
		used = play(seconds);
		if (!i) {
			nothing = used;
			continue;
		}
		used -= nothing;
		put("per packet", way->name, seconds, used / packets);
		put("per second", way->name, seconds, used / (double)seconds);
	}
}
