// SPDX-License-Identifier: GPL-2.0-only
/*
 * hiredis: see check. A transaction is its commands as they are, since it has no function for
 * one.
 */
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS	64

static void print(const redisReply *reply)
{
	switch (reply->type) {
	case REDIS_REPLY_NIL:
		printf("nil");
		break;
	case REDIS_REPLY_INTEGER:
		printf("%lld", reply->integer);
		break;
	case REDIS_REPLY_ARRAY:
		putchar('[');
		for (size_t i = 0; i < reply->elements; i++) {
			if (i)
				putchar('|');
			print(reply->element[i]);
		}
		putchar(']');
		break;
	default:
		if (reply->type == REDIS_REPLY_ERROR)
			putchar('!');
		for (size_t i = 0; i < reply->len; i++)
			putchar(reply->str[i] == '\n' ? ' ' : reply->str[i]);
	}
}

static redisReply *send_line(redisContext *client, char *line)
{
	const char *words[MOST_WORDS];
	int count = 0;

	for (char *word = strtok(line, "\n "); word; word = strtok(NULL, "\n "))
		words[count++] = word;
	return redisCommandArgv(client, count, words, NULL);
}

int main(int argc, char **argv)
{
	bool gathering = false;
	redisContext *client;
	char line[4096];

	client = argv[1][0] == '/' ? redisConnectUnix(argv[1]) :
				     redisConnect("127.0.0.1", atoi(argv[1]));
	if (argv[1][0] != '/')
		freeReplyObject(redisCommand(client, "AUTH secret"));
	while (fgets(line, sizeof(line), stdin)) {
		redisReply *reply;

		gathering = strcmp(line, "EXEC\n") && (gathering || !strcmp(line, "MULTI\n"));
		reply = send_line(client, line);
		if (!reply)
			return 1;
		if (!gathering) {
			print(reply);
			putchar('\n');
			fflush(stdout);
		}
		freeReplyObject(reply);
	}
	redisFree(client);
	return 0;
}
