// SPDX-License-Identifier: GPL-2.0-only
/*
 * jobs quick			each server for a moment, to see that it runs
 * jobs full			puts, and takes with their acks, in several rounds
 * jobs pending			twjobd with the jobs that "fill" has made
 *
 * All run in a guest, and print TAP, and results as lines "= what, server, n, value" with tabs
 * between them; results with the same names are from several rounds.
 */
#include <errno.h>
#include <fcntl.h>
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
/* The ms that a flush of the slower disk takes more: a flush of the guest's takes 0.5 ms. */
#define SLOWER		8

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

static void run_full(void)
{
	printf("1..%u\n", 2 * nr_kinds);
	say_versions();
	disk_mount(0);
	for (int i = 0; i < ROUNDS; i++)
		run_round("", i, SECONDS);
	disk_unmount();
	disk_mount(SLOWER);
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

static int say_usage(void)
{
	fprintf(stderr, "usage: jobs quick|full|pending\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
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
