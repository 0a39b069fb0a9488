// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines that are cut: wide letters, letters of no width, tabs, and colours, which are
 * ended also behind the cut. Prints TAP.
 */
#include <locale.h>

#include "tool.h"

static const struct {
	const char	*text;
	int		width;
	const char	*cut;
} lines[] = {
	{ "", 5, "" },
	{ "short\n", 5, "short\n" },
	{ "longer\n", 5, "longe\n" },
	{ "longer", 5, "longe" },
	{ "one line\nanother\n\nx\n", 3, "one\nano\n\nx\n" },
	{ "käse\n", 2, "kä\n" },
	{ "日本語\n", 4, "日本\n" },
	{ "日本語ab\n", 5, "日本\n" },
	{ "e\314\201tude\n", 2, "e\314\201t\n" },
	{ "a\tb\n", 9, "a\tb\n" },
	{ "a\tb\n", 8, "a\t\n" },
	{ "a\tb\n", 7, "a\n" },
	{ "\033[1;32mgreen\033[0m black\n", 5, "\033[1;32mgreen\033[0m\n" },
	{ "\033[1;32mgreen\033[0m\n", 2, "\033[1;32mgr\033[0m\n" },
	{ "a\033", 5, "a\033" },
	{ "\377\377\377\n", 2, "\377\377\n" },
};

int main(void)
{
	int status = 0;
	size_t i;

	setlocale(LC_CTYPE, "C.UTF-8");
	printf("1..%zu\n", ARRAY_SIZE(lines));
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		char *text = strdup(lines[i].text);
		bool well;

		cut_lines(text, lines[i].width);
		well = !strcmp(text, lines[i].cut);
		printf("%sok %zu line %zu at %d columns\n", well ? "" : "not ",
		       i + 1, i + 1, lines[i].width);
		if (!well)
			status = 1;
		free(text);
	}
	return status;
}
