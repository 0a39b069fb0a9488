// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine is reset while producers and workers use twjobd, and begins again, with
 * an empty wheel and the disk as it was:
 *
 * J1	an answered change is kept, and no job that had ended is back.
 *
 * The ledger is beside the store. It is written without the kernel's memory and without a flush,
 * so that it makes only itself durable. TW_SCALE scales the number of resets. The test needs the
 * guest's disk, and a guest of its own.
 */
#include <sys/mount.h>

#include "jobs.h"

#define LEDGER		DIR "/ledger"
#define PAGE		4096
#define PRODUCERS	4
#define RESETS		1
#define LOAD		1500	/* ms */
#define LEAST		16	/* jobs of each producer, also on a slow machine */

/*
 * The ledger has these states of a job, which it gets before a command is sent, and after its
 * answer.
 */
enum state {
	NONE, PUTTING, PUT, ENDING, ENDED,
};

/* Each producer has a page. Its jobs have the keys NUMBER-INDEX. */
static struct ledger {
	int resets;		/* the resets up to now, in the first page */
	int next;		/* the next job of its thread; the first thread reads it */
	unsigned char states[PAGE - 2 * sizeof(int)];
} __attribute__((__aligned__(PAGE))) ledger[PRODUCERS];

#define MOST		((int)sizeof(ledger->states))

_Static_assert(sizeof(*ledger) == PAGE, "a page");

static int ledger_file;

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	printf("# %s: %s\n", what, strerror(errno));
	abort();
}

static void write_page(int number)
{
	need(pwrite(ledger_file, &ledger[number], PAGE, number * PAGE) == PAGE, LEDGER);
}

static void note(int number, int index, enum state state)
{
	ledger[number].states[index] = state;
	write_page(number);
}

/* Puts a job, and ends every second job, by a cancel or by working on it. */
static void put_one(redisContext *client, int number, int index)
{
	struct taken taken;
	redisReply *reply;
	long long done;

	note(number, index, PUTTING);
	reply = say(client, "TW.PUT p%d body KEY %d-%d IN %d", number, number, index,
		    index % 4 == 1 ? 0 : 1000);
	need(reply && reply->type == REDIS_REPLY_ARRAY, "a put");
	freeReplyObject(reply);
	note(number, index, PUT);
	if (index % 2 == 0)
		return;
	if (index % 4 == 1)
		need(take(client, &taken, "TW.TAKE p%d BLOCK 30000", number), "a take");
	note(number, index, ENDING);
	done = number_of(index % 4 == 1 ?
			 say(client, "TW.ACK p%d %s", number, taken.receipt) :
			 say(client, "TW.CANCELKEY p%d %d-%d", number, number, index));
	need(done == 1, "an end");
	note(number, index, ENDED);
}

static void *produce(void *argument)
{
	int number = (long)argument;
	struct ledger *page = &ledger[number];
	redisContext *client = must_connect();

	for (; page->next < MOST; page->next++)
		put_one(client, number, page->next);
	return NULL;
}

static void wait_for_jobs(void)
{
	for (int i = 0; i < PRODUCERS; i++)
		while (__atomic_load_n(&ledger[i].next, __ATOMIC_RELAXED) <
		       ledger->resets * LEAST)
			sleep_ms(10);
}

static bool is_first(void)
{
	return access(LEDGER, F_OK);
}

static void open_ledger(void)
{
	bool first = is_first();

	ledger_file = open(LEDGER, O_RDWR | O_CREAT | O_DIRECT, 0600);
	need(ledger_file >= 0, LEDGER);
	for (int i = 0; first && i < PRODUCERS; i++)
		write_page(i);
	if (first)
		need(!fsync(ledger_file), LEDGER);
	need(pread(ledger_file, ledger, sizeof(ledger), 0) == sizeof(ledger), LEDGER);
}

static void make_queues(void)
{
	redisContext *client = must_connect();

	for (int i = 0; i < PRODUCERS; i++)
		freeReplyObject(say(client, "TW.CREATE p%d", i));
	need(comes_to(client, NULL, "loading", 0), "queues");
	redisFree(client);
}

static int resets(void)
{
	const char *scale = getenv("TW_SCALE");
	int n = RESETS * (scale ? atof(scale) : 1);

	return n < 1 ? 1 : n;
}

/* This function never returns in a start of the machine that ends by a reset. */
__attribute__((__constructor__))
static void begin(void)
{
	const char *disk = getenv("TW_VM_DISK");
	pthread_t thread;

	if (!disk || access(disk, F_OK) || !has_wheels())
		return;
	mkdir(DIR, 0700);
	need(!mount(disk, DIR, "ext4", 0, NULL), disk);
	open_ledger();
	write_config("");
	if (ledger->resets == resets()) {
		close(ledger_file);
		return;
	}
	ledger->resets++;
	write_page(0);
	start_daemon();
	make_queues();
	sync();
	for (long i = 0; i < PRODUCERS; i++)
		pthread_create(&thread, NULL, produce, (void *)i);
	sleep_ms(LOAD + rand() % 500);
	wait_for_jobs();
	need(!system("echo b >/proc/sysrq-trigger"), "a reset");
	pause();
}

/* Tells whether the job of a key exists. */
static bool is_there(redisContext *client, int number, int index)
{
	redisReply *reply = say(client, "TW.MOVEKEY p%d %d-%d IN 1000", number, number,
				index);
	long long there;

	while (reply && reply->type == REDIS_REPLY_ERROR &&
	       !strncmp(reply->str, "LOADING", 7)) {
		freeReplyObject(reply);
		sleep_ms(20);
		reply = say(client, "TW.MOVEKEY p%d %d-%d IN 1000", number, number, index);
	}
	there = number_of(reply);
	need(there >= 0, "a job");
	return there;
}

TEST(J1_machine_is_reset)
{
	int lost = 0, back = 0, known[ENDED + 1] = { }, there = 0;
	redisContext *client;
	long long jobs = 0;
	pid_t daemon;

	if (!getenv("TW_VM_DISK") || access(getenv("TW_VM_DISK"), F_OK))
		SKIP(return, "no disk");
	daemon = start_daemon();
	client = must_connect();
	for (int i = 0; i < PRODUCERS; i++) {
		char name[16];

		for (int j = 0; j < MOST; j++) {
			enum state state = ledger[i].states[j];
			bool found = state && is_there(client, i, j);

			known[state]++;
			there += found;
			lost += state == PUT && !found;
			back += state == ENDED && found;
		}
		snprintf(name, sizeof(name), "p%d", i);
		jobs += figure(client, name, "jobs");
		SAYS("OK", client, "TW.DROP %s", name);
	}
	TH_LOG("%d resets: put %d, ended %d, in doubt %d and %d", ledger->resets,
	       known[PUT], known[ENDED], known[PUTTING], known[ENDING]);
	EXPECT_GT(known[PUT], 20);
	EXPECT_GT(known[ENDED], 20);
	EXPECT_EQ(0, lost);
	EXPECT_EQ(0, back);
	EXPECT_EQ(there, jobs);
	EXPECT_EQ(0, figure(client, NULL, "mended"));
	redisFree(client);
	EXPECT_EQ(0, end_daemon(daemon, SIGTERM));
	EXPECT_EQ(0, umount(DIR));
}

TEST_HARNESS_MAIN
