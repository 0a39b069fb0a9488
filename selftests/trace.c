// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints show the operations on a wheel, by the wheel's number and the keys
 * that callers use. The test needs root and tracefs.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "tw_test.h"

#define TRACING		"/sys/kernel/tracing/"

/* Returns the number by which the traces name the wheel, or 0 if fdinfo has none. */
static unsigned int wheel_number(int fd)
{
	char number[32];

	return tw_fdinfo(fd, "wheel", number, sizeof(number)) ? atoi(number) :
								0;
}

/* Returns how many traced events read "@name: wheel=@number @rest". */
static int traced(const char *name, unsigned int number, const char *rest)
{
	char line[512], want[256];
	int n = 0;
	FILE *f = fopen(TRACING "trace", "re");

	snprintf(want, sizeof(want), " %s: wheel=%u%s%s\n", name, number,
		 *rest ? " " : "", rest);
	while (f && fgets(line, sizeof(line), f)) {
		size_t at = strlen(line), len = strlen(want);

		n += at >= len && !strcmp(line + at - len, want);
	}
	if (f)
		fclose(f);
	return n;
}

FIXTURE(trace) {
	int fd;
	unsigned int number;
};

FIXTURE_SETUP(trace)
{
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	if (access(TRACING "trace", W_OK))
		SKIP(return, "no tracefs, or not root");
	ASSERT_TRUE(tw_write_file(TRACING "trace", ""));
	ASSERT_TRUE(tw_write_file(TRACING "events/timewheel/enable", "1"));
	ASSERT_TRUE(tw_write_file(TRACING "tracing_on", "1"));
	ASSERT_EQ(0, tw_setup_manual(self->fd, 60, 100, 0));
	self->number = wheel_number(self->fd);
	ASSERT_NE(0U, self->number);
}

FIXTURE_TEARDOWN(trace)
{
	tw_write_file(TRACING "events/timewheel/enable", "0");
	close(self->fd);
}

/* Each operation that succeeds is one traced event, and no other operation is traced. */
TEST_F(trace, operations)
{
	const __u64 id = 10;
	char rest[128];
	__u64 handle;

	EXPECT_EQ(1, traced("create", self->number,
			    "clock=3 slots=60 tick_ns=1000000000 max_tokens=100"));
	ASSERT_EQ(0, tw_register(self->fd, id, 10 * TW_SEC, 0, &handle));
	ASSERT_EQ(-1, tw_register(self->fd, id, 10 * TW_SEC, 0, NULL));
	snprintf(rest, sizeof(rest), "id=10 handle=%#llx due=10", handle);
	EXPECT_EQ(1, traced("register", self->number, rest));

	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_EQ(0, tw_touch(self->fd, 0, id));
	EXPECT_EQ(1, traced("touch", self->number, "id=10 handle=0x0 due=11"));
	ASSERT_EQ(0, tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handle));
	snprintf(rest, sizeof(rest), "id=0 handle=%#llx due=11", handle);
	EXPECT_EQ(1, traced("touch", self->number, rest));
	ASSERT_EQ(0, tw_move(self->fd, 0, id, 5 * TW_SEC));
	EXPECT_EQ(1, traced("move", self->number, "id=10 handle=0x0 due=6"));
	ASSERT_EQ(0, tw_cancel(self->fd, 0, id));
	ASSERT_EQ(-1, tw_cancel(self->fd, 0, id));
	EXPECT_EQ(1, traced("cancel", self->number, "id=10 handle=0x0 due=6"));
}

/* Each token of a call about many is traced, and none that the call refuses. */
TEST_F(trace, calls_for_many)
{
	struct timewheel_entry entries[] = {
		{ .id = 1, .time = 10 * TW_SEC }, { .id = 2, .time = 20 * TW_SEC },
		{ .id = 1, .time = 30 * TW_SEC },
	};
	const __u64 keys[] = { 2, 1, 3 };
	__s32 results[3];
	__u32 done;
	char rest[128];

	ASSERT_EQ(0, tw_register_entries(self->fd, 0, 0, entries, 3, &done));
	for (int i = 0; i < 2; i++) {
		snprintf(rest, sizeof(rest), "id=%llu handle=%#llx due=%d",
			 entries[i].id, entries[i].handle, (i + 1) * 10);
		EXPECT_EQ(1, traced("register", self->number, rest));
	}
	EXPECT_EQ(0, traced("register", self->number, "id=1 handle=0x0 due=30"));
	ASSERT_EQ(0, tw_cancel_keys(self->fd, 0, keys, results, 3, &done));
	EXPECT_EQ(1, traced("cancel", self->number, "id=2 handle=0x0 due=20"));
	EXPECT_EQ(1, traced("cancel", self->number, "id=1 handle=0x0 due=10"));
	EXPECT_EQ(0, traced("cancel", self->number, "id=3 handle=0x0 due=0"));
}

/* Each successful answer is traced with its delivery, which is 0 for a DELETE. */
TEST_F(trace, answers)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60, .tick = TW_SEC, .max_tokens = 10,
		.lease = 30 * TW_SEC, .max_held = 10,
		.flags = TIMEWHEEL_SETUP_PERIODS,
	};
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	unsigned int number;
	char rest[128];

	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup));
	number = wheel_number(fd);
	ASSERT_EQ(0, tw_register_periodic(fd, 0, 7, 10 * TW_SEC, TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 10));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	snprintf(rest, sizeof(rest), "id=7 handle=%#llx due=10", event.handle);
	EXPECT_EQ(1, traced("register", number, rest));
	snprintf(rest, sizeof(rest), "id=7 handle=%#llx due=10 delivery=1",
		 event.handle);
	EXPECT_EQ(1, traced("deliver", number, rest));
	ASSERT_EQ(-ESTALE, tw_ret(tw_answer(fd, TIMEWHEEL_OP_ACK, 0, 7, 2, 0)));
	ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_NACK, 0, 7, 1, 0));
	EXPECT_EQ(1, traced("answer", number,
			    "code=6 id=7 handle=0x0 delivery=1"));
	EXPECT_EQ(0, traced("answer", number,
			    "code=5 id=7 handle=0x0 delivery=2"));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	snprintf(rest, sizeof(rest), "id=7 handle=%#llx due=10 delivery=2",
		 event.handle);
	EXPECT_EQ(1, traced("deliver", number, rest));
	ASSERT_EQ(0, tw_ack(fd, &event));
	snprintf(rest, sizeof(rest), "code=5 id=0 handle=%#llx delivery=2",
		 event.handle);
	EXPECT_EQ(1, traced("answer", number, rest));
	ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_DELETE, 0, 7, 0, 0));
	EXPECT_EQ(1, traced("answer", number,
			    "code=8 id=7 handle=0x0 delivery=0"));
	close(fd);
}

/* Tokens that are filed again, taken or put back are traced with their count. */
TEST_F(trace, expiry)
{
	struct timewheel_event events[8];
	void *nowhere = mmap(NULL, 4096, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, nowhere);
	for (int i = 0; i < 5; i++)
		ASSERT_EQ(0, tw_register(self->fd, i, 10 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_EQ(0, tw_touch(self->fd, 0, 0));
	ASSERT_EQ(0, tw_touch(self->fd, 0, 1));
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	ASSERT_EQ(-1, read(self->fd, nowhere, sizeof(events)));
	EXPECT_EQ(1, traced("sort", self->number, "tokens=2"));
	EXPECT_EQ(1, traced("take", self->number, "tokens=3"));
	EXPECT_EQ(1, traced("put_back", self->number, "tokens=3"));
	ASSERT_EQ(3, tw_read(self->fd, events, 8));
	EXPECT_EQ(2, traced("take", self->number, "tokens=3"));
	EXPECT_EQ(1, traced("put_back", self->number, "tokens=3"));
	munmap(nowhere, 4096);
}

/* Each token that a reader has got is traced. A token that was put back is not. */
TEST_F(trace, deliveries)
{
	enum { READ = 3, ALL = 5 };
	struct timewheel_event events[ALL];
	__u64 handles[ALL];
	const size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = pages + page - READ * sizeof(*events);
	char rest[128];

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, mprotect(pages + page, page, PROT_NONE));
	for (int i = 0; i < ALL; i++)
		ASSERT_EQ(0, tw_register(self->fd, 20 + i, (i + 1) * TW_SEC, 0,
					 &handles[i]));
	ASSERT_EQ(0, tw_advance(self->fd, ALL));
	ASSERT_EQ((int)(READ * sizeof(*events)),
		  read(self->fd, at, sizeof(events)));
	for (int i = 0; i < ALL; i++) {
		snprintf(rest, sizeof(rest),
			 "id=%d handle=%#llx due=%d delivery=0", 20 + i,
			 handles[i], i + 1);
		EXPECT_EQ(i < READ, traced("deliver", self->number, rest));
	}
	ASSERT_EQ(ALL - READ, tw_read(self->fd, events, ALL));
	for (int i = 0; i < ALL; i++) {
		snprintf(rest, sizeof(rest),
			 "id=%d handle=%#llx due=%d delivery=0", 20 + i,
			 handles[i], i + 1);
		EXPECT_EQ(1, traced("deliver", self->number, rest));
	}
	munmap(pages, 2 * page);
}

/* A wheel's timer is traced, and the wheel's end with the number of its pending tokens. */
TEST_F(trace, alarm_and_end)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;
	unsigned int number;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS, 10, 0,
			      0));
	number = wheel_number(fd);
	EXPECT_NE(self->number, number);
	ASSERT_EQ(0, tw_register(fd, 2, 1000 * TW_SEC, 0, NULL));
	/* On a slow machine token 1 may be due before the timer is armed. */
	for (;;) {
		ASSERT_EQ(0, tw_register(fd, 1, 20 * TW_MS, 0, NULL));
		tw_sleep_ms(50);
		ASSERT_EQ(0, tw_info(fd, &info));
		if (info.callbacks)
			break;
		ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 1));
		ASSERT_FALSE(tw_readable(fd));
	}
	EXPECT_EQ(1, traced("alarm", number, ""));
	close(fd);
	EXPECT_EQ(1, traced("destroy", number, "tokens=2"));
}

TEST_HARNESS_MAIN
