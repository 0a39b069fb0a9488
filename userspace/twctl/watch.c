// SPDX-License-Identifier: GPL-2.0-only
/*
 * watch: prints a line for each token that expires. It takes a token only when the
 * line can be written, and puts the token back if the write fails all the same. With
 * --ack it takes one token at a time, so that it holds only one while its reader is slow.
 */
#include <limits.h>

#include "twctl.h"

#define BATCH	64

/* @format: a template, or NULL for JSON and for lines that people read. */
struct watch {
	struct wheel	wheel;
	const char	*format;
	bool		json;
	uint64_t	idle;
	uint64_t	left;
	size_t		batch;
	bool		ack;
	bool		lost;		/* watch has lost a lease */
};

/* Waits until the output takes bytes. A pipe must have room for PIPE_BUF before poll() says so. */
static bool can_write(void)
{
	struct pollfd fd = { .fd = STDOUT_FILENO, .events = POLLOUT };

	while (!stop_signal) {
		if (wait_for(&fd, 1, TIMEWHEEL_NEVER) > 0)
			return !(fd.revents & (POLLERR | POLLHUP | POLLNVAL));
	}
	return false;
}

/*
 * Writes a line, at best in one piece. Returns false and sets errno if the line's end was not
 * written: %EPIPE if the reader has gone, %EINTR if a signal came.
 */
bool write_line(const char *line, size_t length)
{
	ssize_t written;

	while (length) {
		if (!can_write()) {
			errno = stop_signal ? EINTR : EPIPE;
			return false;
		}
		written = write(STDOUT_FILENO, line,
				length < PIPE_BUF ? length : PIPE_BUF);
		if (written < 0 && errno != EAGAIN)
			return false;
		if (written > 0) {
			line += written;
			length -= written;
		}
	}
	return true;
}

/* Ends @text, which is freed, with a newline in the place of its zero. */
bool print_line(char *text)
{
	size_t length = strlen(text);
	bool done;

	text[length] = '\n';
	done = write_line(text, length + 1);
	free(text);		/* errno stays as it is */
	return done;
}

/* Prints a time for people: the deadline in local time, or in the time of a manual clock. */
static char *plain_line(const struct wheel *wheel,
			const struct timewheel_event *event)
{
	char deadline[TIME_TEXT], late[TIME_TEXT], *text;

	if (wheel->info.clock == TIMEWHEEL_CLOCK_MANUAL)
		span_text(deadline, sizeof(deadline), event->deadline);
	else
		real_text(deadline, sizeof(deadline),
			  real_now() - (event->taken - event->deadline), false);
	span_text(late, sizeof(late), event->taken - event->deadline);
	if (asprintf(&text, "%llu %llu %s late %s", (unsigned long long)event->id,
		     (unsigned long long)event->cookie, deadline, late) < 0)
		die(STATUS_FAILED, "no memory for a line");
	return text;
}

static bool print(const struct watch *watch, const struct timewheel_event *event)
{
	char *text = watch->json ? event_json(&watch->wheel, event) :
		     watch->format ? template_fill(watch->format, &watch->wheel, event) :
				     plain_line(&watch->wheel, event);
	int width = watch->json ? 0 : screen_width();

	if (width)
		cut_lines(text, width);
	return print_line(text);
}

/* Acks a token whose line is written. If the lease was over before, the token comes again. */
static void ack(struct watch *watch, const struct timewheel_event *event)
{
	struct timewheel_op op;

	tw_op_ack(&op, event->handle, event->delivery, TIMEWHEEL_OPF_BY_HANDLE);
	if (tw_wheel_run(watch->wheel.wheel, &op) >= 0)
		return;
	complain("id %llu handle %llu: printed, not acked: %s; it may come again",
		 (unsigned long long)event->id,
		 (unsigned long long)event->handle,
		 errno == ESTALE ?
		 "its lease was over (take a longer one), or another process answered" :
		 tw_strerror(errno));
	watch->lost = true;
}

/* Takes due tokens and prints them, or puts them back. Returns 0 or errno. */
static int print_due(struct watch *watch)
{
	size_t most = watch->left < watch->batch ? watch->left : watch->batch;
	struct tw_events *events = take(&watch->wheel, most);
	size_t i, count;
	int err = 0;

	if (!events)
		exit(wheel_trouble(watch->wheel.name));
	count = tw_events_count(events);
	for (i = 0; i < count; i++) {
		if (!err && !print(watch, tw_events_at(events, i)))
			err = errno;
		if (err)
			put_back(&watch->wheel, tw_events_at(events, i));
		else if (watch->ack)
			ack(watch, tw_events_at(events, i));
	}
	tw_events_free(events);
	watch->left -= count;
	return err;
}

/* Waits for events as long as the output has a reader. */
static enum wake await(const struct watch *watch, uint64_t end)
{
	struct pollfd fds[] = {
		{ .fd = tw_wheel_fd(watch->wheel.wheel), .events = POLLIN },
		{ .fd = STDOUT_FILENO },
	};
	int ready;

	do {
		ready = wait_for(fds, ARRAY_SIZE(fds), end);
		if (stop_signal)
			return WAKE_SIGNAL;
	} while (ready < 0);
	if (ready && fds[1].revents)
		return WAKE_READER_GONE;
	return ready ? WAKE_EVENTS : WAKE_IDLE;
}

static enum status watch_wheel(struct watch *watch)
{
	int err;

	while (watch->left) {
		switch (await(watch, end_after(watch->idle))) {
		case WAKE_EVENTS:
			err = print_due(watch);
			if (err == EPIPE || err == EINTR)
				signal_end();
			if (err)
				die(STATUS_FAILED, "cannot write what it prints: %s",
				    strerror(err));
			break;
		case WAKE_IDLE:
			return STATUS_IDLE;
		default:
			signal_end();
		}
	}
	return STATUS_OK;
}

enum status verb_watch(const struct args *args)
{
	struct watch watch = {
		.json = args->option[OPT_JSON],
		.format = args->option[OPT_FORMAT],
		.ack = args->option[OPT_ACK],
		.batch = args->option[OPT_ACK] ? 1 : BATCH,
		.idle = option_span(args, OPT_IDLE_TIMEOUT, TIMEWHEEL_NEVER),
		.left = option_number(args, OPT_COUNT, 0, UINT64_MAX - 1,
				      UINT64_MAX),
	};
	enum status status;

	if (args->option[OPT_JSON] && args->option[OPT_FORMAT])
		die(STATUS_USAGE, "--format: not with --json");
	if (watch.format)
		template_check("--format", watch.format);
	signals_begin();
	wheel_open_to_read(&watch.wheel, args->arg[0]);
	if (watch.ack && !watch.wheel.info.lease)
		die(STATUS_USAGE,
		    "--ack: wheel '%s' has no leases: leave it out, a read ends its tokens",
		    watch.wheel.name);
	if (watch.ack)
		wheel_open_to_answer(&watch.wheel, args->arg[0]);
	status = watch_wheel(&watch);
	wheel_close(&watch.wheel);
	return watch.lost ? STATUS_FAILED : status;
}
