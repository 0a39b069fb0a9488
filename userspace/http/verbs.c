// SPDX-License-Identifier: GPL-2.0-only
/* The only verb of this program, which is a verb of twjob for its users; see ../tool/tool.h. */
#include "http.h"

const struct tool tool = {
	.name = "twjob",
	.when_form = POINT_FORM,
};

const struct option_text option_texts[MOST_OPTIONS] = {
	COMMON_OPTION_TEXTS,
	SERVER_OPTION_TEXTS,
	WORK_OPTION_TEXTS,
};

const struct verb verbs[] = {
	{ "work", "QUEUE...", WORK_HELP, WORK_OPTIONS, NULL, 1, 1000, verb_post },
	{ }
};
