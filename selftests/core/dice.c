// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dice: what a test of random operations decides by, a generator or bytes.
 */
#include "dice.h"

static struct {
	bool		end;	/* by bytes, not by a generator */
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

/* Whether more may come than 0. */
bool dice_left(void)
{
	return !dice.end || dice.left;
}

/* As many bytes as numbers up to @most have. */
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
