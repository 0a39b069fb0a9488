// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched tokens, whose connections' data a BPF program takes: then TCP does not know
 * of it. Not for a kernel before 6.12 with lockdep, which finds fault with sockmaps
 * themselves.
 */
#define _GNU_SOURCE
#include "tw_watch.h"

#define SHORT	(80 * TW_MS)	/* a timeout that tests wait for */

/* A wheel that watches, and tells of ends, and a connection. */
FIXTURE(sockmap) {
	int fd;
	struct tw_conn conn;
};

FIXTURE_SETUP(sockmap)
{
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 1000,
				    TIMEWHEEL_SETUP_TELL_ENDED));
	ASSERT_TRUE(tw_connect(AF_INET, &self->conn));
}

FIXTURE_TEARDOWN(sockmap)
{
	tw_disconnect(&self->conn);
	close(self->fd);
}

/* A sockmap takes the connection's data: the token comes, and says why. */
TEST_F(sockmap, attached_later)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;
	int map, again;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->a, TW_AN_HOUR, 0));
	map = tw_sockmap(c->a);
	ASSERT_LE(0, map);
	tw_expect_event(self->fd, 1, EBUSY, &event);
	EXPECT_EQ(-EBUSY, tw_watch(self->fd, 1, c->a, SHORT, 0));
	/* It is there, and is not replaced. */
	EXPECT_EQ(-EEXIST, tw_watch(self->fd, 2, c->b, SHORT, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 3, c->b, SHORT, 0));
	tw_expect_event(self->fd, 3, 0, &event);
	close(map);
	/* Taken out of it, as a map's end does some time later, it is as before. */
	for (int i = 0; i < 10000; i++) {
		again = tw_watch(self->fd, 1, c->a, SHORT, 0);
		if (again != -EBUSY)
			break;
		tw_sleep_ms(1);
	}
	EXPECT_EQ(0, again);
	tw_expect_event(self->fd, 1, 0, &event);
}

/* Without TELL_ENDED, too: nothing else would say that nobody watches any more. */
TEST_F(sockmap, has_always_an_event)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK), map;
	struct timewheel_event event;
	struct timewheel_info info;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_setup_watch(fd, TW_MS, 10, 0));
	ASSERT_EQ(0, tw_watch(fd, 1, self->conn.a, SHORT, 0));
	map = tw_sockmap(self->conn.a);
	ASSERT_LE(0, map);
	tw_expect_event(fd, 1, EBUSY, &event);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.ended);
	close(map);
	close(fd);
}

TEST_HARNESS_MAIN
