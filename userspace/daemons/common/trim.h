/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines of configuration files, as the daemons and twctl read them.
 */
#ifndef COMMON_TRIM_H
#define COMMON_TRIM_H

#include <string.h>

/* trim() returns the text without the white space at both its ends. */
static inline char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return text;
}

#endif /* COMMON_TRIM_H */
