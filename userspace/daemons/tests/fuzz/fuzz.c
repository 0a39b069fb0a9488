// SPDX-License-Identifier: GPL-2.0-only
/*
 * This program runs the protocol's framing and all verbs of twjobd under the sanitizers, with
 * wheels of the process. The stores of SQLite and in memory are compared (both.c). An input is a
 * text, whose lines are commands for one of two clients. "#" stands for the number of the job
 * that was put last, "%" for the last receipt, and "&" for a long body. The bytes of the text are
 * also read as if they came by a socket.
 *
 * FUZZ_STORE names another store, whose database has to be empty.
 *
 * libFuzzer, if it is there, chooses the inputs. Otherwise "fuzz SECONDS FILE..." tries these
 * files, and then for SECONDS seconds lines of words by chance, and prints TAP. "fuzz answers
 * SEED COUNT" prints the answers to COUNT texts instead.
 */
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../twjobd/allow.h"
#include "../../twjobd/holder.h"
#include "../../twjobd/keep.h"
#include "../../twjobd/take.h"
#include "both.h"

#define WORDS		12
#define LINES		16
#define TURNS		2000

static struct client clients[2];
static struct buffer answers[2];
static char job[32], receipt[128], long_body[1000];

/* These functions replace client.c. Deliveries are given back when their lease ends. */
struct clients clients_all = LIST_HEAD_INITIALIZER(clients_all);

void client_delivered(struct client *client, struct queue *queue,
		      const struct timewheel_event *delivery, uint64_t version,
		      bool bound)
{
	(void)version;
	(void)client;
	(void)queue;
	(void)delivery;
	(void)bound;
}

void client_forget(struct client *client, struct delivery *delivery)
{
	(void)client;
	(void)delivery;
}

static void turn_ended(int error)
{
	if (error)
		abort();
}

static void resume(struct client *client)
{
	(void)client;
}

/* The files are removed now, and end with this process. */
static void open_files(void)
{
	static const char * const files[] = { "", "-wal", "-shm", "-ballast" };
	char path[sizeof(config.store) + 16];

	snprintf(config.store, sizeof(config.store), "/dev/shm/twjobd-fuzz-%d",
		 getpid());
	store = &store_both;
	store->open(config.store);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s%s", config.store, files[i]);
		unlink(path);
	}
	both_try_turns(TURNS);
}

static void begin(void)
{
	const char *other = getenv("FUZZ_STORE");

	if (event)
		return;
	config = (struct config) {
		.prefix = "fuzz-", .password = "secret", .max_body = 4096, .machines = 1,
	};
	max_connections = 10;
	/* The first client is root, which may do all. */
	if (allow_parse(NULL, config.allow, "q put,take,cancel,look uid=1"))
		abort();
	must(sd_event_new(&event));
	if (sodium_init() < 0)
		abort();
	wheels_start(WHEELS_PROCESS);
	if (other) {
		snprintf(config.store, sizeof(config.store), "%s", other);
		store_start();
	} else {
		open_files();
	}
	turn_at_end(turn_ended);
	queue_opened = take_listen;
	queue_changed = take_ended;
	keep_start();
}

static void begin_clients(void)
{
	LIST_INIT(&clients_all);
	for (int i = 0; i < 2; i++) {
		multi_forget(&clients[i]);
		holder_end(&clients[i]);
		answers[i].length = 0;
		clients[i] = (struct client) {
			.reply = { &answers[i], 2 },
			.number = i + 1,
			.uid = i,
			.known = i == 0,
			.resume = resume,
		};
		LIST_INSERT_HEAD(&clients_all, &clients[i], all);
	}
	strcpy(job, "1");
	strcpy(receipt, "1-1-1-1");
	memset(long_body, 'b', sizeof(long_body) - 1);
}

/*
 * Returns what is behind the answer at @at, or NULL if there is no answer. A zero byte ends the
 * bytes.
 */
static const char *behind(const char *at, int version)
{
	const char *end = strstr(at, "\r\n");
	long count = strtol(at + !!*at, NULL, 10);
	char type = *at;

	if (!end || (version == 2 && strchr("%_", type)))
		return NULL;
	end += 2;
	if (strchr("+-:_", type) || count < 0)
		return end;
	if (type == '$')
		return strncmp(end + count, "\r\n", 2) ? NULL : end + count + 2;
	if (type != '*' && type != '%')
		return NULL;
	for (count *= type == '%' ? 2 : 1; count && end; count--)
		end = behind(end, version);
	return end;
}

/* Remembers the job and the receipt to which a later command may refer. */
static void remember(const char *answer)
{
	char found[128];

	if (sscanf(answer, ":%127s", found) == 1 ||
	    sscanf(answer, "*2 :%127s", found) == 1)
		snprintf(job, sizeof(job), "%ld", strtol(found, NULL, 10));
	/* The answer has one job: its queue, its number, its receipt. */
	if (sscanf(answer, "*1 *7 $%*d %*s :%*d $%*d %127s", found) == 1)
		strcpy(receipt, found);
}

static bool printing;

/* Prints an answer on one line, without times, receipts and figures. */
static void print_answer(const char *at)
{
	if (strstr(at, "twjobd_") || strstr(at, "delivered"))
		at = "figures";
	while (*at) {
		size_t digits = strspn(at, "0123456789");
		size_t receipt = strspn(at, "0123456789abcdef-");

		if (receipt > 4 && memchr(at, '-', receipt) && at[0] != '-') {
			putchar('R');
			at += receipt;
		} else if (digits >= 12) {
			putchar('T');
			at += digits;
		} else if (*at == '$' && strspn(at + 1, "0123456789")) {
			/* The length of a receipt differs. */
			at += 1 + strspn(at + 1, "0123456789");
		} else {
			putchar(*at < ' ' ? ' ' : *at);
			at++;
		}
	}
	putchar('\n');
}

/*
 * Checks that a command has one answer, which fits the protocol. A take that waits has no answer.
 */
static void check_answer(int number)
{
	struct buffer *out = &answers[number];

	while (clients[number].step)
		clients[number].step(&clients[number], false);
	turn_end();
	if (!out->length != !!clients[number].waiter)
		abort();
	if (out->length) {
		buffer_add(out, "", 1);
		if (behind(out->data, clients[number].reply.version) !=
		    out->data + out->length - 1)
			abort();
		remember(out->data);
		if (printing)
			print_answer(out->data);
	}
	out->length = 0;
	/* The client's takes end as if its connection ended, but a transaction goes on. */
	take_forget(&clients[number]);
}

/* Runs the bytes of a command, in memory of exactly their size. */
static void run_bytes(int number, const struct buffer *bytes)
{
	static struct command command;
	char *exact = malloc(bytes->length);
	struct resp_parsed parsed;

	memcpy(exact, bytes->data, bytes->length);
	parsed = resp_parse((struct bytes) { exact, bytes->length }, config.max_body,
			    &command);
	if (parsed.found == RESP_COMMAND && command.argc) {
		if (parsed.used != bytes->length)
			abort();
		verbs_run(&clients[number], &command);
		take_serve();
		check_answer(number);
	}
	free(exact);
}

static void add_word(struct buffer *bytes, const char *word)
{
	char header[32];

	if (!strcmp(word, "#"))
		word = job;
	else if (!strcmp(word, "%"))
		word = receipt;
	else if (!strcmp(word, "&"))
		word = long_body;
	buffer_add(bytes, header, sprintf(header, "$%zu\r\n", strlen(word)));
	buffer_add(bytes, word, strlen(word));
	buffer_add(bytes, "\r\n", 2);
}

static void run_line(char *line)
{
	int number = line[0] == '+', count = 0;
	char *words[64], header[32], *word, *rest;
	struct buffer bytes = { };

	for (word = strtok_r(line + number, " ", &rest); word && count < 64;
	     word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	buffer_add(&bytes, header, sprintf(header, "*%d\r\n", count));
	for (int i = 0; i < count; i++)
		add_word(&bytes, words[i]);
	run_bytes(number, &bytes);
	buffer_free(&bytes);
}

/* Checks that bytes that come in pieces mean the same as all bytes together. */
static void parse(const char *data, size_t size)
{
	static struct command command;
	struct resp_parsed whole = resp_parse((struct bytes) { data, size }, 64,
					      &command);

	for (size_t length = 0; length <= size && length < 100; length++) {
		char *exact = malloc(length ?: 1);
		struct resp_parsed part;

		memcpy(exact, data, length);
		part = resp_parse((struct bytes) { exact, length }, 64, &command);
		free(exact);
		if (part.found == RESP_PARTIAL)
			continue;
		if (part.found != whole.found || part.used > length ||
		    (part.found == RESP_COMMAND && part.used != whole.used))
			abort();
		break;
	}
}

static void drop_all(void)
{
	char line[64];
	struct queue *queue = LIST_FIRST(&queues);

	clients[0].known = true;
	multi_forget(&clients[0]);
	while (queue) {
		if (queue->row.dropped) {
			queue = LIST_NEXT(queue, next);
			continue;
		}
		snprintf(line, sizeof(line), "TW.DROP %s", queue->row.name);
		run_line(line);
		queue = LIST_FIRST(&queues);
	}
	while (!LIST_EMPTY(&queues))
		sd_event_run(event, 100000);
}

/* Returns how many jobs wait. */
static uint64_t count_waiting(const struct queue *queue)
{
	static struct job jobs[100];
	int64_t after = 0;
	uint64_t count = 0;
	int n;

	do {
		n = store->next(after, 0, jobs, ARRAY_SIZE(jobs));
		for (int i = 0; i < n; i++)
			count += jobs[i].queue == queue->row.id && jobs[i].waiting;
		after = n > 0 ? jobs[n - 1].id : after;
	} while (n > 0);
	return count;
}

/* Returns how many jobs are buried, and how many of these jobs are done. */
static uint64_t count_buried(const struct queue *queue, uint64_t *done)
{
	static struct job jobs[100];
	int64_t after = 0;
	uint64_t count = 0;
	int n;

	*done = 0;
	do {
		n = store->next(after, queue->row.id, jobs, ARRAY_SIZE(jobs));
		count += n;
		for (int i = 0; i < n; i++)
			*done += jobs[i].done;
		after = n > 0 ? jobs[n - 1].id : after;
	} while (n > 0);
	return count;
}

/* Checks that store and wheels agree. */
static void check_queues(void)
{
	struct queue *queue;

	LIST_FOREACH(queue, &queues, next) {
		struct timewheel_info info;
		uint64_t tokens, buried, done;

		if (queue->row.dropped)
			continue;
		buried = count_buried(queue, &done);
		if (!queue_counts(queue, &info) || done != queue->row.done ||
		    buried - done != queue->row.buried ||
		    count_waiting(queue) != queue->row.waiting)
			abort();
		tokens = info.pending + info.held + (store->shared ? buried : 0);
		/* The stamp is a token, too. */
		if (tokens != queue->row.jobs + 1)
			abort();
	}
	if (queue_mended)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *line, *rest;

	begin();
	begin_clients();
	parse((const char *)data, size);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		run_line(line);
		sd_event_run(event, 0);
	}
	check_queues();
	drop_all();
	free(text);
	return 0;
}

#ifndef LIBFUZZER
static const char * const words[] = {
	"TW.CREATE", "TW.DROP", "TW.QUEUES", "TW.STATS", "TW.METRICS", "TW.PAUSE",
	"TW.DRAIN", "TW.RESUME", "TW.PUT", "TW.CANCEL", "TW.CANCELKEY", "TW.MOVE",
	"TW.MOVEKEY", "TW.KICK", "TW.DELETE", "TW.GET", "TW.LIST", "TW.TAKE", "TW.ACK",
	"TW.NACK", "TW.EXTEND", "TW.BURY", "HELLO", "AUTH", "PING", "INFO", "CLIENT",
	"COMMAND", "QUIT", "ECHO", "SELECT", "CONFIG", "CLUSTER", "RESET",
	"MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "DISCARD", "WATCH", "UNWATCH", "TW.GETKEY",
	/*
	 * Comparisons of answers do without these verbs, whose effect depends on the time or the
	 * store.
	 */
	"TW.EVERY", "TIME", "TW.DONE", "TW.RULES",
	/* The words from here on are arguments. */
	"q", "q", "q", "q", "r", "#", "#", "%", "%", "IN", "AT", "KEY", "KEY", "REPLACE",
	"LEASE", "TRIES", "MAXJOBS", "MAXBYTES", "COUNT", "BLOCK", "BOUND", "CURSOR",
	"STATE", "BEFORE", "ALL", "ready", "buried", "held", "delayed", "0", "1", "2",
	"0.5", "1000", "99999999999999999999", "-1", "1e9", "2026-12-24T15:22:35+01:00",
	"2026-13-99T25:61:61Z", "k", "l", "secret", "user", "SETNAME", "SETINFO", "ID",
	"INFO", "LIST", "UNBLOCK", "GETNAME", "LIB-NAME", "GET",
	"LIB-VER", "NO-EVICT", "NO-TOUCH", "3", "body", "0-0-0-0",
	"ffffffffffffffff-1-1-1", "\x01\xff", "q%n", "count",
	"@hourly", "FREQ=SECONDLY", "FREQ=SECONDLY;COUNT=2", "TZ", "Europe/Berlin",
	"MISSED", "all", "none", "OVERLAP", "UNTRIED", "IFNEW", "REASON", "BACKOFF",
	"KEEPBURIED", "KEEPDONE", "UNIQUE", "done",
	/* Comparisons do without these words, too, because a shared store has no limits. */
	"LIMIT", "RATE", "GROUP", "GROUP", "GROUPRATE", "GROUPLIMIT", "GROUPLIMIT",
	"waiting",
};

#define VERBS		46
#define LIMITS		8

static char text[65536];

/* Prints the text after an abort(), or after an abort of a sanitizer. */
static void tell(int signal)
{
	(void)signal;
	printf("# the text that it ended with:\n%s\n", text);
	fflush(stdout);
	_exit(1);
}

/* Writes a transaction of commands that are hardly ever refused, so that all are carried out. */
static size_t transaction_by_chance(char *at)
{
	static const char * const commands[] = {
		"TW.PUT q b", "TW.PUT q b KEY k", "TW.PUT q b KEY l REPLACE UNIQUE 9",
		"TW.PUT q b GROUP k", "TW.EVERY q r @hourly b", "TW.CANCELKEY q k",
		"TW.MOVE q # IN 1", "TW.MOVEKEY q l IN 0", "TW.KICK q #", "TW.DELETE q #",
		"TW.CANCEL q 1", "TW.GETKEY q k", "TW.GET q #", "TW.ACK q %", "TW.NACK q % UNTRIED",
		"TW.NACK q % IN 1", "TW.BURY q % REASON k", "PING k", "ECHO k",
	};
	size_t length = sprintf(at, "TW.TAKE q\nMULTI\n");

	for (int i = rand() % 4; i >= 0; i--)
		length += sprintf(at + length, "%s\n",
				  commands[rand() % ARRAY_SIZE(commands)]);
	return length + sprintf(at + length, rand() % 8 ? "EXEC\n" : "DISCARD\n");
}

/* Writes lines of words by chance. Half of them begin as most commands do. */
static size_t by_chance(void)
{
	size_t length = sprintf(text, "TW.CREATE q TRIES 3\nTW.PUT q body KEY k\nTW.PUT q b\n");
	bool rules = !printing && rand() % 2;
	int arguments = ARRAY_SIZE(words) - VERBS - (printing ? LIMITS : 0);

	if (rules)
		length += sprintf(text + length,
				  "TW.EVERY q e FREQ=SECONDLY%s MISSED %s %sbody\nTW.KICK q #\n",
				  rand() % 2 ? "" : ";COUNT=2", rand() % 2 ? "all" : "none",
				  rand() % 2 ? "OVERLAP " : "");
	if (!printing && rand() % 4 == 0)
		length += sprintf(text + length,
				  "TW.CREATE q LIMIT 2 GROUPLIMIT 1\nTW.PUT q b GROUP k\n"
				  "TW.PUT q b GROUP k KEY l\nTW.TAKE q\nTW.TAKE q\n");
	while (!printing && rand() % 2)
		length += transaction_by_chance(text + length);
	for (int i = rand() % LINES; i >= 0 && length + 64 * WORDS < sizeof(text); i--) {
		length += sprintf(text + length, "%s%s", rand() % 16 ? "" : "+",
				  words[rand() % (VERBS - 3 * !rules)]);
		if (rand() % 4)
			length += sprintf(text + length, " q");
		for (int j = rand() % (rand() % 3 ? 4 : WORDS); j; j--)
			length += sprintf(text + length, " %s",
					  words[VERBS + rand() % arguments]);
		length += sprintf(text + length, "\n");
	}
	return length;
}

static void try_file(const char *path)
{
	FILE *file = fopen(path, "re");

	if (!file)
		die(errno, "%s", path);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	LLVMFuzzerTestOneInput((uint8_t *)text, strlen(text));
	fclose(file);
}

/* Prints the answers to texts that @seed determines, to compare the answers of two stores. */
static int print_answers(int seed, int count)
{
	printing = true;
	for (int i = 0; i < count; i++) {
		srand(seed + i);
		by_chance();
		printf("text %d:\n%s\n", seed + i, text);
		LLVMFuzzerTestOneInput((uint8_t *)text, strlen(text));
	}
	return 0;
}

int main(int argc, char **argv)
{
	time_t end;
	long tried = 0;

	signal(SIGABRT, tell);
	if (argc == 4 && !strcmp(argv[1], "answers"))
		return print_answers(atoi(argv[2]), atoi(argv[3]));
	for (int i = 2; i < argc; i++)
		try_file(argv[i]);
	srand(time(NULL));
	end = time(NULL) + atoi(argv[1]);
	for (; time(NULL) < end; tried++)
		LLVMFuzzerTestOneInput((uint8_t *)text, by_chance());
	printf("1..1\nok 1 - %d files and %ld texts by chance\n", argc - 2, tried);
	return 0;
}
#endif
