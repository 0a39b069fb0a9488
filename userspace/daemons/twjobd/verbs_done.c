// SPDX-License-Identifier: GPL-2.0-only
/*
 * TW.DONE tells of jobs that workers have done, while their queue keeps these jobs.
 */
#include "job.h"
#include "verbs.h"

#define DONE_COUNT	100
#define MOST_DONE	1000

static bool parse(struct request *request, uint64_t *cursor, uint64_t *count)
{
	for (int i = 2; i < request->argc; i += 2) {
		struct bytes option = request->argv[i];
		bool is_cursor = arg_is(option, "CURSOR");

		if (!is_cursor && !arg_is(option, "COUNT")) {
			reply_error(request->reply, "ERR expected CURSOR or COUNT");
			return false;
		}
		if (i + 1 == request->argc) {
			reply_error(request->reply, "ERR an option has no value");
			return false;
		}
		if (!arg_number(request, request->argv[i + 1], !is_cursor,
				is_cursor ? MAX_ID : MOST_DONE, is_cursor ? cursor : count))
			return false;
	}
	return true;
}

static void add_done(struct reply *reply, const struct done *done)
{
	reply_map(reply, 5);
	reply_text(reply, "id");
	reply_integer(reply, done->job.id);
	reply_text(reply, "key");
	reply_key(reply, &done->job);
	reply_text(reply, "due");
	reply_integer(reply, done->job.due);
	reply_text(reply, "ended");
	reply_integer(reply, done->ended);
	reply_text(reply, "attempts");
	reply_integer(reply, done->job.attempts);
}

/*
 * TW.DONE queue [CURSOR c] [COUNT n]: the answer has the cursor of the next command, which is 0
 * at the end, and jobs, the newest first. Rows that are too old are not told, because they may
 * not have been removed yet.
 */
void verb_done(struct request *request)
{
	static struct done done[MOST_DONE];
	uint64_t cursor = 0, count = DONE_COUNT, since = job_done_since(request->queue);
	int n, told = 0;

	if (!parse(request, &cursor, &count))
		return;
	n = request->queue->row.keep_done > 0 ?
	    store->next_done(request->queue->row.id, cursor ?: INT64_MAX, done, count) : 0;
	if (n < 0) {
		answer_failure(request, n);
		return;
	}
	while (told < n && done[told].ended >= since)
		told++;
	reply_array(request->reply, 2);
	reply_integer(request->reply, told == (int)count ? done[told - 1].n : 0);
	reply_array(request->reply, told);
	for (int i = 0; i < told; i++)
		add_done(request->reply, &done[i]);
}
