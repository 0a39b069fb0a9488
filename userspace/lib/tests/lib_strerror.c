// SPDX-License-Identifier: GPL-2.0-only
/*
 * What errors mean: each error of the library has words of its own, any other
 * those of strerror(3). Needs no device.
 */
#include "lib_test.h"

static const int ours[] = {
	E2BIG, EBADF, EBADFD, EBUSY, EDOM, EDQUOT, EEXIST, EINPROGRESS,
	EINVAL, ENAMETOOLONG, ENODATA, ENODEV, ENOENT, ENOMEM, ENOSPC,
	ENOTCONN, ENOTSOCK, ENOTTY, ENXIO, EPERM, EPROTONOSUPPORT, ERANGE,
	ESHUTDOWN, ESTALE,
};

static bool is_ours(int errnum)
{
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (ours[i] == errnum)
			return true;
	return false;
}

TEST(words_of_our_own)
{
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		EXPECT_STRNE(strerror(ours[i]), tw_strerror(ours[i]));
		for (size_t j = 0; j < i; j++)
			EXPECT_STRNE(tw_strerror(ours[j]), tw_strerror(ours[i]));
	}
}

TEST(other_errors)
{
	for (int errnum = 0; errnum < 134; errnum++)
		if (!is_ours(errnum) && strerrordesc_np(errnum))
			EXPECT_STREQ(strerror(errnum), tw_strerror(errnum));
}

TEST(no_errors)
{
	EXPECT_STREQ("unknown error", tw_strerror(-1));
	EXPECT_STREQ("unknown error", tw_strerror(INT32_MIN));
	EXPECT_STREQ("unknown error", tw_strerror(100000));
}

/* Each call returns the same string, and errno stays. */
TEST(string_stays)
{
	const char *text = tw_strerror(ERANGE);

	errno = E2BIG;
	tw_strerror(-1);
	EXPECT_EQ(text, tw_strerror(ERANGE));
	EXPECT_EQ(E2BIG, errno);
}

TEST_HARNESS_MAIN
