// SPDX-License-Identifier: GPL-2.0-only

#include "act.h"
#include "call.h"

#define S64_MAX		((__u64)INT64_MAX)
#define MAX_TICK	TIMEWHEEL_MAX_TICK
#define DIRTY		(1ULL << 32)	/* the bytes behind a structure are not 0 */

/*
 * The meaning of the bytes of an argument. Most kinds have a table, of which the
 * first value is the most ordinary. TIME, SPAN, TICK and WORD take two bytes.
 */
enum kind {
	NONE, NUMBER, SLOT, RING, FLAGS, SIZE, ID, HANDLE, TIME, SPAN, TICK,
	WORD,
	/* The following kinds have a table. */
	CODE, CLOCK, SLOTS, TICK_NS, TOKENS, START, NS, COUNT, BYTES,
	UNTIL, CURSOR, COMMAND, OPEN, PATH, STATUS, POLL, OFFSET, PROT, MAP, LESS,
	MREMAP, ADVICE, INDEX, SECONDS, UID, ENTRIES, RING_FLAGS, REQUEST_FLAGS,
	POLL32, POLL_HOW, REQUESTS,
	KINDS
};

static const __u64 edges[] = {
	0, 1, S64_MAX, S64_MAX + 1, ~0ULL, ~0ULL - 1, MAX_TICK, MAX_TICK + 1,
	MAX_TICK * 100000, 1ULL << 62, 1ULL << 45, (1ULL << 30) - 1,
	((1ULL << 30) - 1) * 1000000, 1ULL << 32, 86400000000000,
	S64_MAX - 1000000,
};

static const __u64 codes[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xffffffff };
static const __u64 clocks[] = { 3, 0, 1, 2, 3, 0, 1, 2, 4, 0xffffffff };
static const __u64 slots[] = { 31, 1, 2, 60, 3600, 65536, 64, 3, 0, 65537,
	0xffffffff };
static const __u64 ticks[] = { 1000000, 100000, 1000000000, 12345678,
	86400000000000, 86400000000001, 99999, 0, 1, ~0ULL };
static const __u64 tokens[] = { 64, 1, 1000, 2, 65536, 1 << 20, 1 << 24,
	(1 << 24) + 1, 0, 1ULL << 32, ~0ULL, 1 << 28 };
static const __u64 starts[] = { 0, 1, MAX_TICK, MAX_TICK - 40, MAX_TICK + 1,
	S64_MAX / 1000000, S64_MAX / 1000000 - 40, 1ULL << 45, ~0ULL };
static const __u64 ns[] = { 0, 1000000, 3000000, 1000000000, 999999, 100000, 1,
	S64_MAX, S64_MAX + 1, ~0ULL };
static const __u64 counts[] = { 1, 2, 3, 7, 16, 17, 64, 65, 200, 0, 1000, 5000,
	65536, 65537, 0x7fffffff, 0x80000000, 0xffffffff, 0x38e38e4 };
static const __u64 bytes[] = { 560, 56, 112, 55, 0, 57, 4096, 65536, 1 << 30,
	S64_MAX, ~0ULL, 0x7ffff000 };
static const __u64 cursors[] = { 0, 1, 2, 63, 64, 1000, 0xffffffff, 1ULL << 32,
	~0ULL, ~0ULL - 1 };
static const __u64 untils[] = { ~0ULL, 0, 1000000, 30000000, 1000000000, S64_MAX,
	S64_MAX + 1 };
static const __u64 commands[] = { 0xbe0e, 0xbe0f, 0xbe10, 0xbe11, 0xbe12, 0xbe13,
	0xbe14, 0xbe15, 0xbe00, 0xbeff, 0xbd03, 0x4010be05,
	0xc050be03, 0x8001be02, 0x5401, 0x5421, 0x541b, 0x5452, 0xffffffff,
	0xbe05, 0xbe03, 0xbe0d };
static const __u64 opens[] = { O_RDWR | O_NONBLOCK, O_RDWR, O_RDONLY | O_NONBLOCK,
	O_WRONLY | O_NONBLOCK, O_RDONLY, O_PATH, O_RDWR | O_DIRECT,
	O_RDWR | O_TRUNC | O_APPEND };
static const __u64 paths[] = { 0, 1, 2, 3, 4, 5 };
static const __u64 status[] = { O_NONBLOCK, 0, O_APPEND, O_ASYNC, O_DIRECT };
static const __u64 polls[] = { POLLIN, POLLIN | POLLOUT, 0, 0xffff };
static const __u64 offsets[] = { TIMEWHEEL_MAP_WORDS, 4096, 1ULL << 32,
	1ULL << 63, -4096ULL };
static const __u64 prots[] = { PROT_READ | PROT_WRITE, PROT_READ, PROT_WRITE,
	PROT_NONE, PROT_READ | PROT_EXEC };
static const __u64 maps[] = { MAP_SHARED, MAP_SHARED | MAP_POPULATE,
	MAP_SHARED | MAP_LOCKED, MAP_PRIVATE, MAP_SHARED_VALIDATE,
	MAP_SHARED | MAP_32BIT };
static const __u64 less[] = { 0, 1, 2, ~0ULL, 512, -512ULL, 1ULL << 40 };
static const __u64 mremaps[] = { MREMAP_MAYMOVE, 0,
	MREMAP_MAYMOVE | MREMAP_DONTUNMAP };
static const __u64 advices[] = { MADV_DONTNEED, MADV_REMOVE, MADV_FREE, MADV_COLD,
	MADV_PAGEOUT, MADV_HUGEPAGE, MADV_MERGEABLE, MADV_WIPEONFORK,
	MADV_DONTFORK, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_DODUMP };
static const __u64 indices[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 63, 64, 511, 512, 513,
	1000, 65535, 1 << 20, 1ULL << 60 };
static const __u64 seconds[] = { 1, 3600, -1ULL, -3600ULL, 86400 * 365,
	86400 * -365ULL, 0 };
static const __u64 uids[] = { 65534, 0, 1 };
static const __u64 entries[] = { 8, 1, 64, 4096, 0, 32769 };
static const __u64 ring_flags[] = { 0, IORING_SETUP_COOP_TASKRUN,
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	IORING_SETUP_SQPOLL, IORING_SETUP_IOPOLL, IORING_SETUP_R_DISABLED,
	IORING_SETUP_CQSIZE, IORING_SETUP_SUBMIT_ALL,
	IORING_SETUP_CLAMP | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_COOP_TASKRUN,
	IORING_SETUP_SQPOLL | IORING_SETUP_IOPOLL, 0xffffffff };
static const __u64 request_flags[] = { 0, IOSQE_ASYNC, IOSQE_IO_LINK,
	IOSQE_FIXED_FILE, IOSQE_FIXED_FILE | IOSQE_ASYNC,
	IOSQE_IO_LINK | IOSQE_ASYNC, IOSQE_IO_HARDLINK, IOSQE_IO_DRAIN,
	IOSQE_CQE_SKIP_SUCCESS, IOSQE_BUFFER_SELECT,
	IOSQE_BUFFER_SELECT | IOSQE_ASYNC, IOSQE_FIXED_FILE | IOSQE_IO_LINK, 0xff };
static const __u64 polls32[] = { POLLIN, POLLIN | EPOLLET, 0, 0xffff,
	POLLIN | EPOLLEXCLUSIVE, POLLIN | EPOLLONESHOT, 0xffffffff };
static const __u64 poll_hows[] = { 0, IORING_POLL_ADD_MULTI,
	IORING_POLL_ADD_MULTI | IORING_POLL_ADD_LEVEL,
	IORING_POLL_UPDATE_EVENTS, IORING_POLL_UPDATE_USER_DATA, 0xff };
static const __u64 requests[] = { IORING_OP_CLOSE, IORING_OP_OPENAT,
	IORING_OP_PROVIDE_BUFFERS, IORING_OP_EPOLL_CTL, IORING_OP_TIMEOUT,
	IORING_OP_MADVISE, IORING_OP_SPLICE, IORING_OP_WRITE, IORING_OP_FSYNC,
	IORING_OP_FALLOCATE, IORING_OP_URING_CMD, IORING_OP_MSG_RING,
	IORING_OP_FADVISE, IORING_OP_NOP };

#define KIND(kind, table) \
	[kind] = { table, sizeof(table) / sizeof(*(table)) }

static const struct {
	const __u64	*value;
	unsigned int	n;
} tables[KINDS] = {
	KIND(CODE, codes), KIND(CLOCK, clocks), KIND(SLOTS, slots),
	KIND(TICK_NS, ticks), KIND(TOKENS, tokens), KIND(START, starts),
	KIND(NS, ns), KIND(COUNT, counts), KIND(BYTES, bytes),
	KIND(UNTIL, untils), KIND(CURSOR, cursors), KIND(COMMAND, commands),
	KIND(OPEN, opens), KIND(PATH, paths), KIND(STATUS, status),
	KIND(POLL, polls), KIND(OFFSET, offsets), KIND(PROT, prots),
	KIND(MAP, maps), KIND(LESS, less), KIND(MREMAP, mremaps),
	KIND(ADVICE, advices), KIND(INDEX, indices), KIND(SECONDS, seconds),
	KIND(UID, uids), KIND(ENTRIES, entries), KIND(RING_FLAGS, ring_flags),
	KIND(REQUEST_FLAGS, request_flags), KIND(POLL32, polls32),
	KIND(POLL_HOW, poll_hows), KIND(REQUESTS, requests),
};

/* The following tables are the types of calls. */

struct arg {
	const char	*name;
	enum kind	kind;
	__u32		size;
};

/**
 * struct type - a type of calls
 * @name: name in texts
 * @run: the function of the act; NULL for types that run other calls
 * @weight: how often a call of the type is made
 * @arg: arguments, in the order of their bytes
 */
struct type {
	const char	*name;
	long		(*run)(const __u64 *v);
	unsigned int	weight;
	struct arg	arg[ACT_ARGS];
};

#define CALL(name, weight, ...)	{ #name, act_##name, weight, { __VA_ARGS__ } }
#define A(name, kind)		{ #name, kind }
#define ITEM(name, kind)	A(name, kind),
#define FILE_			A(file, SLOT)
#define HEAD(type)		FILE_, A(where, NUMBER), \
				{ "size", SIZE, sizeof(struct timewheel_##type) }, \
				A(flags, FLAGS)
#define SETUP			A(clock, CLOCK), A(slots, SLOTS), \
				A(tick, TICK_NS), A(max_tokens, TOKENS), \
				A(start, START), A(max_held, NUMBER), \
				A(lease, NS), A(slack, NS), A(reserved, NUMBER)
#define PART			A(map, SLOT), A(skip, LESS), A(less, LESS)
#define RING_			A(ring, RING)
#define REQUEST			RING_, A(of, SLOT), A(flags, REQUEST_FLAGS), \
				A(key, NUMBER), A(hold, NUMBER), A(limit, NUMBER)

static const struct type types[] = {
	CALL(op, 60, HEAD(op), ACT_OP(ITEM)),
	CALL(open, 10, FILE_, A(flags, OPEN), A(path, PATH)),
	CALL(setup, 12, HEAD(setup), SETUP),
	CALL(advance, 25, HEAD(advance), A(tick, TICK)),
	CALL(read, 25, FILE_, A(where, NUMBER), A(size, BYTES)),
	CALL(batch, 25, HEAD(batch), A(count, COUNT),
	     { "op_size", SIZE, sizeof(struct timewheel_op) },
	     A(reserved, NUMBER), A(where_ops, NUMBER), A(op_flags, FLAGS),
	     A(code2, CODE), A(stride, NUMBER), A(spread, NS), ACT_OP(ITEM)),
	CALL(touch, 8, HEAD(touch), A(id, ID), A(handle, HANDLE)),
	CALL(touch_many, 8, HEAD(touch_many), A(count, COUNT),
	     A(where_keys, NUMBER), A(key, NUMBER), A(stride, NUMBER)),
	CALL(get, 12, HEAD(get), A(count, COUNT), A(where_keys, NUMBER),
	     A(key, NUMBER), A(stride, NUMBER), A(where_tokens, NUMBER),
	     { "token_size", SIZE, sizeof(struct timewheel_token) },
	     A(reserved, NUMBER)),
	CALL(list, 10, HEAD(list), A(cursor, CURSOR), A(from, NS), A(to, UNTIL),
	     A(where_tokens, NUMBER), A(count, COUNT),
	     { "token_size", SIZE, sizeof(struct timewheel_token) },
	     A(reserved, NUMBER)),
	CALL(create, 8, HEAD(create), A(name, NUMBER), A(where_setup, NUMBER),
	     { "setup_size", SIZE, sizeof(struct timewheel_setup) },
	     A(setup_flags, FLAGS), SETUP),
	CALL(destroy, 5, HEAD(destroy), A(name, NUMBER)),
	CALL(caps, 1, HEAD(caps)),
	CALL(info, 4, HEAD(info)),
	CALL(stats, 3, HEAD(stats), A(where_lateness, NUMBER)),
	CALL(control, 6, HEAD(control), A(state, FLAGS), A(mask, FLAGS)),
	CALL(ioctl, 3, FILE_, A(where, NUMBER), A(command, COMMAND),
	     A(size, NUMBER), A(flags, FLAGS), A(word, ID), A(word, COUNT),
	     A(word, NS), A(word, HANDLE), A(word, NUMBER), A(word, ID)),
	CALL(readv, 5, FILE_, A(where, NUMBER), A(size, BYTES),
	     A(where2, NUMBER), A(size2, BYTES), A(count, NUMBER),
	     A(offset, NUMBER), A(flags, FLAGS)),
	CALL(refused, 2, FILE_, A(how, NUMBER), A(other, SLOT),
	     A(where, NUMBER)),
	CALL(close, 6, FILE_),
	CALL(dup, 4, FILE_, A(of, SLOT)),
	CALL(fcntl, 3, FILE_, A(flags, STATUS)),
	CALL(poll, 12, FILE_, A(events, POLL), A(other, SLOT), A(ms, NUMBER)),
	CALL(epoll, 3, FILE_),
	CALL(epoll_ctl, 4, FILE_, A(of, SLOT), A(how, NUMBER), A(flags, NUMBER)),
	CALL(epoll_wait, 4, FILE_, A(ms, NUMBER)),
	CALL(proc, 3, FILE_, A(which, NUMBER)),
	CALL(mmap, 12, FILE_, A(map, SLOT), A(offset, OFFSET), A(more, LESS),
	     A(prot, PROT), A(flags, MAP)),
	CALL(munmap, 3, PART),
	CALL(mremap, 2, PART, A(more, LESS), A(flags, MREMAP), A(copy, NUMBER)),
	CALL(mprotect, 2, PART, A(prot, PROT)),
	CALL(madvise, 2, PART, A(advice, ADVICE)),
	CALL(reach, 2, PART, A(how, NUMBER)),
	CALL(store, 15, FILE_, A(map, SLOT), A(index, INDEX), A(word, WORD)),
	CALL(load, 3, FILE_, A(map, SLOT), A(index, INDEX)),
	CALL(scribble, 4, A(map, SLOT), A(seed, NUMBER)),
	CALL(uring, 6, RING_, A(entries, ENTRIES), A(flags, RING_FLAGS),
	     A(cq_entries, NUMBER)),
	CALL(uring_files, 4, RING_, A(how, NUMBER), A(at, NUMBER), A(of, SLOT)),
	CALL(uring_buffers, 4, RING_, A(how, NUMBER), A(where, NUMBER),
	     A(size, BYTES), PART),
	CALL(uring_register, 1, RING_, A(how, NUMBER), A(of, SLOT),
	     A(key, NUMBER), A(flags, FLAGS), A(ms, NUMBER)),
	CALL(uring_read, 15, REQUEST, A(how, NUMBER), A(where, NUMBER),
	     A(size, BYTES), A(where2, NUMBER), A(rw_flags, FLAGS),
	     A(offset, NUMBER), A(index, NUMBER)),
	CALL(uring_poll, 10, REQUEST, A(events, POLL32), A(how, POLL_HOW)),
	CALL(uring_cancel, 5, REQUEST, A(how, NUMBER), A(key, NUMBER),
	     A(cancel_flags, FLAGS), A(new_key, NUMBER), A(events, POLL32)),
	CALL(uring_do, 6, REQUEST, A(what, REQUESTS), A(index, NUMBER),
	     A(other, SLOT), A(n, NUMBER)),
	CALL(uring_enter, 10, RING_, A(completions, NUMBER), A(ms, NUMBER),
	     A(enter_flags, FLAGS)),
	CALL(sleep, 8, A(ms, NUMBER)),
	CALL(set_clock, 3, A(seconds, SECONDS)),
	CALL(fail, 8, A(nth, NUMBER)),
	CALL(user, 2, A(uid, UID)),
	CALL(time_namespace, 1, A(seconds, NUMBER)),
	{ "thread", NULL, 5, { A(calls, NUMBER), A(times, NUMBER) } },
	{ "fork", NULL, 4, { A(calls, NUMBER) } },
};

#define TYPES		(sizeof(types) / sizeof(*types))

static const struct type *type_of(const struct call *call)
{
	return &types[call->type % TYPES];
}

unsigned int call_types(void)
{
	return TYPES;
}

unsigned int call_type(const char *name)
{
	unsigned int type = 0;

	while (type < TYPES && strcmp(types[type].name, name))
		type++;
	return type;
}

const char *call_name(unsigned int type)
{
	return types[type % TYPES].name;
}

/* Returns how often a call of the type is made. */
unsigned int call_weight(unsigned int type)
{
	return types[type % TYPES].weight;
}

bool call_runs_others(const struct call *call)
{
	return !type_of(call)->run;
}

/* Values are numbers, and some of them are known only when a program runs. */

enum how {
	CONSTANT, A_HANDLE, SOME_TICKS, SOME_LAPS, A_TIME, A_TICK, A_STAMP,
};

/* @x, @y, @z: arguments of the function that finds the value. A handle is changed by @y. */
struct value {
	enum how	how;
	__u64		x, y, z;
};

static __u64 value_of(const struct value *value)
{
	switch (value->how) {
	case A_HANDLE:
		return act_handle(value->x) ^ value->y;
	case SOME_TICKS:
		return act_ticks(value->x, value->y);
	case SOME_LAPS:
		return act_laps(value->x, value->y, value->z);
	case A_TIME:
		return act_time(value->x, value->y);
	case A_TICK:
		return act_tick(value->x, value->y);
	case A_STAMP:
		return act_stamp(value->x, value->y, value->z);
	default:
		return value->x;
	}
}

/* Prints a number, in decimal if it is small or slightly negative. */
static const char *number(char *text, __u64 n)
{
	sprintf(text, n + 9999 < 19999 ? "%lld" : "0x%llx", n);
	return text;
}

static void value_print(const struct value *value, FILE *file)
{
	static const char * const format[] = {
		[CONSTANT] = "%s", [A_HANDLE] = "act_handle(%s) ^ %s",
		[SOME_TICKS] = "act_ticks(%s, %s)",
		[SOME_LAPS] = "act_laps(%s, %s, %s)",
		[A_TIME] = "act_time(%s, %s)", [A_TICK] = "act_tick(%s, %s)",
		[A_STAMP] = "act_stamp(%s, %s, %s)",
	};
	char text[3][24];

	fprintf(file, format[value->how], number(text[0], value->x),
		number(text[1], value->y), number(text[2], value->z));
}

static struct value constant(__u64 x)
{
	return (struct value){ CONSTANT, x };
}

static struct value edge(uint8_t byte)
{
	return constant(edges[byte % 16]);
}

static struct value time_value(uint8_t kind, uint8_t n, __u64 file)
{
	switch (kind % 8) {
	case 0:
		return (struct value){ SOME_TICKS, file, n + 1 };
	case 1:
		return (struct value){ SOME_LAPS, file, n / 16 + 1, n % 16 - 2 };
	case 2:
		return (struct value){ A_TIME, file, n - 64 };
	case 3:
		return (struct value){ SOME_LAPS, file, n * n, n % 3 - 1 };
	case 4:
		return edge(n);
	case 5:
		return constant(1ULL << n % 64);
	case 6:
		return constant(n);
	default:
		return (struct value){ SOME_TICKS, file, 32 * n };
	}
}

/* Returns a time. The most ordinary one is 0. */
static struct value span_value(uint8_t kind, uint8_t n, __u64 file)
{
	return kind ? time_value(kind - 1, n, file) : constant(0);
}

static struct value tick_value(uint8_t kind, uint8_t n, __u64 file)
{
	switch (kind % 8) {
	case 0:
		return (struct value){ A_TICK, file, n + 1 };
	case 1:
		return (struct value){ A_TICK, file, n * 32 };
	case 2:
		return (struct value){ A_TICK, file, -(__u64)n };
	case 3:
		return (struct value){ A_TICK, file, 1ULL << n % 48 };
	case 4:
		return constant(1ULL << n % 64);
	case 5:
		return constant(MAX_TICK - n);
	default:
		return edge(n);
	}
}

static struct value word_value(uint8_t kind, uint8_t n, __u64 file)
{
	switch (kind % 8) {
	case 0:
	case 1:
		return (struct value){ A_STAMP, file, n % 16, n / 16 };
	case 2:
	case 3:
		return (struct value){ A_STAMP, file, n % 16, 1ULL << n / 8 };
	case 4:
		return edge(n);
	case 5:
		return constant((__u64)n << 32 | 1);
	default:
		return constant(n);
	}
}

/* Returns a size for a structure of @known bytes. */
static __u64 size_value(uint8_t byte, __u32 known)
{
	const __u64 sizes[] = {
		known, known + 8, (known + 8) | DIRTY, known - 1, 0, known - 8,
		4096, 4097, 0xffffffff, 4096 | DIRTY, known + 4, 8,
	};

	return sizes[byte % (sizeof(sizes) / sizeof(*sizes))];
}

/* Returns the value of the bytes at *@at, and moves *@at behind them. */
static struct value value_at(const struct arg *arg, const uint8_t **at,
			     __u64 file)
{
	uint8_t byte = *(*at)++;

	switch (arg->kind) {
	case NUMBER:
		return constant(byte);
	case SLOT:
		return constant(byte % ACT_FILES);
	case RING:
		/* The most ordinary ring is not in the place of the first file. */
		return constant((byte + ACT_FILES - 1) % ACT_FILES);
	case FLAGS:
		return constant(byte < 128 ? byte : 1U << byte % 32);
	case SIZE:
		return constant(size_value(byte, arg->size));
	case ID:
		return byte < 240 ? constant(byte) : edge(byte);
	case HANDLE:
		if (byte < 192)
			return (struct value){ A_HANDLE, byte % 16, byte < 128 ?
					       0 : 1ULL << byte % 64 };
		return edge(byte);
	case TIME:
		return time_value(byte, *(*at)++, file);
	case SPAN:
		return span_value(byte, *(*at)++, file);
	case TICK:
		return tick_value(byte, *(*at)++, file);
	case WORD:
		return word_value(byte, *(*at)++, file);
	default:
		return constant(tables[arg->kind].value[byte %
							tables[arg->kind].n]);
	}
}

/* Finds all values of a call. Returns their number. */
static unsigned int call_values(const struct call *call,
				struct value *values)
{
	const uint8_t *at = call->byte;
	const struct type *type = type_of(call);
	unsigned int n;

	for (n = 0; n < ACT_ARGS && type->arg[n].kind; n++)
		values[n] = value_at(&type->arg[n], &at, call->byte[0] % ACT_FILES);
	return n;
}

/* The following functions run and print calls. */

/* Runs a call. Returns its outcome. */
int call_run(const struct call *call)
{
	struct value values[ACT_ARGS];
	__u64 v[ACT_ARGS] = { 0 };
	unsigned int n = call_values(call, values);

	for (unsigned int i = 0; i < n; i++)
		v[i] = value_of(&values[i]);
	act_outcome = 0;
	type_of(call)->run(v);
	return act_outcome;
}

void call_print(const struct call *call, FILE *file)
{
	const struct type *type = type_of(call);
	struct value values[ACT_ARGS];
	unsigned int n = call_values(call, values);
	const char *comma = "";

	fprintf(file, "\tact_%s(ARGS(", type->name);
	for (unsigned int i = 0; i < n; i++) {
		if (values[i].how == CONSTANT && !values[i].x)
			continue;
		fprintf(file, "%s\n\t\t/* %s */ [%u] = ", comma,
			type->arg[i].name, i);
		value_print(&values[i], file);
		comma = ",";
	}
	fprintf(file, "));\n");
}
