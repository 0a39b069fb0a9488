// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's cursors: each token once, as it is, within the times asked for.
 */
#include "lib_test.h"

#define TOKENS	1000

FIXTURE(cursor)
{
	struct tw_wheel *wheel;
	const struct timewheel_token *token;
	unsigned char seen[TOKENS];
};

/* Token i is due at 101 + i seconds. */
FIXTURE_SETUP(cursor)
{
	struct timewheel_setup setup = manual;

	setup.max_tokens = TOKENS;
	self->wheel = open_wheel(&setup);
	for (uint64_t i = 0; i < TOKENS; i++)
		ASSERT_EQ(0, RUN(self->wheel, register, i, TW_SEC(1 + i), i + 5, 0));
	memset(self->seen, 0, sizeof(self->seen));
}

FIXTURE_TEARDOWN(cursor)
{
	tw_wheel_close(self->wheel);
}

TEST_F(cursor, each_once)
{
	struct tw_cursor *cursor = tw_cursor_open(self->wheel, 0, TIMEWHEEL_NEVER);

	ASSERT_NE(NULL, cursor);
	for (int i = 0; i < TOKENS; i++) {
		const struct timewheel_token *token;

		ASSERT_EQ(1, tw_cursor_next(cursor, &token));
		ASSERT_GT(TOKENS, token->id);
		EXPECT_EQ(0, self->seen[token->id]++);
		EXPECT_EQ(token->id + 5, token->cookie);
		EXPECT_EQ((101 + token->id) * SEC, token->deadline);
		EXPECT_EQ((101 + token->id) % 60, token->slot);
		EXPECT_EQ(TIMEWHEEL_STATE_PENDING, token->state);
	}
	self->token = NULL;
	EXPECT_EQ(0, tw_cursor_next(cursor, &self->token));
	EXPECT_EQ(0, tw_cursor_next(cursor, &self->token));
	EXPECT_EQ(NULL, self->token);
	tw_cursor_close(cursor);
}

/* Both ends of the range belong to it. */
TEST_F(cursor, range)
{
	struct tw_cursor *cursor = tw_cursor_open(self->wheel, 201 * SEC,
						  203 * SEC);
	int count = 0;

	ASSERT_NE(NULL, cursor);
	while (tw_cursor_next(cursor, &self->token) == 1) {
		EXPECT_LE(100, self->token->id);
		EXPECT_GE(102, self->token->id);
		count++;
	}
	EXPECT_EQ(3, count);
	tw_cursor_close(cursor);
}

TEST(empty_wheel)
{
	struct tw_wheel *wheel = open_wheel(&manual);
	struct tw_cursor *cursor = tw_cursor_open(wheel, 0, TIMEWHEEL_NEVER);
	const struct timewheel_token *token;

	ASSERT_NE(NULL, cursor);
	EXPECT_EQ(0, tw_cursor_next(cursor, &token));
	tw_cursor_close(cursor);
	tw_wheel_close(wheel);
}

TEST(close_takes_null)
{
	errno = E2BIG;
	tw_cursor_close(NULL);
	EXPECT_EQ(E2BIG, errno);
}

TEST_HARNESS_MAIN
