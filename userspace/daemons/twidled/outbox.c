// SPDX-License-Identifier: GPL-2.0-only
/*
 * The outbox: lines on their way from the wheel to standard output.
 *
 * A token ends when its event is read, so an event that this process has read
 * and not printed yet exists nowhere else; the process may be killed at any moment.
 * So the outbox is a file, mapped: the kernel writes events right into it, and
 * the next process finds there the lines that were not printed.
 *
 * It is a ring of records. A record's handle is not 0 from the moment when it is
 * filled until its line has been printed. @told tells how far the printing has come:
 * it counts NEWS_LINE bytes for each record, however long the line is, so that one
 * store records progress, also within a line. The record's cookie is the wall time in
 * its line, which must stay the same when the line is cut by a kill; the wheel has no
 * cookies, so it is 0 until it is set.
 *
 * The message that is being sent is in the file, too. If standard output is a socket, as under
 * systemd, the kernel itself stores in the file how much it took, so nothing is printed twice
 * either. For a pipe or a file this process has to store how much was taken, and a kill just
 * before the store repeats the last output.
 *
 * @ran tells how far the starting of commands has come, which is slower. A record that
 * is printed is kept for its command until its place in the ring is needed.
 *
 * @asks is not 0 while a service asks connections when a token is due. If it is killed
 * then, tokens of users who are not silent may be due, and may have been read: such a
 * record has no wall time yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "twidled.h"

#define RECORDS		16384
#define READ_AT_ONCE	64
/* A writable pipe takes this many bytes without a wait. */
#define MESSAGE		4096
#define MAGIC		0x3264656c64697774ULL	/* the text "twidled2" */

/*
 * The fields are stored in this order, which the compiler must keep: a kill may come between two
 * stores.
 */
#define STORE(where, value)	__atomic_store_n(&(where), value, __ATOMIC_RELEASE)

struct file {
	uint64_t magic;
	uint64_t told;
	/* The message has the records from @from to @to. @message has its length in msg_len. */
	uint64_t from, to;
	struct mmsghdr message;
	uint64_t ran;
	uint64_t asks;
	struct timewheel_event records[RECORDS] __attribute__((__aligned__(4096)));
};

static struct file *file;
static uint64_t filled;		/* counts records */
static uint64_t left_out;	/* online lines left out because there was no room */
static uint64_t not_run;	/* commands left out because there was no room */

static bool is_socket;
static sd_event_source *writable;	/* NULL: standard output is always writable */
static bool waiting;			/* waits until standard output is writable */

static struct timewheel_event *record(uint64_t number)
{
	return &file->records[number % RECORDS];
}

/*
 * Returns the new @told after standard output has taken @bytes of the lines from @at, and frees
 * the records that are printed. Two calls for the parts of an output have the effect of one call
 * for the whole.
 */
static uint64_t move_on(uint64_t at, uint64_t to, size_t bytes)
{
	char line[NEWS_LINE];

	while (at / NEWS_LINE < to) {
		struct timewheel_event *news = record(at / NEWS_LINE);
		size_t rest = news_format(news, line) - at % NEWS_LINE;

		if (bytes < rest)
			return at + bytes;
		bytes -= rest;
		STORE(news->handle, 0);
		at = (at / NEWS_LINE + 1) * NEWS_LINE;
	}
	return at;
}

/* Accounts for the last message, also if a kill kept its sender from doing this. */
static void note_message(void)
{
	if (file->from == file->told && file->to > file->told / NEWS_LINE)
		STORE(file->told, move_on(file->told, file->to,
					  file->message.msg_len));
}

static void map_file(const char *path)
{
	size_t size;
	int err, fd = state_open(path, &size);

	/* The path may name another program's file by mistake. */
	if (size && size != sizeof(*file))
		state_foreign(path);
	/* The call allocates all pages now, so that no later store finds a page missing. */
	err = posix_fallocate(fd, 0, sizeof(*file));
	if (err)
		die(err, "%s", path);
	/*
	 * When this process is killed the kernel cannot fault in a page. Then an event would be
	 * only half in a record, while its token is still on the wheel.
	 */
	file = state_map(fd, path, sizeof(*file), MAP_POPULATE);
	if (file->magic && file->magic != MAGIC)
		state_foreign(path);
	STORE(file->magic, MAGIC);
}

/* A line that was not printed has the wall time of its deadline. */
static void set_wall(struct timewheel_event *news)
{
	if (!news->cookie)
		STORE(news->cookie, news_wall(news->deadline));
}

static int on_writable(sd_event_source *source, int fd, uint32_t events,
		       void *unused)
{
	waiting = false;
	outbox_flush();
	return 0;
}

/* This service goes on where another process has ended. */
static void resume(const char *path)
{
	char names[sizeof(service.config.state) + sizeof(".names")];

	snprintf(names, sizeof(names), "%s.names", path);
	names_open(names, service.config.max_users + service.max_connections +
		   RECORDS);
	note_message();
	filled = file->told / NEWS_LINE;
	while (filled - file->told / NEWS_LINE < RECORDS && record(filled)->handle) {
		if (file->asks && !record(filled)->cookie)
			record(filled)->missed = NEWS_AGAIN;
		set_wall(record(filled++));
	}
	if (file->ran > filled || filled - file->ran > RECORDS)
		STORE(file->ran, filled);
}

void outbox_open(const char *path)
{
	struct stat stat;
	int result;

	map_file(path);
	resume(path);
	if (filled != file->told / NEWS_LINE)
		say("%" PRIu64 " lines were left to be told",
		    filled - file->told / NEWS_LINE);

	is_socket = !fstat(STDOUT_FILENO, &stat) && S_ISSOCK(stat.st_mode);
	/* EPERM means that standard output is a file, which is always writable. */
	result = sd_event_add_io(service.event, &writable, STDOUT_FILENO,
				 EPOLLOUT, on_writable, NULL);
	if (result < 0 && result != -EPERM)
		die(-result, "standard output");
	if (writable)
		must(sd_event_source_set_enabled(writable, SD_EVENT_OFF));
}

static bool full(void)
{
	return filled - file->told / NEWS_LINE == RECORDS;
}

/* Leaves out the commands of records whose places are needed. */
static void make_room(uint64_t records)
{
	while (filled + records - file->ran > RECORDS) {
		not_run += record(file->ran)->missed == NEWS_OFFLINE;
		STORE(file->ran, file->ran + 1);
	}
}

size_t outbox_read(struct timewheel_event **silent)
{
	uint64_t start = filled % RECORDS;
	uint64_t room = RECORDS - (filled - file->told / NEWS_LINE);
	int n;

	if (room > READ_AT_ONCE)
		room = READ_AT_ONCE;
	if (room > RECORDS - start)
		room = RECORDS - start;
	if (!room)
		return 0;
	make_room(room);
	/* tw_events_read() is not used here: a kill might come before its copy into the file. */
	n = tw_wheel_read(service.wheel, record(filled), room, 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		wheel_died(errno);
	*silent = record(filled);
	filled += n;
	return n;
}

void outbox_judge(struct timewheel_event *event, enum news what)
{
	event->missed = what;
	set_wall(event);
}

void outbox_tell(enum news what, uint64_t user, uint64_t handle)
{
	struct timewheel_event *news = record(filled);

	/* Tokens of silent users can wait on the wheel, but this line cannot wait. */
	if (full()) {
		if (!left_out++)
			say("standard output takes nothing: online lines are left out");
		return;
	}
	make_room(1);
	news->id = user;
	news->cookie = news_wall_now();
	news->deadline = what == NEWS_OFFLINE ? news_now() : 0;
	news->missed = what;
	STORE(news->handle, handle);
	filled++;
	subscribers_tell(news);
}

void outbox_asks(void)
{
	STORE(file->asks, 1);
}

void outbox_asks_no_more(void)
{
	STORE(file->asks, 0);
}

/* The users' connections have ended with the service that was killed. */
void outbox_settle(void)
{
	uint64_t at;

	for (at = file->told / NEWS_LINE; at < filled; at++) {
		struct timewheel_event *news = record(at);

		if (news->missed == NEWS_AGAIN)
			news->missed = wheel_register(news->id, service.config.timeout) ?
				       NEWS_NONE : NEWS_OFFLINE;
	}
	if (file->asks)
		wheel_touch_all();
	outbox_asks_no_more();
}

/* Builds one message from the lines after @told. Returns its length. */
static size_t gather(char *text, uint64_t *to)
{
	uint64_t at = file->told;
	size_t length = 0;

	while (at / NEWS_LINE < filled && length <= MESSAGE - NEWS_LINE) {
		char line[NEWS_LINE];
		size_t all = news_format(record(at / NEWS_LINE), line);

		memcpy(text + length, line + at % NEWS_LINE,
		       all - at % NEWS_LINE);
		length += all - at % NEWS_LINE;
		at = (at / NEWS_LINE + 1) * NEWS_LINE;
	}
	*to = at / NEWS_LINE;
	return length;
}

/* Does not wait. Returns whether standard output took some of the message. */
static bool send_message(char *text, size_t length)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	static struct iovec part;
	ssize_t bytes;

	if (is_socket) {
		part.iov_base = text;
		part.iov_len = length;
		file->message.msg_hdr = (struct msghdr) {
			.msg_iov = &part,
			.msg_iovlen = 1,
		};
		bytes = sendmmsg(STDOUT_FILENO, &file->message, 1,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
	} else {
		if (writable && poll(&out, 1, 0) <= 0)
			return false;
		bytes = write(STDOUT_FILENO, text, length);
		if (bytes >= 0)
			STORE(file->message.msg_len, bytes);
	}
	if (bytes < 0 && errno != EAGAIN && errno != EINTR)
		die(errno, "standard output");
	return bytes >= 0;
}

/* Tokens of silent users wait on the wheel until there is room. */
static void set_reading(void)
{
	if (service.silent)
		must(sd_event_source_set_enabled(service.silent, full() ?
						 SD_EVENT_OFF : SD_EVENT_ON));
}

/* Writes as much as standard output takes now. */
static void tell(void)
{
	char text[MESSAGE];

	while (!waiting && file->told / NEWS_LINE < filled) {
		uint64_t to;
		size_t length = gather(text, &to);

		/* While @from differs from @told, @to and the length have no meaning. */
		STORE(file->from, UINT64_MAX);
		STORE(file->message.msg_len, 0);
		STORE(file->to, to);
		STORE(file->from, file->told);
		if (length && !send_message(text, length)) {
			if (!writable)
				continue;
			must(sd_event_source_set_enabled(writable,
							 SD_EVENT_ONESHOT));
			waiting = true;
			return;
		}
		note_message();
	}
}

void outbox_each(void (*each)(uint64_t id))
{
	uint64_t told = file->told / NEWS_LINE;
	uint64_t at = file->ran < told ? file->ran : told;

	for (; at < filled; at++)
		each(record(at)->id);
}

/* Starts commands while records wait for a command and one more command may run. */
static void run_commands(void)
{
	static uint64_t said;

	while (file->ran < filled && command_start(record(file->ran)))
		STORE(file->ran, file->ran + 1);
	if (not_run && worth_saying(&said)) {
		say("commands are slow: those of %" PRIu64 " users are left out",
		    not_run);
		not_run = 0;
	}
}

void outbox_flush(void)
{
	tell();
	run_commands();
	set_reading();
	if (left_out && !full()) {
		say("%" PRIu64 " online lines were left out", left_out);
		left_out = 0;
	}
}
