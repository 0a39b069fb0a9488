// SPDX-License-Identifier: GPL-2.0-only
/*
 * batch: operations from the standard input, a line each, and an answer to each in the same
 * order. The lines that one read brings are carried out together, and their answers are
 * written before the next read.
 */
#include "scan.h"
#include "twctl.h"

#define MOST_LINES	1024
#define BUFFER		(64 << 10)

/* @index: the operation's place in the batch; -1 if the line is @wrong. */
struct line {
	int	index;
	bool	json;
	char	*wrong;
};

static struct {
	struct wheel	wheel;
	struct tw_batch	*batch;
	struct line	lines[MOST_LINES];
	int		count;
	enum status	status;
} run;

static void add_line(char *text)
{
	struct line *line = &run.lines[run.count];
	struct timewheel_op op;

	text = (char *)skip_space(text);
	if (!*text || *text == '#')
		return;
	*line = (struct line) { .index = -1, .json = request_is_json(text) };
	run.count++;
	if (request_parse(&op, &run.wheel, text)) {
		line->index = tw_batch_count(run.batch);
		*tw_batch_next(run.batch) = op;
	} else {
		line->wrong = strdup(times_wrong());
	}
}

static void put_error(const struct line *line, const char *name, const char *text)
{
	run.status = STATUS_FAILED;
	if (!line->json) {
		printf("error %s %s\n", name, text);
		return;
	}
	printf("{\"error\":\"%s\",\"message\":", name);
	json_text(stdout, text);
	puts("}");
}

static void put_number(const struct line *line, const char *name, uint64_t number,
		       bool there)
{
	char text[NUMBER_TEXT];

	if (line->json && there)
		printf(",\"%s\":%s", name, json_number(text, number, false));
	else if (!line->json && there)
		printf(" %llu", (unsigned long long)number);
	else if (!line->json)
		fputs(" -", stdout);
}

/* @error: why the wheel has not carried out all operations, 0 if it has. */
static void put_answer(const struct line *line, int error)
{
	const struct timewheel_op *op;
	bool was_due;

	if (line->index < 0) {
		put_error(line, "EINVAL", line->wrong ? line->wrong : "no memory");
		return;
	}
	if (tw_batch_result(run.batch, line->index) < 0) {
		if (errno != EINPROGRESS)
			error = errno;
		put_error(line, strerrorname_np(error), tw_strerror(error));
		return;
	}
	op = tw_batch_op(run.batch, line->index);
	was_due = op->result & TIMEWHEEL_RES_WAS_DUE;
	printf(line->json ? "{\"result\":\"%s\"" : "ok %s", op_result(op));
	put_number(line, "handle", op->handle, op->handle);
	put_number(line, "deadline", op->deadline, op->deadline != TIMEWHEEL_NEVER);
	if (line->json)
		printf(",\"was-due\":%s}\n", was_due ? "true" : "false");
	else
		puts(was_due ? " was-due" : "");
}

/* Carries out what has been read. Returns 0, or the trouble with the wheel. */
static enum status carry_out(void)
{
	int i, failed, error;

	do
		failed = tw_batch_run(run.batch, run.wheel.wheel);
	while (failed < 0 && errno == EINTR);
	error = failed < 0 ? errno : 0;
	for (i = 0; i < run.count; i++) {
		put_answer(&run.lines[i], error);
		free(run.lines[i].wrong);
	}
	run.count = 0;
	tw_batch_clear(run.batch);
	if (fflush(stdout))
		return trouble(STATUS_FAILED, "standard output: %s", strerror(errno));
	errno = error;
	return error ? wheel_trouble(run.wheel.name) : STATUS_OK;
}

/*
 * Takes the whole lines of @text. @end: the last line has no newline. Returns how many bytes
 * are left.
 */
static size_t take_lines(char *text, size_t length, bool end, enum status *status)
{
	size_t begin = 0, line;
	char *newline;

	while (begin < length && !*status) {
		newline = memchr(text + begin, '\n', length - begin);
		if (!newline && !end)
			break;
		line = newline ? (size_t)(newline - text) : length;
		text[line] = '\0';
		add_line(text + begin);
		begin = line + 1;
		if (run.count == MOST_LINES)
			*status = carry_out();
	}
	if (!*status && run.count)
		*status = carry_out();
	begin = begin < length ? begin : length;
	memmove(text, text + begin, length - begin);
	return length - begin;
}

static enum status read_all(void)
{
	static char text[BUFFER + 1];
	enum status status = STATUS_OK;
	size_t length = 0;
	ssize_t n;

	do {
		n = read(STDIN_FILENO, text + length, BUFFER - length);
		if (n < 0)
			return trouble(STATUS_FAILED, "standard input: %s",
				       strerror(errno));
		length = take_lines(text, length + n, !n, &status);
		if (length == BUFFER)
			return trouble(STATUS_USAGE, "a line of %d bytes or more",
				       BUFFER);
	} while (n && !status);
	return status;
}

enum status verb_batch(const struct args *args)
{
	enum status status;

	wheel_open(&run.wheel, args->arg[0], O_RDWR);
	run.batch = tw_batch_new(MOST_LINES);
	if (!run.batch)
		die(STATUS_FAILED, "no memory");
	status = read_all();
	tw_batch_free(run.batch);
	wheel_close(&run.wheel);
	return status ? status : run.status;
}
