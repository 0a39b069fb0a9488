// SPDX-License-Identifier: GPL-2.0-only
/*
 * The configuration file: see config.h. The first error ends the reading, before
 * anything has changed.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "log.h"
#include "trim.h"

#define NAME_BYTES	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
			"abcdefghijklmnopqrstuvwxyz0123456789-_"
#define DIGITS		"0123456789"

/* Parsers write here what is wrong with a value when a constant text does not tell enough. */
static char error_text[80];

const char *config_name(const struct config_key *key, void *field,
			const char *value)
{
	size_t length = strlen(value);

	if (length < key->size && strspn(value, NAME_BYTES) == length) {
		strcpy(field, value);
		return NULL;
	}
	snprintf(error_text, sizeof(error_text),
		 "is no name of 1 to %zu letters, digits, \"-\" and \"_\"",
		 key->size - 1);
	return error_text;
}

const char *config_text(const struct config_key *key, void *field,
			const char *value)
{
	if (strlen(value) >= key->size)
		return "is too long";
	strcpy(field, value);
	return NULL;
}

const char *config_path(const struct config_key *key, void *field,
			const char *value)
{
	return value[0] == '/' ? config_text(key, field, value) :
				 "is no path that begins with \"/\"";
}

const char *config_command(const struct config_key *key, void *field,
			   const char *value)
{
	struct command_words *words = field;
	char *to = words->text;
	struct stat file;

	if (value[0] != '/')
		return "is no command whose program is a path that begins with \"/\"";
	if (strlen(value) > key->size - 2)
		return "is too long";
	while (*value) {
		size_t length = strcspn(value, " \t");

		memcpy(to, value, length);
		to += length + 1;
		value += length;
		value += strspn(value, " \t");
	}
	if (stat(words->text, &file) < 0 || access(words->text, X_OK) < 0) {
		snprintf(error_text, sizeof(error_text), "cannot be run: %s",
			 strerror(errno));
		return error_text;
	}
	return S_ISREG(file.st_mode) ? NULL : "is no program";
}

/* Reads a number up to @most. Returns the text after the number, or NULL if there is no number. */
static const char *parse_number(const char *value, uint64_t most, uint64_t *number)
{
	char *end;

	/* strtoull() would accept a sign and blanks, too. */
	if (!strspn(value, DIGITS))
		return NULL;
	errno = 0;
	*number = strtoull(value, &end, 10);
	return errno || *number > most ? NULL : end;
}

const char *config_number(const struct config_key *key, void *field,
			  const char *value)
{
	uint64_t *number = field;
	const char *rest = parse_number(value, key->most, number);

	if (rest && !*rest && *number >= key->least)
		return NULL;
	snprintf(error_text, sizeof(error_text), "is no number from %llu to %llu",
		 (unsigned long long)key->least, (unsigned long long)key->most);
	return error_text;
}

const char *config_time(const struct config_key *key, void *field,
			const char *value)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ms", 1000000 },
		{ "s", 1000000000 },
		{ "min", 60000000000 },
		{ "h", 3600000000000 },
	};
	uint64_t count, *time = field;
	const char *unit = parse_number(value, key->most / units[0].ns, &count);
	unsigned int i;

	for (i = 0; unit && i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit + strspn(unit, " "), units[i].name))
			continue;
		*time = count * units[i].ns;
		if (count <= key->most / units[i].ns && *time >= key->least)
			return NULL;
	}
	return "is no time, such as 500ms, 30s, 10min or 48h, or too long a one";
}

const char *config_bool(const struct config_key *key, void *field,
			const char *value)
{
	bool *yes = field;

	*yes = !strcmp(value, "yes");
	return *yes || !strcmp(value, "no") ? NULL : "is neither yes nor no";
}

const char *config_socket(const struct config_key *key, void *field,
			  const char *value)
{
	return address_parse_path(field, value);
}

const char *config_listen(const struct config_key *key, void *field,
			  const char *value)
{
	struct address *address = field;
	size_t i;

	for (i = 0; address[i].length; i++)
		if (i == key->size / sizeof(*address) - 1)
			return "is one address too many";
	return address_parse(&address[i], value);
}

struct place {
	const char *path;
	unsigned int line;
	unsigned int seen;	/* a bit for each key that the file has given */
};

__printf(2, 3)
static int wrong(const struct place *place, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%u: ", place->path, place->line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -1;
}

static const char *set(const struct config_table *table,
		       const struct config_key *key, const char *value)
{
	return key->parse(key, (char *)table->values + key->offset, value);
}

static int parse_line(const struct config_table *table, struct place *place,
		      char *line)
{
	char *name = trim(line), *value = strchr(name, '=');
	const struct config_key *key = table->keys;
	const char *error;
	size_t i;

	if (!*name || *name == '#')
		return 0;
	if (!value)
		return wrong(place, "\"%s\" is not \"key = value\"", name);
	*value++ = '\0';
	name = trim(name);
	value = trim(value);
	for (i = 0; i < table->nr_keys && strcmp(key->name, name); i++)
		key++;
	if (i == table->nr_keys)
		return wrong(place, "unknown key \"%s\"", name);
	if ((place->seen & 1U << i) && !(key->flags & CONFIG_MANY))
		return wrong(place, "%s is given twice", name);
	place->seen |= 1U << i;
	if (!*value)
		return wrong(place, "%s has no value", name);
	error = set(table, key, value);
	return error ? wrong(place, "%s: \"%s\" %s", name, value, error) : 0;
}

static int parse_file(const struct config_table *table, struct place *place,
		      FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int result = 0;

	while (!result && (length = getline(&line, &room, file)) >= 0) {
		place->line++;
		if (strlen(line) != (size_t)length)
			result = wrong(place, "has a zero byte");
		else
			result = parse_line(table, place, line);
	}
	if (!result && !feof(file))
		result = wrong(place, "%s", strerror(errno));
	free(line);
	return result;
}

static void set_defaults(const struct config_table *table, unsigned int seen)
{
	for (size_t i = 0; i < table->nr_keys; i++) {
		const struct config_key *key = &table->keys[i];

		for (size_t j = 0; j < ARRAY_SIZE(key->defaults); j++)
			if (!(seen & 1U << i) && key->defaults[j])
				set(table, key, key->defaults[j]);
	}
}

int config_load(const struct config_table *table, const char *path)
{
	struct place place = { .path = path };
	FILE *file = fopen(path, "re");
	const char *error;
	int result;

	if (!file)
		return wrong(&place, "%s", strerror(errno));
	memset(table->values, 0, table->size);
	result = parse_file(table, &place, file);
	fclose(file);
	if (result)
		return result;
	set_defaults(table, place.seen);
	error = table->check ? table->check(table->values) : NULL;
	place.line = 0;
	return error ? wrong(&place, "%s", error) : 0;
}

static void apply(const struct config_table *table, const char *fresh,
		  const char *path)
{
	for (size_t i = 0; i < table->nr_keys; i++) {
		const struct config_key *key = &table->keys[i];
		const char *from = fresh + key->offset;
		char *to = (char *)table->values + key->offset;

		if (!memcmp(from, to, key->size))
			continue;
		if (key->flags & CONFIG_LIVE)
			memcpy(to, from, key->size);
		else
			say("%s: another %s needs a restart", path, key->name);
	}
}

void config_reload(const struct config_table *table, const char *path)
{
	struct config_table fresh = *table;

	fresh.values = malloc(table->size);
	if (!fresh.values)
		die(ENOMEM, "a configuration");
	if (config_load(&fresh, path) < 0)
		say("%s has an error: nothing is changed", path);
	else
		apply(table, fresh.values, path);
	free(fresh.values);
}
