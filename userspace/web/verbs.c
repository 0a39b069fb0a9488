// SPDX-License-Identifier: GPL-2.0-only
/* The only verb of this program, which is a verb of twjob for its users; see ../tool/tool.h. */
#include "web.h"

const struct tool tool = {
	.name = "twjob",
	.when_form = POINT_FORM,
};

const struct option_text option_texts[MOST_OPTIONS] = {
	COMMON_OPTION_TEXTS,
	SERVER_OPTION_TEXTS,
	WEB_OPTION_TEXTS,
};

const struct verb verbs[] = {
	{ "web", "", WEB_HELP, WEB_OPTIONS, NULL, 0, 0, verb_serve },
	{ }
};
