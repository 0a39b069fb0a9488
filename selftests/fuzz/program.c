// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs: how they run, how they change, and how they are written as text and as C.
 */
#include <string.h>

#include "act.h"
#include "program.h"

/* The following functions run a program. */

/* The calls that a second thread or another process makes. */
struct part {
	const struct program		*program;
	const struct program_hooks	*hooks;
	unsigned int			from;
	unsigned int			to;
	bool				second;
};

static unsigned int part_end(const struct program *program, unsigned int i)
{
	unsigned int end = i + 2 + program->call[i].byte[0] % 4;

	return end < program->calls ? end : program->calls;
}

static void run_part(const void *arg);

static void run_beside(const struct part *part, unsigned int i)
{
	static struct part parts[PROGRAM_CALLS];
	const struct call *call = &part->program->call[i];

	/* A part that runs beside others does not begin other parts. */
	if (part->second)
		return;
	parts[i] = (struct part){ part->program, part->hooks, i + 1,
				  part_end(part->program, i), true };
	if (!strcmp(call_name(call->type), "fork"))
		act_fork(run_part, &parts[i]);
	else
		act_thread(run_part, &parts[i], 1 + call->byte[1]);
}

static void run_part(const void *arg)
{
	const struct part *part = arg;

	part->hooks->begin(part->second);
	for (unsigned int i = part->from; i < part->to; i++) {
		const struct call *call = &part->program->call[i];
		int outcome = 0;

		if (!call_runs_others(call)) {
			outcome = call_run(call);
		} else {
			run_beside(part, i);
			if (!part->second)
				i = part_end(part->program, i) - 1;
		}
		part->hooks->called(call->type, outcome);
	}
}

void program_run(const struct program *program,
		 const struct program_hooks *hooks)
{
	const struct part all = { program, hooks, 0, program->calls, false };

	act_begin();
	run_part(&all);
	act_end();
	hooks->called(call_types(), 0);
}

/* The following functions print a program in C, to stand behind act.h. */

static void part_print(const struct program *program, unsigned int from,
		       unsigned int to, bool second, FILE *file)
{
	for (unsigned int i = from; i < to; i++) {
		const struct call *call = &program->call[i];
		const char *name = call_name(call->type);

		if (!call_runs_others(call)) {
			call_print(call, file);
		} else if (!second) {
			fprintf(file, "\tact_%s(part%u, NULL", name, i);
			if (strcmp(name, "fork"))
				fprintf(file, ", %u", 1 + call->byte[1]);
			fprintf(file, ");\n");
			i = part_end(program, i) - 1;
		}
	}
}

void program_print(const struct program *program, FILE *file)
{
	for (unsigned int i = 0; i < program->calls; i++) {
		unsigned int end = part_end(program, i);

		if (!call_runs_others(&program->call[i]))
			continue;
		fprintf(file, "\nstatic void part%u(const void *part)\n{\n", i);
		part_print(program, i + 1, end, true, file);
		fprintf(file, "}\n");
		i = end - 1;
	}
	fprintf(file, "\nint main(void)\n{\n\tact_begin();\n");
	part_print(program, 0, program->calls, false, file);
	fprintf(file, "\tact_end();\n}\n");
}

/*
 * The following functions write and read a program as text: each call by its name,
 * with its bytes up to the last that is not 0.
 */

static unsigned int call_length(const struct call *call)
{
	unsigned int n = CALL_BYTES;

	while (n && !call->byte[n - 1])
		n--;
	return n;
}

void program_format(const struct program *program, char *text)
{
	for (unsigned int i = 0; i < program->calls; i++) {
		const struct call *call = &program->call[i];
		unsigned int n = call_length(call);

		text += sprintf(text, "%s%s%s", i ? " " : "",
				call_name(call->type), n ? "=" : "");
		for (unsigned int k = 0; k < n; k++)
			text += sprintf(text, "%02x", call->byte[k]);
	}
	*text = 0;
}

#define SPACE	"\n "

static bool call_parse(struct call *call, const char *text, size_t length)
{
	size_t end = strcspn(text, "=");
	char name[32] = "";
	unsigned int n = 0, byte, type;

	if (end > length)
		end = length;
	if (end < sizeof(name))
		memcpy(name, text, end);
	type = call_type(name);
	memset(call, 0, sizeof(*call));
	call->type = type;
	for (size_t i = end + 1; i + 1 < length; i += 2) {
		if (n == CALL_BYTES || sscanf(text + i, "%2x", &byte) != 1)
			return false;
		call->byte[n++] = byte;
	}
	return type < call_types();
}

bool program_parse(struct program *program, const char *text)
{
	memset(program, 0, sizeof(*program));
	for (;;) {
		size_t length;

		text += strspn(text, SPACE);
		length = strcspn(text, SPACE);
		if (!length)
			return program->calls;
		if (program->calls == PROGRAM_CALLS ||
		    !call_parse(&program->call[program->calls++], text, length))
			return false;
		text += length;
	}
}

static void print_text(const struct program *program, FILE *file)
{
	char text[PROGRAM_TEXT];

	program_format(program, text);
	if (*text)
		fprintf(file, "%s\n", text);
}

/* Prints the program without some of its calls, @n in a row. */
static void print_shorter(const struct program *program, unsigned int n,
			  FILE *file)
{
	for (unsigned int i = program->calls; i >= n; i -= n) {
		struct program simpler = *program;

		for (unsigned int k = 0; k < n; k++)
			program_drop(&simpler, i - n);
		print_text(&simpler, file);
	}
}

/* Prints the program with 0 for some of its bytes, @n in a row, that are not 0 already. */
static void print_plainer(const struct program *program, unsigned int n,
			  FILE *file)
{
	for (unsigned int i = 0; i < program->calls; i++) {
		for (unsigned int at = 0; at < CALL_BYTES; at += n) {
			struct program simpler = *program;

			memset(&simpler.call[i].byte[at], 0, n);
			if (memcmp(&simpler, program, sizeof(simpler)))
				print_text(&simpler, file);
		}
	}
}

/* Prints all programs that are a step simpler, a line each, large steps first. */
void program_print_simpler(const struct program *program, FILE *file)
{
	for (unsigned int n = program->calls / 2; n; n /= 2)
		print_shorter(program, n, file);
	for (unsigned int n = CALL_BYTES; n; n /= 4)
		print_plainer(program, n, file);
}

/* The following functions make random programs and changes. */

uint64_t random_state;

uint64_t random_below(uint64_t n)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % n;
}

static bool once(uint64_t n)
{
	return !random_below(n);
}

static uint8_t random_byte(void)
{
	if (!once(3))
		return 0;
	return once(2) ? random_below(256) : random_below(1 + random_below(16));
}

static uint8_t random_type(void)
{
	unsigned int sum = 0, at;

	if (once(4))
		return random_below(call_types());
	for (unsigned int i = 0; i < call_types(); i++)
		sum += call_weight(i);
	at = random_below(sum);
	for (unsigned int i = 0;; i++) {
		if (at < call_weight(i))
			return i;
		at -= call_weight(i);
	}
}

/* Most calls use one file and one mapping, and good addresses. */
static struct call random_call(uint8_t type)
{
	struct call call = { type };

	for (unsigned int i = 0; i < CALL_BYTES; i++)
		call.byte[i] = i > 1 || once(6) ? random_byte() : 0;
	return call;
}

static void insert(struct program *program, unsigned int at,
		   struct call call)
{
	if (program->calls == PROGRAM_CALLS)
		return;
	memmove(&program->call[at + 1], &program->call[at],
		(program->calls++ - at) * sizeof(call));
	program->call[at] = call;
}

void program_drop(struct program *program, unsigned int call)
{
	memmove(&program->call[call], &program->call[call + 1],
		(--program->calls - call) * sizeof(*program->call));
}

/* Makes a random program, which opens a file and usually makes a wheel. */
void program_random(struct program *program)
{
	const struct call open = { call_type("open") };
	const struct call open_named = { call_type("open"), { 0, 0, 1 } };
	unsigned int n = 2 + random_below(PROGRAM_CALLS - 6);

	program->calls = 0;
	insert(program, 0, open);
	if (once(4)) {
		insert(program, 1, random_call(call_type("create")));
		insert(program, 2, open_named);
	} else {
		insert(program, 1, random_call(call_type("setup")));
	}
	if (once(4))
		insert(program, program->calls, random_call(call_type("uring")));
	while (n--)
		insert(program, program->calls, random_call(random_type()));
}

/* Replaces the end of a program by the end of another program. */
static void cross(struct program *program, const struct program *other)
{
	unsigned int at = 1 + random_below(program->calls);
	unsigned int from = random_below(other->calls);

	program->calls = at;
	while (from < other->calls)
		insert(program, program->calls, other->call[from++]);
}

static void mutate_once(struct program *program, const struct program *other)
{
	unsigned int at = random_below(program->calls);
	struct call *call = &program->call[at];

	switch (random_below(10)) {
	case 0:
		if (program->calls > 1)
			program_drop(program, at);
		break;
	case 1:
		insert(program, at, *call);
		break;
	case 2:
		cross(program, other);
		break;
	case 3:
	case 4:
		insert(program, random_below(program->calls + 1),
		       random_call(random_type()));
		break;
	case 5:
		insert(program, program->calls, random_call(random_type()));
		break;
	case 6:
		call->byte[random_below(CALL_BYTES)] = 0;
		break;
	default:
		call->byte[random_below(CALL_BYTES)] =
			once(3) ? random_below(256) : random_byte();
		break;
	}
}

void program_mutate(struct program *program, const struct program *other)
{
	unsigned int n = 1 + random_below(4);

	while (n--)
		mutate_once(program, other);
}
