// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver: runs the contenders in turns, each time in a process of its own, checks
 * what they did, and prints medians; ../goals tells the ratios, which are medians of the
 * ratios of each round.
 *
 *	native [-q] [-r ROUNDS] [-d DIRECTORY] [SIZE...]
 *
 * -q only shows that all contenders run, as TAP. -d names the directory for native.tsv, with
 * the figures of all rounds. There are 5 rounds, or as many as -r says. Times are CPU time of
 * the thread, so that other work of the machine disturbs little.
 */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define MAX_SIZES	8
#define MAX_ROUNDS	32
#define MAX_OPS		40
#define WINDOW		250000		/* most operations of one round */
#define ROUND_NS	50e6		/* enough to measure one operation */
#define ALL_AT_ONCE	1000000		/* most that are made due at once */
#define TOGETHER	512		/* operations of one batch */
#define NONE		-1

static const struct contender *const contenders[] = {
	&store, &ioctls, &timerfds, &wheel_handle, &wheel_ids,
	&wheel_words, &process_handle, &process_handle_singly, &process_ids,
	&process_ids_singly, &process_words, &linked_wheel, &heap4,
#ifdef HAVE_LIBUV
	&uv,
#endif
#ifdef HAVE_LIBEVENT
	&event_heap, &event_common,
#endif
#ifdef HAVE_LIBEV
	&ev,
#endif
#ifdef HAVE_DPDK
	&dpdk,
#endif
	&threads_mapped, &threads_batch, &threads_own,
};

#define NR	((int)ARRAY_SIZE(contenders))

struct result {
	char	op[24];
	double	value;
};

__u8 *fired;

static int to_parent = -1;
static const struct contender *running;

/* This part is for contenders. */

void bench_fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", running ? running->name : "native");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* The memory is written to: no page is missing while time is measured. */
void *bench_alloc(__u64 n, __u64 size)
{
	void *memory = malloc(n * size);

	MUST(memory);
	memset(memory, 0xff, n * size);
	memset(memory, 0, n * size);

	return memory;
}

__u32 *bench_permutation(__u32 n, __u64 seed)
{
	__u32 *order = bench_alloc(n, sizeof(*order));
	__u32 i;

	for (i = 0; i < n; i++) {
		__u32 j = bench_mix(seed << 32 | i) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}

	return order;
}

void bench_report(const char *op, double value)
{
	struct result result = { .value = value };

	snprintf(result.op, sizeof(result.op), "%s", op);
	MUST(write(to_parent, &result, sizeof(result)) == sizeof(result));
}

static double clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);

	return now.tv_sec * 1e9 + now.tv_nsec;
}

double bench_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

double bench_wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_quantile(double *values, __u32 n, double which)
{
	if (!n)
		return NAN;
	qsort(values, n, sizeof(*values), compare);

	return values[(__u32)((n - 1) * which + 0.5)];
}

/* This part runs one contender with one size in a process of its own. */

/* The expected state of each timer: due in so many seconds, or NONE. */
static int *expected;

static void expect(const __u32 *which, __u32 n, int seconds)
{
	__u32 i;

	for (i = 0; i < n; i++)
		expected[which[i]] = seconds ?: running->one_timeout ?
			TIMEOUT : (int)bench_after(which[i]);
}

/* Touched timers may be due later than expected, because time passes. */
static void verify(__u32 n, const char *when)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		int is = running->slot(i);

		if (is != expected[i] &&
		    !(expected[i] == TIMEOUT && is > TIMEOUT))
			bench_fail("timer %u of %u after %s: due in %d, not %d",
				   i, n, when, is, expected[i]);
	}
}

typedef void (*action_t)(const __u32 *which, __u32 n);

static double timed(action_t action, const __u32 *which, __u32 n)
{
	double start;

	if (running->prepare && action != running->arm)
		running->prepare(which, n);
	start = bench_cpu_ns();
	action(which, n);
	start = bench_cpu_ns() - start;
	if (running->finish && action == running->arm)
		running->finish(which, n);

	return start;
}

/*
 * Chooses other timers for each round, in an independent random order: the first
 * @size entries of @order become random timers of all n.
 */
static void shuffle(__u32 *order, __u32 n, __u32 size)
{
	static __u64 seed = 1000000;
	__u32 i;

	for (i = 0; i < size; i++) {
		__u32 j = i + bench_mix(seed++) % (n - i), swap = order[i];

		order[i] = order[j];
		order[j] = swap;
	}
}

/* The first round finds all timers as they were armed, and is not counted. */
static void measure_touch(__u32 *order, __u32 n, __u32 size)
{
	double ns = 0;
	__u32 round;

	for (round = 0; round <= 4 && ns < ROUND_NS; round++) {
		double took;

		shuffle(order, n, size);
		took = timed(running->touch, order, size);
		if (round)
			ns += took;
		if (!running->slot)
			continue;
		expect(order, size, TIMEOUT);
		if (!round)
			verify(n, "the first touches");
	}
	bench_report("touch", ns / (round - 1) / size);
	if (running->slot)
		verify(n, "touches");
	if (running->check)
		MUST(running->check());
}

/* First cancels many at once, checks that they are gone, and arms them again. */
static void check_cancel_arm(__u32 *order, __u32 n, __u32 size)
{
	shuffle(order, n, size);
	timed(running->cancel, order, size);
	expect(order, size, NONE);
	verify(n, "cancels");
	shuffle(order, size, size);
	timed(running->arm, order, size);
	expect(order, size, 0);
}

/*
 * Cancels and arms in batches, as a program would, as many of the one as of the other. All
 * timers of a round are different.
 */
static void measure_cancel_arm(__u32 *order, __u32 n, __u32 size)
{
	double cancel = 0, arm = 0;
	__u32 round, i, done = 0;

	check_cancel_arm(order, n, size);
	for (round = 0; round < 4 && cancel + arm < 2 * ROUND_NS; round++) {
		shuffle(order, n, size);
		for (i = 0; i + TOGETHER <= size; i += TOGETHER) {
			cancel += timed(running->cancel, order + i, TOGETHER);
			shuffle(order + i, TOGETHER, TOGETHER);
			arm += timed(running->arm, order + i, TOGETHER);
			done += TOGETHER;
		}
		expect(order, i, 0);
	}
	verify(n, "arming");
	bench_report("cancel", cancel / done);
	bench_report("arm", arm / done);
	bench_report("pair", (cancel + arm) / done);
}

/* All timers are due at once, and each fires once. */
static void measure_expiry(const __u32 *order, __u32 n)
{
	double ns;
	__u32 i;

	running->soon(order, n);
	ns = bench_cpu_ns();
	running->run();
	ns = bench_cpu_ns() - ns;
	for (i = 0; i < n; i++)
		if (fired[i] != 1)
			bench_fail("timer %u of %u was fired %u times", i, n,
				   fired[i]);
	for (i = 0; i < n; i++)
		if (running->slot(i) != NONE)
			bench_fail("timer %u of %u is still there", i, n);
	bench_report("expire", ns / n);
	bench_report("all", ns / 1e6);
}

static double heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void run_one(__u32 n)
{
	__u32 size = n / 2 < WINDOW ? n / 2 : WINDOW;
	__u32 *order = bench_permutation(n, 1);
	double before;

	fired = bench_alloc(n, 1);
	expected = bench_alloc(n, sizeof(*expected));
	before = heap_bytes();
	running->setup(n);
	if (running->arm) {
		timed(running->arm, order, n);
		expect(order, n, 0);
		verify(n, "the start");
		if (!running->ours)
			bench_report("bytes", (heap_bytes() - before) / n);
	}
	if (running->touch)
		measure_touch(order, n, size);
	if (running->cancel)
		measure_cancel_arm(order, n, size);
	if (running->extra)
		running->extra(n);
	shuffle(order, n, n);
	if (running->run && (n <= ALL_AT_ONCE || running->ours))
		measure_expiry(order, n);
}

/* This part keeps results. */

static char ops[MAX_OPS][24];
static int nr_ops;
static __u32 sizes[MAX_SIZES];
static int nr_sizes;
static double (*samples)[NR][MAX_OPS][MAX_ROUNDS];

static int op_index(const char *op)
{
	int i;

	for (i = 0; i < nr_ops; i++)
		if (!strcmp(ops[i], op))
			return i;
	MUST(nr_ops < MAX_OPS);
	strcpy(ops[nr_ops], op);

	return nr_ops++;
}

static double median(const double *values)
{
	double sorted[MAX_ROUNDS];
	int i, n = 0;

	for (i = 0; i < MAX_ROUNDS; i++)
		if (!isnan(values[i]))
			sorted[n++] = values[i];

	return bench_quantile(sorted, n, 0.5);
}

static bool fits(int i, __u32 size)
{
	return !contenders[i]->most || size <= contenders[i]->most;
}

static void child(int i, __u32 size, int fd)
{
	const struct rlimit many = { 20000, 20000 };

	/* Small pages for all, as is the default. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	setrlimit(RLIMIT_NOFILE, &many);
	/* All memory from one heap, which is kept. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	to_parent = fd;
	running = contenders[i];
	run_one(size);
	exit(0);
}

/* Runs one contender. Returns whether all went well. */
static bool turn(int i, int size, int round)
{
	struct result result;
	int fds[2], status;
	pid_t pid;

	MUST(!pipe(fds));
	fflush(NULL);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		close(fds[0]);
		child(i, sizes[size], fds[1]);
	}
	close(fds[1]);
	while (read(fds[0], &result, sizeof(result)) == sizeof(result))
		samples[size][i][op_index(result.op)][round] = result.value;
	close(fds[0]);
	MUST(waitpid(pid, &status, 0) == pid);

	return !status;
}

static void measure_size(int size, int rounds)
{
	int round, i;

	for (round = 0; round < rounds; round++) {
		fprintf(stderr, "# %u timers, round %d of %d\n", sizes[size],
			round + 1, rounds);
		for (i = 0; i < NR; i++)
			if (fits(i, sizes[size]) && !turn(i, size, round))
				bench_fail("%s with %u timers failed",
					   contenders[i]->name, sizes[size]);
	}
}

/* This part prints. */

static void print_figure(FILE *to, double value, int width)
{
	if (isnan(value))
		fprintf(to, " %*s", width, "-");
	else
		fprintf(to, " %*.*f", width, value < 10 ? 2 : value < 100 ? 1 : 0,
			value);
}

static void print_figures(FILE *to, int size, int i)
{
	static const char *const shown[] = {
		"arm", "touch", "cancel", "refile", "expire", "bytes", "all",
	};
	unsigned int op;

	for (op = 0; op < ARRAY_SIZE(shown); op++)
		print_figure(to, median(samples[size][i][op_index(shown[op])]), 8);
	fputc('\n', to);
}

static int rounds_of(int size)
{
	int rounds;

	for (rounds = 0; rounds < MAX_ROUNDS; rounds++)
		if (isnan(samples[size][0][op_index("touch")][rounds]))
			break;

	return rounds;
}

static void print_size(int size)
{
	int i;

	printf("\n%u timers, %d rounds: ns each, in random order; bytes each; ms for all\n",
	       sizes[size], rounds_of(size));
	printf("%-62s %8s %8s %8s %8s %8s %8s %8s\n", "", "arm", "touch",
	       "cancel", "refile", "expire", "bytes", "all");
	for (i = 0; i < NR; i++) {
		if (!contenders[i]->touch || !fits(i, sizes[size]))
			continue;
		printf("%-62s", contenders[i]->what);
		print_figures(stdout, size, i);
	}
}

static void print_notes(void)
{
	printf("Native benchmark of the wheel's core, in user space.\n"
	       "Times are CPU time of the one thread; medians.\n"
	       "Core: kmod/*.c with -O2. Lock: one compare-and-swap, one store. Ids: a chained hash table\n"
	       "that does an rhashtable's work per operation (Jenkins' hash, a lock per bucket, atomic count)\n"
	       "without RCU. Pages of 4 KiB for all; in the kernel tokens lie in larger ones. System calls\n"
	       "and the copying of batches are not in the wheel's figures; what read(2) copies is in expire.\n"
	       "refile: when a touched timer's old time has come, it is put where it belongs, once per timeout;\n"
	       "the touch of the others does that at once. libev: a touch stores the time, and the callback\n"
	       "starts the timer again, as its manual advises. libuv, libevent and libev read the clock once for\n"
	       "256 operations.\n"
	       "expire: from due to called back or delivered, each. all: the same for all that are due at once.\n");
#ifndef HAVE_LIBUV
	printf("Left out, not installed: libuv (libuv1-dev)\n");
#endif
#ifndef HAVE_LIBEVENT
	printf("Left out, not installed: libevent (libevent-dev)\n");
#endif
#ifndef HAVE_LIBEV
	printf("Left out, not installed: libev (libev-dev)\n");
#endif
#ifndef HAVE_DPDK
	printf("Left out, not installed: DPDK (libdpdk-dev)\n");
#else
	printf("DPDK runs without huge pages, and with a million timers at most.\n");
#endif
}

static void write_all(const char *directory)
{
	char path[512];
	int size, i, op, round;
	FILE *to;

	snprintf(path, sizeof(path), "%s/native.tsv", directory);
	to = fopen(path, "w");
	if (!to)
		bench_fail("%s: %s", path, strerror(errno));
	fprintf(to, "timers\tcontender\tfigure\tmedian\trounds\n");
	for (size = 0; size < nr_sizes; size++) {
		for (i = 0; i < NR; i++) {
			for (op = 0; op < nr_ops; op++) {
				const double *all = samples[size][i][op];

				if (isnan(median(all)))
					continue;
				fprintf(to, "%u\t%s\t%s\t%.4g\t", sizes[size],
					contenders[i]->name, ops[op],
					median(all));
				for (round = 0; round < MAX_ROUNDS; round++)
					if (!isnan(all[round]))
						fprintf(to, "%s%.4g", round ?
							" " : "", all[round]);
				fputc('\n', to);
			}
		}
	}
	fclose(to);
}

static int quick(void)
{
	int i, failed = 0;

	nr_sizes = 1;
	sizes[0] = 10000;
	printf("1..%d\n", NR);
	for (i = 0; i < NR; i++) {
		bool ok = turn(i, 0, 0);

		printf("%sok %d - native benchmark: %s\n", ok ? "" : "not ",
		       i + 1, contenders[i]->what);
		failed += !ok;
	}

	return !!failed;
}

int main(int argc, char **argv)
{
	static const __u32 usual[] = { 100000, 1000000, 10000000 };
	const char *directory = NULL;
	bool only_show = false;
	int option, rounds = 5, i;

	while ((option = getopt(argc, argv, "qr:d:")) != -1) {
		if (option == 'q')
			only_show = true;
		else if (option == 'r')
			rounds = atoi(optarg);
		else if (option == 'd')
			directory = optarg;
		else
			bench_fail("usage: native [-q] [-r rounds] [-d directory] [size...]");
	}
	samples = malloc(MAX_SIZES * sizeof(*samples));
	MUST(samples && rounds > 0 && rounds <= MAX_ROUNDS);
	for (i = 0; i < (int)(MAX_SIZES * sizeof(*samples) / sizeof(double)); i++)
		((double *)samples)[i] = NAN;
	if (only_show)
		return quick();

	for (i = optind; i < argc && nr_sizes < MAX_SIZES; i++)
		sizes[nr_sizes++] = strtoul(argv[i], NULL, 0);
	for (i = 0; !nr_sizes || (optind == argc && nr_sizes < 3); i++)
		sizes[nr_sizes++] = usual[i];
	for (i = 0; i < nr_sizes; i++) {
		MUST(sizes[i] >= 10000 && sizes[i] <= 1U << 26);
		measure_size(i, rounds);
	}
	print_notes();
	for (i = 0; i < nr_sizes; i++)
		print_size(i);
	if (directory)
		write_all(directory);

	return 0;
}
