// SPDX-License-Identifier: GPL-2.0-only
/*
 * The example fdstore, killed and started again under load, by this test in the
 * service manager's place: each request comes to one token, and each token to one
 * end, after at least one reminder. To be found beside this program.
 */
#include <libgen.h>
#include <limits.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib_test.h"

/* The most requests, and the deaths that leave something held. */
#define REQUESTS	100000
#define DEATHS		3

/* The daemon writes these words before the number of an order. */
#define SAYS		"remind of order "

/* The number of requests that are on their way to a reminder at one time. */
#define LOAD		500

FIXTURE(fdstore)
{
	char path[PATH_MAX];
	struct sockaddr_un address;
	socklen_t address_size;
	int notify;		/* the daemon's messages come in here */
	int requests[2];	/* the second of them is the daemon's */
	int output[2];
	struct tw_wheel *store;
	bool ready;
	pid_t daemon;
	uint64_t sent;
	uint64_t reminders;
	uint64_t left;		/* how many were held by daemons that died */
	unsigned char reminded[REQUESTS];
};

static int high(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 20);

	close(fd);
	return moved;
}

/* The address is abstract, because some systems have no writable /run. */
static int listen_for_messages(FIXTURE_DATA(fdstore) *self)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	self->address.sun_family = AF_UNIX;
	self->address_size = offsetof(struct sockaddr_un, sun_path) + 1 +
			     sprintf(self->address.sun_path + 1, "lib-fdstore-%d",
				     getpid());
	if (bind(fd, (struct sockaddr *)&self->address, self->address_size))
		return -1;
	return high(fd);
}

FIXTURE_SETUP(fdstore)
{
	tw_wheel_close(open_wheel(&manual));
	memset(self, 0, sizeof(*self));
	ASSERT_LT(0, readlink("/proc/self/exe", self->path, PATH_MAX - 10));
	strcat(dirname(self->path), "/fdstore");
	if (access(self->path, X_OK))
		skip("no example fdstore beside this program");
	self->notify = listen_for_messages(self);
	ASSERT_LE(0, self->notify);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, self->requests));
	ASSERT_EQ(0, pipe2(self->output, O_NONBLOCK));
	for (int i = 0; i < 2; i++) {
		self->requests[i] = high(self->requests[i]);
		self->output[i] = high(self->output[i]);
	}
}

FIXTURE_TEARDOWN(fdstore)
{
	kill(self->daemon, SIGKILL);
	waitpid(self->daemon, NULL, 0);
	tw_wheel_close(self->store);
}

/* Does in the child what a service manager does between fork(2) and execve(2). */
static void become_daemon(FIXTURE_DATA(fdstore) *self)
{
	char text[128];

	dup2(self->requests[1], 3);
	if (self->store)
		dup2(tw_wheel_fd(self->store), 4);
	dup2(self->output[1], STDOUT_FILENO);
	fcntl(STDOUT_FILENO, F_SETFL, 0);
	sprintf(text, "%d", getpid());
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", self->store ? "2" : "1", 1);
	setenv("LISTEN_FDNAMES", self->store ? "reminder.socket:wheel" :
	       "reminder.socket", 1);
	sprintf(text, "@%s", self->address.sun_path + 1);
	setenv("NOTIFY_SOCKET", text, 1);
	execl(self->path, self->path, NULL);
	_exit(127);
}

/* Takes one message. Returns its length, or -1; an fd goes to *@fd. */
static ssize_t receive(int notify, char *text, size_t room, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { text, room - 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(notify, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *cmsg = length < 0 ? NULL : CMSG_FIRSTHDR(&msg);

	if (length < 0)
		return -1;
	text[length] = 0;
	*fd = -1;
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
	return length;
}

/* The daemon stores one wheel, once, by its name; each start is complete. */
static void take_messages(struct __test_metadata *_metadata,
			  FIXTURE_DATA(fdstore) *self)
{
	char text[256];
	int fd;

	while (receive(self->notify, text, sizeof(text), &fd) >= 0) {
		if (fd >= 0) {
			EXPECT_NE(NULL, strstr(text, "FDSTORE=1\n"));
			EXPECT_NE(NULL, strstr(text, "FDNAME=wheel\n"));
			EXPECT_NE(NULL, strstr(text, "FDPOLL=0"));
			EXPECT_EQ(NULL, self->store);
			self->store = tw_wheel_open_fd(high(fd));
			ASSERT_NE(NULL, self->store);
		} else {
			EXPECT_NE(NULL, strstr(text, "READY=1"));
			self->ready = true;
		}
	}
}

static void start(struct __test_metadata *_metadata, FIXTURE_DATA(fdstore) *self)
{
	struct pollfd message = { .fd = self->notify, .events = POLLIN };

	self->ready = false;
	self->daemon = fork();
	if (!self->daemon)
		become_daemon(self);
	while (!self->ready && poll(&message, 1, 30000) == 1)
		take_messages(_metadata, self);
	ASSERT_TRUE(self->ready);
	ASSERT_NE(NULL, self->store);
}

/* Lines are short, and a pipe carries short lines whole. */
static void take_reminders(struct __test_metadata *_metadata,
			   FIXTURE_DATA(fdstore) *self)
{
	static char text[65536 + 1];
	ssize_t length;

	while ((length = read(self->output[0], text, sizeof(text) - 1)) > 0) {
		text[length] = 0;
		for (char *line = strtok(text, "\n"); line;
		     line = strtok(NULL, "\n")) {
			uint64_t order;

			ASSERT_EQ(0, strncmp(line, SAYS, strlen(SAYS)));
			order = strtoull(line + strlen(SAYS), NULL, 10);
			ASSERT_GT(self->sent, order);
			self->reminded[order] = 1;
			self->reminders++;
		}
	}
}

/* Sends requests, as long as fewer than @load have not come to their end. */
static void send_requests(FIXTURE_DATA(fdstore) *self, uint64_t load)
{
	uint64_t acked = info_of(self->store).acked;

	while (self->sent < REQUESTS && self->sent - acked < load) {
		uint64_t request[2] = {
			self->sent, (1 + self->sent * 7919 % 100) * MS,
		};

		if (send(self->requests[0], request, sizeof(request),
			 MSG_DONTWAIT) < 0)
			break;
		self->sent++;
	}
}

/* Kills the daemon. Returns whether it has left anything held. */
static bool die(struct __test_metadata *_metadata, FIXTURE_DATA(fdstore) *self)
{
	uint64_t held;

	kill(self->daemon, SIGKILL);
	waitpid(self->daemon, NULL, 0);
	take_reminders(_metadata, self);
	held = info_of(self->store).held;
	self->left += held;
	return held;
}

/* The ledger is exact: nothing is lost, and nothing is done twice but what a dead daemon held. */
TEST_F_TIMEOUT(fdstore, ledger, 240)
{
	const struct timespec ms = { .tv_nsec = MS };
	unsigned int deaths = 0;
	struct timewheel_info info;

	start(_metadata, self);
	while (deaths < DEATHS && self->sent < REQUESTS) {
		send_requests(self, LOAD);
		take_reminders(_metadata, self);
		info = info_of(self->store);
		/* The tokens that the daemon before has left held have come again. */
		if (info.held && info.lapsed >= self->left) {
			deaths += die(_metadata, self);
			start(_metadata, self);
		}
		nanosleep(&ms, NULL);
	}
	ASSERT_EQ(DEATHS, deaths);
	do {
		take_reminders(_metadata, self);
		nanosleep(&ms, NULL);
		info = info_of(self->store);
	} while (info.acked < self->sent);
	die(_metadata, self);
	printf("# %lu requests, %lu reminders, %llu deliveries, %lu of them left\n",
	       self->sent, self->reminders, info.delivered, self->left);

	EXPECT_EQ(self->sent, info.registered);
	EXPECT_EQ(self->sent, info.acked);
	EXPECT_EQ(0, info.pending + info.taken + info.held);
	EXPECT_EQ(info.acked + info.lapsed, info.delivered);
	/* The file that held the tokens has been open all the time. */
	EXPECT_EQ(0, info.returned);
	EXPECT_LE(self->left, info.lapsed);
	EXPECT_LE(info.acked, self->reminders);
	EXPECT_GE(info.delivered, self->reminders);
	for (uint64_t order = 0; order < self->sent; order++)
		EXPECT_EQ(1, self->reminded[order]);
}

TEST_HARNESS_MAIN
