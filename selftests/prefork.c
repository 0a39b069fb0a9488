// SPDX-License-Identifier: GPL-2.0-only
/*
 * A server whose worker processes share a named wheel reports each silent user
 * exactly once, also if its processes are killed at any moment. The file has the
 * server first, as an example to copy, and then the test of the server.
 *
 * Users send packets over TCP. A user that is silent for a while has to be reported.
 * A master forks workers. Each worker serves connections of its own and touches the
 * tokens of its users. Any worker that the wheel wakes reads expired tokens. The
 * wheel belongs to no worker: it outlives a killed worker and a restart of the whole
 * server, and the users' timeouts run on.
 *
 * The promise is that each registration of a user is reported exactly once, with the
 * deadline that the user's last packet gave it.
 *
 * A plain read would break the promise: an event that read(2) has delivered is in the
 * memory of the reader, and is lost with the reader. The workers therefore read
 * straight into the report, which is a file that they have mapped. An event is in the
 * file as soon as the kernel has copied it. Until then, or if its last byte could not
 * be copied, the token is on the wheel. A SIGKILL finds no moment between the two
 * states. The file and the wheel last as long as the machine runs.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/timewheel.h>

#define WORKERS		4

/* A window is the mapped part of a report: this many events, which fill 48 pages. */
#define WINDOW		4096
#define WINDOW_BYTES	(WINDOW * sizeof(struct timewheel_event))

/**
 * struct server - a server
 * @name: name of the wheel
 * @reports: directory of the reports, one file for each worker
 * @timeout: ns of silence after which a user is reported
 * @start: number of this start of the server, which is the cookie of new tokens
 * @listener: socket to which users connect
 * @worker: process ids of the workers
 */
struct server {
	char		name[TIMEWHEEL_NAME_SIZE];
	char		reports[64];
	__u64		timeout;
	__u64		start;
	int		listener;
	pid_t		worker[WORKERS];
};

/**
 * struct report - the report into which a worker reads
 * @fd: file, which has the events and then free room
 * @start: offset of the window in the file
 * @window: mapped part of the file
 * @used: number of events in the window
 */
struct report {
	int			fd;
	off_t			start;
	struct timewheel_event	*window;
	size_t			used;
};

/* A connection, with the begin of a line whose end has not come yet. */
struct connection {
	int	fd;
	size_t	used;
	char	line[64];
};

/* A worker. In its epoll the data of the wheel is @report, and the listener's is NULL. */
struct worker {
	const struct server	*server;
	int			wheel;
	int			epoll;
	struct report		report;
};

/* Ends the worker, and with it the server, after an error that another try cannot mend. */
static void give_up(const char *what)
{
	fprintf(stderr, "# server: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/*
 * Returns whether this part of the report is free. The kernel writes events front to
 * back. An event that was not written to its end is put back on the wheel and does
 * not count. Free room is therefore marked at the end of each event.
 */
static bool is_room(const struct timewheel_event *event)
{
	return event->missed || !event->taken;
}

/* Maps the part of the report at @start. */
static void report_map(struct report *report, off_t start)
{
	if (report->window)
		munmap(report->window, WINDOW_BYTES);
	errno = posix_fallocate(report->fd, start, WINDOW_BYTES);
	if (errno)
		give_up("room for the report");
	report->window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE,
			      MAP_SHARED, report->fd, start);
	if (report->window == MAP_FAILED)
		give_up("map the report");
	report->start = start;
	report->used = 0;
	while (report->used < WINDOW && !is_room(&report->window[report->used]))
		report->used++;
	for (size_t i = report->used; i < WINDOW; i++)
		report->window[i].missed = ~0U;
}

/*
 * Continues the report of the worker that this worker replaces, after its last event.
 * Waits for the lock until the kernel has ended the old worker.
 */
static void report_open(struct report *report, const char *directory, int slot)
{
	char path[128];
	off_t size;

	snprintf(path, sizeof(path), "%s/silent.%d", directory, slot);
	report->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (report->fd < 0 || flock(report->fd, LOCK_EX))
		give_up(path);
	size = lseek(report->fd, 0, SEEK_END);
	report_map(report, size ? (size - 1) / WINDOW_BYTES * WINDOW_BYTES : 0);
}

/* Reads events from the wheel into the report, which is all that reports the users. */
static void report_silent(struct worker *worker)
{
	struct report *report = &worker->report;
	ssize_t bytes;

	if (report->used == WINDOW)
		report_map(report, report->start + WINDOW_BYTES);
	bytes = read(worker->wheel, &report->window[report->used],
		     (WINDOW - report->used) * sizeof(*report->window));
	if (bytes < 0 && errno != EAGAIN && errno != EINTR)
		give_up("read the wheel");
	if (bytes > 0)
		report->used += bytes / sizeof(*report->window);
}

/*
 * A packet is a line "USER". The answer is "USER new DEADLINE" or "USER touched
 * DEADLINE". Returns false if the connection has to be closed.
 */
static bool serve_packet(const struct worker *worker, int fd, const char *line)
{
	struct timewheel_op op = {
		.size = sizeof(op), .code = TIMEWHEEL_OP_TOUCH_OR_REGISTER,
		.time = worker->server->timeout,
		.cookie = worker->server->start,
	};
	char answer[80], *end;
	int length;

	op.id = strtoull(line, &end, 10);
	if (end == line || *end)
		return false;
	if (ioctl(worker->wheel, TIMEWHEEL_IOC_OP, &op) < 0)
		return false;
	length = snprintf(answer, sizeof(answer), "%llu %s %llu\n",
			  (unsigned long long)op.id,
			  op.result & TIMEWHEEL_RES_REGISTERED ? "new" : "touched",
			  (unsigned long long)op.deadline);
	return send(fd, answer, length, MSG_DONTWAIT | MSG_NOSIGNAL) == length;
}

/*
 * Serves all complete lines that have come. Returns false if the connection has to be
 * closed.
 */
static bool serve(const struct worker *worker, struct connection *user)
{
	ssize_t bytes = recv(user->fd, user->line + user->used,
			     sizeof(user->line) - user->used, MSG_DONTWAIT);
	char *end;

	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!bytes)
		return false;
	user->used += bytes;
	while ((end = memchr(user->line, '\n', user->used))) {
		size_t length = end + 1 - user->line;

		*end = 0;
		if (!serve_packet(worker, user->fd, user->line))
			return false;
		user->used -= length;
		memmove(user->line, end + 1, user->used);
	}
	return user->used < sizeof(user->line);
}

/*
 * With EPOLLEXCLUSIVE the kernel wakes one worker, not all. If this worker is killed
 * before it acts, its replacement finds the events when it begins to watch. If the
 * worker is stopped, for example by a debugger, all workers wait for it. A server for
 * which such a stop matters has to wake all workers.
 */
static void watch(const struct worker *worker, int fd, __u32 events, void *what)
{
	struct epoll_event event = { .events = events, .data.ptr = what };

	if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event))
		give_up("watch");
}

static void accept_user(const struct worker *worker)
{
	struct connection *user;
	int fd = accept4(worker->server->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	user = calloc(1, sizeof(*user));
	if (!user)
		give_up("accept");
	user->fd = fd;
	watch(worker, fd, EPOLLIN, user);
}

static int open_wheel(const struct server *server)
{
	char path[128];

	snprintf(path, sizeof(path), "/dev/timewheels/%s", server->name);
	return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

static void worker_run(const struct server *server, int slot)
{
	struct worker worker = {
		.server = server, .wheel = open_wheel(server),
		.epoll = epoll_create1(EPOLL_CLOEXEC),
	};

	if (worker.wheel < 0 || worker.epoll < 0)
		give_up("start a worker");
	report_open(&worker.report, server->reports, slot);
	watch(&worker, worker.wheel, EPOLLIN | EPOLLEXCLUSIVE, &worker.report);
	watch(&worker, server->listener, EPOLLIN | EPOLLEXCLUSIVE, NULL);
	for (;;) {
		struct epoll_event event;
		struct connection *user;

		if (epoll_wait(worker.epoll, &event, 1, -1) != 1)
			continue;
		user = event.data.ptr;
		if (event.data.ptr == &worker.report) {
			report_silent(&worker);
		} else if (!user) {
			accept_user(&worker);
		} else if (!serve(&worker, user)) {
			close(user->fd);
			free(user);
		}
	}
}

static void start_worker(struct server *server, int slot)
{
	pid_t master = getpid(), pid = fork();

	if (pid < 0)
		give_up("fork");
	if (!pid) {
		/*
		 * No worker outlives its master, even if the master has died before
		 * the prctl.
		 */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != master)
			_exit(1);
		worker_run(server, slot);
	}
	server->worker[slot] = pid;
}

/* Opens the server's wheel, or creates it. */
static void create_wheel(const struct server *server)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 60, .tick = 10000000 /* ns */, .max_tokens = 100000,
	};
	struct timewheel_create create = {
		.size = sizeof(create), .setup = (uintptr_t)&setup,
	};
	int device = open("/dev/timewheel", O_RDWR | O_CLOEXEC);

	memcpy(create.name, server->name, sizeof(create.name));
	if (device < 0 || ioctl(device, TIMEWHEEL_IOC_CREATE, &create) < 0)
		give_up("create the wheel");
	close(device);
}

/* Returns a socket that listens on a free port. */
static int listen_for_users(struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*address);

	*address = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (fd < 0 || bind(fd, (struct sockaddr *)address, length) ||
	    listen(fd, 128) ||
	    getsockname(fd, (struct sockaddr *)address, &length))
		give_up("listen");
	return fd;
}

/*
 * Replaces killed workers until a worker gives up. Writes the address to which users
 * may connect to @ready, once.
 */
static void server_run(struct server *server, int ready)
{
	struct sockaddr_in address;
	int status;

	create_wheel(server);
	server->listener = listen_for_users(&address);
	for (int slot = 0; slot < WORKERS; slot++)
		start_worker(server, slot);
	if (write(ready, &address, sizeof(address)) != sizeof(address))
		give_up("tell where we are");
	close(ready);
	for (;;) {
		pid_t pid = wait(&status);

		if (pid < 0 || WIFEXITED(status))
			give_up("a worker gave up");
		for (int slot = 0; slot < WORKERS; slot++) {
			if (server->worker[slot] == pid)
				start_worker(server, slot);
		}
	}
}

/*
 * The example ends here. The rest of the file plays its users, kills its processes,
 * and compares the reports with the answers that the users had.
 */
#include "tw_test.h"

#define USERS		120
#define CONNECTIONS	12
#define LONG		90	/* seconds that a test may take */

/* A user has at most so many registrations in a test. */
#define LIVES		128

/*
 * A user, with its deadline, which is 0 before its first packet, and the deadlines of
 * its registrations that have ended. A user is unsure if a packet was not answered:
 * there may be one more registration, with another deadline.
 */
struct user {
	__u64 deadline;
	__u64 ended[LIVES];
	unsigned int lives;
	bool unsure;
};

FIXTURE(prefork) {
	struct server *server;
	pid_t master;
	struct sockaddr_in address;
	int connection[CONNECTIONS];
	struct user user[USERS];
	size_t others;
	struct timewheel_event *report;
	size_t reported;
};

/* Starts the server in a process group of its own, which can be killed as a whole. */
static bool start_server(FIXTURE_DATA(prefork) *self)
{
	int ready[2];
	bool ok;

	self->server->start++;
	if (pipe(ready))
		return false;
	self->master = fork();
	if (!self->master) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		server_run(self->server, ready[1]);
	}
	close(ready[1]);
	ok = self->master > 0 &&
	     read(ready[0], &self->address, sizeof(self->address)) ==
	     sizeof(self->address);
	close(ready[0]);
	return ok;
}

/* Kills @target. Returns the master's status, as of waitpid. */
static int end_server(FIXTURE_DATA(prefork) *self, pid_t target)
{
	int status = -1;

	kill(target, SIGKILL);
	waitpid(self->master, &status, 0);
	self->master = 0;
	return status;
}

static int destroy_wheel(FIXTURE_DATA(prefork) *self)
{
	struct timewheel_destroy destroy = { .size = sizeof(destroy) };
	int device = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	int ret;

	memcpy(destroy.name, self->server->name, sizeof(destroy.name));
	ret = ioctl(device, TIMEWHEEL_IOC_DESTROY, &destroy);
	close(device);
	return ret;
}

FIXTURE_SETUP(prefork)
{
	int device = TW_OPEN(O_RDWR);

	close(device);
	/*
	 * The test becomes the parent of a killed master's workers, and can wait for
	 * them.
	 */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < CONNECTIONS; i++)
		self->connection[i] = -1;
	self->server = mmap(NULL, sizeof(*self->server), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->server);
	self->server->timeout = 2 * TW_SEC;
	snprintf(self->server->name, sizeof(self->server->name), "prefork-%d",
		 getpid());
	strcpy(self->server->reports, "/tmp/prefork-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->server->reports));
	ASSERT_TRUE(start_server(self));
}

FIXTURE_TEARDOWN(prefork)
{
	char path[128];

	if (self->master > 0)
		end_server(self, -self->master);
	while (wait(NULL) > 0)
		;
	destroy_wheel(self);
	for (int i = 0; i < WORKERS; i++) {
		snprintf(path, sizeof(path), "%s/silent.%d",
			 self->server->reports, i);
		unlink(path);
	}
	rmdir(self->server->reports);
}

static int connect_user(const FIXTURE_DATA(prefork) *self)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)&self->address,
		    sizeof(self->address))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void book_answer(struct user *user, bool new, __u64 deadline)
{
	if (new && user->deadline && user->lives < LIVES)
		user->ended[user->lives++] = user->deadline;
	user->deadline = deadline;
}

/* Returns whether the connection still exists, as far as this end can know. */
static bool connected(int fd)
{
	char byte;

	return fd >= 0 && recv(fd, &byte, 1, MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

/* Sends a packet and reads its answer. Returns false when the connection broke. */
static bool exchange(FIXTURE_DATA(prefork) *self, int fd, unsigned int id)
{
	char line[80], what[16];
	int length = snprintf(line, sizeof(line), "%u\n", id);
	unsigned long long deadline;
	unsigned int of;
	ssize_t got = 0;

	if (send(fd, line, length, MSG_NOSIGNAL) != length)
		return false;
	do {
		ssize_t bytes = recv(fd, line + got, sizeof(line) - 1 - got, 0);

		if (bytes <= 0)
			return false;
		got += bytes;
	} while (line[got - 1] != '\n');
	line[got] = 0;
	if (sscanf(line, "%u %15s %llu", &of, what, &deadline) != 3 || of != id)
		return false;
	book_answer(&self->user[id], !strcmp(what, "new"), deadline);
	return true;
}

/* Sends a packet of a user until it has been answered. */
static bool say(FIXTURE_DATA(prefork) *self, unsigned int id)
{
	int *connection = &self->connection[id % CONNECTIONS];

	for (int tries = 0; tries < 1000; tries++) {
		if (!connected(*connection)) {
			close(*connection);
			*connection = connect_user(self);
		}
		if (*connection >= 0 && exchange(self, *connection, id))
			return true;
		self->user[id].unsure |= *connection >= 0;
		tw_sleep_ms(1);
	}
	return false;
}

/* Sends a packet of every @step-th user, from @first on. */
static bool say_all(FIXTURE_DATA(prefork) *self, unsigned int first,
		    unsigned int step)
{
	for (unsigned int id = first; id < USERS; id += step) {
		if (!say(self, id))
			return false;
	}
	return true;
}

static void hang_up(FIXTURE_DATA(prefork) *self)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		if (self->connection[i] >= 0)
			close(self->connection[i]);
		self->connection[i] = -1;
	}
}

/* Reads the state of the server's wheel, which is open only meanwhile. */
static bool wheel_info(const FIXTURE_DATA(prefork) *self,
		       struct timewheel_info *info)
{
	int fd = open_wheel(self->server);
	bool ok = fd >= 0 && !tw_info(fd, info);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Waits until all users have been silent for their timeouts and have been reported. */
static bool wait_until_reported(const FIXTURE_DATA(prefork) *self,
				struct timewheel_info *info)
{
	for (int tries = 0; tries < 3000; tries++) {
		if (!wheel_info(self, info))
			return false;
		if (!info->pending && !info->taken)
			return true;
		tw_sleep_ms(10);
	}
	return false;
}

/* Reads the reports from their files, as any program may. */
static bool read_reports(FIXTURE_DATA(prefork) *self)
{
	const size_t most = USERS * LIVES + self->others;
	struct timewheel_event event;
	char path[128];

	free(self->report);
	self->report = calloc(most, sizeof(*self->report));
	self->reported = 0;
	for (int i = 0; i < WORKERS; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/silent.%d",
			 self->server->reports, i);
		file = fopen(path, "r");
		if (!file)
			return false;
		while (fread(&event, sizeof(event), 1, file) && !is_room(&event)) {
			if (self->reported == most)
				return false;
			self->report[self->reported++] = event;
		}
		fclose(file);
	}
	return true;
}

static int by_handle(const void *a, const void *b)
{
	const struct timewheel_event *x = a, *y = b;

	return x->handle < y->handle ? -1 : x->handle > y->handle;
}

static int by_user(const void *a, const void *b)
{
	const struct timewheel_event *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->deadline < y->deadline ? -1 : x->deadline > y->deadline;
}

/*
 * Returns whether the reports of a user have the deadlines that it knows of, in
 * order. An unsure user may have further reports, but the last one has to fit,
 * because the user had the answer to its last packet.
 */
static bool reports_fit(const struct user *user,
			const struct timewheel_event *report, size_t n)
{
	size_t known = user->lives + !!user->deadline;

	if (user->unsure)
		return n >= known &&
		       (!n || report[n - 1].deadline == user->deadline);
	for (size_t i = 0; i < user->lives && i < n; i++) {
		if (report[i].deadline != user->ended[i])
			return false;
	}
	return n == known && (!n || report[n - 1].deadline == user->deadline);
}

/*
 * Expects one report of each registration when all users have become silent. A handle
 * belongs to one registration. Each registration therefore has one report if there
 * are as many reports as registrations and no handle comes twice. The deadlines are
 * compared, too.
 */
static void expect_each_reported_once(struct __test_metadata *_metadata,
				      FIXTURE_DATA(prefork) *self)
{
	struct timewheel_info info;
	unsigned int unsure = 0;
	size_t at = 0;

	ASSERT_TRUE(wait_until_reported(self, &info));
	ASSERT_TRUE(read_reports(self));
	EXPECT_EQ(info.registered, self->reported);
	EXPECT_EQ(info.delivered, self->reported);
	EXPECT_EQ(0ULL, info.cancelled);
	qsort(self->report, self->reported, sizeof(*self->report), by_handle);
	for (size_t i = 0; i < self->reported; i++) {
		EXPECT_LE(self->report[i].deadline, self->report[i].taken);
		if (i)
			EXPECT_NE(self->report[i - 1].handle,
				  self->report[i].handle);
	}
	qsort(self->report, self->reported, sizeof(*self->report), by_user);
	for (unsigned int id = 0; id < USERS; id++) {
		size_t first = at;

		while (at < self->reported && self->report[at].id == id)
			at++;
		EXPECT_TRUE(reports_fit(&self->user[id], &self->report[first],
					at - first)) {
			TH_LOG("user %u: %zu reports, %u lives%s", id,
			       at - first, self->user[id].lives,
			       self->user[id].unsure ? ", unsure" : "");
		}
		unsure += self->user[id].unsure;
	}
	EXPECT_EQ(self->reported, at + self->others);
	TH_LOG("%zu reports, %u users once without an answer", self->reported,
	       unsure);
}

/* A user that keeps sending is not reported. A user that stops is reported once. */
TEST_F_TIMEOUT(prefork, silent_users_are_reported, LONG)
{
	self->server->timeout = TW_SEC;
	ASSERT_TRUE(say_all(self, 0, 1));
	for (int i = 0; i < 15; i++) {
		ASSERT_TRUE(say_all(self, 0, 3));
		tw_sleep_ms(100);
	}
	expect_each_reported_once(_metadata, self);
	/* A user that sends again after its report is registered anew. */
	ASSERT_TRUE(say_all(self, 0, 5));
	expect_each_reported_once(_metadata, self);
}

/* The master writes the process ids, in memory that it shares with the test. */
static pid_t worker_of(const struct server *server, unsigned long slot)
{
	return __atomic_load_n(&server->worker[slot], __ATOMIC_RELAXED);
}

/* Kills one worker at a time, and waits until it is replaced. */
static int kill_workers(const struct server *server)
{
	const unsigned long kills = tw_scaled(100);

	for (unsigned long i = 0; i < kills; i++) {
		pid_t victim = worker_of(server, i % WORKERS);

		usleep(i * 331 % 30000);
		if (kill(victim, SIGKILL))
			return 1;
		while (worker_of(server, i % WORKERS) == victim)
			tw_sleep_ms(1);
	}
	return 0;
}

/*
 * Workers are killed and replaced while they touch and report. Their users connect
 * again, and some users become silent at any time.
 */
TEST_F_TIMEOUT(prefork, killed_workers_lose_nothing, LONG)
{
	int status = -1;
	pid_t killer;

	self->server->timeout = 300 * TW_MS;
	ASSERT_TRUE(say_all(self, 0, 1));
	killer = fork();
	ASSERT_LE(0, killer);
	if (!killer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(kill_workers(self->server));
	}
	for (int i = 0; !waitpid(killer, &status, WNOHANG); i++)
		ASSERT_TRUE(say_all(self, i % 11, 11));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, waitpid(self->master, NULL, WNOHANG));
	expect_each_reported_once(_metadata, self);
}

/*
 * The whole server is killed, and no process has the wheel open for a second. Then
 * the server starts again on the same wheel. A third of the users become due before
 * the start. A third come back in time, and their tokens are still the tokens of the
 * first start. A third do not come back, and their deadlines are still the deadlines
 * of the first start.
 */
TEST_F_TIMEOUT(prefork, timeouts_run_on_without_a_server, LONG)
{
	enum { GONE, BACK, SILENT, KINDS };
	__u64 until[USERS];
	unsigned int in_time = 0;
	struct timewheel_info info;

	ASSERT_TRUE(say_all(self, GONE, KINDS));
	tw_sleep_ms(1000);
	ASSERT_TRUE(say_all(self, BACK, KINDS));
	ASSERT_TRUE(say_all(self, SILENT, KINDS));
	for (unsigned int id = 0; id < USERS; id++)
		until[id] = self->user[id].deadline;
	EXPECT_EQ(SIGKILL, WTERMSIG(end_server(self, -self->master)));
	hang_up(self);
	while (tw_now(CLOCK_MONOTONIC) < until[USERS - KINDS + GONE])
		tw_sleep_ms(1);
	ASSERT_TRUE(wheel_info(self, &info));
	EXPECT_EQ((__u64)USERS, info.registered);

	ASSERT_TRUE(start_server(self));
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(say_all(self, BACK, KINDS));
		tw_sleep_ms(100);
	}
	expect_each_reported_once(_metadata, self);
	for (size_t i = 0; i < self->reported; i++) {
		const struct timewheel_event *report = &self->report[i];

		if (report->id % KINDS != BACK) {
			EXPECT_EQ(until[report->id], report->deadline);
			EXPECT_EQ(1ULL, report->cookie);
		} else if (report->cookie == 1 && !self->user[report->id].lives) {
			EXPECT_LT(until[report->id], report->deadline);
			in_time++;
		}
	}
	TH_LOG("%u of %u came back in time", in_time, USERS / KINDS);
}

/* Registers many more users with ids of their own, without the server. */
static bool hear_of_others(FIXTURE_DATA(prefork) *self, size_t n, __u64 deadline)
{
	int fd = open_wheel(self->server);
	size_t good = tw_register_many(fd, USERS + self->others, n,
				       TIMEWHEEL_OPF_ABSOLUTE, deadline);

	self->others += good;
	close(fd);
	return good == n;
}

/*
 * The server is killed and started again while users go on sending. The test kills
 * the whole server, or the master alone, after which its workers have to end. The
 * next server may start before the old workers have ended, and waits for them in
 * report_open(). The kill comes while many users are due, because a read of many
 * events takes some time.
 */
TEST_F_TIMEOUT(prefork, killed_servers_lose_nothing, LONG)
{
	const unsigned long kills = tw_scaled(20);

	self->server->timeout = 300 * TW_MS;
	for (unsigned long i = 0; i < kills; i++) {
		__u64 deadline;

		ASSERT_TRUE(say_all(self, 0, 1 + i % 3));
		deadline = self->user[0].deadline;
		ASSERT_TRUE(hear_of_others(self, 3000, deadline));
		while (tw_now(CLOCK_MONOTONIC) < deadline)
			usleep(100);
		usleep(i * 331 % 5000);
		end_server(self, i % 2 ? self->master : -self->master);
		ASSERT_TRUE(start_server(self));
	}
	expect_each_reported_once(_metadata, self);
}

/* A server whose wheel is destroyed ends with a message. */
TEST_F(prefork, ends_with_its_wheel)
{
	int status;

	ASSERT_TRUE(say(self, 1));
	ASSERT_EQ(0, destroy_wheel(self));
	ASSERT_EQ(self->master, waitpid(self->master, &status, 0));
	self->master = 0;
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(1, WEXITSTATUS(status));
}

TEST_HARNESS_MAIN
