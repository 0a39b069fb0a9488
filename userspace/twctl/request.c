// SPDX-License-Identifier: GPL-2.0-only
/*
 * A line of input as an operation: the words of a verb as on a command line, without the
 * wheel, or a JSON object with the same words. A line that is wrong is told by refuse(), and
 * nothing ends because of it. This file knows no input and no output.
 */
#include <json-c/json.h>

#include "request.h"
#include "scan.h"

/* The words of a line: a verb, its arguments and options; some times have several words. */
#define MOST_WORDS	32
#define MOST_ARGS	8

/* A line, taken apart. @option: its argument, "" if it takes none, NULL if it is not given. */
struct parts {
	const struct verb	*verb;
	const char		*option[MOST_OPTIONS];
	char			*arg[MOST_ARGS];
	int			count;
};

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

/* This part takes a line apart. */

/* An option for a table is for no line, and neither is an option for a random time. */
static bool is_for_lines(const struct verb *verb, int option)
{
	return takes(verb, option) && option != OPT_HELP && option != OPT_JSON &&
	       option != OPT_OUTPUT && option != OPT_NO_HEADINGS &&
	       option != OPT_BYTES && option != OPT_JITTER;
}

/* --name, --name=ARG or -letter. Returns the option, or -1. */
static int option_of(const struct verb *verb, const char *word)
{
	size_t length = strcspn(word, "=");
	int i;

	for (i = 0; i < MOST_OPTIONS; i++) {
		const struct option_text *text = &option_texts[i];

		if (!text->name || !is_for_lines(verb, i))
			continue;
		if (text->letter && word[1] == text->letter && !word[2])
			return i;
		if (word[1] == '-' && strlen(text->name) == length - 2 &&
		    !strncmp(word + 2, text->name, length - 2))
			return i;
	}
	return -1;
}

/* Reads the option at *@words. Returns how many words it took, 0 if it is wrong. */
static int take_option(struct parts *parts, char **words, int count)
{
	const char *equal = strchr(words[0], '=');
	int option = option_of(parts->verb, words[0]);
	bool has_arg = option >= 0 && option_texts[option].arg;

	if (option < 0 || (equal && !has_arg))
		return refuse("unknown option %s", words[0]);
	if (has_arg && !equal && count == 1)
		return refuse("%s: no %s given", words[0], option_texts[option].arg);
	parts->option[option] = !has_arg ? "" : equal ? equal + 1 : words[1];
	return has_arg && !equal ? 2 : 1;
}

static bool sort_words(struct parts *parts, char **words, int count)
{
	int i, took;

	parts->verb = verb_find(words[0]);
	if (!parts->verb)
		return refuse("no verb %s", words[0]);
	for (i = 1; i < count; i += took) {
		took = 1;
		if (words[i][0] == '-' && words[i][1]) {
			took = take_option(parts, words + i, count - i);
			if (!took)
				return false;
			continue;
		}
		if (parts->count == MOST_ARGS)
			return refuse("more than %d arguments", MOST_ARGS);
		parts->arg[parts->count++] = words[i];
	}
	return true;
}

/* This part makes an operation of the parts. */

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

static bool span_at(const struct parts *parts, int option, __u64 *ns)
{
	const char *text = parts->option[option];
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

/* Joins the words of TIME. */
static bool set_time(struct timewheel_op *op, struct wheel *wheel,
		     const struct parts *parts)
{
	struct wheel_time time;
	char text[256] = "";
	size_t length = 0;
	struct when when;
	int i;

	for (i = 1; i < parts->count && length < sizeof(text); i++)
		length += snprintf(text + length, sizeof(text) - length, "%s%s",
				   i > 1 ? " " : "", parts->arg[i]);
	if (length >= sizeof(text))
		return refuse("TIME has %zu bytes or more", sizeof(text));
	wheel->real = real_now();
	if (!when_parse(text, wheel->real, &when))
		return refuse("TIME '%s': %s", text, *times_wrong() ?
			      strdupa(times_wrong()) : "not " WHEN_FORM);
	if (when.kind == WHEN_REAL && wheel->info.clock == TIMEWHEEL_CLOCK_MANUAL)
		return refuse("TIME '%s': a manual clock knows spans and 'clock NS' only",
			      text);
	if (when.kind == WHEN_REAL && when.ns < wheel->real &&
	    !parts->option[OPT_PAST])
		return refuse("TIME '%s' has passed; with --past it is due at once",
			      text);
	time = wheel_time_of(wheel, &when);
	op->time = time.ns;
	if (time.absolute)
		op->flags |= TIMEWHEEL_OPF_ABSOLUTE;
	return true;
}

/* Reads what each verb takes besides the key and the time. */
static bool set_options(struct timewheel_op *op, const struct parts *parts)
{
	const char *cookie = parts->option[OPT_COOKIE];

	if (cookie && !number_at("--cookie", cookie, UINT64_MAX, &op->cookie))
		return false;
	if (op->code == TIMEWHEEL_OP_TOUCH && parts->option[OPT_REGISTER])
		op->code = TIMEWHEEL_OP_TOUCH_OR_REGISTER;
	if (!span_at(parts, OPT_TIMEOUT, &op->timeout) ||
	    !span_at(parts, OPT_EVERY, &op->period) ||
	    !span_at(parts, OPT_REGISTER, &op->time) ||
	    !span_at(parts, OPT_NACK_DELAY, &op->time) ||
	    !span_at(parts, OPT_EXTENSION, &op->time))
		return false;
	return true;
}

static bool make_op(struct timewheel_op *op, struct wheel *wheel, struct parts *parts)
{
	bool has_time;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		if (!strcmp(operations[i].verb, parts->verb->name))
			break;
	}
	if (i == ARRAY_SIZE(operations))
		return refuse("%s is no operation on a token", parts->verb->name);
	*op = (struct timewheel_op) {
		.size = sizeof(*op),
		.code = operations[i].code,
		.deadline = TIMEWHEEL_NEVER,
	};
	if (parts->option[OPT_HANDLE])
		op->flags |= TIMEWHEEL_OPF_BY_HANDLE;
	has_time = op->code == TIMEWHEEL_OP_MOVE || op->code == TIMEWHEEL_OP_REGISTER;
	if (!parts->count || (parts->count > 1 && !has_time) ||
	    (parts->count == 1 && has_time && !parts->option[OPT_EVERY]))
		return refuse("usage: %s %s%s [OPTION]...", parts->verb->name,
			      is_answer(op) ? "KEY:DELIVERY" : "KEY", has_time ? " TIME" : "");
	if (!set_key(op, wheel, parts->arg[0]) || !set_options(op, parts))
		return false;
	if (parts->count > 1)
		return set_time(op, wheel, parts);
	if (has_time)
		op->time = op->period;
	return true;
}

/* This part reads the two forms of a line. */

static bool parse_words(struct timewheel_op *op, struct wheel *wheel, char **words,
			int count)
{
	struct parts parts = { };

	return sort_words(&parts, words, count) && make_op(op, wheel, &parts);
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
