// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of verbs and options: all that there are, and all that help and
 * completion say of them. What an option or an argument is called in capitals
 * tells completion what to offer: WHEEL, FILE, DIR, COLUMNS, SHELL, VERB, CLOCK,
 * MISFIRE, STATE.
 */
#include "twctl.h"

#define BIT(option)	(1ULL << OPT_##option)
#define ALL		(BIT(HELP))
#define TABLE		(BIT(JSON) | BIT(OUTPUT) | BIT(NO_HEADINGS) | BIT(BYTES))
#define MANY		1000000

const struct option_text option_texts[NR_OPTIONS] = {
	[OPT_HELP] = { 'h', "help", NULL, "tell how to use it" },
	[OPT_VERSION] = { 'V', "version", NULL, "tell the version" },
	[OPT_JSON] = { 'J', "json", NULL, "print JSON" },
	[OPT_OUTPUT] = { 'o', "output", "COLUMNS",
		"these columns, separated by commas; +COLUMNS: these as well" },
	[OPT_NO_HEADINGS] = { 0, "no-headings", NULL, "no line of headings" },
	[OPT_BYTES] = { 'b', "bytes", NULL,
		"sizes in bytes and times in nanoseconds" },
	[OPT_CLOCK] = { 'c', "clock", "CLOCK",
		"monotonic (default), boottime, realtime or manual" },
	[OPT_TICK] = { 't', "tick", "SPAN", "a step of the hand (1s)" },
	[OPT_SLOTS] = { 's', "slots", "N", "slots of the ring (3600)" },
	[OPT_MAX_TOKENS] = { 'm', "max-tokens", "N",
		"tokens it may hold at a time (100000)" },
	[OPT_START] = { 0, "start", "TICK",
		"where the hand of a manual wheel starts (0)" },
	[OPT_NO_IDS] = { 0, "no-ids", NULL,
		"tokens have handles only: takes less memory" },
	[OPT_NO_COOKIES] = { 0, "no-cookies", NULL,
		"tokens carry no cookie: takes less memory" },
	[OPT_TOUCH_WORDS] = { 0, "touch-words", NULL,
		"tokens may be touched in mapped memory: takes more memory" },
	[OPT_EVENTS] = { 0, "events", "N",
		"events that its event ring holds: a power of two, or 0 (0)" },
	[OPT_LEASE] = { 'l', "lease", "SPAN",
		"a reader holds a token so long, until it has acked it (0: a read ends it)" },
	[OPT_MAX_ATTEMPTS] = { 0, "max-attempts", "N",
		"bury a token that was delivered N times and not acked (0: never)" },
	[OPT_PERIODS] = { 0, "periods", NULL,
		"tokens may be periodic: takes more memory" },
	[OPT_MISFIRE] = { 0, "misfire", "MISFIRE",
		"periods that were missed come once (default), all, or are skipped: skip" },
	[OPT_SLACK] = { 0, "slack", "SPAN",
		"its timer may be so late, to save interrupts (0)" },
	[OPT_JITTER] = { 0, "jitter", "SPAN",
		"spread deadlines: add a random time up to this (0)" },
	[OPT_KEEP_DURATION] = { 0, "keep-duration", NULL,
		"delays stay what they are when a realtime clock is set" },
	[OPT_EXCLUSIVE] = { 'x', "exclusive", NULL,
		"fail when the wheel is there, even with the same settings" },
	[OPT_FROM] = { 0, "from", "TIME", "only tokens due then or later" },
	[OPT_TO] = { 0, "to", "TIME", "only tokens due then or earlier" },
	[OPT_STATE] = { 0, "state", "STATE",
		"only those that are pending, due, taken, held, lapsed or buried" },
	[OPT_HANDLE] = { 'H', "handle", NULL, "each KEY is a handle, not an id" },
	[OPT_COOKIE] = { 'c', "cookie", "N", "comes back with the event (0)" },
	[OPT_REGISTER] = { 'r', "register", "SPAN",
		"register what is not there, with this timeout" },
	[OPT_COUNT] = { 'n', "count", "N", "end after N expirations" },
	[OPT_IDLE_TIMEOUT] = { 'i', "idle-timeout", "SPAN",
		"end when nothing has expired for so long" },
	[OPT_FORMAT] = { 'f', "format", "TEXT",
		"a line; fields: {wheel} {id} {handle} {cookie} {deadline} {taken} {late}" },
	[OPT_HISTOGRAM] = { 'g', "histogram", NULL,
		"how late events were, and the timer, as histograms" },
	[OPT_PROMETHEUS] = { 'p', "prometheus", NULL,
		"print metrics in Prometheus' text format" },
	[OPT_OUTPUT_FILE] = { 0, "output-file", "FILE",
		"put the metrics into FILE, all at once" },
	[OPT_DELAY] = { 'd', "delay", "SPAN", "time from one look to the next (1s)" },
	[OPT_ROUNDS] = { 'n', "count", "N", "end after N looks" },
	[OPT_JOBS] = { 'j', "jobs", "N", "commands that run at a time (1)" },
	[OPT_RETRIES] = { 0, "retries", "N",
		"run a command that fails up to N times more (0)" },
	[OPT_ROOT] = { 0, "root", "DIR", "look at the system below DIR" },
};

const struct verb verbs[] = {
	{ "wheels", "", "list the wheels there are: also without any verb",
	  ALL | TABLE | BIT(VERSION), wheel_columns, 0, 0, verb_wheels },
	{ "create", "WHEEL", "make a wheel",
	  ALL | BIT(CLOCK) | BIT(TICK) | BIT(SLOTS) | BIT(MAX_TOKENS) |
	  BIT(START) | BIT(NO_IDS) | BIT(NO_COOKIES) | BIT(TOUCH_WORDS) |
	  BIT(EVENTS) | BIT(LEASE) | BIT(MAX_ATTEMPTS) | BIT(PERIODS) |
	  BIT(MISFIRE) | BIT(SLACK) | BIT(JITTER) | BIT(KEEP_DURATION) |
	  BIT(EXCLUSIVE),
	  NULL, 1, 1, verb_create },
	{ "destroy", "WHEEL...", "end wheels, and their tokens with them",
	  ALL, NULL, 1, MANY, verb_destroy },
	{ "list", "WHEEL", "list a wheel's tokens, the next one due first",
	  ALL | TABLE | BIT(FROM) | BIT(TO) | BIT(STATE), token_columns, 1, 1, verb_list },
	{ "show", "WHEEL",
	  "draw a wheel; with -J or -o: a table of its slots with tokens",
	  ALL | TABLE, slot_columns, 1, 1, verb_show },
	{ "add", "WHEEL ID TIME...",
	  "register a token; ID - on a wheel without ids",
	  ALL | TABLE | BIT(COOKIE), op_columns, 3, MANY, verb_add },
	{ "touch", "WHEEL KEY...", "tokens are due their whole timeout from now",
	  ALL | TABLE | BIT(HANDLE) | BIT(REGISTER) | BIT(COOKIE), op_columns,
	  2, MANY, verb_touch },
	{ "move", "WHEEL KEY TIME...", "give a token another deadline",
	  ALL | TABLE | BIT(HANDLE), op_columns, 3, MANY, verb_move },
	{ "cancel", "WHEEL KEY...", "end tokens: they do not expire",
	  ALL | TABLE | BIT(HANDLE), op_columns, 2, MANY, verb_cancel },
	{ "get", "WHEEL KEY...", "tell about tokens",
	  ALL | TABLE | BIT(HANDLE), token_columns, 2, MANY, verb_get },
	{ "advance", "WHEEL TICK", "put a manual wheel's hand; +N: N ticks on",
	  ALL, NULL, 2, 2, verb_advance },
	{ "watch", "WHEEL", "take expired tokens and print a line for each",
	  ALL | BIT(JSON) | BIT(COUNT) | BIT(IDLE_TIMEOUT) | BIT(FORMAT),
	  NULL, 1, 1, verb_watch },
	{ "stats", "[WHEEL...]", "counters and lateness",
	  ALL | TABLE | BIT(HISTOGRAM) | BIT(PROMETHEUS) | BIT(OUTPUT_FILE),
	  stats_columns, 0, MANY, verb_stats },
	{ "top", "[WHEEL...]", "rates, lateness and rings, as they change",
	  ALL | TABLE | BIT(DELAY) | BIT(ROUNDS), top_columns, 0, MANY, verb_top },
	{ "exec", "WHEEL -- CMD...", "run a command for each expired token",
	  ALL | BIT(JOBS) | BIT(RETRIES) | BIT(COUNT) | BIT(IDLE_TIMEOUT),
	  NULL, 2, MANY, verb_exec },
	{ "doctor", "", "find out why there is no device, and what mends it",
	  ALL | BIT(JSON) | BIT(OUTPUT) | BIT(NO_HEADINGS) | BIT(ROOT),
	  check_columns, 0, 0, verb_doctor },
	{ "help", "[VERB]", "tell how to use a verb", ALL, NULL, 0, 1, verb_help },
	{ "completion", "SHELL", "print completion for bash or zsh",
	  ALL, NULL, 1, 1, verb_completion },
	{ }
};

const struct verb *verb_find(const char *name)
{
	const struct verb *verb;

	for (verb = verbs; verb->name; verb++) {
		if (!strcmp(verb->name, name))
			return verb;
	}
	return NULL;
}
