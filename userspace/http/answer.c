// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds what the answer of an HTTP server means for a job. A status that has come decides,
 * however the rest of the answer goes. This file knows neither twjobd nor connections.
 */
#include <ctype.h>
#include <time.h>

#include "http.h"

/* A server that says 0 each time would be asked in a circle, without a pause. */
#define LEAST_SPAN	NSEC_PER_SEC
#define MOST_SPAN	(7 * 86400 * NSEC_PER_SEC)

/*
 * Makes UTF-8 text of the first bytes, which may be anything. Characters that a terminal takes
 * for commands become hexadecimal.
 */
static void escape(char *to, const char *from, size_t length)
{
	size_t one, done = 0;

	if (length > ANSWER_SIZE)
		length = ANSWER_SIZE;
	for (; done < length; done += one) {
		const unsigned char *at = (const unsigned char *)from + done;

		one = utf8_length(from + done, length - done);
		if (!one || *at < 0x20 || *at == 0x7f || *at == '\\' ||
		    (*at == 0xc2 && at[1] < 0xa0)) {
			one = 1;
			to += sprintf(to, *at == '\\' ? "\\\\" : "\\x%02x", *at);
		} else {
			memcpy(to, at, one);
			to += one;
		}
	}
	*to = '\0';
}

/* Reads a number of seconds or a date. Returns 0 if the text is neither. */
static uint64_t retry_span(const char *text)
{
	uint64_t seconds;
	time_t date;

	if (isdigit(*text) && !text[strspn(text, "0123456789")]) {
		if (!number_parse(text, 0, MOST_SPAN / NSEC_PER_SEC, &seconds))
			return MOST_SPAN;
	} else {
		date = curl_getdate(text, NULL);
		if (date < 0)
			return 0;
		seconds = date > time(NULL) ? date - time(NULL) : 0;
	}
	if (seconds > MOST_SPAN / NSEC_PER_SEC)
		return MOST_SPAN;
	return seconds ? seconds * NSEC_PER_SEC : LEAST_SPAN;
}

void answer_judge(const struct answer *answer, struct verdict *verdict)
{
	char *reason = verdict->reason;

	verdict->span = 0;
	verdict->outcome = answer->status == 410 ? HOPELESS : FAILED;
	if (answer->status >= 200 && answer->status < 300)
		verdict->outcome = DONE;
	if ((answer->status == 429 || answer->status == 503) && answer->retry_after)
		verdict->span = retry_span(answer->retry_after);
	if (answer->status)
		reason += sprintf(reason, "HTTP %ld%s", answer->status, answer->length ? ": " : "");
	else
		reason += sprintf(reason, "no answer: ");
	escape(reason, answer->text, answer->length);
}
