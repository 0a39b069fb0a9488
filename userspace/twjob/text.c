// SPDX-License-Identifier: GPL-2.0-only
/* Text in UTF-8. The C library would need a locale for UTF-8, which may not be there. */
#include "twjob.h"

/* Returns the length of the character that @text begins with; 0 if it is none, or a zero. */
size_t utf8_length(const char *text, size_t length)
{
	const unsigned char *at = (const unsigned char *)text;
	/* The least and the greatest byte that may follow the first byte. */
	unsigned char least = 0x80, most = 0xbf;
	size_t more, i;

	if (!length || !*at || (*at >= 0x80 && *at < 0xc2) || *at > 0xf4)
		return 0;
	more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
	if (*at == 0xe0 || *at == 0xf0)
		least = *at == 0xe0 ? 0xa0 : 0x90;
	if (*at == 0xed || *at == 0xf4)
		most = *at == 0xed ? 0x9f : 0x8f;
	for (i = 1; i <= more; i++) {
		if (i == length || at[i] < least || at[i] > most)
			return 0;
		least = 0x80;
		most = 0xbf;
	}
	return more + 1;
}

bool utf8_all(const char *text, size_t length)
{
	size_t one = 1;

	while (length && one) {
		one = utf8_length(text, length);
		text += one;
		length -= one;
	}
	return one;
}
