// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tracer ends twjobd at a certain system call. A client goes through all that can happen to a
 * job. After each crash the next daemon has to be in the state before the command that was under
 * way, or in the state after it, and the wheel in the same state as the store. Calls that write
 * the store and calls that tell the wheel count. Every call that tells the wheel of a commit is
 * tried, or every second one if TW_SCALE is less than 1. TW_SCALE scales how many of all calls
 * are tried.
 */
#include <sys/param.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "jobs.h"

#define POINTS		7

/* A life has one job, which shows one of these states. */
enum state {
	NONE, DELAYED, READY, HELD, BURIED, DONE, STATES
};

static const char * const names[] = {
	"none", "delayed", "ready", "held", "buried", "done",
};

/*
 * The life of a job has commands, and a state after each command. A transaction has "|" between
 * its commands. It ends the job and puts another one, which goes on with the life.
 */
static const struct step {
	const char *command;	/* %lld: the job's number, %s: its receipt */
	enum state then;
} steps[] = {
	{ "TW.PUT q body IN 100", DELAYED },
	{ "TW.MOVE q %lld IN 0", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.NACK q %s IN 100", DELAYED },
	{ "TW.KICK q %lld", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.NACK q %s", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.NACK q %s UNTRIED", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.BURY q %s", BURIED },
	{ "TW.KICK q %lld", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.ACK q %s", NONE },
	{ "TW.PUT q body", READY },
	{ "TW.TAKE q", HELD },
	{ "MULTI|TW.ACK q %s|TW.PUT q body IN 100|EXEC", DELAYED },
	{ "TW.CANCEL q %lld", NONE },
	{ "TW.PUT q body LEASE 50 TRIES 9 BACKOFF 99 99", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.NACK q %s REASON why", DELAYED },
	{ "TW.MOVE q %lld IN 0", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.BURY q %s REASON why", BURIED },
	{ "TW.KICK q %lld", READY },
	{ "TW.CANCEL q %lld", NONE },
	{ "TW.PUT q body KEY key", READY },
	{ "TW.PUT q body KEY key REPLACE IN 100", DELAYED },
	{ "TW.CANCELKEY q key", NONE },
	{ "TW.PUT q body GROUP g", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.NACK q %s IN 100", DELAYED },
	{ "TW.MOVE q %lld IN 0", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.DELETE q %lld", NONE },
	{ "TW.PUT q body KEY key UNIQUE 100 GROUP g", READY },
	{ "TW.TAKE q", HELD },
	{ "TW.ACK q %s", DONE },
	{ "TW.PUT q body KEY key", DONE },
	{ "TW.DELETE q %lld", NONE },
};

/*
 * With these settings a crash must leave room for the next job, and the queue keeps exactly the
 * done jobs. From one start to the next the rate permits the takes of a life and the take that
 * looks at the wheel, if the start is as after a rest.
 */
#define SETTINGS	"TRIES 0 LIMIT 1 GROUPLIMIT 1 KEEPDONE 1000 RATE %d 604800"

#define STEPS	((int)(sizeof(steps) / sizeof(*steps)))

/* EACH: all calls that count. TELLING: calls of the wheel that follow a call of the store. */
enum kind {
	EACH, TELLING, KINDS
};

/* The daemon ends at call @at of this kind. */
static struct {
	pid_t pid;
	enum kind kind;
	int at;
	int seen[KINDS];
	bool stored;
	atomic_bool attached;
} traced;

static bool counts(long long call)
{
	return call == SYS_ioctl || call == SYS_fdatasync ||
	       call == SYS_pwrite64 || call == SYS_fsync;
}

/* Looks at the system call at which the daemon has stopped. */
static void look(void)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, traced.pid, sizeof(info), &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY || !counts(info.entry.nr))
		return;
	traced.seen[EACH]++;
	traced.seen[TELLING] += traced.stored && info.entry.nr == SYS_ioctl;
	traced.stored = info.entry.nr != SYS_ioctl;
	if (traced.seen[traced.kind] == traced.at)
		kill(traced.pid, SIGKILL);
}

static void *trace(void *unused)
{
	int status;

	(void)unused;
	if (ptrace(PTRACE_SEIZE, traced.pid, 0, PTRACE_O_TRACESYSGOOD) ||
	    ptrace(PTRACE_INTERRUPT, traced.pid, 0, 0))
		perror("ptrace");
	while (waitpid(traced.pid, &status, __WALL) == traced.pid &&
	       WIFSTOPPED(status)) {
		traced.attached = true;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			look();
		ptrace(PTRACE_SYSCALL, traced.pid, 0, 0);
	}
	return NULL;
}

/* Returns the state that the answer to TW.GET or TW.GETKEY tells, and frees the answer. */
static enum state state_in(redisReply *reply)
{
	enum state state = NONE;

	if (reply && reply->type == REDIS_REPLY_ARRAY)
		for (state = STATES - 1; state != NONE; state--)
			if (!strcmp(names[state], reply->element[3]->str))
				break;
	if (reply)
		freeReplyObject(reply);
	return state;
}

/* Returns the state of a job, or NONE also if the job was never put. */
static enum state state_of(redisContext *client, long long id)
{
	return id > 0 ? state_in(say(client, "TW.GET q %lld", id)) : NONE;
}

/* Returns the answer to a command, or to the last command of a transaction. */
static redisReply *send_line(redisContext *client, char *line)
{
	redisReply *reply = NULL;
	char *rest;

	for (line = strtok_r(line, "|", &rest); line; line = strtok_r(NULL, "|", &rest)) {
		if (reply)
			freeReplyObject(reply);
		reply = redisCommand(client, line);
		if (!reply || reply->type == REDIS_REPLY_ERROR)
			break;
	}
	return reply;
}

static bool is_transaction(const char *command)
{
	return !strncmp(command, "MULTI", 5);
}

/* Sends the command of a step. Returns whether the command was answered. */
static bool run_step(redisContext *client, const struct step *step,
		     long long *id, char receipt[128])
{
	redisReply *reply;
	char line[256];

	/* Each command has at most one of the two. */
	if (strstr(step->command, "%s"))
		snprintf(line, sizeof(line), step->command, receipt);
	else
		snprintf(line, sizeof(line), step->command, *id);
	reply = send_line(client, line);
	if (!reply)
		return false;
	if (reply->type == REDIS_REPLY_ERROR || reply->type == REDIS_REPLY_NIL) {
		printf("# %s: %s\n", step->command, as_text(reply));
		abort();
	}
	if (!strncmp(line, "TW.PUT", 6))
		*id = reply->type == REDIS_REPLY_INTEGER ?
		      reply->integer : reply->element[0]->integer;
	if (is_transaction(line))
		*id = reply->element[1]->integer;
	if (!strncmp(line, "TW.TAKE", 7))
		snprintf(receipt, 128, "%s",
			 reply->element[0]->element[2]->str);
	freeReplyObject(reply);
	return true;
}

/* A job that a crash has given back is due. */
static enum state after_crash(enum state state)
{
	return state == HELD ? READY : state;
}

/*
 * Goes through the life until the life or the daemon ends. Returns the step that had no answer,
 * or STEPS if all steps had an answer.
 */
static int live(redisContext *client, long long *id)
{
	char receipt[128] = "";
	int i;

	for (i = 0; i < STEPS && run_step(client, &steps[i], id, receipt); i++)
		;
	return i;
}

/* Counts the commands with this word before a step. */
static int count_before(int step, const char *word)
{
	int count = 0;

	for (int i = 0; i < step; i++)
		count += !!strstr(steps[i].command, word);
	return count;
}

/* Returns how many jobs are handed out from one start to the next at most. */
static int rate(void)
{
	return count_before(STEPS, "TW.TAKE") + 1;
}

/* Tells whether the job of a step has the key "key". */
static bool is_keyed(int step)
{
	while (!strstr(steps[step].command, "TW.PUT"))
		step--;
	return strstr(steps[step].command, "KEY key");
}

FIXTURE(crash) {
	pid_t daemon;
	int done;
};

FIXTURE_SETUP(crash)
{
	redisContext *client;
	char settings[80];

	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	snprintf(settings, sizeof(settings), SETTINGS, rate());
	self->daemon = start_fresh("", settings);
	client = must_connect();
	SAYS("OK", client, "TW.CREATE other");
	redisFree(client);
}

FIXTURE_TEARDOWN(crash)
{
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	clean_up();
}

/* Returns the only row of the store, whose put was not answered. */
static long long only_job(redisContext *client)
{
	redisReply *reply = say(client, "TW.LIST q");
	long long id = -1;

	if (reply && reply->element[1]->elements)
		id = reply->element[1]->element[0]->element[1]->integer;
	if (reply)
		freeReplyObject(reply);
	return id;
}

/* Returns the number of jobs that the daemon says are done. */
static int done(redisContext *client)
{
	redisReply *reply = say(client, "TW.DONE q COUNT 1000");
	int count = reply ? reply->element[1]->elements : -1;

	if (reply)
		freeReplyObject(reply);
	return count;
}

/* Goes through a life, and ends the daemon at call @at of a kind, or at the end of the life. */
static int live_until(FIXTURE_DATA(crash) *self, enum kind kind, int at, long long *id)
{
	redisContext *client = connect_daemon();
	pthread_t tracer;
	int step;

	traced.pid = self->daemon;
	traced.kind = kind;
	traced.at = at;
	memset(traced.seen, 0, sizeof(traced.seen));
	traced.stored = false;
	traced.attached = false;
	pthread_create(&tracer, NULL, trace, NULL);
	while (!traced.attached)
		sleep_ms(1);
	step = live(client, id);
	redisFree(client);
	if (step == STEPS)
		kill(self->daemon, SIGKILL);
	pthread_join(tracer, NULL);
	waitpid(self->daemon, NULL, 0);
	return step;
}

/* Goes through a life with a crash at call @at of a kind. Returns whether there was a crash. */
static bool crash_at(struct __test_metadata *_metadata, FIXTURE_DATA(crash) *self,
		     enum kind kind, int at)
{
	long long id = -1;
	int step = live_until(self, kind, at, &id);
	const char *command = step < STEPS ? steps[step].command : "";
	bool put = !strncmp(command, "TW.PUT", 6) || is_transaction(command);
	enum state before = step ? after_crash(steps[step - 1].then) : NONE;
	enum state then = step < STEPS ? after_crash(steps[step].then) : before;
	enum state found;
	struct taken taken;
	redisContext *client;

	/* Another queue, which has to be loaded, must change nothing for this queue. */
	destroy_wheel("other");
	self->daemon = start_daemon();
	client = connect_daemon();
	if (put && (before == NONE || is_transaction(command)))
		id = only_job(client);
	found = state_of(client, id);
	EXPECT_TRUE(found == before || found == then) {
		TH_LOG("call %d, in \"%s\": %s, not %s or %s", at, command,
		       names[found], names[before], names[then]);
	}
	/* The daemon tells of a done job if, and only if, the ACK has been carried out. */
	self->done += count_before(found == before ? step : MIN(step + 1, STEPS), "TW.ACK");
	EXPECT_EQ(self->done, done(client)) {
		TH_LOG("call %d, in \"%s\": %s", at, command, names[found]);
	}
	/* The key of the job is known as long as the job, also if the job is done. */
	EXPECT_TRUE(comes_to(client, NULL, "loading", 0));
	EXPECT_EQ(is_keyed(MIN(step, STEPS - 1)) ? found : NONE,
		  state_in(say(client, "TW.GETKEY q key"))) {
		TH_LOG("call %d, in \"%s\": %s", at, command, names[found]);
	}
	/* The wheel has the job in the same state. */
	EXPECT_EQ(found == READY, take(client, &taken, "TW.TAKE q")) {
		TH_LOG("call %d, in \"%s\": %s", at, command, names[found]);
	}
	/*
	 * After a put that was not carried out the wheel may have a token that was registered for
	 * it.
	 */
	if (!put)
		EXPECT_EQ(0, figure(client, NULL, "mended"));
	if (found != NONE)
		SAYS("1", client, "TW.DELETE q %lld", id);
	EXPECT_EQ(0, figure(client, "q", "jobs"));
	EXPECT_EQ(0, figure(client, "q", "bytes"));
	EXPECT_EQ(rate(), figure(client, "q", "rate"));
	redisFree(client);
	return step < STEPS;
}

TEST_F_TIMEOUT(crash, J1_J4_at_each_call, 1800)
{
	const char *wanted = getenv("TW_SCALE");
	double scale = wanted ? atof(wanted) : 1;
	int points = MAX(POINTS * scale, POINTS), each = scale < 1 ? 2 : 1;
	int told = 0, tried = 0, last;

	while (crash_at(_metadata, self, TELLING, told * each + 1))
		told++;
	/* A life without a crash has this many calls. */
	last = traced.seen[EACH];
	points = MIN(points, last);
	for (int i = 0; i < points; i++)
		tried += crash_at(_metadata, self, EACH, 1 + (long)i * last / points);
	TH_LOG("%d calls, crashed at %d of them, and %d times after a commit", last, tried,
	       told);
	/* A wheel of the process needs no call. */
	if (!in_process())
		EXPECT_GT(told * each, STEPS / 2);
	EXPECT_GT(tried, points / 2);
}

TEST_HARNESS_MAIN
