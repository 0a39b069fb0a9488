// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receipts as text: see receipt.h. Each job has its receipt written once and read once, for which
 * printf() and scanf() would take longer than all other work on an ack but the store's.
 */
#include "receipt.h"

#define DIGITS	16	/* of a number of 64 bits */
#define NUMBERS	4

/* Writes the number so that it ends before @end. Returns where it begins. */
static char *write_number(char *end, uint64_t number)
{
	do {
		*--end = "0123456789abcdef"[number % 16];
		number /= 16;
	} while (number);
	return end;
}

struct bytes receipt_write(const struct receipt *receipt, char room[RECEIPT_TEXT])
{
	char *end = room + RECEIPT_TEXT, *at = write_number(end, receipt->delivery);

	*--at = '-';
	at = write_number(at, receipt->handle);
	*--at = '-';
	at = write_number(at, receipt->epoch);
	*--at = '-';
	at = write_number(at, receipt->job);
	return (struct bytes) { at, end - at };
}

/* Returns -1 if the character is no digit that write_number() writes. */
static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool receipt_read(struct bytes text, struct receipt *receipt)
{
	uint64_t numbers[NUMBERS] = { };
	int n = 0, digits = 0;

	for (size_t i = 0; i < text.length; i++) {
		int digit = digit_of(text.data[i]);

		if (digit >= 0 && digits++ < DIGITS)
			numbers[n] = numbers[n] * 16 + digit;
		else if (text.data[i] == '-' && digits && ++n < NUMBERS)
			digits = 0;
		else
			return false;
	}
	*receipt = (struct receipt) {
		.job = numbers[0],
		.epoch = numbers[1],
		.handle = numbers[2],
		.delivery = numbers[3],
	};
	/* Deliveries are counted from 1. */
	return numbers[3] && numbers[3] <= UINT32_MAX;
}
