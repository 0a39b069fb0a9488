// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads what save.c has written: a head line, a line for each token, and a line that
 * tells how many tokens there are. A save that was cut off, or has another error, is
 * refused as a whole.
 */
#include <json-c/json.h>

#include "twctl.h"

#define CUT_OFF	"the save was cut off: it has no end line"

char *saved_path(const char *name)
{
	char *path;

	if (asprintf(&path, SAVED_FILE, name) < 0)
		die(STATUS_FAILED, "no memory for a name");
	return path;
}

/* @wrong: the first member that is missing, or is of another kind than it should be. */
struct line {
	const char		*path;
	unsigned long		number;
	struct json_object	*object;
	const char		*wrong;
};

static struct json_object *member(struct line *line, const char *name,
				  enum json_type type)
{
	struct json_object *value;

	if (json_object_object_get_ex(line->object, name, &value) &&
	    json_object_is_type(value, type))
		return value;
	if (!line->wrong)
		line->wrong = name;
	return NULL;
}

/* Reads a number, or a string that has a number in it: see json_number(). */
static const char *digits_member(struct line *line, const char *name)
{
	struct json_object *value;

	if (json_object_object_get_ex(line->object, name, &value) &&
	    json_object_is_type(value, json_type_string))
		return json_object_get_string(value);
	value = member(line, name, json_type_int);
	return value ? json_object_to_json_string(value) : "0";
}

static int64_t signed_member(struct line *line, const char *name)
{
	const char *digits = digits_member(line, name);
	bool less = *digits == '-';
	uint64_t number;

	if (!number_parse(digits + less, 0, INT64_MAX, &number) && !line->wrong)
		line->wrong = name;
	return less ? -(int64_t)number : (int64_t)number;
}

static uint64_t number_member(struct line *line, const char *name, uint64_t most)
{
	uint64_t number;

	if (!number_parse(digits_member(line, name), 0, most, &number) && !line->wrong)
		line->wrong = name;
	return number;
}

static bool bool_member(struct line *line, const char *name)
{
	return json_object_get_boolean(member(line, name, json_type_boolean));
}

static const char *string_member(struct line *line, const char *name)
{
	struct json_object *value = member(line, name, json_type_string);

	return value ? json_object_get_string(value) : "";
}

static uint64_t clock_member(struct line *line, const char *name)
{
	int clock = clock_of_name(string_member(line, name));

	if (clock < 0 && !line->wrong)
		line->wrong = name;
	return clock;
}

static uint64_t setting_member(struct line *line, const struct setting *setting)
{
	const char *name = setting_name(setting);

	switch (setting->kind) {
	case SETTING_CLOCK:
		return clock_member(line, name);
	case SETTING_FLAG:
		return bool_member(line, name);
	default:
		return number_member(line, name, setting_most(setting));
	}
}

static void parse_setup(struct line *line, struct timewheel_setup *setup)
{
	size_t i;

	*setup = (struct timewheel_setup) { .size = sizeof(*setup) };
	for (i = 0; i < settings_count; i++)
		setting_set(&settings[i], setup, setting_member(line, &settings[i]));
	if (!setup->tick && !line->wrong)
		line->wrong = "tick";
}

/* Finds the place where save has left room for the time of a restore. */
static off_t find_mark(const char *text)
{
	static const char name[] = "\"restored\":";
	const char *at = strstr(text, name);

	if (!at)
		return 0;
	at += strlen(name);
	return strspn(at, " 0123456789") == SAVED_MARK ? at - text : 0;
}

static void parse_head(struct line *line, struct saved *saved)
{
	if (number_member(line, "timewheel-save", SAVED_VERSION) != SAVED_VERSION && !line->wrong)
		line->wrong = "timewheel-save";
	parse_setup(line, &saved->setup);
	saved->owner = (struct owner) {
		.uid = number_member(line, "owner", UINT32_MAX - 1),
		.gid = number_member(line, "group", UINT32_MAX - 1),
		.mode = number_member(line, "mode", 0777),
	};
	saved->paused = bool_member(line, "paused");
	saved->now = number_member(line, "now", INT64_MAX);
	saved->made.wall = number_member(line, "wall", INT64_MAX);
	snprintf(saved->made.boot, BOOT_TEXT, "%s", string_member(line, "boot"));
	saved->made.uptime = number_member(line, "uptime", INT64_MAX);
	saved->restored = number_member(line, "restored", INT64_MAX / NSEC_PER_SEC);
	if (!saved->mark && !line->wrong)
		line->wrong = "restored";
	/* The hand of the new wheel starts where the saved wheel's hand was. */
	if (!line->wrong && saved->setup.clock == TIMEWHEEL_CLOCK_MANUAL)
		saved->setup.start = saved->now / saved->setup.tick;
}

static bool is_held(struct line *line)
{
	const char *state = string_member(line, "state");

	if (strcmp(state, "pending") && strcmp(state, "held") && !line->wrong)
		line->wrong = "state";
	return !strcmp(state, "held");
}

/* A held token is due again at once, and a periodic token at the deadline of its present period. */
static void parse_token(struct line *line, struct saved *saved)
{
	struct saved_token *token = &saved->token[saved->count];
	bool held = is_held(line);
	uint64_t base;

	*token = (struct saved_token) {
		.id = number_member(line, "id", UINT64_MAX),
		.cookie = number_member(line, "cookie", UINT64_MAX),
		.timeout = number_member(line, "timeout", INT64_MAX),
		.period = number_member(line, "period", INT64_MAX),
		.left = signed_member(line, "left"),
	};
	base = number_member(line, "base", INT64_MAX);
	if (held)
		token->left = 0;
	if (token->period)
		token->left = base - saved->now;
	saved->count++;
}

static void make_room(struct saved *saved, size_t *room)
{
	if (saved->count < *room)
		return;
	*room = *room ? 2 * *room : 1024;
	saved->token = reallocarray(saved->token, *room, sizeof(*saved->token));
	if (!saved->token)
		die(STATUS_FAILED, "no memory for so many tokens");
}

static bool refuse(const struct line *line, const char *why)
{
	complain("%s:%lu: %s", line->path, line->number, why);
	return false;
}

/* *@ended: the line was the end line. */
static bool parse_line(struct line *line, struct saved *saved, size_t *room,
		       bool *ended)
{
	struct json_object *end;
	char why[80];

	if (*ended)
		return refuse(line, "there is more behind the end line");
	if (line->number == 1) {
		parse_head(line, saved);
	} else if (json_object_object_get_ex(line->object, "end", &end)) {
		*ended = true;
		if (number_member(line, "tokens", UINT64_MAX) != saved->count)
			return refuse(line, "the file has not so many tokens");
	} else {
		make_room(saved, room);
		parse_token(line, saved);
	}
	if (!line->wrong)
		return true;
	snprintf(why, sizeof(why), "no, or a wrong, '%s'%s", line->wrong,
		 line->number > 1 ? "" : ": not a save of this twctl's version");
	return refuse(line, why);
}

static bool parse_text(struct json_tokener *tokener, struct line *line,
		       const char *text, size_t length)
{
	if (text[length - 1] == '\n')
		length--;
	line->number++;
	line->wrong = NULL;
	json_tokener_reset(tokener);
	line->object = json_tokener_parse_ex(tokener, text, length);
	return json_object_is_type(line->object, json_type_object) &&
	       json_tokener_get_parse_end(tokener) == length;
}

static bool read_lines(struct saved *saved, struct line *line, FILE *file)
{
	struct json_tokener *tokener = json_tokener_new();
	bool good = true, ended = false;
	size_t room = 0, size = 0;
	char *text = NULL;
	ssize_t length;

	if (!tokener)
		die(STATUS_FAILED, "no memory for '%s'", line->path);
	while (good && (length = getline(&text, &size, file)) >= 0) {
		if (!line->number)
			saved->mark = find_mark(text);
		good = parse_text(tokener, line, text, length) ?
		       parse_line(line, saved, &room, &ended) :
		       refuse(line, text[length - 1] == '\n' ?
			      "not an object of JSON" : CUT_OFF);
		json_object_put(line->object);
	}
	json_tokener_free(tokener);
	free(text);
	if (good && ferror(file))
		return refuse(line, strerror(errno));
	if (good && !ended)
		return refuse(line, CUT_OFF);
	return good;
}

/* Returns false after it has told what is wrong. The caller frees @saved->token. */
bool saved_read(struct saved *saved, const char *path)
{
	struct line line = { .path = path };
	FILE *file = fopen(path, "re");
	bool good;

	*saved = (struct saved) { };
	if (!file) {
		complain("%s: %s", path, strerror(errno));
		return false;
	}
	good = read_lines(saved, &line, file);
	fclose(file);
	return good;
}
