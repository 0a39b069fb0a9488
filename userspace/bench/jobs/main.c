// SPDX-License-Identifier: GPL-2.0-only
/*
 * jobs quick			each server for a moment, to see that it runs
 * jobs full			puts, and takes with their acks, in several rounds
 * jobs pending			twjobd with the jobs that "fill" has made
 * jobs speed			how fast this machine is: see measure_speed()
 *
 * "speed" is for the host, the others are for the guest, to which TW_SPEED and TW_SYNC tell
 * what "speed" has found. They print TAP, and results as lines "= what, server, n, value" with
 * tabs between them; results with the same names are from several rounds.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <timewheel.h>
#include <unistd.h>

#include "bench.h"

#define CONNECTIONS	64
#define ROUNDS		3
#define SECONDS		3	/* for each load */

static int results, failures;

static void put(const char *what, const char *who, long long n, double value)
{
	printf("= %s\t%s\t%lld\t%.3f\n", what, who, n, value);
	fflush(stdout);
}

static void ok(bool good, const char *what, const char *who)
{
	failures += !good;
	printf("%sok %d %s: %s\n", good ? "" : "not ", ++results, who, what);
	fflush(stdout);
}

/*
 * Measures what a job costs a processor without a disk and a wheel: some SQL, text and system
 * calls. Returns thousands a second, the best of a few runs.
 */
static double measure_speed(void)
{
	double best = 0;

	for (int round = 0; round < 5; round++) {
		sqlite3_stmt *insert;
		sqlite3 *db;
		double begin;
		int null = open("/dev/null", O_WRONLY);

		NEED(null >= 0 && !sqlite3_open(":memory:", &db) &&
		     !sqlite3_exec(db, "create table job (id integer primary key, body)",
				   NULL, NULL, NULL) &&
		     !sqlite3_prepare_v2(db, "insert into job values (?, ?)", -1, &insert,
					 NULL));
		begin = now();
		for (int i = 0; i < 10000; i++) {
			char body[BODY + 1];

			make_body(body, i);
			sqlite3_bind_int(insert, 1, i);
			sqlite3_bind_text(insert, 2, body, BODY, SQLITE_STATIC);
			NEED(sqlite3_step(insert) == SQLITE_DONE);
			sqlite3_reset(insert);
			NEED(write(null, body, BODY) == BODY);
		}
		if (10 / (now() - begin) > best)
			best = 10 / (now() - begin);
		sqlite3_finalize(insert);
		sqlite3_close(db);
		close(null);
	}
	return best;
}

/* Measures the ms that the sync of some bytes in an existing file takes; the median. */
static double measure_sync(const char *path)
{
	enum { N = 31 };
	double took[N];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char page[4096] = { };

	NEED(fd >= 0);
	for (int i = 0; i < N; i++)
		NEED(write(fd, page, sizeof(page)) == sizeof(page));
	NEED(!fsync(fd));
	for (int i = 0; i < N; i++) {
		double begin = now();
		int j;

		NEED(pwrite(fd, page, sizeof(page), i * sizeof(page)) == sizeof(page) &&
		     !fdatasync(fd));
		begin = 1000 * (now() - begin);
		for (j = i; j && took[j - 1] > begin; j--)
			took[j] = took[j - 1];
		took[j] = begin;
	}
	close(fd);
	unlink(path);
	return took[N / 2];
}

static bool measure(struct server *server, const char *what, bool work, double seconds)
{
	struct crew crew = crew_connect(server->kind, CONNECTIONS);
	struct result result = crew_load(&crew, work, seconds);

	crew_close(&crew);
	if (!result.done)
		return false;
	put(what, server->kind->name, CONNECTIONS, result.done / result.seconds);
	return true;
}

static void drop_queue(void)
{
	struct conn conn = { };

	socket_speaker.connect(&conn);
	ask(&conn, "TW.DROP", "q", NULL);
	socket_speaker.close(&conn);
}

/* Code that runs for the first time is slower, the more so where it is emulated. */
static void warm_up(struct server *server, double seconds)
{
	struct crew crew = crew_connect(server->kind, CONNECTIONS);

	crew_load(&crew, false, seconds);
	crew_load(&crew, true, seconds);
	crew_close(&crew);
}

static bool measure_kind(const struct kind *kind, const char *disk, double seconds)
{
	struct server server = server_start(kind, true);
	char what[64];
	bool good;

	warm_up(&server, seconds / 4);
	snprintf(what, sizeof(what), "put%s", disk);
	good = measure(&server, what, false, seconds);
	snprintf(what, sizeof(what), "take and ack%s", disk);
	good &= measure(&server, what, true, seconds);
	if (kind->set_up && kind->speaker == &socket_speaker && kind == kinds)
		drop_queue();
	server_end(&server);
	return good;
}

static void say_versions(void)
{
	struct utsname kernel;

	NEED(!uname(&kernel));
	printf("= kernel\t%s\n", kernel.release);
	fflush(stdout);
	for (unsigned int i = 0; i < nr_kinds; i++) {
		char command[128];

		if (!kinds[i].version)
			continue;
		snprintf(command, sizeof(command), "echo \"= version\t$(%s 2>&1)\"",
			 kinds[i].version);
		NEED(!system(command));
	}
}

static void run_round(const char *disk, int round, double seconds)
{
	for (unsigned int i = 0; i < nr_kinds; i++) {
		bool good = measure_kind(&kinds[i], disk, seconds);

		if (!round)
			ok(good, *disk ? "puts, takes and acks, slower disk" :
			   "puts, takes and acks", kinds[i].name);
	}
}

static double from_host(const char *name)
{
	const char *value = getenv(name);

	return value ? atof(value) : 0;
}

/*
 * Returns how many ms longer a flush has to take. The guest's disk is to be as many times
 * slower than the host's as the guest's processors are; 0 if it is slow enough.
 */
static int slower_flush(void)
{
	double times = from_host("TW_SPEED") / measure_speed();
	double sync = measure_sync(DISK "/sync");
	double flush = from_host("TW_SYNC") * times - sync;

	put("processors, times slower", "guest", 0, times);
	put("sync, ms", "host", 0, from_host("TW_SYNC"));
	put("sync, ms", "guest", 0, sync);
	flush = flush < 0 ? 0 : flush + 0.5;
	put("flush, ms more", "slower disk", 0, (int)flush);
	return flush;
}

static void run_full(void)
{
	int flush;

	printf("1..%u\n", 2 * nr_kinds);
	say_versions();
	disk_mount(0);
	flush = slower_flush();
	for (int i = 0; i < ROUNDS; i++)
		run_round("", i, SECONDS);
	disk_unmount();
	disk_mount(flush);
	put("sync, ms", "slower disk", 0, measure_sync(DISK "/sync"));
	for (int i = 0; i < ROUNDS; i++)
		run_round(", slower disk", i, SECONDS);
	disk_unmount();
}

static void run_quick(void)
{
	printf("1..%u\n", nr_kinds);
	say_versions();
	disk_mount(0);
	run_round("", 0, 1);
	disk_unmount();
}

/* Waits for a job, and acks it. */
static void take_one(void)
{
	struct conn conn = { .command = TAKE };

	socket_speaker.connect(&conn);
	ask(&conn, "TW.TAKE", "q", "BLOCK", "0", NULL);
	conn.length = strlen(conn.in);
	NEED(keyed.parse(&conn) && conn.got);
	ask(&conn, "TW.ACK", "q", conn.job, NULL);
	socket_speaker.close(&conn);
}

static void wait_for_load(void)
{
	struct conn conn = { };

	socket_speaker.connect(&conn);
	while (figure(&conn, "loading"))
		sleep_for(0.1);
	socket_speaker.close(&conn);
}

static void measure_wheel(void)
{
	struct timewheel_info info = { .size = sizeof(info) };
	struct tw_wheel *wheel = tw_wheel_open_named("bench-q", O_RDWR);
	unsigned long long tokens;

	NEED(wheel && !tw_wheel_info(wheel, &info));
	tokens = info.pending + info.held;
	put("bytes of the kernel's memory each", keyed.name, tokens,
	    (double)info.bytes / tokens);
	tw_wheel_close(wheel);
}

static long long file_size(const char *path)
{
	struct stat file;

	return stat(path, &file) ? 0 : file.st_size;
}

static bool measure_puts(struct server *server, const char *what)
{
	bool good = true;

	for (int i = 0; i < 3; i++)
		good &= measure(server, what, false, 5);
	return good;
}

/*
 * Measures the start of twjobd with the store of fill.c, as after a boot. Returns how many
 * jobs it has.
 */
static long long measure_load(struct server *server)
{
	double begin = now();
	long long n;

	*server = server_start(&keyed, false);
	take_one();
	put("s to the first job, after a reboot", keyed.name, 0, now() - begin);
	wait_for_load();
	begin = now() - begin;
	n = atoll(getenv("TW_JOBS"));
	put("s to load all, after a reboot", keyed.name, n, begin);
	put("kB of the daemon's memory", keyed.name, n, server_memory(server));
	put("bytes of the disk each", keyed.name, n, (double)file_size(STORE "/jobs") / n);
	measure_wheel();
	return n;
}

static void put_before(int n)
{
	struct crew crew = crew_connect(&keyed, CONNECTIONS);

	for (int done = 0; done < n;)
		done += crew_load(&crew, false, 0.5).done;
	crew_close(&crew);
}

static void run_pending(void)
{
	struct server server;
	long long n;

	printf("1..2\n");
	say_versions();
	disk_mount(0);
	put("processors, times slower", "guest", 0, from_host("TW_SPEED") / measure_speed());
	n = measure_load(&server);
	ok(measure_puts(&server, "put, many pending"), "puts with many pending", keyed.name);
	put("kB of the daemon's memory, after puts", keyed.name, n, server_memory(&server));
	drop_queue();
	server_end(&server);

	server = server_start(&keyed, true);
	put_before(10000);
	ok(measure_puts(&server, "put, 10000 pending"), "puts with few pending", keyed.name);
	drop_queue();
	server_end(&server);
	disk_unmount();
}

/* Runs on the host, in the folder where guests' disks lie, and prints lines for the shell. */
static int run_speed(void)
{
	printf("export TW_SPEED=%.3f TW_SYNC=%.3f\n", measure_speed(),
	       measure_sync("sync"));
	return 0;
}

static int say_usage(void)
{
	fprintf(stderr, "usage: jobs quick|full|pending|speed\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "speed"))
		return run_speed();
	if (!access("peers.tar", F_OK))
		NEED(!system("tar -C / -xf peers.tar && rm peers.tar"));
	if (!strcmp(what, "quick"))
		run_quick();
	else if (!strcmp(what, "full"))
		run_full();
	else if (!strcmp(what, "pending"))
		run_pending();
	else
		return say_usage();
	return failures != 0;
}
