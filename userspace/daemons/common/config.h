/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A configuration file has lines "key = value", blank lines, and comment lines that
 * begin with "#". A daemon describes its keys by a table; the values go to the
 * fields of a structure.
 */
#ifndef COMMON_CONFIG_H
#define COMMON_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "address.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define CONFIG_MANY	1U	/* may be given more than once */
#define CONFIG_LIVE	2U	/* may change while the daemon runs */

/*
 * @parse sets the field to a value. It returns what is wrong with the value, or
 * NULL. A number, or a time in ns, is from @least to @most. The @defaults are the
 * values of a key that the file does not give.
 */
struct config_key {
	const char *name;
	const char *(*parse)(const struct config_key *key, void *field,
			     const char *value);
	size_t offset, size;
	unsigned int flags;
	uint64_t least, most;
	const char *defaults[2];
};

const char *config_name(const struct config_key *key, void *field,
			const char *value);
const char *config_text(const struct config_key *key, void *field,
			const char *value);
/* The absolute path of a file. */
const char *config_path(const struct config_key *key, void *field,
			const char *value);
const char *config_number(const struct config_key *key, void *field,
			  const char *value);
const char *config_time(const struct config_key *key, void *field,
			const char *value);
const char *config_bool(const struct config_key *key, void *field,
			const char *value);
/*
 * A command: the path of a program and its arguments, split at blanks. Each word has its zero
 * byte behind it, and behind the last word there is an empty word.
 */
struct command_words {
	char text[256];
};

const char *config_command(const struct config_key *key, void *field,
			   const char *value);
/* The path of a socket. */
const char *config_socket(const struct config_key *key, void *field,
			  const char *value);
/* Fills in one more address where to listen. The field is an array whose unused end stays zero. */
const char *config_listen(const struct config_key *key, void *field,
			  const char *value);

/*
 * Two equal configurations are equal byte by byte. @check, if not NULL, looks at a configuration
 * as a whole, and may read the files that it names. @check returns what is wrong, or NULL.
 */
struct config_table {
	const struct config_key *keys;
	size_t nr_keys;
	void *values;
	size_t size;
	const char *(*check)(void *values);
};

/* Prints one line on standard error when it returns -1. */
int config_load(const struct config_table *table, const char *path);
/* Applies the keys that may change at run time; warns about changes of all other keys. */
void config_reload(const struct config_table *table, const char *path);

#endif /* COMMON_CONFIG_H */
