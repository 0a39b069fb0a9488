// SPDX-License-Identifier: GPL-2.0-only
/*
 * Declarations of wheels: files with lines "key = value", blank lines, and comment
 * lines that begin with "#". A file declares one wheel. Keys are the long options of
 * create, and those below.
 */
#include <glob.h>
#include <grp.h>
#include <pwd.h>

#include "../daemons/common/trim.h"
#include "twctl.h"

static bool number_in(const char *text, int base, unsigned long most,
		      unsigned int *number)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, base);
	*number = value;
	return *text >= '0' && *text <= '9' && !*end && !errno && value <= most;
}

/* Each of these functions returns NULL if the value is right, else a text: what it has to be. */

static const char *parse_name(struct declared *wheel, const char *value)
{
	wheel->name = strdup(value);
	return can_be_name(value) ? NULL : "1 to 63 letters, digits, '-' and '_'";
}

/* The greatest number of an id means "no change" to chown(2). */
static const char *parse_owner(struct declared *wheel, const char *value)
{
	const struct passwd *user = getpwnam(value);

	if (user)
		wheel->owner.uid = user->pw_uid;
	else if (!number_in(value, 10, UINT32_MAX - 1, &wheel->owner.uid))
		return "the name or number of a user";
	return NULL;
}

static const char *parse_group(struct declared *wheel, const char *value)
{
	const struct group *group = getgrnam(value);

	if (group)
		wheel->owner.gid = group->gr_gid;
	else if (!number_in(value, 10, UINT32_MAX - 1, &wheel->owner.gid))
		return "the name or number of a group";
	return NULL;
}

static const char *parse_mode(struct declared *wheel, const char *value)
{
	return number_in(value, 8, 0777, &wheel->owner.mode) ? NULL :
		"an octal mode from 0 to 777";
}

static const char *parse_yes(const char *value, bool *yes)
{
	*yes = !strcmp(value, "yes");
	return *yes || !strcmp(value, "no") ? NULL : "yes or no";
}

static const char *parse_saved(struct declared *wheel, const char *value)
{
	return parse_yes(value, &wheel->saved);
}

static const struct {
	const char	*name;
	const char	*(*parse)(struct declared *wheel, const char *value);
} own_keys[] = {
	{ "name", parse_name },
	{ "owner", parse_owner },
	{ "group", parse_group },
	{ "mode", parse_mode },
	{ "saved", parse_saved },
};

/* Returns the index of the option of create whose name is @key, -1 if no key has this name. */
static int option_of(const struct declared *wheel, const char *key)
{
	int i;

	for (i = 0; i < MOST_OPTIONS; i++) {
		if (i != OPT_HELP && i != OPT_EXCLUSIVE &&
		    takes(wheel->settings.verb, i) &&
		    !strcmp(option_texts[i].name, key))
			return i;
	}
	return -1;
}

/* The value is checked later, when the wheel is set up. */
static const char *parse_option(struct declared *wheel, int option,
				const char *value)
{
	const char *error = NULL;
	bool yes;

	if (option_texts[option].arg) {
		wheel->settings.option[option] = strdup(value);
	} else {
		error = parse_yes(value, &yes);
		wheel->settings.option[option] = yes ? "" : NULL;
	}
	return error;
}

/* @seen: a bit for each key that the file has given; the keys of this file's table come first. */
struct place {
	const char	*path;
	unsigned int	line;
	uint64_t	seen;
};

static bool parse_key(struct declared *wheel, struct place *place, const char *key,
		      const char *value)
{
	const char *error;
	size_t own = 0, bit;
	int option;

	while (own < ARRAY_SIZE(own_keys) && strcmp(own_keys[own].name, key))
		own++;
	option = own < ARRAY_SIZE(own_keys) ? -1 : option_of(wheel, key);
	if (own == ARRAY_SIZE(own_keys) && option < 0) {
		complain("%s:%u: unknown key '%s'", place->path, place->line, key);
		return false;
	}
	bit = option < 0 ? own : ARRAY_SIZE(own_keys) + option;
	if (place->seen & 1ULL << bit) {
		complain("%s:%u: %s is given twice", place->path, place->line, key);
		return false;
	}
	place->seen |= 1ULL << bit;
	if (option >= 0 && asprintf(&wheel->settings.place[option], "%s:%u: %s",
				    place->path, place->line, key) < 0)
		die(STATUS_FAILED, "no memory for '%s'", place->path);
	error = option < 0 ? own_keys[own].parse(wheel, value) :
			     parse_option(wheel, option, value);
	if (error)
		complain("%s:%u: %s '%s': not %s", place->path, place->line, key,
			 value, error);
	return !error;
}

static bool parse_line(struct declared *wheel, struct place *place, char *line)
{
	char *key = trim(line), *value = strchr(key, '=');

	if (!*key || *key == '#')
		return true;
	if (!value) {
		complain("%s:%u: '%s' is not 'key = value'", place->path,
			 place->line, key);
		return false;
	}
	*value++ = '\0';
	return parse_key(wheel, place, trim(key), trim(value));
}

/* Reads all lines, and tells every line that is wrong. */
static bool read_lines(struct declared *wheel, FILE *file)
{
	struct place place = { .path = wheel->path };
	bool good = true;
	char *line = NULL;
	ssize_t length;
	size_t room = 0;

	while ((length = getline(&line, &room, file)) >= 0) {
		place.line++;
		if (strlen(line) != (size_t)length) {
			complain("%s:%u: a zero byte", place.path, place.line);
			good = false;
		} else if (!parse_line(wheel, &place, line)) {
			good = false;
		}
	}
	free(line);
	if (!feof(file)) {
		complain("%s: %s", place.path, strerror(errno));
		return false;
	}
	if (good && !wheel->name) {
		complain("%s:%u: the file ends without 'name = ...'", place.path,
			 place.line);
		return false;
	}
	return good;
}

static bool read_file(struct declared *wheel)
{
	FILE *file = fopen(wheel->path, "re");
	bool good;

	if (!file) {
		complain("%s: %s", wheel->path, strerror(errno));
		return false;
	}
	wheel->settings.verb = verb_find("create");
	wheel->settings.place = calloc(MOST_OPTIONS, sizeof(*wheel->settings.place));
	if (!wheel->settings.place)
		die(STATUS_FAILED, "no memory for '%s'", wheel->path);
	wheel->owner.mode = 0600;
	good = read_lines(wheel, file);
	fclose(file);
	return good;
}

static bool is_new(const struct declarations *all, const struct declared *wheel)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (!strcmp(all->wheel[i].name, wheel->name)) {
			complain("%s: wheel '%s' is declared in %s, too", wheel->path,
				 wheel->name, all->wheel[i].path);
			return false;
		}
	}
	return true;
}

/*
 * Reads these files, or all of DECLARED_FILES. Errors are told, and files with errors are left
 * out. The memory is needed until the program ends.
 */
enum status declared_read(struct declarations *all, char **paths, int count)
{
	enum status status = STATUS_OK;
	glob_t found = { };
	int i;

	if (!count && !glob(DECLARED_FILES, 0, NULL, &found)) {
		paths = found.gl_pathv;
		count = found.gl_pathc;
	}
	*all = (struct declarations) {
		.wheel = calloc(count + 1, sizeof(*all->wheel)),
	};
	if (!all->wheel)
		die(STATUS_FAILED, "no memory for declarations");
	for (i = 0; i < count; i++) {
		struct declared *wheel = &all->wheel[all->count];

		*wheel = (struct declared) { .path = paths[i] };
		if (read_file(wheel) && is_new(all, wheel))
			all->count++;
		else
			status = STATUS_USAGE;
	}
	return status;
}

/* The names of the declared wheels that are to be saved. Ends with NULL. */
char **declared_saved(enum status *status)
{
	struct declarations all;
	char **names, **name;
	size_t i;

	*status = declared_read(&all, NULL, 0);
	names = calloc(all.count + 1, sizeof(*names));
	if (!names)
		die(STATUS_FAILED, "no memory for names");
	name = names;
	for (i = 0; i < all.count; i++) {
		if (all.wheel[i].saved)
			*name++ = all.wheel[i].name;
	}
	return names;
}
