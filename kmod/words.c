// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Touch words: a u64 for each token, which its users may map and write.
 */
#include <linux/limits.h>

#include "words.h"

/* Makes a directory of pages for so many tokens. Return: 0 or -ENOMEM. */
int tw_words_init(struct tw_blocks *words, u32 max)
{
	return tw_blocks_init(words, (max - 1) / TW_WORDS_PER_PAGE + 1,
			      PAGE_SIZE);
}

/**
 * tw_stamp_due() - to which tick a word raises a token
 * @word: the word, which makes sense
 * @now: the tick that the hand is on
 * @timeout: the token's timeout in ticks, less than TW_MAX_STAMPED
 *
 * Return: the tick, 0 if it was not touched.
 */
u64 tw_stamp_due(u64 word, u64 now, u64 timeout)
{
	u32 stamp = word;
	u32 age = (u32)now - stamp;

	if (!stamp)
		return 0;
	if (age > S32_MAX)
		age = 0;

	return now + 1 + timeout > age ? now + 1 + timeout - age : 0;
}
