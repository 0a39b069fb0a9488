/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for tests of deliveries: they check all figures of a wheel, and the state of
 * its tokens.
 */
#ifndef TW_DELIVERY_H
#define TW_DELIVERY_H

#include "tw_test.h"

#ifndef TW_NO_HARNESS

#define TW_FIGURES(X)							\
	X(registered) X(pending) X(taken) X(held) X(cancelled) X(moved)	\
	X(delivered) X(put_back) X(acked) X(nacked) X(lapsed)		\
	X(returned) X(deleted) X(missed)

struct tw_figures {
	__u64 registered, pending, taken, held, cancelled, moved;
	__u64 delivered, put_back, acked, nacked, lapsed, returned;
	__u64 deleted, missed;
};

static inline void _tw_expect_figures(struct __test_metadata *_metadata, int fd,
				      struct tw_figures f, int line)
{
	struct timewheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
#define TW_FIGURE(name)							\
	EXPECT_EQ(f.name, info.name) {					\
		TH_LOG("%s, in line %d", #name, line);			\
	}
	TW_FIGURES(TW_FIGURE)
#undef TW_FIGURE
}

/* Expects these counters in INFO; all other counters are 0. */
#define tw_expect_figures(fd, ...)					\
	_tw_expect_figures(_metadata, fd,				\
			   (struct tw_figures) { __VA_ARGS__ }, __LINE__)

static inline void _tw_expect_nothing(struct __test_metadata *_metadata, int fd,
				      int line)
{
	struct timewheel_event event;

	/* A wheel inside this process may be readable until a read has found nothing. */
	EXPECT_FALSE(!tw_in_process() && tw_readable(fd)) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(fd, &event, 1))) {
		TH_LOG("in line %d", line);
	}
}

/* Expects that nothing is due. */
#define tw_expect_nothing(fd)	_tw_expect_nothing(_metadata, fd, __LINE__)

/*
 * Expects that nothing is lost: each token that was registered on a wheel with leases
 * has ended or is still there. No token of the wheel is periodic, so each ACK ends a
 * token.
 */
static inline void _tw_expect_balance(struct __test_metadata *_metadata, int fd,
				      int line)
{
	struct timewheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(info.registered, info.cancelled + info.deleted + info.acked +
		  info.pending + info.taken + info.held) {
		TH_LOG("in line %d", line);
	}
}

#define tw_expect_balance(fd)	_tw_expect_balance(_metadata, fd, __LINE__)

#endif /* TW_NO_HARNESS */

/* Most tests have fewer tokens than this number. */
#define TW_LISTED	4096

/* Lists all tokens of the wheel into @tokens. Returns their number, or -1 and errno. */
static inline int tw_list(int fd, struct timewheel_token *tokens)
{
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER,
		.token_size = sizeof(*tokens),
	};
	int n = 0;

	while (list.cursor != TIMEWHEEL_NEVER) {
		list.tokens = (uintptr_t)(tokens + n);
		list.count = TW_LISTED - n;
		if (!list.count) {
			errno = E2BIG;
			return -1;
		}
		if (ioctl(fd, TIMEWHEEL_IOC_LIST, &list) < 0)
			return -1;
		n += list.listed;
	}
	return n;
}

/* Returns the listed token of this id, or NULL if there are none or several. */
static inline const struct timewheel_token *tw_find(int fd, __u64 id)
{
	static struct timewheel_token tokens[TW_LISTED];
	const struct timewheel_token *found = NULL;
	int n = tw_list(fd, tokens);

	for (int i = 0; i < n; i++) {
		if (tokens[i].id != id)
			continue;
		if (found)
			return NULL;
		found = &tokens[i];
	}
	return found;
}

#ifndef TW_NO_HARNESS

/*
 * A token is expected in this state. @due is the tick of its deadline or its lease's
 * end.
 */
struct tw_token {
	__u32 state;
	__u64 due;
	__u32 delivery;
	__u32 attempts;
};

/*
 * Expects that GET by id, GET by handle and LIST tell this state of a token. The wheel
 * is MANUAL and has ticks of 1 s.
 */
static inline void _tw_expect_token(struct __test_metadata *_metadata, int fd,
				    __u64 id, struct tw_token t, int line)
{
	const bool held = t.state == TIMEWHEEL_STATE_HELD;
	const struct timewheel_token *listed = tw_find(fd, id);
	struct timewheel_token token, by_handle;
	struct timewheel_info info;
	__u64 left;

	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(0, tw_get(fd, 0, id, &token)) {
		TH_LOG("no token %llu, in line %d", id, line);
	}
	ASSERT_EQ(0, tw_get(fd, TIMEWHEEL_OPF_BY_HANDLE, token.handle,
			    &by_handle));
	EXPECT_EQ(0, memcmp(&token, &by_handle, sizeof(token)));
	ASSERT_NE(NULL, listed) {
		TH_LOG("%llu is not listed once, in line %d", id, line);
	}
	EXPECT_EQ(0, memcmp(&token, listed, sizeof(token))) {
		TH_LOG("%llu is listed otherwise, in line %d", id, line);
	}
	EXPECT_EQ(id, token.id);
	EXPECT_EQ(t.state, token.state) {
		TH_LOG("state of %llu, in line %d", id, line);
	}
	EXPECT_EQ(t.delivery, token.delivery) {
		TH_LOG("delivery of %llu, in line %d", id, line);
	}
	EXPECT_EQ(t.attempts, token.attempts) {
		TH_LOG("attempts of %llu, in line %d", id, line);
	}
	EXPECT_EQ(held ? 0 : t.due * TW_SEC, token.deadline) {
		TH_LOG("deadline of %llu, in line %d", id, line);
	}
	EXPECT_EQ(held ? t.due * TW_SEC : 0, token.lease_end) {
		TH_LOG("lease's end of %llu, in line %d", id, line);
	}
	left = t.due <= info.hand ? 0 : t.due * TW_SEC - info.now;
	EXPECT_EQ(left, token.left) {
		TH_LOG("time left of %llu, in line %d", id, line);
	}
	EXPECT_EQ(t.due <= info.hand ? 0 :
		  (t.due - info.hand - 1) / info.slots, token.cycle);
	EXPECT_EQ(t.due % info.slots, token.slot);
}

#define tw_expect_token(fd, id, ...)					\
	_tw_expect_token(_metadata, fd, id,				\
			 (struct tw_token) { __VA_ARGS__ }, __LINE__)

#endif /* TW_NO_HARNESS */

#endif /* TW_DELIVERY_H */
