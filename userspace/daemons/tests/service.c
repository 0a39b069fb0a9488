// SPDX-License-Identifier: GPL-2.0-only
/*
 * twidled, as its users, its subscribers and its administrator see it. Each test has
 * its own service on its own wheel. The service tells the test that it is ready, as
 * it tells systemd. Standard output is a socket, as under systemd, unless the test is
 * about another kind.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <timewheel.h>

#include "kselftest_harness.h"

#define MS		1000000ULL
#define SEC		1000000000ULL
#define DEVICE		"/dev/timewheel"
#define PORT		7099
#define PATIENCE	20000		/* ms, for a slow machine */
#define LINES		8192

static __u64 now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SEC + time.tv_nsec;
}

static void sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

/* A stream is read by lines: the service's output, or a socket. */
struct stream {
	int fd;
	size_t start, end;
	char text[LINES];
};

/* Returns the next line without its newline, or NULL if the stream has ended or no line comes. */
static char *next_line_within(struct stream *stream, int ms)
{
	struct pollfd ready = { .fd = stream->fd, .events = POLLIN };

	for (;;) {
		char *line = stream->text + stream->start;
		char *end = memchr(line, '\n', stream->end - stream->start);
		ssize_t bytes;

		if (end) {
			*end = '\0';
			stream->start = end + 1 - stream->text;
			return line;
		}
		memmove(stream->text, line, stream->end - stream->start);
		stream->end -= stream->start;
		stream->start = 0;
		if (poll(&ready, 1, ms) <= 0)
			return NULL;
		bytes = read(stream->fd, stream->text + stream->end,
			     LINES - stream->end);
		if (bytes <= 0)
			return NULL;
		stream->end += bytes;
	}
}

static char *next_line(struct stream *stream)
{
	return next_line_within(stream, PATIENCE);
}

/* Tells whether no line comes for a while, though the stream does not end. */
static bool quiet(struct stream *stream, int ms)
{
	struct pollfd ready = { .fd = stream->fd, .events = POLLIN };

	return stream->start == stream->end && poll(&ready, 1, ms) == 0;
}

static bool ended(struct stream *stream)
{
	struct pollfd ready = { .fd = stream->fd, .events = POLLIN };

	return !next_line(stream) && poll(&ready, 1, 0) == 1;
}

#define EXPECT_LINE(text, stream) do {			\
	const char *line_ = next_line(stream);		\
	EXPECT_STREQ(text, line_ ? line_ : "no line");	\
} while (0)

#define ASSERT_LINE(text, stream) do {			\
	const char *line_ = next_line(stream);		\
	ASSERT_STREQ(text, line_ ? line_ : "no line");	\
} while (0)

/* Cuts the wall time off a line. Returns the rest, or what is wrong with the time. */
static char *cut_time(char *line)
{
	char *at = line ? strrchr(line, ' ') : NULL;
	struct tm tm = { };
	int ms, length = 0;
	time_t wall;

	if (!at)
		return "no line";
	if (sscanf(at, " %d-%d-%dT%d:%d:%d.%3dZ%n", &tm.tm_year, &tm.tm_mon,
		   &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms,
		   &length) != 7 || length != 25 || at[length])
		return "no time in RFC 3339 with milliseconds";
	tm.tm_year -= 1900;
	tm.tm_mon--;
	wall = timegm(&tm);
	if (labs(wall - time(NULL)) > 300)
		return "a time that is far from now";
	*at = '\0';
	return line;
}

#define EXPECT_TOLD(text, stream)	\
	EXPECT_STREQ(text, cut_time(next_line(stream)))
#define ASSERT_TOLD(text, stream)	\
	ASSERT_STREQ(text, cut_time(next_line(stream)))

/* Returns the deadline in ns of "offline USER DEADLINE TIME", or 0 if it is another line. */
static __u64 named_offline_at(char *line, const char *user)
{
	unsigned long long seconds, ns;
	char who[80];

	if (sscanf(cut_time(line), "offline %79s %llu.%9llu", who, &seconds,
		   &ns) != 3 || strcmp(who, user))
		return 0;
	return seconds * SEC + ns;
}

static __u64 offline_at(char *line, __u64 user)
{
	char name[24];

	sprintf(name, "%llu", user);
	return named_offline_at(line, name);
}

/*
 * Tells whether the line is wrong: it is not about one of the first @n users, or it is about a
 * user that was @told before.
 */
static bool is_wrong(const char *line, bool *told, unsigned int n)
{
	unsigned long long user;

	if (!line || sscanf(line, "offline %llu ", &user) != 1 || user >= n ||
	    told[user])
		return true;
	told[user] = true;
	return false;
}

#define NO_TIME		"is no time, such as 500ms, 30s, 10min or 48h, or too long a one"
#define NO_COMMAND	"is no command whose program is a path that begins with \"/\""
#define NO_ADDRESS	"is neither ADDRESS:PORT, in numbers, nor a path"

FIXTURE(service) {
	char dir[64], config[80], users[80], events[80], state[80];
	char wheel[64];
	pid_t pid;
	int notify;		/* the socket on which the service says that it is ready */
	int out_end;		/* the service's standard output */
	rlim_t files;		/* if not 0, the service runs as nobody with this limit of files */
	bool begun;		/* the service has run on this wheel */
	struct stream out, log;
};

static void write_config(FIXTURE_DATA(service) *self, const char *format, ...)
{
	FILE *file = fopen(self->config, "we");
	va_list args;

	fprintf(file, "wheel = %s\nlisten = %s\nevents = %s\nstate = %s\n"
		"tick = 50ms\n", self->wheel, self->users, self->events,
		self->state);
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	fclose(file);
}

static void unix_address(struct sockaddr_un *address, const char *path)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	strcpy(address->sun_path, path);
}

FIXTURE_SETUP(service)
{
	struct sockaddr_un address;
	int out[2];

	if (access(DEVICE, F_OK))
		SKIP(return, "no /dev/timewheel: is the module loaded?");
	strcpy(self->dir, "/tmp/twidled.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->dir));
	sprintf(self->config, "%s/config", self->dir);
	sprintf(self->users, "%s/users", self->dir);
	sprintf(self->events, "%s/events", self->dir);
	sprintf(self->state, "%s/state", self->dir);
	sprintf(self->wheel, "twidled-test-%d", getpid());

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out));
	self->out.fd = out[0];
	self->out_end = out[1];
	self->log.fd = -1;
	self->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unix_address(&address, self->dir);
	strcat(address.sun_path, "/notify");
	ASSERT_EQ(0, bind(self->notify, (struct sockaddr *)&address,
			  sizeof(address)));
	ASSERT_EQ(0, chmod(address.sun_path, 0777));
	ASSERT_EQ(0, setenv("NOTIFY_SOCKET", address.sun_path, 1));
	signal(SIGPIPE, SIG_IGN);
}

/* Takes all privileges from the service but the group of the device. */
static void drop_privilege(rlim_t files)
{
	struct rlimit limit = { files, files };
	struct stat device;

	if (stat(DEVICE, &device) || setrlimit(RLIMIT_NOFILE, &limit) ||
	    setgroups(0, NULL) || setgid(device.st_gid) || setuid(65534))
		_exit(126);
}

/* Starts the service without a wait. */
static void spawn(FIXTURE_DATA(service) *self, const char *option)
{
	int log[2];

	close(self->log.fd);
	if (pipe2(log, O_CLOEXEC))
		abort();
	self->log.fd = log[0];
	self->log.start = 0;
	self->log.end = 0;
	self->pid = fork();
	if (!self->pid) {
		if (self->files)
			drop_privilege(self->files);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(self->out_end, STDOUT_FILENO);
		dup2(log[1], STDERR_FILENO);
		execl("./twidled", "twidled", "--config", self->config, option,
		      NULL);
		_exit(127);
	}
	close(log[1]);
}

/* Tells whether the service sends systemd this message before long. */
static bool notified(FIXTURE_DATA(service) *self, const char *what)
{
	struct pollfd ready = { .fd = self->notify, .events = POLLIN };
	char text[256];

	while (poll(&ready, 1, PATIENCE) == 1) {
		ssize_t bytes = recv(self->notify, text, sizeof(text) - 1, 0);

		text[bytes < 0 ? 0 : bytes] = '\0';
		if (strstr(text, what))
			return true;
	}
	return false;
}

/* Starts the service. On a new wheel the service's first line tells this. */
static bool start(FIXTURE_DATA(service) *self)
{
	const char *line;

	spawn(self, NULL);
	if (notified(self, "READY=1")) {
		if (!self->begun && strcmp(cut_time(next_line(&self->out)), "anew"))
			return false;
		self->begun = true;
		return true;
	}
	while ((line = next_line_within(&self->log, 0)))
		fprintf(stderr, "# %s\n", line);
	return false;
}

/* Returns the service's exit status, or minus the signal that killed it. */
static int status_of(FIXTURE_DATA(service) *self)
{
	pid_t pid = self->pid;
	int status;

	self->pid = 0;
	if (waitpid(pid, &status, 0) != pid)
		return 256;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int end(FIXTURE_DATA(service) *self, int signal)
{
	kill(self->pid, signal);
	return status_of(self);
}

FIXTURE_TEARDOWN(service)
{
	if (self->pid > 0)
		end(self, SIGKILL);
	tw_wheel_destroy(self->wheel);
	for (char *c = self->dir + strlen(self->dir); *self->dir; *c = '\0') {
		char path[128];

		for (char **name = (char *[]){ "/config", "/users", "/events",
		     "/state", "/state.names", "/other", "/other.names", "/notify",
		     "/script", "/ran", NULL }; *name; name++) {
			snprintf(path, sizeof(path), "%s%s", self->dir, *name);
			unlink(path);
		}
		rmdir(self->dir);
		break;
	}
}

static int connect_to(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	unix_address(&address, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return fd;
}

static bool say(int fd, const char *text)
{
	return send(fd, text, strlen(text), MSG_NOSIGNAL) ==
	       (ssize_t)strlen(text);
}

/* Returns a user's connection, on which the user has said its name. */
static int log_in_as(FIXTURE_DATA(service) *self, const char *name)
{
	int fd = connect_to(self->users);
	char hello[112];

	sprintf(hello, "user %s\n", name);
	if (fd >= 0 && !say(fd, hello))
		return -1;
	return fd;
}

static int log_in(FIXTURE_DATA(service) *self, __u64 user)
{
	char name[24];

	sprintf(name, "%llu", user);
	return log_in_as(self, name);
}

/* Returns the connection of a user who comes by TCP. */
static int log_in_by_tcp(__u64 user)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char hello[40];

	sprintf(hello, "user %llu\n", user);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    !say(fd, hello))
		return -1;
	return fd;
}

/* Connects a subscriber. Returns false if another number of users is online. */
static bool subscribe(FIXTURE_DATA(service) *self, struct stream *stream,
		      unsigned int online)
{
	char listed[40], *line;

	stream->fd = connect_to(self->events);
	for (unsigned int i = 0; i < online; i++) {
		line = next_line(stream);
		if (!line || strncmp(line, "is-online ", 10))
			return false;
	}
	sprintf(listed, "listed %u", online);
	return !strcmp(cut_time(next_line(stream)), listed);
}

/* Returns the wheel's token of a user, or all zeros if the user is not online. */
static struct timewheel_token token_of(FIXTURE_DATA(service) *self, __u64 user)
{
	struct tw_wheel *wheel = tw_wheel_open_named(self->wheel, O_RDONLY);
	struct timewheel_token token = { };

	if (wheel && tw_wheel_get(wheel, user, 0, &token) < 0)
		memset(&token, 0, sizeof(token));
	tw_wheel_close(wheel);
	return token;
}

static __u64 deadline_of(FIXTURE_DATA(service) *self, __u64 user)
{
	return token_of(self, user).deadline;
}

/* Returns how often the wheel's tokens have been touched. */
static __u64 touches(FIXTURE_DATA(service) *self)
{
	struct tw_wheel *wheel = tw_wheel_open_named(self->wheel, O_RDONLY);
	struct timewheel_info info = { .size = sizeof(info) };

	if (!wheel || tw_wheel_info(wheel, &info) < 0)
		abort();
	tw_wheel_close(wheel);
	return info.touched;
}

/* Starts the service with these lines in its configuration. */
#define START(...) do {					\
	write_config(self, __VA_ARGS__);		\
	ASSERT_TRUE(start(self));			\
} while (0)

/* Lets the service read another configuration. */
#define RELOAD(...) do {				\
	write_config(self, __VA_ARGS__);		\
	ASSERT_EQ(0, kill(self->pid, SIGHUP));		\
	ASSERT_TRUE(notified(self, "READY=1"));		\
} while (0)

#define EXPECT_LOGGED(...) do {				\
	char logged_[256];				\
							\
	sprintf(logged_, __VA_ARGS__);			\
	EXPECT_LINE(logged_, &self->log);		\
} while (0)

/* A user logs in, and its line is told. The value is the user's connection. */
#define ONLINE(login, name) ({				\
	int login_ = login;				\
							\
	ASSERT_GE(login_, 0);				\
	ASSERT_TOLD("online " name, &self->out);	\
	login_;						\
})

/*
 * A user that falls silent is reported once, no earlier than its timeout after its last packet.
 * The user's connection is told, too, and is then closed.
 */
TEST_F(service, silence)
{
	struct stream user = { };
	__u64 before, deadline;

	START("timeout = 500ms\n");
	before = now();
	user.fd = log_in(self, 4711);
	ASSERT_GE(user.fd, 0);
	ASSERT_TOLD("online 4711", &self->out);
	deadline = offline_at(next_line(&self->out), 4711);
	EXPECT_GE(deadline, before + 500 * MS);
	EXPECT_GE(now(), deadline);
	EXPECT_LINE("offline", &user);
	EXPECT_TRUE(ended(&user));
	EXPECT_EQ(0, deadline_of(self, 4711));
	EXPECT_TRUE(quiet(&self->out, 1500));
}

/* Each packet, whatever it contains, gives its user the whole timeout again. */
TEST_F(service, packets)
{
	int talks, silent, i;
	__u64 last;

	START("timeout = 4s\n");
	silent = ONLINE(log_in(self, 1), "1");
	talks = ONLINE(log_in(self, 2), "2");
	for (i = 0; i < 60; i++) {
		ASSERT_TRUE(say(talks, i % 2 ? "x" : "user 1\n"));
		sleep_ms(100);
	}
	last = now();
	ASSERT_TRUE(say(talks, "\n"));
	EXPECT_NE(0, offline_at(next_line(&self->out), 1));
	EXPECT_GE(offline_at(next_line(&self->out), 2), last + 4 * SEC);
	close(silent);
}

/* No line tells of the end of a connection, or of a user who comes back in time. */
TEST_F(service, comes_back)
{
	int user;

	START("timeout = 3s\n");
	close(log_in(self, 5));
	ASSERT_TOLD("online 5", &self->out);
	user = log_in(self, 5);
	EXPECT_NE(0, offline_at(next_line(&self->out), 5));
	close(user);
	/* A user that comes back too late is online anew. */
	user = ONLINE(log_in(self, 5), "5");
}

/* A first line may come in pieces and end in CR LF. Any other first line is refused
 * with a message, and no other connection is disturbed.
 */
TEST_F(service, protocol)
{
	static const char * const wrong[] = {
		"\n", "user\n", "user\x20\n", "user \r\n", "user 1\x20\n",
		"user a b\n", "User 1\n", "user  1\n", "user 1\r2\n", "user 1\r\r\n",
		"user a\tb\n", "user \303\244\n", "user a\177\n", "GET / HTTP/1.1\r\n",
		"user 0123456789012345678901234567890123456789012345678901234567890123\n",
	};
	struct stream bad = { };
	int pieces;

	START("timeout = 60s\n");
	pieces = connect_to(self->users);
	for (const char *c = "user 12\r\n"; *c; c++) {
		ASSERT_EQ(1, send(pieces, c, 1, 0));
		sleep_ms(5);
	}
	EXPECT_TOLD("online 12", &self->out);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		bad.fd = connect_to(self->users);
		ASSERT_TRUE(say(bad.fd, wrong[i]));
		EXPECT_LINE("error expected: user NAME", &bad);
		EXPECT_TRUE(ended(&bad));
		close(bad.fd);
	}
	EXPECT_TRUE(quiet(&self->out, 100));
	EXPECT_NE(0, deadline_of(self, 12));
}

/* Names and numbers are shown as they were given, also after a kill. */
TEST_F(service, names)
{
	static const char * const names[] = {
		"alice", "sensor-17", "0012", "-1", "18446744073709551615",
		"9223372036854775808", "9223372036854775807", "$(reboot);`x`'\"\\%s",
		"012345678901234567890123456789012345678901234567890123456789012",
	};
	bool seen[ARRAY_SIZE(names)] = { };
	char expected[256];
	struct stream old = { };

	START("timeout = 3s\n");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		old.fd = log_in_as(self, names[i]);
		sprintf(expected, "online %s", names[i]);
		EXPECT_TOLD(expected, &self->out);
	}
	/* A name belongs to one user, whose newest connection counts. */
	EXPECT_GE(log_in_as(self, names[ARRAY_SIZE(names) - 1]), 0);
	EXPECT_LINE("error connected again", &old);
	EXPECT_NE(0, deadline_of(self, 9223372036854775807ULL));
	ASSERT_EQ(-SIGKILL, end(self, SIGKILL));
	ASSERT_TRUE(start(self));
	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		char *line = next_line(&self->out);
		size_t i = 0;

		while (i < ARRAY_SIZE(names) &&
		       (seen[i] || !named_offline_at(strcpy(expected, line ?: ""),
						     names[i])))
			i++;
		ASSERT_LT(i, ARRAY_SIZE(names));
		seen[i] = true;
	}
	EXPECT_TRUE(quiet(&self->out, 500));
}

/*
 * Many names come and go: their places are given to others, and no line has the name of another
 * user. The removal of the file of names does no harm to users who are online.
 */
TEST_F_TIMEOUT(service, many_names, 60)
{
	enum { N = 600, ROUNDS = 5 };
	struct stat file;
	char name[96];
	unsigned int i, user, wrong = 0;

	START("timeout = 1s\n");
	sprintf(name, "%s.names", self->state);
	for (i = 0; i < ROUNDS; i++) {
		unsigned int balance[N] = { };
		int users[N];

		for (user = 0; user < N; user++) {
			char who[40];

			sprintf(who, "user-%u-of-round-%u", user, i);
			users[user] = log_in_as(self, who);
			ASSERT_GE(users[user], 0);
		}
		for (unsigned int n = 0; n < 2 * N; n++) {
			char word[10];
			unsigned int round;

			if (sscanf(cut_time(next_line(&self->out)),
				   "%9s user-%u-of-round-%u", word, &user,
				   &round) != 3 || user >= N || round != i ||
			    balance[user]++ != !strcmp(word, "offline"))
				wrong++;
		}
		for (user = 0; user < N; user++)
			close(users[user]);
		ASSERT_EQ(0, stat(name, &file));
		EXPECT_LE(file.st_size, 2 * 65536);
	}
	EXPECT_EQ(0, wrong);

	RELOAD("timeout = 4s\n");
	ONLINE(log_in_as(self, "alice"), "alice");
	ASSERT_EQ(0, end(self, SIGTERM));
	ASSERT_EQ(0, unlink(name));
	ASSERT_TRUE(start(self));
	for (user = 0; user < N; user++) {
		sprintf(name, "late-%u", user);
		ASSERT_GE(log_in_as(self, name), 0);
		sprintf(name, "online late-%u", user);
		wrong += strcmp(cut_time(next_line(&self->out)), name) != 0;
	}
	EXPECT_EQ(0, wrong);
}

/* The service says that the wheel is new only if it has had no user. */
TEST_F(service, anew)
{
	START("timeout = 60s\n");
	ONLINE(log_in_as(self, "alice"), "alice");
	ASSERT_EQ(0, end(self, SIGTERM));
	ASSERT_TRUE(start(self));
	EXPECT_TRUE(quiet(&self->out, 300));
	ASSERT_EQ(0, end(self, SIGTERM));
	ASSERT_EQ(0, tw_wheel_destroy(self->wheel));
	/* start() expects the line about a new wheel. */
	self->begun = false;
	ASSERT_TRUE(start(self));
	ONLINE(log_in_as(self, "alice"), "alice");
}

/* A connection without a name is closed after the timeout. */
TEST_F(service, no_name)
{
	struct stream mute = { };

	START("timeout = 300ms\n");
	mute.fd = connect_to(self->users);
	ASSERT_TRUE(say(mute.fd, "user 1"));
	EXPECT_LINE("error expected: user NAME", &mute);
	EXPECT_TRUE(ended(&mute));
	EXPECT_TRUE(quiet(&self->out, 100));
}

/* A user's newest connection counts. The older connection is told, and closed. */
TEST_F(service, connects_twice)
{
	struct stream old = { };
	int user;

	START("timeout = 60s\n");
	old.fd = ONLINE(log_in(self, 7), "7");
	user = log_in(self, 7);
	EXPECT_LINE("error connected again", &old);
	EXPECT_TRUE(ended(&old));
	ASSERT_TRUE(say(user, "packet"));
	EXPECT_TRUE(quiet(&self->out, 300));
	EXPECT_NE(0, deadline_of(self, 7));
}

/* Users come by TCP, on several addresses at once. */
TEST_F(service, tcp)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int user = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	START("timeout = 500ms\nlisten = 127.0.0.1:%d\n", PORT);
	ASSERT_EQ(0, connect(user, (struct sockaddr *)&address, sizeof(address)));
	ASSERT_TRUE(say(user, "user 8\nand more\n"));
	EXPECT_TOLD("online 8", &self->out);
	EXPECT_NE(0, offline_at(next_line(&self->out), 8));
}

/* A user beyond max-users is refused with a message. The other users stay. */
TEST_F(service, full)
{
	struct stream third = { };

	START("timeout = 60s\nmax-users = 2\n");
	ONLINE(log_in(self, 1), "1");
	ONLINE(log_in(self, 2), "2");
	third.fd = log_in(self, 3);
	EXPECT_LINE("error no room", &third);
	EXPECT_TRUE(ended(&third));
	EXPECT_LINE("twidled: user 3 is refused: max-users are online",
		    &self->log);
	EXPECT_NE(0, deadline_of(self, 1));
}

/*
 * A packet that was sent in time counts, also if the service reads it late because more users
 * sent packets than the service reads in one turn.
 */
TEST_F(service, late_service)
{
	enum { N = 1500 };
	int users[N];
	bool told[N] = { };
	unsigned int wrong = 0, i;

	START("timeout = 5s\n");
	for (i = 0; i < N; i++) {
		users[i] = log_in(self, i);
		ASSERT_GE(users[i], 0);
	}
	for (i = 0; i < N; i++)
		ASSERT_NE(NULL, next_line(&self->out));
	ASSERT_EQ(0, kill(self->pid, SIGSTOP));
	for (i = 0; i < N; i++)
		ASSERT_TRUE(say(users[i], "in time"));
	while (now() < deadline_of(self, N - 1))
		sleep_ms(100);
	ASSERT_EQ(0, kill(self->pid, SIGCONT));
	EXPECT_TRUE(quiet(&self->out, 1000));
	for (i = 0; i < N; i++)
		wrong += is_wrong(next_line(&self->out), told, N);
	EXPECT_EQ(0, wrong);
}

/*
 * A kill changes no deadline. A user that comes back in time is not reported, and a user that
 * fell silent meanwhile is reported later, once.
 */
TEST_F(service, killed)
{
	__u64 stays, silent, first, second, last;
	int user;

	START("timeout = 4s\n");
	ONLINE(log_in(self, 1), "1");
	sleep_ms(1500);
	user = ONLINE(log_in(self, 2), "2");
	silent = deadline_of(self, 1);
	stays = deadline_of(self, 2);
	ASSERT_EQ(-SIGKILL, end(self, SIGKILL));
	close(user);
	while (now() < silent)
		sleep_ms(10);
	ASSERT_TRUE(start(self));
	last = now();
	EXPECT_EQ(stays, deadline_of(self, 2));
	user = log_in(self, 2);
	first = offline_at(next_line(&self->out), 1);
	EXPECT_EQ(silent, first);
	second = offline_at(next_line(&self->out), 2);
	/* On this slow machine the user came too late, and was silent. */
	if (second == stays)
		SKIP(return, "too slow");
	EXPECT_GE(second, last + 4 * SEC);
	EXPECT_TRUE(quiet(&self->out, 500));
}

/* Registers the tokens of many users directly, all due at once. */
static bool register_many(FIXTURE_DATA(service) *self, unsigned int n)
{
	struct tw_wheel *wheel = tw_wheel_open_named(self->wheel, O_RDWR);
	struct tw_batch *batch = tw_batch_new(n);
	int failed = -1;

	for (unsigned int i = 0; wheel && batch && i < n; i++)
		tw_op_register(tw_batch_next(batch), i, 1, 0, 0);
	if (wheel && batch)
		failed = tw_batch_run(batch, wheel);
	tw_batch_free(batch);
	tw_wheel_close(wheel);
	return !failed;
}

/*
 * The service is killed again and again while it reports many users. Each user is reported
 * exactly once. A kill may cut a line, and the next service goes on in the middle of it.
 */
TEST_F_TIMEOUT(service, killed_while_telling, 90)
{
	enum { N = 20000 };
	static bool told[N];
	unsigned int lines = 0, wrong = 0, kills = 0;

	START("timeout = 60s\n");
	ASSERT_EQ(0, kill(self->pid, SIGSTOP));
	ASSERT_TRUE(register_many(self, N));
	ASSERT_EQ(0, kill(self->pid, SIGCONT));
	while (lines < N) {
		/* Each life of the service prints some more lines, a different number each time. */
		unsigned int until = lines + 1 + kills * 251 % 1500;
		const char *line = "";

		while (lines < N && lines < until && line) {
			line = next_line(&self->out);
			if (!line)
				break;
			lines++;
			wrong += is_wrong(line, told, N);
		}
		ASSERT_NE(NULL, line);
		ASSERT_EQ(-SIGKILL, end(self, SIGKILL));
		kills++;
		if (lines < N)
			ASSERT_TRUE(start(self));
	}
	TH_LOG("%u kills", kills);
	EXPECT_EQ(0, wrong);
	ASSERT_TRUE(start(self));
	EXPECT_TRUE(quiet(&self->out, 500));
}

/*
 * No program reads standard output. Packets are still read, and more users are silent than the
 * outbox has room for. All users are reported in the end.
 */
TEST_F_TIMEOUT(service, stdout_stuck, 90)
{
	enum { N = 40000 };
	static bool told[N];
	unsigned int i, wrong = 0;
	struct stream talks = { };

	START("timeout = 5s\n");
	talks.fd = ONLINE(log_in(self, N + 1), "40001");
	ASSERT_TRUE(register_many(self, N));
	for (i = 0; i < 60; i++) {
		ASSERT_TRUE(say(talks.fd, "alive"));
		sleep_ms(100);
	}
	EXPECT_TRUE(quiet(&talks, 0));
	EXPECT_GT(deadline_of(self, N + 1), now());
	for (i = 0; i < N; i++)
		wrong += is_wrong(next_line(&self->out), told, N);
	EXPECT_EQ(0, wrong);
}

/*
 * Standard output may also be a pipe or a file. The service ends if the reader of the pipe has
 * gone, and its lines are printed later.
 */
TEST_F(service, pipe_and_file)
{
	int ends[2], file;
	char path[80], text[64] = "";

	write_config(self, "timeout = 60s\n");
	ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
	close(self->out.fd);
	close(self->out_end);
	self->out.fd = ends[0];
	self->out_end = ends[1];
	ASSERT_TRUE(start(self));
	ONLINE(log_in(self, 1), "1");
	close(ends[0]);
	log_in(self, 2);
	EXPECT_EQ(1, status_of(self));
	EXPECT_LINE("twidled: standard output: Broken pipe", &self->log);

	close(ends[1]);
	snprintf(path, sizeof(path), "%s/notify.out", self->dir);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	unlink(path);
	self->out.fd = -1;
	self->out_end = file;
	ASSERT_TRUE(start(self));
	EXPECT_LINE("twidled: 1 lines were left to be told", &self->log);
	EXPECT_EQ(0, end(self, SIGTERM));
	EXPECT_EQ(34, pread(file, text, sizeof(text) - 1, 0));
	EXPECT_EQ('\n', text[33]);
	text[33] = '\0';
	EXPECT_STREQ("online 2", cut_time(text));
}

/* Every subscriber is told every line, in the same order and with the same time. */
TEST_F(service, subscribers)
{
	struct stream subscribers[3] = { };
	char *line, offline[128];

	START("timeout = 500ms\n");
	for (int i = 0; i < 3; i++)
		ASSERT_TRUE(subscribe(self, &subscribers[i], 0));
	close(subscribers[2].fd);
	ONLINE(log_in(self, 3), "3");
	line = next_line(&self->out);
	ASSERT_NE(NULL, line);
	strcpy(offline, line);
	ASSERT_NE(0, offline_at(line, 3));
	for (int i = 0; i < 2; i++) {
		EXPECT_TOLD("online 3", &subscribers[i]);
		EXPECT_LINE(offline, &subscribers[i]);
	}
}

/* A new subscriber is told who is online, users without a connection included. */
TEST_F(service, snapshot)
{
	struct stream subscriber = { .fd = -1 };
	bool bob = false, number = false;

	START("timeout = 60s\n");
	close(log_in_as(self, "bob"));
	ASSERT_TOLD("online bob", &self->out);
	ONLINE(log_in(self, 4711), "4711");
	subscriber.fd = connect_to(self->events);
	for (int i = 0; i < 2; i++) {
		const char *line = next_line(&subscriber) ?: "no line";

		bob |= !strcmp(line, "is-online bob");
		number |= !strcmp(line, "is-online 4711");
	}
	EXPECT_TRUE(bob && number);
	EXPECT_TOLD("listed 2", &subscriber);
	log_in_as(self, "carol");
	EXPECT_TOLD("online carol", &subscriber);
	EXPECT_TRUE(quiet(&subscriber, 200));
}

/*
 * Notes which users are online by a subscriber's line. Returns false if the line contradicts
 * earlier lines.
 */
static bool follow(char *line, bool *online, unsigned int n)
{
	unsigned int user;

	if (!line)
		return false;
	if (sscanf(line, "is-online %u", &user) == 1 ||
	    sscanf(line, "online %u ", &user) == 1) {
		if (user >= n || online[user])
			return false;
		online[user] = true;
		return true;
	}
	if (sscanf(line, "offline %u ", &user) == 1) {
		if (user >= n || !online[user])
			return false;
		online[user] = false;
		return true;
	}
	return !strncmp(line, "listed ", 7);
}

/*
 * Subscribers come while users come and go. Each list and the lines behind it fit together, so
 * that in the end no user is online.
 */
TEST_F_TIMEOUT(service, snapshot_in_motion, 60)
{
	enum { N = 400, SUBSCRIBERS = 40 };
	static struct stream streams[SUBSCRIBERS];
	static bool online[SUBSCRIBERS][N];
	unsigned int i, user, wrong = 0, left = 0;

	START("timeout = 400ms\n");
	for (i = 0; i < SUBSCRIBERS; i++) {
		for (user = i * N / SUBSCRIBERS; user < (i + 1) * N / SUBSCRIBERS;
		     user++)
			ASSERT_GE(log_in(self, user), 0);
		streams[i].fd = connect_to(self->events);
		ASSERT_GE(streams[i].fd, 0);
		sleep_ms(30);
	}
	for (i = 0; i < 2 * N; i++)
		ASSERT_NE(NULL, next_line(&self->out));
	for (i = 0; i < SUBSCRIBERS; i++) {
		char *line;

		while ((line = next_line_within(&streams[i], 50)))
			wrong += !follow(line, online[i], N);
		for (user = 0; user < N; user++)
			left += online[i][user];
	}
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(0, left);
}

/* At most 64 subscribers are accepted. The next subscriber is refused and does not wait. */
TEST_F(service, many_subscribers)
{
	struct stream subscriber = { };
	int i;

	START("timeout = 60s\n");
	for (i = 0; i < 65; i++) {
		subscriber.fd = connect_to(self->events);
		ASSERT_GE(subscriber.fd, 0);
	}
	EXPECT_LINE("twidled: more than 64 subscribers: one is refused",
		    &self->log);
	EXPECT_TRUE(ended(&subscriber));
	ONLINE(log_in(self, 1), "1");
}

/*
 * A subscriber that does not read is dropped with a message when its buffer is full. The other
 * subscribers and standard output miss nothing.
 */
TEST_F_TIMEOUT(service, slow_subscriber, 60)
{
	enum { N = 40000 };
	struct stream slow = { }, quick = { };
	static char lines[N][80];
	static bool told[N];
	unsigned int wrong = 0, differ = 0, i;
	const char *line;

	/* On a slow machine all lines may still wait for the quick subscriber. */
	START("timeout = 60s\nbuffer = 4096\n");
	ASSERT_TRUE(subscribe(self, &slow, 0));
	RELOAD("timeout = 60s\nbuffer = 4194304\n");
	ASSERT_TRUE(subscribe(self, &quick, 0));
	ASSERT_TRUE(register_many(self, N));
	for (i = 0; i < N; i++) {
		line = next_line(&self->out);
		wrong += is_wrong(line, told, N);
		snprintf(lines[i], sizeof(lines[i]), "%s", line ?: "");
		line = next_line(&quick);
		differ += !line || strcmp(line, lines[i]);
	}
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(0, differ);
	line = next_line(&self->log);
	ASSERT_NE(NULL, line);
	EXPECT_NE(NULL, strstr(line, "subscriber 1 is more than"));
	EXPECT_NE(NULL, strstr(line, "dropped"));
	/*
	 * The slow subscriber gets the first lines without a gap, and then the end of the stream.
	 */
	for (i = 0; i < N && (line = next_line(&slow)); i++)
		differ += !!strcmp(line, lines[i]);
	EXPECT_EQ(0, differ);
	EXPECT_LT(i, N);
}

static void write_script(FIXTURE_DATA(service) *self, const char *text)
{
	char path[80];
	FILE *file;

	sprintf(path, "%s/script", self->dir);
	file = fopen(path, "we");
	fprintf(file, "#!/bin/sh\nran=%s/ran\n%s\n", self->dir, text);
	fchmod(fileno(file), 0755);
	fclose(file);
}

/* Returns how many lines of the file that the script writes begin with @line. */
static unsigned int called(FIXTURE_DATA(service) *self, const char *line)
{
	unsigned int count = 0;
	char path[80], text[256];
	FILE *file;

	sprintf(path, "%s/ran", self->dir);
	file = fopen(path, "re");
	while (file && fgets(text, sizeof(text), file))
		count += !strncmp(text, line, strlen(line));
	if (file)
		fclose(file);
	return count;
}

static bool soon_called(FIXTURE_DATA(service) *self, const char *line,
			unsigned int count)
{
	for (int ms = 0; called(self, line) < count && ms < PATIENCE; ms += 50)
		sleep_ms(50);
	return called(self, line) == count;
}

/* Returns how many children the process has, zombies included. */
static unsigned int children_of(pid_t pid)
{
	unsigned int count = 0;
	char path[64];
	FILE *file;
	int child;

	sprintf(path, "/proc/%d/task/%d/children", pid, pid);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1)
		count++;
	if (file)
		fclose(file);
	return count;
}

/*
 * The command runs once for each user who goes offline, and gets the user in its environment,
 * unchanged. The command has no input, and its output is not among the lines.
 */
TEST_F(service, exec)
{
	char *line;

	write_script(self, "cat\n"
		     "echo output\n"
		     "echo \"$TWIDLED_USER|$TWIDLED_DEADLINE|$TWIDLED_TIME|$#|$1|$2\" >>$ran");
	START("timeout = 300ms\nexec = %s/script a  $b\n", self->dir);
	log_in_as(self, "$(reboot);`x`");
	EXPECT_TOLD("online $(reboot);`x`", &self->out);
	line = next_line(&self->out);
	ASSERT_NE(NULL, line);
	line = strchr(line, ' ') + 1;
	for (char *c = line; *c; c++)
		if (*c == ' ')
			*c = '|';
	strcat(line, "|2|a|$b\n");
	EXPECT_TRUE(soon_called(self, line, 1));
	EXPECT_LINE("output", &self->log);
	sleep_ms(300);
	EXPECT_EQ(1, called(self, ""));
	EXPECT_EQ(0, children_of(self->pid));
	EXPECT_TRUE(quiet(&self->out, 300));
	/* A failure is reported. A reload can set another command, or no command. */
	write_script(self, "exit 3");
	log_in_as(self, "bob");
	EXPECT_LINE("twidled: the command for the user bob has exit status 3; 1 have failed",
		    &self->log);
	RELOAD("timeout = 300ms\n");
	write_script(self, "echo no >>$ran");
	for (int i = 0; i < 2; i++)
		EXPECT_NE(NULL, next_line(&self->out));
	log_in_as(self, "carol");
	for (int i = 0; i < 2; i++)
		EXPECT_NE(NULL, next_line(&self->out));
	sleep_ms(300);
	EXPECT_EQ(0, called(self, "no"));
}

/*
 * Commands that hang delay other commands until they are ended, but no line. Commands that have
 * no room in the ring of lines are left out, with a message.
 */
TEST_F_TIMEOUT(service, exec_hangs, 90)
{
	enum { N = 20000 };
	static bool told[N];
	unsigned int i, wrong = 0;
	const char *line;

	write_script(self, "echo began >>$ran; trap '' TERM\n"
		     "while :; do sleep 1; done");
	START("timeout = 60s\nexec = %s/script\nexec-timeout = 1s\n", self->dir);
	ASSERT_TRUE(register_many(self, N));
	for (i = 0; i < N; i++)
		wrong += is_wrong(next_line(&self->out), told, N);
	EXPECT_EQ(0, wrong);
	line = next_line(&self->log);
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "twidled: commands are slow: those of ", 37));
	/*
	 * 16 commands run at a time. A command gets SIGTERM after one second, and SIGKILL after
	 * five more.
	 */
	EXPECT_LE(children_of(self->pid), 16);
	line = next_line(&self->log);
	ASSERT_NE(NULL, line);
	EXPECT_NE(NULL, strstr(line, " was ended by signal 9 after exec-timeout; "));
	EXPECT_TRUE(soon_called(self, "began", 32));
	EXPECT_LE(children_of(self->pid), 16);
}

/* The next service starts the commands that were not started when the service was killed. */
TEST_F(service, exec_killed)
{
	enum { N = 40 };
	char text[80];
	unsigned int user;

	write_script(self, "echo \"$TWIDLED_USER\" >>$ran\n"
		     "[ -e $ran.go ] || exec sleep 100");
	START("timeout = 60s\nexec = %s/script\n", self->dir);
	ASSERT_TRUE(register_many(self, N));
	for (user = 0; user < N; user++)
		ASSERT_NE(NULL, next_line(&self->out));
	EXPECT_TRUE(soon_called(self, "", 16));
	ASSERT_EQ(-SIGKILL, end(self, SIGKILL));
	sprintf(text, "%s/ran.go", self->dir);
	close(open(text, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ASSERT_TRUE(start(self));
	EXPECT_TRUE(soon_called(self, "", N));
	for (user = 0; user < N; user++) {
		sprintf(text, "%u\n", user);
		EXPECT_EQ(1, called(self, text));
	}
	sprintf(text, "%s/ran.go", self->dir);
	unlink(text);
}

#define WATCH_CONFIG	"listen = 127.0.0.1:%d\n"

/* Sends packets for a while. Returns for how many packets the wheel was touched. */
static __u64 touches_while(FIXTURE_DATA(service) *self, int user, int packets)
{
	__u64 before;

	/* The login may still be under way. */
	sleep_ms(200);
	before = touches(self);
	while (packets--) {
		if (!say(user, "x"))
			return -1;
		sleep_ms(100);
	}
	return touches(self) - before;
}

/*
 * A user whose connection is asked lives by its packets, though they do not touch the wheel.
 * Packets of users by unix sockets do touch it.
 */
TEST_F(service, watched)
{
	int talks, by_unix, silent;
	bool told[2] = { };
	char *line;
	int saved;

	START("timeout = 3s\n" WATCH_CONFIG, PORT);
	silent = ONLINE(log_in_by_tcp(0), "0");
	ONLINE(log_in(self, 1), "1");
	talks = ONLINE(log_in_by_tcp(2), "2");
	by_unix = ONLINE(log_in(self, 3), "3");
	EXPECT_EQ(0, touches_while(self, talks, 12));
	EXPECT_NE(0, touches_while(self, by_unix, 12));
	EXPECT_EQ(0, touches_while(self, talks, 12));
	EXPECT_NE(0, touches_while(self, by_unix, 1));
	for (int i = 0; i < 2; i++)
		EXPECT_FALSE(is_wrong(next_line(&self->out), told, 2));
	EXPECT_NE(0, deadline_of(self, 3));
	ASSERT_EQ(0, end(self, SIGTERM));
	line = next_line(&self->log) ?: "no line";
	EXPECT_NE(NULL, strstr(line, " packets needed no touch"));
	/* Two packets that arrive together count as one. */
	saved = atoi(line + strcspn(line, "0123456789"));
	EXPECT_GE(saved, 1);
	EXPECT_LE(saved, 24);
	close(silent);
}

/* With watch = no each packet touches the wheel. */
TEST_F(service, not_watched)
{
	int talks, silent;
	__u64 last;

	START("timeout = 2s\nwatch = no\n" WATCH_CONFIG, PORT);
	silent = ONLINE(log_in_by_tcp(1), "1");
	talks = ONLINE(log_in_by_tcp(2), "2");
	EXPECT_NE(0, touches_while(self, talks, 25));
	EXPECT_NE(0, offline_at(next_line(&self->out), 1));
	last = now();
	ASSERT_TRUE(say(talks, "x"));
	EXPECT_GE(offline_at(next_line(&self->out), 2), last + 2 * SEC);
	ASSERT_EQ(0, end(self, SIGTERM));
	EXPECT_EQ(NULL, next_line_within(&self->log, 0));
	close(silent);
}

/*
 * The end of a connection that is asked neither shortens nor prolongs the timeout after the last
 * packet.
 */
TEST_F(service, watched_goes)
{
	__u64 last, closed, deadline;
	int user;

	START("timeout = 3s\n" WATCH_CONFIG, PORT);
	user = ONLINE(log_in_by_tcp(5), "5");
	sleep_ms(1500);
	last = now();
	ASSERT_TRUE(say(user, "x"));
	sleep_ms(1000);
	closed = now();
	close(user);
	deadline = offline_at(next_line(&self->out), 5);
	EXPECT_GE(deadline, last + 3 * SEC);
	EXPECT_LT(deadline, closed + 3 * SEC);
	EXPECT_TRUE(quiet(&self->out, 500));
}

/*
 * A user that comes back stays online: beside its old connection, after it, and after a
 * connection by a unix socket. No line tells of this.
 */
TEST_F(service, watched_comes_back)
{
	struct stream old = { };
	int user;

	START("timeout = 2s\n" WATCH_CONFIG, PORT);
	old.fd = ONLINE(log_in_by_tcp(7), "7");
	user = log_in_by_tcp(7);
	EXPECT_LINE("error connected again", &old);
	EXPECT_TRUE(ended(&old));
	EXPECT_EQ(0, touches_while(self, user, 25));
	close(user);
	sleep_ms(200);
	old.fd = log_in_by_tcp(7);
	EXPECT_EQ(0, touches_while(self, old.fd, 3));
	user = log_in(self, 7);
	EXPECT_LINE("error connected again", &old);
	EXPECT_NE(0, touches_while(self, user, 25));
	EXPECT_TRUE(quiet(&self->out, 0));
	old.fd = user;
	user = log_in_by_tcp(7);
	EXPECT_LINE("error connected again", &old);
	EXPECT_EQ(0, touches_while(self, user, 25));
	EXPECT_TRUE(quiet(&self->out, 0));
	EXPECT_NE(0, offline_at(next_line(&self->out), 7));
	EXPECT_TRUE(quiet(&self->out, 500));
}

static bool has_device(FIXTURE_DATA(service) *self)
{
	char path[128];

	snprintf(path, sizeof(path), "/dev/timewheels/%s", self->wheel);
	return !access(path, F_OK);
}

/*
 * A service whose wheel is in its process removes the kernel's wheel that an earlier service has
 * left, but no wheel that another service has.
 */
TEST_F(service, wheel_of_the_process)
{
	pid_t first;
	int user;

	START("timeout = 1s\n");
	first = self->pid;
	for (char **name = (char *[]){ self->users, self->events, self->state, NULL }; *name;
	     name++)
		sprintf(*name, "%s/%s", self->dir,
			*name == self->users ? "script" :
			*name == self->events ? "ran" : "other");
	write_config(self, "timeout = 1s\nwheels = process\n");
	self->begun = false;
	ASSERT_TRUE(start(self));
	EXPECT_TRUE(has_device(self));
	ASSERT_EQ(0, end(self, SIGTERM));

	self->pid = first;
	ASSERT_EQ(0, end(self, SIGTERM));
	EXPECT_TRUE(has_device(self));
	self->begun = false;
	ASSERT_TRUE(start(self));
	EXPECT_FALSE(has_device(self));
	user = ONLINE(log_in(self, 5), "5");
	EXPECT_NE(0, offline_at(next_line(&self->out), 5));
	close(user);
}

/* With close = no the connection stays, and its next packet brings the user back. */
TEST_F(service, stays_connected)
{
	for (int by_tcp = 0; by_tcp < 2; by_tcp++) {
		int user;

		START("timeout = 1500ms\nclose = no\n" WATCH_CONFIG, PORT);
		user = by_tcp ? log_in_by_tcp(6) : log_in(self, 6);
		for (int i = 0; i < 2; i++) {
			EXPECT_TOLD("online 6", &self->out);
			EXPECT_EQ(!by_tcp, touches_while(self, user, 20) != 0);
			EXPECT_NE(0, offline_at(next_line(&self->out), 6));
			ASSERT_TRUE(say(user, "here"));
		}
		EXPECT_TOLD("online 6", &self->out);
		close(user);
		EXPECT_NE(0, offline_at(next_line(&self->out), 6));
		ASSERT_EQ(0, end(self, SIGTERM));
	}
}

/* After a stop each user has its deadline. After a kill no user has an earlier one. */
TEST_F(service, watched_service_ends)
{
	static const int signals[] = { SIGTERM, SIGKILL };

	write_config(self, "timeout = 3s\n" WATCH_CONFIG, PORT);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		__u64 last, ended, deadline;
		int user;

		ASSERT_TRUE(start(self));
		user = log_in_by_tcp(i);
		ASSERT_NE(NULL, next_line(&self->out));
		sleep_ms(1700);
		last = now();
		ASSERT_TRUE(say(user, "x"));
		sleep_ms(600);
		ended = now();
		ASSERT_EQ(signals[i] == SIGTERM ? 0 : -SIGKILL,
			  end(self, signals[i]));
		deadline = deadline_of(self, i);
		if (signals[i] == SIGTERM)
			EXPECT_GE(deadline, last + 3 * SEC);
		ASSERT_TRUE(start(self));
		if (signals[i] == SIGTERM)
			EXPECT_EQ(deadline, deadline_of(self, i));
		deadline = offline_at(next_line(&self->out), i);
		EXPECT_GE(deadline, last + 3 * SEC);
		if (signals[i] == SIGTERM)
			EXPECT_LT(deadline, ended + 3 * SEC);
		EXPECT_TRUE(quiet(&self->out, 300));
		ASSERT_EQ(0, end(self, SIGTERM));
		close(user);
	}
}

/*
 * The service is killed while many connections end, and their tokens are replaced. No user is
 * lost, and no user is reported twice.
 */
TEST_F_TIMEOUT(service, watched_killed, 90)
{
	enum { N = 100, ROUNDS = 5 };
	bool online[N] = { };
	unsigned int wrong = 0, left = N, i;
	int users[N];

	write_config(self, "timeout = 3s\n" WATCH_CONFIG, PORT);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		ASSERT_TRUE(start(self));
		for (i = 0; i < N; i++) {
			users[i] = log_in_by_tcp(i);
			ASSERT_GE(users[i], 0);
		}
		for (i = 0; i < N; i++)
			while (!online[i])
				ASSERT_TRUE(follow(next_line(&self->out), online, N));
		for (i = 0; i < N; i++)
			close(users[i]);
		usleep(round * 3000);
		ASSERT_EQ(-SIGKILL, end(self, SIGKILL));
	}
	ASSERT_TRUE(start(self));
	while (left) {
		wrong += !follow(next_line(&self->out), online, N);
		ASSERT_EQ(0, wrong);
		for (i = 0, left = 0; i < N; i++)
			left += online[i];
	}
	EXPECT_TRUE(quiet(&self->out, 500));
}

/* A new timeout also holds for users by TCP, from the next packet on. */
TEST_F(service, watched_reload)
{
	__u64 before;
	int user;

	START("timeout = 1h\n" WATCH_CONFIG, PORT);
	user = ONLINE(log_in_by_tcp(1), "1");
	RELOAD("timeout = 1s\n" WATCH_CONFIG, PORT);
	EXPECT_TRUE(quiet(&self->out, 1500));
	before = now();
	ASSERT_TRUE(say(user, "packet"));
	sleep_ms(200);
	EXPECT_EQ(0, touches_while(self, user, 15));
	EXPECT_GE(offline_at(next_line(&self->out), 1), before + 2 * SEC);
}

/*
 * A service that asks connections goes on with the wheel of a service that does not, and the
 * other way round.
 */
TEST_F(service, watched_upgrade)
{
	int user;

	START("timeout = 60s\nwatch = no\n" WATCH_CONFIG, PORT);
	ONLINE(log_in_by_tcp(9), "9");
	ASSERT_EQ(0, end(self, SIGTERM));
	START("timeout = 60s\nwatch = yes\n" WATCH_CONFIG, PORT);
	user = ONLINE(log_in_by_tcp(1), "1");
	EXPECT_EQ(0, touches_while(self, user, 3));
	ASSERT_EQ(-SIGKILL, end(self, SIGKILL));
	/* The token of the dead connection still gets another timeout. */
	START("timeout = 1s\nwatch = no\n" WATCH_CONFIG, PORT);
	user = log_in_by_tcp(1);
	EXPECT_NE(0, offline_at(next_line(&self->out), 1));
}

TEST_F(service, version)
{
	write_config(self, "");
	spawn(self, "--version");
	EXPECT_EQ(0, status_of(self));
	EXPECT_LINE("twidled " VERSION, &self->out);
}

/*
 * After SIGHUP a new timeout holds for a user from its next packet on. A setting that cannot
 * change gets a message and stays. A file with an error changes nothing.
 */
TEST_F(service, reload)
{
	__u64 before, long_one;
	int user;

	START("timeout = 1h\n");
	user = ONLINE(log_in(self, 1), "1");
	long_one = deadline_of(self, 1);
	ASSERT_GT(long_one, now() + 3000 * SEC);

	RELOAD("timeout = 1s\nfoo = 1\n");
	EXPECT_LOGGED("%s:7: unknown key \"foo\"", self->config);
	EXPECT_LOGGED("twidled: %s has an error: nothing is changed", self->config);

	RELOAD("timeout = 1s\nmax-users = 5\n");
	EXPECT_LOGGED("twidled: %s: another max-users needs a restart", self->config);
	EXPECT_TRUE(quiet(&self->out, 1500));
	EXPECT_EQ(long_one, deadline_of(self, 1));
	before = now();
	ASSERT_TRUE(say(user, "packet"));
	EXPECT_GE(offline_at(next_line(&self->out), 1), before + SEC);
}

/* A service with another timeout than the last service gives it to all users who come back. */
TEST_F(service, other_timeout)
{
	START("timeout = 1h\n");
	ONLINE(log_in(self, 1), "1");
	EXPECT_EQ(0, end(self, SIGTERM));
	START("timeout = 1s\n");
	log_in(self, 1);
	EXPECT_NE(0, offline_at(next_line(&self->out), 1));
}

/* After SIGTERM systemd is told, the status is 0, and the users' tokens stay. */
TEST_F(service, stops)
{
	START("timeout = 60s\n");
	ONLINE(log_in(self, 1), "1");
	ASSERT_EQ(0, kill(self->pid, SIGTERM));
	EXPECT_TRUE(notified(self, "STOPPING=1"));
	EXPECT_EQ(0, status_of(self));
	EXPECT_NE(0, deadline_of(self, 1));
	EXPECT_EQ(NULL, next_line_within(&self->log, 0));
}

/* When the wheel is destroyed, there is a message, and the status is not 0. */
TEST_F(service, destroyed)
{
	char expected[128];

	write_config(self, "");
	sprintf(expected, "twidled: the wheel \"%s\" has been destroyed",
		self->wheel);
	ASSERT_TRUE(start(self));
	ASSERT_EQ(0, tw_wheel_destroy(self->wheel));
	EXPECT_EQ(1, status_of(self));
	EXPECT_LINE(expected, &self->log);
}

/* A second service with the same state is refused, and so is a wheel with another setup. */
TEST_F(service, in_use)
{
	pid_t first;

	START("");
	first = self->pid;
	spawn(self, NULL);
	EXPECT_EQ(1, status_of(self));
	EXPECT_LOGGED("twidled: %s is in use by another twidled", self->state);
	self->pid = first;
	ASSERT_EQ(0, end(self, SIGTERM));

	write_config(self, "max-users = 77\n");
	spawn(self, NULL);
	EXPECT_EQ(1, status_of(self));
	EXPECT_NE(NULL, strstr(next_line(&self->log) ?: "",
			       "is there, with another tick or max-users"));
}

/* A service takes no socket at which another service listens. */
TEST_F(service, address_in_use)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	unix_address(&address, self->users);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
	ASSERT_EQ(0, listen(fd, 1));
	write_config(self, "");
	spawn(self, NULL);
	EXPECT_EQ(1, status_of(self));
	EXPECT_LOGGED("twidled: listening on %s: Address already in use", self->users);
	/* A socket at which no process listens is removed. */
	close(fd);
	ASSERT_TRUE(start(self));
}

/* A state path that names another program's file leaves it as it is. */
TEST_F(service, foreign_state)
{
	char text[16] = "";
	FILE *file = fopen(self->state, "we");

	ASSERT_NE(NULL, file);
	fputs("precious", file);
	fclose(file);
	write_config(self, "");
	spawn(self, NULL);
	EXPECT_EQ(1, status_of(self));
	EXPECT_LOGGED("twidled: %s is not a file of this twidled", self->state);
	file = fopen(self->state, "re");
	EXPECT_NE(NULL, fgets(text, sizeof(text), file));
	EXPECT_STREQ("precious", text);
	EXPECT_EQ(EOF, fgetc(file));
	fclose(file);
}

/* An error in the file gives a line that tells where it is. Nothing has changed. */
TEST_F(service, config_errors)
{
	static const struct {
		const char *line, *error;
	} wrong[] = {
		{ "foo = 1", "unknown key \"foo\"" },
		{ "max_users = 1", "unknown key \"max_users\"" },
		{ "timeout", "\"timeout\" is not \"key = value\"" },
		{ "timeout =", "timeout has no value" },
		{ "tick = 1s", "tick is given twice" },
		{ "exec = true", "exec: \"true\" " NO_COMMAND },
		{ "exec = /no/such x",
		  "exec: \"/no/such x\" cannot be run: No such file or directory" },
		{ "exec = /tmp", "exec: \"/tmp\" is no program" },
		{ "exec-timeout = 2h", "exec-timeout: \"2h\" " NO_TIME },
		{ "timeout = 30", "timeout: \"30\" " NO_TIME },
		{ "timeout = 0s", "timeout: \"0s\" " NO_TIME },
		{ "timeout = -1s", "timeout: \"-1s\" " NO_TIME },
		{ "timeout = 18446744073709551616s",
		  "timeout: \"18446744073709551616s\" " NO_TIME },
		{ "timeout = 8761h", "timeout: \"8761h\" " NO_TIME },
		{ "max-users = 0", "max-users: \"0\" is no number from 1 to 16777216" },
		{ "max-users = 1e5",
		  "max-users: \"1e5\" is no number from 1 to 16777216" },
		{ "buffer = 4095",
		  "buffer: \"4095\" is no number from 4096 to 1073741824" },
		{ "watch = maybe", "watch: \"maybe\" is neither yes nor no" },
		{ "close = maybe", "close: \"maybe\" is neither yes nor no" },
		{ "listen = localhost:1", "listen: \"localhost:1\" " NO_ADDRESS },
		{ "listen = 127.0.0.1:65536", "listen: \"127.0.0.1:65536\" " NO_ADDRESS },
		{ "listen = ::1:80", "listen: \"::1:80\" has an IPv6 address that is not in []" },
	};
	char expected[256];
	struct stat stat_;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		write_config(self, "# a comment\n%s\n", wrong[i].line);
		for (int check = 0; check < 2; check++) {
			spawn(self, check ? "--check-config" : NULL);
			EXPECT_EQ(2, status_of(self));
			sprintf(expected, "%s:7: %s", self->config,
				wrong[i].error);
			EXPECT_LINE(expected, &self->log);
			EXPECT_EQ(NULL, next_line_within(&self->log, 0));
		}
	}
	unlink(self->config);
	spawn(self, NULL);
	EXPECT_EQ(2, status_of(self));
	EXPECT_LOGGED("%s:0: No such file or directory", self->config);
	EXPECT_EQ(NULL, next_line_within(&self->log, 0));

	EXPECT_NE(0, stat(self->state, &stat_));
	EXPECT_NE(0, stat(self->users, &stat_));
	EXPECT_EQ(NULL, tw_wheel_open_named(self->wheel, O_RDONLY));
	EXPECT_TRUE(quiet(&self->out, 0));
}

/* For a correct file --check-config prints nothing. The installed example is correct. */
TEST_F(service, config_right)
{
	struct stat stat_;

	write_config(self, "  timeout=48h\t\n\n#x = y\nlisten = [::1]:7075\n"
		     "listen = 0.0.0.0:7075\nmax-users = 16777216\nclose = no\n");
	for (int i = 0; i < 2; i++) {
		spawn(self, "--check-config");
		EXPECT_EQ(0, status_of(self));
		EXPECT_EQ(NULL, next_line_within(&self->log, 0));
		strcpy(self->config, "./twidled.conf");
	}
	EXPECT_NE(0, stat(self->state, &stat_));
	self->config[0] = '\0';
}

/*
 * Without privileges there are as many connections as files may be open. The next connection
 * waits until there is room.
 */
TEST_F(service, few_files)
{
	enum { MOST = 12 };
	char expected[128];
	int users[MOST], waits;

	write_config(self, "timeout = 60s\n");
	ASSERT_EQ(0, chmod(self->dir, 0777));
	ASSERT_EQ(0, chmod(self->config, 0644));
	self->files = 128 + MOST;
	ASSERT_TRUE(start(self));
	EXPECT_LOGGED("twidled: no more than %d connections: the limit of open files is %d",
		      MOST, MOST + 128);
	for (int i = 0; i < MOST; i++) {
		users[i] = log_in(self, i);
		ASSERT_GE(users[i], 0);
		sprintf(expected, "online %d", i);
		EXPECT_TOLD(expected, &self->out);
	}
	waits = log_in(self, 99);
	EXPECT_LINE("twidled: connections wait, 12 are open: this is the limit",
		    &self->log);
	EXPECT_TRUE(quiet(&self->out, 500));
	close(users[5]);
	EXPECT_TOLD("online 99", &self->out);
	close(waits);
}

TEST_HARNESS_MAIN
