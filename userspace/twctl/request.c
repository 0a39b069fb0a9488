// SPDX-License-Identifier: GPL-2.0-only
/*
 * A line of input as an operation: the words of a verb as on a command line, without the
 * wheel, or a JSON object with the same words. A line that is wrong is told by refuse(), and
 * nothing ends because of it. This file knows no input and no output.
 */
#include <json-c/json.h>

#include "scan.h"
#include "twctl.h"

/* The words of a line: a verb, its arguments and options; some times have several words. */
#define MOST_WORDS	32

static const struct operation {
	const char	*verb;
	uint32_t	code;
} operations[] = {
	{ "add", TIMEWHEEL_OP_REGISTER },
	{ "touch", TIMEWHEEL_OP_TOUCH },
	{ "move", TIMEWHEEL_OP_MOVE },
	{ "cancel", TIMEWHEEL_OP_CANCEL },
	{ "ack", TIMEWHEEL_OP_ACK },
	{ "nack", TIMEWHEEL_OP_NACK },
	{ "extend", TIMEWHEEL_OP_EXTEND },
	{ "delete", TIMEWHEEL_OP_DELETE },
};

/* This part makes an operation of what a line says, whose first argument is the wheel. */

static bool number_at(const char *name, const char *text, uint64_t most, __u64 *number)
{
	uint64_t value;

	if (number_parse(text, 0, most, &value)) {
		*number = value;
		return true;
	}
	return refuse("%s '%s': not a number from 0 to %llu", name, text,
		      (unsigned long long)most);
}

static bool span_at(const struct args *args, int option, __u64 *ns)
{
	const char *text = args->option[option];
	uint64_t value = *ns;
	char *why;

	if (!text || span_parse(text, &value)) {
		*ns = value;
		return true;
	}
	why = strdup(times_wrong());
	refuse("--%s '%s': %s", option_texts[option].name, text,
	       why && *why ? why : "not " SPAN_FORM);
	free(why);
	return false;
}

static bool is_answer(const struct timewheel_op *op)
{
	return op->code >= TIMEWHEEL_OP_ACK && op->code <= TIMEWHEEL_OP_EXTEND;
}

/* Parses KEY, or KEY:DELIVERY where @op answers a delivery. */
static bool set_key(struct timewheel_op *op, const struct wheel *wheel, char *text)
{
	bool answers = is_answer(op);
	bool no_ids = wheel->info.setup_flags & TIMEWHEEL_SETUP_NO_IDS;
	char *colon = answers ? strchr(text, ':') : NULL;
	__u64 delivery = 0, *key;

	if (colon) {
		*colon = '\0';
		if (!number_at("DELIVERY", colon + 1, UINT32_MAX, &delivery))
			return false;
	} else if (answers) {
		return refuse("KEY '%s': not KEY:DELIVERY", text);
	}
	op->delivery = delivery;
	if (op->code == TIMEWHEEL_OP_REGISTER && no_ids)
		return !strcmp(text, "-") ||
		       refuse("ID '%s': not -, as the wheel has no ids", text);
	key = op->flags & TIMEWHEEL_OPF_BY_HANDLE ? &op->handle : &op->id;
	return number_at("KEY", text, UINT64_MAX, key);
}

static bool set_time(struct timewheel_op *op, struct wheel *wheel,
		     const struct args *args)
{
	struct wheel_time time;
	char text[WHEN_TEXT];
	struct when when;

	if (!words_join(args->arg + 2, args->count - 2, text))
		return refuse("TIME has %zu bytes or more", sizeof(text));
	wheel->real = real_now();
	if (!when_parse(text, wheel->real, &when))
		return refuse("TIME '%s': %s", text, *times_wrong() ?
			      strdupa(times_wrong()) : "not " WHEN_FORM);
	if (when.kind == WHEN_REAL && wheel->info.clock == TIMEWHEEL_CLOCK_MANUAL)
		return refuse("TIME '%s': a manual clock knows spans and 'clock NS' only",
			      text);
	if (when.kind == WHEN_REAL && when.ns < wheel->real &&
	    !args->option[OPT_PAST])
		return refuse("TIME '%s' has passed; with --past it is due at once",
			      text);
	time = wheel_time_of(wheel, &when);
	op->time = time.ns;
	if (time.absolute)
		op->flags |= TIMEWHEEL_OPF_ABSOLUTE;
	return true;
}

/* Reads what each verb takes besides the key and the time. */
static bool set_options(struct timewheel_op *op, const struct args *args)
{
	const char *cookie = args->option[OPT_COOKIE];

	if (cookie && !number_at("--cookie", cookie, UINT64_MAX, &op->cookie))
		return false;
	if (op->code == TIMEWHEEL_OP_TOUCH && args->option[OPT_REGISTER])
		op->code = TIMEWHEEL_OP_TOUCH_OR_REGISTER;
	return span_at(args, OPT_TIMEOUT, &op->timeout) &&
	       span_at(args, OPT_EVERY, &op->period) &&
	       span_at(args, OPT_REGISTER, &op->time) &&
	       span_at(args, OPT_NACK_DELAY, &op->time) &&
	       span_at(args, OPT_EXTENSION, &op->time);
}

static bool make_op(struct timewheel_op *op, struct wheel *wheel, const struct args *args,
		    uint32_t code)
{
	bool has_time = code == TIMEWHEEL_OP_MOVE || code == TIMEWHEEL_OP_REGISTER;

	*op = (struct timewheel_op) {
		.size = sizeof(*op),
		.code = code,
		.deadline = TIMEWHEEL_NEVER,
	};
	if (args->option[OPT_HANDLE])
		op->flags |= TIMEWHEEL_OPF_BY_HANDLE;
	if ((args->count > 2 && !has_time) ||
	    (args->count == 2 && has_time && !args->option[OPT_EVERY]))
		return refuse("usage: %s %s%s [OPTION]...", args->verb->name,
			      is_answer(op) ? "KEY:DELIVERY" : "KEY", has_time ? " TIME" : "");
	if (!set_key(op, wheel, args->arg[1]) || !set_options(op, args))
		return false;
	if (args->count > 2)
		return set_time(op, wheel, args);
	if (has_time)
		op->time = op->period;
	return true;
}

/* An option for a table is for no line, and neither is an option for a random time. */
static bool is_for_lines(const struct args *args)
{
	static const int others[] = {
		OPT_HELP, OPT_JSON, OPT_OUTPUT, OPT_NO_HEADINGS, OPT_BYTES, OPT_JITTER,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		if (args->option[others[i]])
			return refuse("--%s: not in a line", option_texts[others[i]].name);
	}
	return true;
}

/* This part reads the two forms of a line. */

/* The line is read as a command line, whose wheel it does not name. */
static bool parse_words(struct timewheel_op *op, struct wheel *wheel, char **words,
			int count)
{
	char *line[MOST_WORDS + 2] = { words[0], (char *)wheel->name };
	const struct verb *verb = verb_find(words[0]);
	struct args args;
	size_t i;

	if (!verb)
		return refuse("no verb %s", words[0]);
	for (i = 0; strcmp(operations[i].verb, verb->name); i++) {
		if (i == ARRAY_SIZE(operations) - 1)
			return refuse("%s is no operation on a token", verb->name);
	}
	memcpy(line + 2, words + 1, (count - 1) * sizeof(*words));
	return args_read(&args, verb, count + 1, line) && is_for_lines(&args) &&
	       make_op(op, wheel, &args, operations[i].code);
}

/*
 * Splits @text at white space; a value of JSON may have several words. Returns
 * how many words there are then.
 */
static int split(char *text, char **words, int count)
{
	char *word, *rest = text;

	while (count < MOST_WORDS && (word = strsep(&rest, " \t\r\n"))) {
		if (*word)
			words[count++] = word;
	}
	return count;
}

/* The members "verb", "key" and "time" are the words; all other members are options. */
static bool parse_json(struct timewheel_op *op, struct wheel *wheel, const char *text)
{
	struct json_object *line = json_tokener_parse(text), *value;
	static const char * const firsts[] = { "verb", "key", "time" };
	char *words[MOST_WORDS], *copies[MOST_WORDS], *name;
	int count = 0, nr = 0, i;
	bool well;

	if (!json_object_is_type(line, json_type_object)) {
		json_object_put(line);
		return refuse("not a JSON object");
	}
	for (i = 0; i < 3; i++) {
		if (json_object_object_get_ex(line, firsts[i], &value)) {
			copies[nr] = strdup(json_object_get_string(value) ?: "");
			count = split(copies[nr++], words, count);
		}
		json_object_object_del(line, firsts[i]);
		if (!i && count != 1)
			break;
	}
	json_object_object_foreach(line, member, of) {
		if (nr == MOST_WORDS || count >= MOST_WORDS - 1 ||
		    json_object_is_type(of, json_type_null) ||
		    (json_object_is_type(of, json_type_boolean) &&
		     !json_object_get_boolean(of)))
			continue;
		if (asprintf(&name, json_object_is_type(of, json_type_boolean) ?
			     "--%s" : "--%s=%s", member,
			     json_object_get_string(of)) < 0)
			continue;
		copies[nr++] = name;
		words[count++] = name;
	}
	well = i == 3 ? parse_words(op, wheel, words, count) :
			refuse("no \"verb\" in the object");
	while (nr)
		free(copies[--nr]);
	json_object_put(line);
	return well;
}

bool request_is_json(const char *line)
{
	return *skip_space(line) == '{';
}

bool request_parse(struct timewheel_op *op, struct wheel *wheel, char *line)
{
	char *words[MOST_WORDS];
	int count;

	if (request_is_json(line))
		return parse_json(op, wheel, line);
	count = split(line, words, 0);
	return parse_words(op, wheel, words, count);
}
