/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads times as people write them, and prints them for people. It knows nothing
 * of wheels.
 */
#ifndef TOOL_TIMES_H
#define TOOL_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define NSEC_PER_SEC	1000000000ULL

/* The longest time there is: kernels count ns in 63 bits, which is 292 years. */
#define TIME_MAX_NS	((uint64_t)INT64_MAX)

enum when_kind {
	WHEN_SPAN,	/* from now on */
	WHEN_REAL,	/* since 1970, UTC */
	WHEN_CLOCK,	/* of the wheel's clock */
};

struct when {
	enum when_kind	kind;
	uint64_t	ns;
};

/* Messages tell these forms of times. */
#define SPAN_FORM	"a span such as 30s, 1h30m or 500ms"
#define WHEN_FORM	"a span such as 30s or 'in 1h30m', 'at 15:22:35', " \
			"'tomorrow 8am', '2026-12-01 08:00', or 'clock NS'"

bool span_parse(const char *text, uint64_t *ns);
bool when_parse(const char *text, uint64_t real_now, struct when *when);

/* Returns what was wrong with the last text, "" if it did not have the form of a time. */
const char *times_wrong(void);

bool when_spread(struct when *when, uint64_t span);

#define TIME_TEXT	64

void span_text(char *text, size_t size, int64_t ns);
void span_text_like(char *text, size_t size, uint64_t ns, const char *like);
void real_text(char *text, size_t size, uint64_t ns, bool iso);

#endif /* TOOL_TIMES_H */
