// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of all verbs and options, with the texts that help and completion
 * print. A name in capitals for an option's value or an argument tells completion
 * what to offer: WHEEL, FILE, DIR, COLUMNS, SHELL, VERB, CLOCK, STATE.
 */
#include "twctl.h"

#define BIT(option)	(1ULL << OPT_##option)
#define ALL		(BIT(HELP))
#define TABLE		(BIT(JSON) | BIT(OUTPUT) | BIT(NO_HEADINGS) | BIT(BYTES))
#define MANY		1000000

static const char *words_of(const char *arg)
{
	if (!strcmp(arg, "CLOCK"))
		return "monotonic boottime realtime manual";
	if (!strcmp(arg, "STATE"))
		return "pending due taken held lapsed";
	return NULL;
}

/* Wheels belong to the kernel. Verbs that tell about twctl itself do not need the kernel. */
static void begin(const struct verb *verb)
{
	const char *kind = getenv("TIMEWHEEL");

	if (!kind || strcmp(kind, "process"))
		return;
	if (verb->run != verb_doctor && verb->run != verb_help && verb->run != verb_completion)
		die(STATUS_USAGE,
		    "TIMEWHEEL=process: wheels of twctl's process would end with it; unset TIMEWHEEL for those of the kernel");
	unsetenv("TIMEWHEEL");
}

const struct tool tool = {
	.name = "twctl",
	.thing = "WHEEL",
	.list = "ls /dev/timewheels 2>/dev/null",
	.when_form = WHEN_FORM,
	.words_of = words_of,
	.begin = begin,
};

const struct option_text option_texts[MOST_OPTIONS] = {
	COMMON_OPTION_TEXTS,
	[OPT_CLOCK] = { 'c', "clock", "CLOCK",
		"what turns it: monotonic, boottime, realtime or manual (monotonic)" },
	[OPT_TICK] = { 't', "tick", "SPAN", "a step of the hand (1s)" },
	[OPT_SLOTS] = { 's', "slots", "N", "slots of the ring (3600)" },
	[OPT_MAX_TOKENS] = { 'm', "max-tokens", "N",
		"tokens it may hold at a time (10000)" },
	[OPT_START] = { 0, "start", "TICK",
		"where the hand of a manual wheel starts (0)" },
	[OPT_NO_IDS] = { 0, "no-ids", NULL,
		"tokens have handles only: takes less memory" },
	[OPT_NO_COOKIES] = { 0, "no-cookies", NULL,
		"tokens carry no cookie: takes less memory" },
	[OPT_TOUCH_WORDS] = { 0, "touch-words", NULL,
		"tokens may be touched in mapped memory: takes more memory" },
	[OPT_LEASE] = { 'l', "lease", "SPAN",
		"hold a token for so long until its reader acks it (0: a read ends it)" },
	[OPT_MAX_HELD] = { 0, "max-held", "N",
		"tokens that readers may hold at once (--max-tokens, at most 65536)" },
	[OPT_PERIODS] = { 0, "periods", NULL,
		"tokens may be periodic: takes more memory" },
	[OPT_SLACK] = { 0, "slack", "SPAN",
		"how late its timer may be, to save interrupts (0)" },
	[OPT_EXCLUSIVE] = { 'x', "exclusive", NULL,
		"fail if the wheel exists, even with the same settings" },
	[OPT_UNDO] = { 0, "undo", NULL, "let tokens be registered again" },
	[OPT_FROM] = { 0, "from", "TIME", "only tokens due then or later" },
	[OPT_TO] = { 0, "to", "TIME", "only tokens due then or earlier" },
	[OPT_STATE] = { 0, "state", "STATE",
		"only those in this state, see the column STATE" },
	[OPT_HANDLE] = { 'H', "handle", NULL, "each KEY is a handle, not an id" },
	[OPT_COOKIE] = { 'c', "cookie", "N", "a number that comes back with the event (0)" },
	[OPT_EVERY] = { 'e', "every", "SPAN",
		"make it periodic: the time from one deadline to the next" },
	[OPT_TIMEOUT] = { 't', "timeout", "SPAN",
		"from a touch to its deadline (TIME, if that is a delay)" },
	[OPT_JITTER] = { 0, "jitter", "SPAN",
		"make it due later by a random time of at most this (0)" },
	[OPT_REGISTER] = { 'r', "register", "SPAN",
		"register a token that is missing, with this timeout" },
	[OPT_NACK_DELAY] = { 'd', "delay", "SPAN", "tokens are due again after this time (0)" },
	[OPT_EXTENSION] = { 'l', "lease", "SPAN",
		"hold the deliveries for this time from now (the wheel's lease)" },
	[OPT_ACK] = { 'a', "ack", NULL, "ack each delivery when its line has been written" },
	[OPT_COUNT] = { 'n', "count", "N", "end after N expirations" },
	[OPT_IDLE_TIMEOUT] = { 'i', "idle-timeout", "SPAN",
		"end with status 9 when nothing has run or expired for this time" },
	[OPT_FORMAT] = { 'f', "format", "TEXT",
		"print such a line; fields: {wheel} {id} {handle} {cookie} {deadline} {taken} {late} {delivery} {missed}",
	},
	[OPT_PROMETHEUS] = { 'p', "prometheus", NULL,
		"print all in Prometheus' text format" },
	[OPT_OUTPUT_FILE] = { 0, "output-file", "FILE",
		"replace FILE by the metrics, at one moment" },
	[OPT_DELAY] = { 'd', "delay", "SPAN", "time from one look to the next (1s)" },
	[OPT_ROUNDS] = { 'n', "count", "N", "end after N looks" },
	[OPT_JOBS] = { 'j', "jobs", "N", "run up to N commands at a time (1)" },
	[OPT_TRIES] = { 0, "tries", "N",
		"give up a token whose command has failed N times: print and end it" },
	[OPT_FAILED] = { 0, "failed", "COMMAND",
		"run this by a shell for such a token, and end it by exit status 0" },
	[OPT_BATCH] = { 'b', "batch", "N",
		"run one command for up to N tokens, whose ids are its input, one a line" },
	[OPT_TIME_LIMIT] = { 't', "timeout", "SPAN",
		"end a command that runs for longer: SIGTERM, and 5s later SIGKILL" },
	[OPT_ROOT] = { 0, "root", "DIR", "look at the system below DIR" },
	[OPT_DRY_RUN] = { 0, "dry-run", NULL, "tell what would be done, and do nothing" },
	[OPT_WALL] = { 0, "wall", NULL,
		"tokens are due at the wall time of before, not after what was left" },
	[OPT_FORCE] = { 0, "force", NULL,
		"restore also a save that is too old, was restored before, or cannot be marked" },
	[OPT_PID] = { 'p', "pid", "PID", "the program is this process and its children" },
	[OPT_CGROUP] = { 0, "cgroup", "DIR",
		"the program is the processes of this control group" },
	[OPT_IDLE] = { 'i', "idle", "SPAN",
		"end connections that have carried no data for this time" },
	[OPT_LISTEN] = { 'l', "listen", "PORT",
		"only connections of this local port, or all of it" },
	[OPT_RECEIVED] = { 0, "received", NULL,
		"only data that the program receives counts" },
	[OPT_GRACE] = { 0, "grace", "SPAN",
		"leave a connection alone for this time after it was found (0)" },
};

const struct verb verbs[] = {
	{ "wheels", "", "list the wheels; also without any verb",
	  ALL | TABLE | BIT(VERSION), wheel_columns, 0, 0, verb_wheels },
	{ "create", "WHEEL", "make a wheel",
	  ALL | BIT(CLOCK) | BIT(TICK) | BIT(SLOTS) | BIT(MAX_TOKENS) |
	  BIT(START) | BIT(NO_IDS) | BIT(NO_COOKIES) | BIT(TOUCH_WORDS) |
	  BIT(LEASE) | BIT(MAX_HELD) | BIT(PERIODS) | BIT(SLACK) |
	  BIT(EXCLUSIVE),
	  NULL, 1, 1, verb_create },
	{ "apply", "[FILE...]",
	  "make the wheels that files declare (" DECLARED_FILES ")",
	  ALL | BIT(DRY_RUN), NULL, 0, MANY, verb_apply },
	{ "save", "[WHEEL] [FILE]",
	  "write a wheel's tokens to a file (/var/lib/timewheel/WHEEL.save)",
	  ALL, NULL, 0, 2, verb_save },
	{ "restore", "[WHEEL] [FILE]",
	  "make the wheel and the tokens of such a file again",
	  ALL | BIT(WALL) | BIT(FORCE), NULL, 0, 2, verb_restore },
	{ "destroy", "WHEEL...", "end wheels, and their tokens with them",
	  ALL, NULL, 1, MANY, verb_destroy },
	{ "holders", "[WHEEL...]", "list the processes that have these wheels, or any wheels, open",
	  ALL | TABLE, holder_columns, 0, MANY, verb_holders },
	{ "list", "WHEEL", "list a wheel's tokens, the next one due first",
	  ALL | TABLE | BIT(FROM) | BIT(TO) | BIT(STATE), token_columns, 1, 1, verb_list },
	{ "show", "WHEEL",
	  "draw a wheel; with -J or -o: a table of its slots with tokens",
	  ALL | TABLE, slot_columns, 1, 1, verb_show },
	{ "add", "WHEEL ID [TIME...]",
	  "register a token; ID - on a wheel without ids",
	  ALL | TABLE | BIT(COOKIE) | BIT(EVERY) | BIT(TIMEOUT) | BIT(JITTER) |
	  BIT(PAST), op_columns,
	  2, MANY, verb_add },
	{ "touch", "WHEEL KEY...", "make tokens due their whole timeout from now",
	  ALL | TABLE | BIT(HANDLE) | BIT(REGISTER) | BIT(COOKIE), op_columns,
	  2, MANY, verb_touch },
	{ "move", "WHEEL KEY TIME...", "give a token another deadline",
	  ALL | TABLE | BIT(HANDLE) | BIT(PAST), op_columns, 3, MANY, verb_move },
	{ "cancel", "WHEEL KEY...", "end tokens: they do not expire",
	  ALL | TABLE | BIT(HANDLE), op_columns, 2, MANY, verb_cancel },
	{ "get", "WHEEL KEY...", "tell about tokens, and change nothing",
	  ALL | TABLE | BIT(HANDLE), token_columns, 2, MANY, verb_get },
	{ "ack", "WHEEL KEY[:DELIVERY]...",
	  "say that deliveries have been dealt with: their tokens end",
	  ALL | TABLE | BIT(HANDLE), op_columns, 2, MANY, verb_ack },
	{ "nack", "WHEEL KEY[:DELIVERY]...",
	  "say that deliveries have not been dealt with: their tokens are due again",
	  ALL | TABLE | BIT(HANDLE) | BIT(NACK_DELAY), op_columns, 2, MANY,
	  verb_nack },
	{ "extend", "WHEEL KEY[:DELIVERY]...", "hold deliveries for longer",
	  ALL | TABLE | BIT(HANDLE) | BIT(EXTENSION), op_columns, 2, MANY,
	  verb_extend },
	{ "delete", "WHEEL KEY...", "end tokens, whether pending or held",
	  ALL | TABLE | BIT(HANDLE), op_columns, 2, MANY, verb_delete },
	{ "pause", "WHEEL...", "let wheels deliver nothing until resume",
	  ALL, NULL, 1, MANY, verb_pause },
	{ "resume", "WHEEL...", "let paused wheels deliver again",
	  ALL, NULL, 1, MANY, verb_resume },
	{ "drain", "WHEEL...", "let no more tokens be registered",
	  ALL | BIT(UNDO), NULL, 1, MANY, verb_drain },
	{ "advance", "WHEEL TICK", "put a manual wheel's hand to a tick; +N: N ticks on",
	  ALL, NULL, 2, 2, verb_advance },
	{ "batch", "WHEEL", "carry out operations from the standard input, one a line",
	  ALL, NULL, 1, 1, verb_batch },
	{ "watch", "WHEEL", "take expired tokens and print a line for each",
	  ALL | BIT(JSON) | BIT(ACK) | BIT(COUNT) | BIT(IDLE_TIMEOUT) | BIT(FORMAT),
	  NULL, 1, 1, verb_watch },
	{ "stats", "[WHEEL...]", "tell the counters of wheels, and how late their events were",
	  ALL | TABLE | BIT(PROMETHEUS) | BIT(OUTPUT_FILE),
	  stats_columns, 0, MANY, verb_stats },
	{ "top", "[WHEEL...]", "show rates and lateness of wheels again and again",
	  ALL | TABLE | BIT(DELAY) | BIT(ROUNDS), top_columns, 0, MANY, verb_top },
	{ "exec", "WHEEL -- CMD...", "run a command for each expired token",
	  ALL | BIT(JOBS) | BIT(BATCH) | BIT(TIME_LIMIT) | BIT(TRIES) |
	  BIT(FAILED) | BIT(COUNT) | BIT(IDLE_TIMEOUT), NULL, 2, MANY, verb_exec },
	{ "reap", "", "end idle connections of a program that cannot be changed",
	  ALL | BIT(PID) | BIT(CGROUP) | BIT(IDLE) | BIT(LISTEN) | BIT(RECEIVED) |
	  BIT(GRACE) | BIT(DRY_RUN), NULL, 0, 0, verb_reap },
	{ "upgrade", "[FILE]",
	  "put a new version of the module in the place of the loaded one",
	  ALL, NULL, 0, 1, verb_upgrade },
	{ "doctor", "", "find out why the device does not work, and which command mends it",
	  ALL | BIT(JSON) | BIT(OUTPUT) | BIT(NO_HEADINGS) | BIT(ROOT),
	  check_columns, 0, 0, verb_doctor },
	{ "help", "[VERB]", "tell how to use twctl, or a verb", ALL, NULL, 0, 1, verb_help },
	{ "completion", "SHELL", "print a script that completes command lines in bash or zsh",
	  ALL, NULL, 1, MANY, verb_completion },
	{ }
};
