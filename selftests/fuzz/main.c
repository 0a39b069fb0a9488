// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program fuzzer makes random calls of /dev/timewheel, in a guest whose kernel
 * reports errors, and fuzzer32 makes them as a caller of 32 bits. Each program runs
 * in a process of its own. Before it runs, it is written to $TW_VM_DATA, which is
 * there also if the kernel crashes.
 *
 *	fuzzer fuzz FILE	runs the programs in FILE, then changed programs
 *				and new programs for --seconds=N
 *	fuzzer replay FILE	runs each program in FILE --times=N times, up to
 *				the first finding
 *	fuzzer reduce FILE	prints "keep" and a program for the shortest
 *				programs of FILE that have all edges together
 *	fuzzer print PROGRAM	prints it as the rest of a C program that begins
 *				with act.h
 *	fuzzer simpler PROGRAM	prints all programs that are a step simpler
 *
 * A --seed=N always makes the same choices. A finding is an error in the kernel's
 * log, a program that cannot be killed, or a wheel that a program leaves behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/timewheel.h>

#include "cover.h"
#include "program.h"

#define CORPUS		8192	/* at most so many programs are kept */
#define RUN_MS		10000	/* time for a program */
#define DEATH_MS	60000	/* time until a killed program has ended */
#define LATE_MS		10000	/* time until its wheels are gone */

static const unsigned int bits = 8 * sizeof(long);
static uint64_t seed = 1;
static unsigned int seconds = 60, times = 1;
static FILE *data;
static bool covered;
static int kernel_log = -1;

static struct {
	struct program	program;
	uint32_t	*edge;
	unsigned int	edges;
} corpus[CORPUS];
static unsigned int nr_corpus;

/* The edges that programs in the corpus have. */
static bool seen[COVER_EDGES];
static unsigned int nr_seen;

static struct {
	uint64_t	programs;
	uint64_t	calls;
	uint64_t	killed;
} total;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static void sleep_ms(unsigned int ms)
{
	poll(NULL, 0, ms);
}

/* Waits until the serial port's driver has sent everything to the host. */
static void tell_now(void)
{
	int left = 1;

	fflush(data);
	while (left && !ioctl(fileno(data), TIOCOUTQ, &left))
		sched_yield();
}

static void tell(const char *what, const struct program *program)
{
	char text[PROGRAM_TEXT];

	program_format(program, text);
	fprintf(data, "%s %s\n", what, text);
	tell_now();
}

/* The following functions look for findings. */

/* Looks for an error in the kernel's log since the last call. */
static bool kernel_complained(char *what, size_t size)
{
	static const char * const bad[] = {
		"BUG:", "WARNING:", "INFO: possible", "INFO: trying", "KASAN",
		"UBSAN", "ODEBUG", "suspicious RCU", "lockdep is turned off",
		"Oops", "blocked for more than", "refcount_t", "corruption",
		"page allocation failure",
	};
	char line[1024];
	ssize_t n;

	while ((n = read(kernel_log, line, sizeof(line) - 1)) > 0 ||
	       (n < 0 && errno == EPIPE)) {
		line[n < 0 ? 0 : n] = 0;
		line[strcspn(line, "\n")] = 0;
		for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			const char *at = strstr(line, bad[i]);

			if (!at)
				continue;
			snprintf(what, size, "%s", at);
			return true;
		}
	}
	return false;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}

/* With failing allocations, allocations that may wait can fail, too. */
static void prepare_failures(void)
{
	static const char * const setting[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[80];

	for (size_t i = 0; i < sizeof(setting) / sizeof(*setting); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 setting[i][0]);
		write_file(path, setting[i][1]);
	}
}

static void kernel_log_open(void)
{
	kernel_log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	lseek(kernel_log, 0, SEEK_END);
}

static void destroy_named(void)
{
	int fd = open("/dev/timewheel", O_RDWR | O_CLOEXEC);

	for (unsigned int i = 0; i < 4; i++) {
		struct timewheel_destroy destroy = { .size = sizeof(destroy) };

		sprintf(destroy.name, "fuzz%u", i);
		ioctl(fd, TIMEWHEEL_IOC_DESTROY, &destroy);
	}
	close(fd);
}

/* Returns whether a table has lines below its header. */
static bool has_lines(const char *path)
{
	char text[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 && memchr(text, '\n', n) != text + n - 1;
}

static bool something_left(void)
{
	return has_lines("/sys/kernel/debug/timewheel/wheels") ||
	       has_lines("/sys/kernel/debug/timewheel/users");
}

/* io_uring closes files some time after the last user of the ring has exited. */
static bool leaked(void)
{
	uint64_t end = now_ms() + LATE_MS;

	if (!something_left())
		return false;
	destroy_named();
	while (something_left()) {
		if (now_ms() > end)
			return true;
		sleep_ms(10);
	}
	return false;
}

static void report(const struct program *program, const char *what)
{
	tell("found", program);
	fprintf(data, "finding %s\n", what);
	tell_now();
	printf("not ok 1 nothing is found: %s\n", what);
	exit(1);
}

/* The following functions run a program. */

static sigset_t child_signal;	/* is blocked, and waited for */

static const struct program_hooks hooks = { cover_begin, cover_called };

/* Waits for child @pid, or for all children if it is -1. Reaps other children, too. */
static bool reap(pid_t pid, unsigned int ms)
{
	uint64_t end = now_ms() + ms;

	for (;;) {
		const struct timespec soon = { .tv_nsec = 10000000 };
		pid_t dead = waitpid(pid, NULL, WNOHANG);

		if (dead == pid || (dead < 0 && errno == ECHILD))
			return true;
		if (dead > 0)
			continue;
		if (now_ms() > end)
			return false;
		sigtimedwait(&child_signal, NULL, &soon);
	}
}

static pid_t begin(const struct program *program)
{
	pid_t pid = fork();

	if (!pid) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_UNBLOCK, &child_signal, NULL);
		program_run(program, &hooks);
		_exit(0);
	}
	setpgid(pid, pid);
	return pid;
}

/* Runs a program and looks for findings. */
static void run(const struct program *program)
{
	char what[256];
	pid_t pid;

	tell("run", program);
	cover_clear();
	pid = begin(program);
	if (!reap(pid, RUN_MS))
		total.killed++;
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	if (!reap(-1, DEATH_MS))
		report(program, "a process that cannot be killed");
	if (kernel_complained(what, sizeof(what)))
		report(program, what);
	if (leaked())
		report(program, "a wheel, or a charge for one, that nobody has");
	total.programs++;
	total.calls += program->calls;
}

/* The following functions keep programs with new edges. */

/* Returns the edges of the last run, or only the new edges. The caller frees them. */
static uint32_t *edges_copy(unsigned int *n, bool only_new)
{
	const uint32_t *hits;
	unsigned int hit = cover_hits(&hits);
	uint32_t *edges = malloc((hit + 1) * sizeof(*edges));

	*n = 0;
	for (unsigned int i = 0; i < hit; i++)
		if (!only_new || !seen[hits[i]])
			edges[(*n)++] = hits[i];
	return edges;
}

/* Returns whether the program has all these edges. */
static bool comes_to(const struct program *program, const uint32_t *edges,
		     unsigned int n)
{
	run(program);
	while (n)
		if (!cover_has(edges[--n]))
			return false;
	return true;
}

/* Drops calls that the program does not need for these edges. */
static void shorten(struct program *program, const uint32_t *edges,
		    unsigned int n)
{
	for (unsigned int i = program->calls; i-- && program->calls > 1;) {
		struct program shorter = *program;

		program_drop(&shorter, i);
		if (comes_to(&shorter, edges, n))
			*program = shorter;
	}
}

static void see(const uint32_t *edges, unsigned int n)
{
	while (n--) {
		nr_seen += !seen[edges[n]];
		seen[edges[n]] = true;
	}
}

static void keep(const struct program *program)
{
	if (nr_corpus < CORPUS)
		corpus[nr_corpus++].program = *program;
}

/* Runs a program, and keeps a shorter form of it if it has new edges. */
static void attempt(const struct program *program)
{
	struct program shorter = *program;
	uint32_t *edges;
	unsigned int n;

	run(program);
	edges = edges_copy(&n, true);
	if (n) {
		if (comes_to(&shorter, edges, n))
			shorten(&shorter, edges, n);
		see(edges, n);
		keep(&shorter);
		tell("new", &shorter);
	}
	free(edges);
}

/* The following functions are the modes that the user can choose. */

static void load(const char *path)
{
	FILE *file = fopen(path, "r");
	char text[PROGRAM_TEXT];

	while (file && fgets(text, sizeof(text), file)) {
		struct program program;

		if (*text == '#')
			continue;
		if (program_parse(&program, text)) {
			keep(&program);
			continue;
		}
		fprintf(stderr, "no program: %s", text);
		exit(2);
	}
	if (file)
		fclose(file);
}

static void print_figures(uint64_t ms)
{
	printf("# a caller of %u bits, seed %" PRIu64 ": %" PRIu64 " programs of %" PRIu64
	       " calls in %" PRIu64 " s, %" PRIu64 " a second, %" PRIu64 " killed\n",
	       bits, seed, total.programs, total.calls, ms / 1000,
	       total.programs * 1000 / (ms + 1), total.killed);
	if (covered)
		printf("# %u places, %u edges, %u programs kept\n",
		       cover_places(), nr_seen, nr_corpus);
	printf("# calls:");
	for (unsigned int i = 0; i < call_types(); i++)
		printf(" %s %" PRIu64, call_name(i), cover_calls(i));
	printf("\n");
	cover_print(data);
	tell_now();
}

/* Tries a changed program of the corpus, or a new program. */
static void fuzz_once(void)
{
	struct program program;

	if (!nr_corpus || !random_below(6)) {
		program_random(&program);
	} else {
		program = corpus[random_below(nr_corpus)].program;
		program_mutate(&program,
			       &corpus[random_below(nr_corpus)].program);
	}
	attempt(&program);
}

static void fuzz(void)
{
	unsigned int given = nr_corpus;
	uint64_t start = now_ms();
	uint64_t end = start + seconds * 1000ULL;

	for (unsigned int i = 0; i < given; i++) {
		uint32_t *edges;
		unsigned int n;

		run(&corpus[i].program);
		edges = edges_copy(&n, true);
		see(edges, n);
		free(edges);
	}
	printf("# %u programs given: %u edges, %" PRIu64 " s\n", given,
	       nr_seen, (now_ms() - start) / 1000);
	/*
	 * New programs get at least half of the time, also if the given programs take
	 * long.
	 */
	if (end < now_ms() + seconds * 500ULL)
		end = now_ms() + seconds * 500ULL;
	while (now_ms() < end)
		fuzz_once();
	print_figures(now_ms() - start);
}

/* Runs the given programs. A pause lets a late finding come before the next program. */
static void replay(void)
{
	uint64_t start = now_ms();

	for (unsigned int i = 0; i < nr_corpus; i++) {
		for (unsigned int k = 0; k < times; k++)
			run(&corpus[i].program);
		sleep_ms(50);
	}
	print_figures(now_ms() - start);
}

static unsigned int weight(const struct program *program)
{
	char text[PROGRAM_TEXT];

	program_format(program, text);
	return strlen(text);
}

/* Tells the shortest program for each edge. */
static void reduce(void)
{
	static unsigned int best[COVER_EDGES], weights[CORPUS];

	for (unsigned int i = 0; i < nr_corpus; i++) {
		run(&corpus[i].program);
		corpus[i].edge = edges_copy(&corpus[i].edges, false);
		weights[i] = weight(&corpus[i].program);
		for (unsigned int k = 0; k < corpus[i].edges; k++) {
			unsigned int *of = &best[corpus[i].edge[k]];

			if (!*of || weights[i] < weights[*of - 1])
				*of = i + 1;
		}
	}
	for (unsigned int edge = 0; edge < COVER_EDGES; edge++) {
		unsigned int i = best[edge] - 1;

		if (!best[edge] || seen[edge])
			continue;
		see(corpus[i].edge, corpus[i].edges);
		tell("keep", &corpus[i].program);
	}
}

static void use(const char *mode, const char *path)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{ "fuzz", fuzz }, { "replay", replay }, { "reduce", reduce },
	};

	load(path);
	for (unsigned int i = 0; i < 3; i++) {
		if (strcmp(modes[i].name, mode))
			continue;
		modes[i].run();
		printf("ok 1 nothing is found\n");
		exit(0);
	}
	exit(2);
}

static int print(const char *text, void (*how)(const struct program *, FILE *))
{
	struct program program;

	if (!program_parse(&program, text))
		return 2;
	how(&program, stdout);
	return 0;
}

static void options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "times", required_argument, NULL, 'n' },
		{ 0 }
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 't')
			seconds = strtoul(optarg, NULL, 0);
		else if (option == 'n')
			times = strtoul(optarg, NULL, 0);
		else
			exit(2);
	}
	if (argc - optind != 2)
		exit(2);
}

int main(int argc, char **argv)
{
	const char *path = getenv("TW_VM_DATA");

	options(argc, argv);
	if (!strcmp(argv[optind], "print"))
		return print(argv[optind + 1], program_print);
	if (!strcmp(argv[optind], "simpler"))
		return print(argv[optind + 1], program_print_simpler);

	data = fopen(path ? path : "/dev/null", "w");
	setvbuf(stdout, NULL, _IOLBF, 0);
	fprintf(data, "bits %u\n", bits);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_signal, NULL);
	random_state = seed;
	covered = cover_open();
	kernel_log_open();
	prepare_failures();
	printf("TAP version 13\n1..1\n# %s KCOV\n", covered ? "with" : "without");
	use(argv[optind], argv[optind + 1]);
}
