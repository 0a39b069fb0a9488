// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may do what: see allow.h.
 */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "verbs.h"

/* These messages tell what is wrong with a line, where this takes many words. */
static const char bad_line[] =
	"is not queues, rights and who: write it as in sms,mail-* put,take uid=www-data";
static const char bad_queues[] =
	"has a wrong name of queues: write names, or how they begin and \"*\", as in sms,mail-*";
static const char bad_rights[] =
	"has no such right: write some of put,take,answer,cancel,look,admin or all";

/*
 * Each class of verbs has a word in a line. The word "take" also permits the answers to jobs that
 * were taken.
 */
static const struct {
	const char *word;
	unsigned int classes;
} words[] = {
	{ "put", MAY_PUT },
	{ "answer", MAY_ANSWER },
	{ "take", MAY_TAKE | MAY_ANSWER },
	{ "cancel", MAY_CANCEL },
	{ "look", MAY_LOOK },
	{ "admin", MAY_ADMIN },
	{ "all", ~0U },
};

const char *allow_word(unsigned int classes)
{
	size_t i = 0;

	while (!(words[i].classes & classes))
		i++;
	return words[i].word;
}

/* Takes the first word of a list with commas. Returns false behind the last word. */
static bool next_of(const char **list, struct bytes *word)
{
	if (!*list)
		return false;
	*word = (struct bytes) { *list, strcspn(*list, ",") };
	*list = (*list)[word->length] ? *list + word->length + 1 : NULL;
	return true;
}

/* The text is a name, or the beginning of names followed by "*", which this function cuts off. */
static bool is_pattern(struct bytes *name)
{
	bool begins = name->length && name->data[name->length - 1] == '*';

	name->length -= begins;
	return begins;
}

static const char *parse_queues(struct allow *allow, const char *list)
{
	struct bytes name;

	if (strlen(list) >= sizeof(allow->queues))
		return "has too long a list of queues: write two lines";
	strcpy(allow->queues, list);
	while (next_of(&list, &name)) {
		bool begins = is_pattern(&name);

		if (!arg_is_name(name) && !(begins && !name.length))
			return bad_queues;
	}
	return NULL;
}

static const char *parse_classes(struct allow *allow, const char *list)
{
	struct bytes class;

	while (next_of(&list, &class)) {
		size_t i = 0;

		while (i < ARRAY_SIZE(words) && !arg_is(class, words[i].word))
			i++;
		if (i == ARRAY_SIZE(words))
			return bad_rights;
		allow->classes |= words[i].classes;
	}
	return NULL;
}

static bool parse_user(const char *name, uid_t *uid)
{
	const struct passwd *user = getpwnam(name);
	unsigned long long number;
	char *end;

	if (user) {
		*uid = user->pw_uid;
		return true;
	}
	/* strtoull() would accept a sign and blanks, too. */
	if (*name < '0' || *name > '9')
		return false;
	number = strtoull(name, &end, 10);
	*uid = number;
	return !*end && number < NO_UID;
}

static const char *parse_who(struct allow *allow, const char *who)
{
	if (!strncmp(who, "uid=", 4))
		return parse_user(who + 4, &allow->uid) ? NULL :
		       "names no user of this machine: write uid= and a user's name or number";
	if (strncmp(who, "password=/", 10))
		return "does not end with who: write uid=USER, or password= and the path of a file";
	if (strlen(who + 9) >= sizeof(allow->file))
		return "has too long a path";
	strcpy(allow->file, who + 9);
	return NULL;
}

const char *allow_parse(const struct config_key *key, void *field, const char *value)
{
	struct allow *allow = field, *end = allow + MAX_ALLOW - 1;
	char text[sizeof(*allow)], *parts[4], *rest;

	(void)key;
	for (; allow->classes; allow++)
		if (allow == end)
			return "is one line too many: there are at most 64";
	if (strlen(value) >= sizeof(text))
		return "is too long: write two lines";
	strcpy(text, value);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i] = i && !parts[i - 1] ? NULL :
			   strtok_r(i ? NULL : text, " \t", &rest);
	if (!parts[2] || parts[3])
		return bad_line;
	return parse_queues(allow, parts[0]) ?: parse_classes(allow, parts[1]) ?:
	       parse_who(allow, parts[2]);
}

static bool has_queue(const struct allow *allow, const struct bytes *queue)
{
	const char *list = allow->queues;
	struct bytes name;

	while (next_of(&list, &name)) {
		bool begins = is_pattern(&name);

		if (queue->length >= name.length && (begins || queue->length == name.length) &&
		    !memcmp(queue->data, name.data, name.length))
			return true;
	}
	return false;
}

static bool tells_of(const struct allow *allow, const struct client *client)
{
	if (allow->file[0])
		return client->password && !strcmp(client->password, allow->file);
	return client->uid == allow->uid;
}

unsigned int allow_classes(const struct client *client, const struct bytes *queue)
{
	unsigned int classes = 0;

	if (!config.allow[0].classes || !client->uid)
		return ~0U;
	for (int i = 0; i < MAX_ALLOW && config.allow[i].classes; i++)
		if (tells_of(&config.allow[i], client) &&
		    (!queue || has_queue(&config.allow[i], queue)))
			classes |= config.allow[i].classes;
	return classes;
}

bool allow_look(const struct client *client, const struct queue *queue)
{
	struct bytes name = { queue->row.name, strlen(queue->row.name) };

	return !queue->row.dropped && allow_classes(client, &name) & MAY_LOOK;
}

/* The comparison takes the same time for all passwords of one length. */
static bool is_password(const char *password, struct bytes given)
{
	size_t length = strlen(password);
	unsigned char differ = 0;

	for (size_t i = 0; i < length && i < given.length; i++)
		differ |= given.data[i] ^ password[i];
	return length && given.length == length && !differ;
}

bool allow_enter(struct client *client, struct bytes given)
{
	const char *file = NULL;

	for (int i = 0; i < MAX_ALLOW && config.allow[i].classes; i++)
		if (is_password(config.allow[i].password, given))
			file = config.allow[i].file;
	if (!file && !is_password(config.password, given))
		return false;
	free(client->password);
	client->password = file ? strdup(file) : NULL;
	if (file && !client->password)
		die(ENOMEM, "a client");
	client->known = true;
	return true;
}

bool allow_alike(const struct client *one, const struct client *other)
{
	return one->uid == other->uid &&
	       !strcmp(one->password ?: "", other->password ?: "");
}
