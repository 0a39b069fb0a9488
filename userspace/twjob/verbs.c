// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of all verbs and options, with the texts that help and completion
 * print; see ../tool/tool.h.
 */
#include "twjob.h"

#define BIT(option)	(1ULL << OPT_##option)
#define LOCAL		(BIT(HELP))
#define ALL		(LOCAL | BIT(SERVER) | BIT(PASSWORD_FILE))
#define TABLE		(BIT(JSON) | BIT(OUTPUT) | BIT(NO_HEADINGS) | BIT(BYTES))
#define SETTINGS	(BIT(LEASE) | BIT(TRIES) | BIT(BACKOFF))
#define MANY		1000

static const char *words_of(const char *arg)
{
	if (!strcmp(arg, "MISSED"))
		return "last all none";
	return strcmp(arg, "STATE") ? NULL : JOB_STATES;
}

const struct tool tool = {
	.name = "twjob",
	.thing = "QUEUE",
	.list = "twjob queues -o name --no-headings 2>/dev/null",
	.when_form = POINT_FORM,
	.words_of = words_of,
};

const struct option_text option_texts[MOST_OPTIONS] = {
	COMMON_OPTION_TEXTS,
	SERVER_OPTION_TEXTS,
	WEB_OPTION_TEXTS,
	WORK_OPTION_TEXTS,
	[OPT_KEY] = { 'k', "key", "KEY",
		"the job of this key, which is there once in a queue" },
	[OPT_REPLACE] = { 'r', "replace", NULL,
		"give the job of this key, if it is there, the new body and time" },
	[OPT_BODY] = { 0, "body", "TEXT", "the body, instead of standard input" },
	[OPT_LEASE] = { 'l', "lease", "SPAN",
		"how long a worker has a job, if it does not extend that (60s)" },
	[OPT_TRIES] = { 0, "tries", "N",
		"bury a job after N tries, 0 for never (10)" },
	[OPT_BACKOFF] = { 0, "backoff", "SPANS",
		"wait so long after the first try that fails, and at most, as in 1s:1h" },
	[OPT_KEEP_BURIED] = { 0, "keep-buried", "SPAN",
		"end a job that has been buried for so long (0: never)" },
	[OPT_KEEP_DONE] = { 0, "keep-done", "SPAN",
		"keep what 'done' lists of a job for so long (0: not at all)" },
	[OPT_LIMIT] = { 0, "limit", "N", "jobs that workers may have at once (0: no limit)" },
	[OPT_RATE] = { 0, "rate", "RATE",
		"jobs that are handed out in a time, such as 100:1m (0:0s: no limit)" },
	[OPT_GROUP_LIMIT] = { 0, "group-limit", "N", "the same for the jobs of each group" },
	[OPT_GROUP_RATE] = { 0, "group-rate", "RATE", "the same for the jobs of each group" },
	[OPT_GROUP] = { 'g', "group", "GROUP", "the job's group, for limits of its queue" },
	[OPT_MAX_JOBS] = { 'm', "max-jobs", "N", "jobs it may hold (100000)" },
	[OPT_MAX_BYTES] = { 0, "max-bytes", "N", "bytes that its jobs may have (2^30)" },
	[OPT_STATE] = { 0, "state", "STATE",
		"only jobs in this state, see the column STATE" },
	[OPT_BEFORE] = { 0, "before", "TIME", "only jobs that are due before" },
	[OPT_RAW] = { 0, "raw", NULL, "print nothing but the body, byte by byte" },
	[OPT_BURIED] = { 0, "buried", NULL, "all buried jobs of the queue, instead of an ID" },
	[OPT_STORE] = { 0, "store", "PATH", "the file of twjobd (" STORE ")" },
	[OPT_TZ] = { 0, "tz", "ZONE", "the rule's time zone, as Europe/Berlin (UTC)" },
	[OPT_MISSED] = { 0, "missed", "MISSED",
		"of those not taken in time: only the last, all or none (last)" },
	[OPT_OVERLAP] = { 0, "overlap", NULL,
		"the next one may begin while one is worked on" },
	[OPT_FORCE] = { 'f', "force", NULL, "replace FILE if it exists" },
};

const struct verb verbs[] = {
	{ "queues", "", "list the queues; also without any verb",
	  ALL | TABLE | BIT(VERSION), queue_columns, 0, 0, verb_queues },
	{ "create", "QUEUE", "make a queue, or change the settings given",
	  ALL | SETTINGS | BIT(MAX_JOBS) | BIT(MAX_BYTES) | BIT(KEEP_BURIED) | BIT(KEEP_DONE) |
	  BIT(LIMIT) | BIT(RATE) | BIT(GROUP_LIMIT) | BIT(GROUP_RATE),
	  NULL, 1, 1, verb_create },
	{ "drop", "QUEUE...", "end queues, and their jobs with them",
	  ALL, NULL, 1, MANY, verb_drop },
	{ "put", "QUEUE [TIME...]",
	  "put a job, which is due at TIME or now; its body is standard input",
	  ALL | TABLE | SETTINGS | BIT(KEY) | BIT(REPLACE) | BIT(BODY) | BIT(PAST) |
	  BIT(GROUP), put_columns, 1, MANY, verb_put },
	{ "cancel", "QUEUE [ID...]", "end jobs that no worker has",
	  ALL | BIT(KEY), NULL, 1, MANY, verb_cancel },
	{ "move", "QUEUE [ID] TIME...", "make a job due at another time",
	  ALL | BIT(KEY) | BIT(PAST), NULL, 2, MANY, verb_move },
	{ "list", "QUEUE", "list a queue's jobs by their ids",
	  ALL | TABLE | BIT(STATE) | BIT(BEFORE), job_columns, 1, 1, verb_list },
	{ "get", "QUEUE ID...", "tell about jobs, and what is in them",
	  ALL | TABLE | BIT(RAW), body_columns, 2, MANY, verb_get },
	{ "done", "QUEUE", "list jobs that are done, the newest first",
	  ALL | TABLE, done_columns, 1, 1, verb_done },
	{ "kick", "QUEUE [ID...]",
	  "make jobs due now, also buried ones, with all tries again",
	  ALL | BIT(BURIED), NULL, 1, MANY, verb_kick },
	{ "delete", "QUEUE ID...", "end jobs in any state, also those that are worked on",
	  ALL, NULL, 2, MANY, verb_delete },
	{ "pause", "QUEUE...", "hand out no jobs until resume",
	  ALL, NULL, 1, MANY, verb_pause },
	{ "resume", "QUEUE...", "hand out jobs and take new ones again",
	  ALL, NULL, 1, MANY, verb_resume },
	{ "drain", "QUEUE...", "take no new jobs until resume",
	  ALL, NULL, 1, MANY, verb_drain },
	{ "stats", "[QUEUE...]", "tell the figures of queues, or those of the server",
	  ALL | TABLE, figure_columns, 0, MANY, verb_stats },
	{ "metrics", "", "print all figures in Prometheus' text format",
	  ALL, NULL, 0, 0, verb_metrics },
	{ "top", "", "show what the queues do, on a terminal again and again",
	  ALL | TABLE, top_columns, 0, 0, verb_top },
	{ "web", "", WEB_HELP, WEB_OPTIONS, NULL, 0, 0, verb_web },
	{ "every", "QUEUE KEY RULE", "put a job that comes again by a rule, such as '30 2 * * *'",
	  ALL | TABLE | SETTINGS | BIT(TZ) | BIT(MISSED) | BIT(OVERLAP) | BIT(BODY) |
	  BIT(GROUP),
	  put_columns, 3, 3, verb_every },
	{ "calendar", "RULE", "show the next ten times of a rule; asks no server",
	  LOCAL | TABLE | BIT(TZ), calendar_columns, 1, 1, verb_calendar },
	{ "work", "QUEUE... [-- CMD...]", WORK_HELP, WORK_OPTIONS, NULL, 1, MANY, verb_work },
	{ "backup", "FILE", "copy all queues and jobs to a file, while twjobd runs",
	  LOCAL | BIT(STORE) | BIT(FORCE), NULL, 1, 1, verb_backup },
	{ "help", "[VERB]", "tell how to use twjob, or a verb", LOCAL, NULL, 0, 1, verb_help },
	{ "completion", "SHELL", "print a script that completes command lines in bash or zsh",
	  LOCAL, NULL, 1, MANY, verb_completion },
	{ }
};
