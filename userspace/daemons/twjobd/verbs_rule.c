// SPDX-License-Identifier: GPL-2.0-only
/*
 * TW.EVERY, the verb that puts a job with a rule, by which the job comes again. rule.h and
 * calendar.h tell what a rule means.
 */
#include "rule.h"
#include "verbs.h"

#define OPTIONS	"TZ zone, MISSED last|all|none, OVERLAP, LEASE, TRIES, BACKOFF or GROUP before the body"

static bool copy_text(struct request *request, struct bytes arg, char *text, size_t size)
{
	if (arg_text(arg, text, size))
		return true;
	reply_error(request->reply, "ERR a rule has at most %d bytes, and a zone %d",
		    CALENDAR_TEXT - 1, CALENDAR_ZONE - 1);
	return false;
}

static bool parse_missed(struct request *request, struct bytes arg, struct rule *rule)
{
	static const char * const words[] = {
		[MISSED_LAST] = "last", [MISSED_ALL] = "all", [MISSED_NONE] = "none",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (arg_is(arg, words[i])) {
			rule->missed = i;
			return true;
		}
	}
	reply_error(request->reply, "ERR what is MISSED is last, all or none");
	return false;
}

/* The body is the last argument, behind the options. */
static bool parse_rule(struct request *request, struct rule *rule, struct options *options)
{
	const struct bytes *argv = request->argv;
	int end = request->argc - 1, n;

	*rule = (struct rule) { };
	if (!copy_text(request, argv[3], rule->text, sizeof(rule->text)))
		return false;
	for (int i = 4; i < end; i++) {
		if (arg_is(argv[i], "OVERLAP")) {
			rule->overlap = true;
		} else if (arg_is(argv[i], "TZ") && i + 1 < end) {
			if (!copy_text(request, argv[++i], rule->zone,
				       sizeof(rule->zone)))
				return false;
		} else if (arg_is(argv[i], "MISSED") && i + 1 < end) {
			if (!parse_missed(request, argv[++i], rule))
				return false;
		} else {
			n = arg_option(request, i, end, options);
			if (!n)
				reply_error(request->reply, "ERR expected " OPTIONS);
			if (n <= 0)
				return false;
			i += n - 1;
		}
	}
	return true;
}

/* TW.EVERY queue key rule [TZ zone] [MISSED last|all|none] [OVERLAP] [OPTION] ... body */
void verb_every(struct request *request)
{
	struct put put = {
		.body = request->argv[request->argc - 1],
		.replace = true,
		.options = NO_OPTIONS,
	};
	char why[CALENDAR_WHY];
	struct rule rule;

	if (!arg_key(request, request->argv[2], &put.key) ||
	    !parse_rule(request, &rule, &put.options))
		return;
	if (put.key.length > MAX_RULE_KEY) {
		reply_error(request->reply, "ERR the key of a rule has 1 to %d bytes",
			    MAX_RULE_KEY);
		return;
	}
	if (!rule_begin(&rule, why)) {
		reply_error(request->reply, "ERR the rule is refused: %s", why);
		return;
	}
	put.rule = &rule;
	put.due = rule.at.utc * MSEC_PER_SEC;
	put_job(request, &put);
}
