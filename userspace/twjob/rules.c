// SPDX-License-Identifier: GPL-2.0-only
/* Rules by which jobs come again; also tells what times they mean, without a server. */
#include <time.h>

#include "../calendar/calendar.h"
#include "twjob.h"

#define SHOWN	10

enum {
	TIME, LEFT, NAME,
};

const struct column calendar_columns[] = {
	[TIME] = { "TIME", 0, "when it is, in the zone of the rule" },
	[LEFT] = { "LEFT", COL_NUMBER, "time until then" },
	[NAME] = { "NAME", COL_HIDDEN,
		   "the local time, with #2 for one that comes a second time" },
	{ }
};

static void put_occurrence(struct out *out, struct calendar *calendar,
			   const struct occurrence *occurrence)
{
	char text[CALENDAR_NAME], name[CALENDAR_NAME];
	/*
	 * The local time that the clock really shows, which is later if the rule's time is skipped.
	 */
	int64_t local = calendar_local(calendar, occurrence);
	int64_t east = local - occurrence->utc;
	time_t seconds = local;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime(&seconds));
	calendar_name(occurrence, name);
	out_row(out);
	out_text(out, TIME, "%s%c%02d:%02d", text, east < 0 ? '-' : '+',
		 (int)(llabs(east) / 3600), (int)(llabs(east) / 60 % 60));
	out_span(out, LEFT, occurrence->utc * NSEC_PER_SEC - real_now());
	out_text(out, NAME, "%s", name);
}

enum status verb_calendar(const struct args *args)
{
	struct out *out = out_begin(args, calendar_columns, "times");
	const char *zone = args->option[OPT_TZ] ? args->option[OPT_TZ] : "";
	int64_t now = real_now() / NSEC_PER_SEC;
	struct occurrence occurrence;
	struct calendar *calendar;
	char why[CALENDAR_WHY];
	bool found;
	int i;

	calendar = calendar_open(args->arg[0], zone, now, why);
	if (!calendar)
		die(STATUS_USAGE, "RULE '%s': %s", args->arg[0], why);
	found = calendar_first(calendar, now, &occurrence);
	for (i = 0; found && i < SHOWN; i++) {
		put_occurrence(out, calendar, &occurrence);
		found = calendar_next(calendar, &occurrence);
	}
	calendar_close(calendar);
	out_end(out);
	return STATUS_OK;
}

enum status verb_every(const struct args *args)
{
	struct out *out = out_begin(args, put_columns, "jobs");
	enum status status = STATUS_OK;
	struct request request;
	redisReply *reply;

	server_open(args);
	request_begin(&request, "TW.EVERY", args->arg[0]);
	request_add(&request, "%s", args->arg[1]);
	request_add(&request, "%s", args->arg[2]);
	if (args->option[OPT_TZ]) {
		request_add(&request, "TZ");
		request_add(&request, "%s", args->option[OPT_TZ]);
	}
	if (args->option[OPT_MISSED]) {
		request_add(&request, "MISSED");
		request_add(&request, "%s", args->option[OPT_MISSED]);
	}
	if (args->option[OPT_OVERLAP])
		request_add(&request, "OVERLAP");
	request_add_settings(&request, args);
	put_add_body(&request, args);
	reply = ask(&request);
	if (!refused(reply, args->arg[0], &status))
		status = put_answer(out, args, reply);
	freeReplyObject(reply);
	return status;
}
