// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of users, and the ids of their tokens. A number below 2^63, written without
 * zeros before it, is its own id. Any other name has a place in the file of names, and
 * its id is 2^63 plus the number of that place.
 *
 * The file is mapped. A name is stored in it before its token is registered, so the
 * next process knows each token's name also after a kill. A place is free when its
 * text is empty.
 *
 * A name stays while its id is in use: by a token, by a line that is not printed yet, or by a
 * connection. No other part tells this part when that use ends. When there is no free place, all
 * ids in use are listed, and the other names go. If few of them go, the file grows, so that this
 * happens seldom.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "twidled.h"

#define NAMED		(1ULL << 63)
#define FIRST_PLACES	1024
/* This text takes the first place. No user can have it as a name. */
#define MAGIC		"twidled names 1"

struct name {
	char text[NAME_SIZE];
};

static struct {
	int fd;
	struct name *at;		/* the file, mapped */
	uint64_t count;			/* places in the file */
	uint64_t most;			/* places that the mapping has room for */
	uint64_t search;		/* no place before this one is free */
	void *tree;			/* a tree of all names, by their texts */
	bool *in_use;			/* indexed by place, while names are collected */
} names;

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* A number is shown as it was given, like a name. */
static bool is_number(const char *text, uint64_t *number)
{
	char shown[NAME_SIZE];

	*number = strtoull(text, NULL, 10);
	snprintf(shown, sizeof(shown), "%" PRIu64, *number);
	return *number < NAMED && !strcmp(text, shown);
}

/* Stores the first byte last: until then the place is free, also after a kill. */
static void store(struct name *name, const char *text)
{
	memcpy(name->text + 1, text + 1, strlen(text));
	__atomic_store_n(name->text, *text, __ATOMIC_RELEASE);
	if (!tsearch(name->text, &names.tree, compare))
		die(ENOMEM, "a name");
}

static bool enlarge(uint64_t count)
{
	int err;

	if (count > names.most)
		return false;
	err = posix_fallocate(names.fd, 0, count * sizeof(struct name));
	if (err)
		say("the file of names cannot grow: %s", strerror(err));
	else
		names.count = count;
	return !err;
}

static void mark(uint64_t id)
{
	if (id >= NAMED && id - NAMED < names.count)
		names.in_use[id - NAMED] = true;
}

/* Frees the places of names whose ids are not in use. */
static void collect(void)
{
	uint64_t place, freed = 0;

	names.in_use = calloc(names.count, sizeof(*names.in_use));
	if (!names.in_use)
		die(ENOMEM, "names");
	service.ids_in_use(mark);
	for (place = 1; place < names.count; place++) {
		char *text = names.at[place].text;

		if (names.in_use[place] || !*text)
			continue;
		tdelete(text, &names.tree, compare);
		__atomic_store_n(text, '\0', __ATOMIC_RELEASE);
		freed++;
	}
	free(names.in_use);
	names.search = 1;
	if (freed < names.count / 2)
		enlarge(2 * names.count);
}

static struct name *find_free(void)
{
	while (names.search < names.count && *names.at[names.search].text)
		names.search++;
	return names.search < names.count ? &names.at[names.search] : NULL;
}

bool names_id(const char *text, uint64_t *id)
{
	char **found;
	struct name *name;

	if (is_number(text, id))
		return true;
	found = tfind(text, &names.tree, compare);
	name = found ? (struct name *)*found : find_free();
	if (!name) {
		collect();
		name = find_free();
	}
	if (!name)
		return false;
	if (!found)
		store(name, text);
	*id = NAMED + (name - names.at);
	return true;
}

const char *names_text(uint64_t id, char number[NAME_SIZE])
{
	if (id >= NAMED && id - NAMED < names.count && *names.at[id - NAMED].text)
		return names.at[id - NAMED].text;
	snprintf(number, NAME_SIZE, "%" PRIu64, id);
	return number;
}

/*
 * The token has a name that the file does not have, because the file was removed. The place of
 * this name must not be given to another name.
 */
void names_adopt(uint64_t id)
{
	char number[NAME_SIZE];
	uint64_t place = id - NAMED, count = names.count;

	if (id < NAMED || place >= names.most)
		return;
	while (count <= place)
		count *= 2;
	if (count > names.count && !enlarge(count))
		die(0, "there is no room for names");
	if (!*names.at[place].text)
		store(&names.at[place], names_text(id, number));
}

void names_open(const char *path, uint64_t most)
{
	size_t size;

	names.fd = state_open(path, &size);
	names.count = size / sizeof(struct name);
	names.most = FIRST_PLACES;
	while (names.most < 2 * most || names.most < names.count)
		names.most *= 2;
	names.at = state_map(names.fd, path, names.most * sizeof(struct name), 0);
	/* The path may name another program's file by mistake. */
	if (size && (size % sizeof(struct name) ||
		     (*names.at->text && strcmp(names.at->text, MAGIC))))
		state_foreign(path);
	if (names.count < FIRST_PLACES && !enlarge(FIRST_PLACES))
		die(0, "there is no room for names");
	strcpy(names.at->text, MAGIC);
	for (names.search = 1; names.search < names.count; names.search++) {
		char *text = names.at[names.search].text;

		if (*text && !tsearch(text, &names.tree, compare))
			die(ENOMEM, "names");
	}
	names.search = 1;
}
