// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dice by which a test of random operations decides: a generator, or the bytes of
 * a fuzzer.
 */
#include "dice.h"

static struct {
	bool		end;	/* the numbers come from bytes, which end */
	u64		state;
	const u8	*bytes;
	size_t		left;
} dice;

void dice_seed(u64 seed)
{
	dice.end = false;
	dice.state = seed;
}

void dice_bytes(const u8 *bytes, size_t size)
{
	dice.end = true;
	dice.bytes = bytes;
	dice.left = size;
}

/* Returns whether numbers other than 0 may still come. */
bool dice_left(void)
{
	return !dice.end || dice.left;
}

/* Takes as many bytes as a number up to @most needs. */
static u64 next_bytes(u64 most)
{
	u64 value = 0;

	for (; most && dice.left; most >>= 8, dice.left--)
		value = value << 8 | *dice.bytes++;

	return value;
}

u64 roll(u64 n)
{
	u64 value = dice.end ? next_bytes(n - 1) : random_next(&dice.state);

	return n ? value % n : value;
}
