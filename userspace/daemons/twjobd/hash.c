// SPDX-License-Identifier: GPL-2.0-only
/*
 * SipHash-2-4 (Aumasson and Bernstein): a hash that nobody can aim at without its
 * key. This knows nothing of what is hashed.
 */
#include <endian.h>
#include <string.h>

#include "twjobd.h"

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void mix(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t hash(const uint64_t key[2], struct bytes bytes)
{
	uint64_t v[4] = {
		key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL,
		key[0] ^ 0x6c7967656e657261ULL, key[1] ^ 0x7465646279746573ULL,
	};
	uint64_t word = 0;
	size_t i, whole = bytes.length / 8 * 8;

	for (i = 0; i < whole; i += 8) {
		memcpy(&word, bytes.data + i, 8);
		mix(v, le64toh(word));
	}
	word = 0;
	memcpy(&word, bytes.data + whole, bytes.length - whole);
	mix(v, le64toh(word) | (uint64_t)bytes.length << 56);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
