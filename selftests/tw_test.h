/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for all tests of the timewheel device: they open and set up a wheel, call
 * each ioctl, and ask the kernel and this machine for values. This file knows only the
 * UAPI header; the other headers here are each for tests of one kind. Functions return
 * what the system call returns: -1 with errno on errors.
 */
#ifndef TW_TEST_H
#define TW_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/timewheel.h>

/* A program of several files leaves the harness out: each file would have a copy. */
#ifndef TW_NO_HARNESS
#include "kselftest_harness.h"
#endif

#define TW_DEVICE	"/dev/timewheel"
#define TW_MS		1000000ULL
#define TW_SEC		1000000000ULL

/* Opens the device, or skips the test if there is none. */
#define TW_OPEN(flags) ({						\
	int fd_ = open(TW_DEVICE, (flags) | O_CLOEXEC);			\
	if (fd_ < 0 && (errno == ENOENT || errno == ENODEV))		\
		SKIP(return, "no " TW_DEVICE ": is the module loaded?"); \
	ASSERT_GE(fd_, 0);						\
	fd_;								\
})

#define TW_NEEDS_ROOT() do {						\
	if (geteuid())							\
		SKIP(return, "needs root");				\
} while (0)

/* Whether this process keeps the wheels itself, by native/device.c. */
static inline bool tw_in_process(void)
{
	const char *kind = getenv("TIMEWHEEL");

	return kind && !strcmp(kind, "process");
}

/* Skips the test where wheels inside a process lack a feature: timewheel(7) tells why. */
#define NEEDS_KERNEL(what) do {						\
	if (tw_in_process())						\
		SKIP(return, "needs a kernel: " what);			\
} while (0)

static atomic_int tw_failures;

/* Reports a failed assertion of a thread: the first few are printed, all are counted. */
static inline void __attribute__((format(printf, 1, 2)))
tw_fail(const char *format, ...)
{
	va_list args;

	if (atomic_fetch_add(&tw_failures, 1) >= 20)
		return;
	va_start(args, format);
	fprintf(stderr, "# ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
}

static inline int tw_setup(int fd, __u32 clock, __u32 slots, __u64 tick,
			   __u64 max_tokens, __u32 flags, __u64 start)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .flags = flags, .clock = clock,
		.slots = slots, .tick = tick, .max_tokens = max_tokens,
		.start = start,
	};

	return ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup);
}

static inline int tw_set_up(int fd, struct timewheel_setup setup)
{
	setup.size = sizeof(setup);
	return ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup);
}

/* The set-up of a manual wheel of 1 s ticks. The given fields replace its fields. */
#define TW_MANUAL(...)							\
	((struct timewheel_setup) {					\
		.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60,		\
		.tick = TW_SEC, .max_tokens = 1000, __VA_ARGS__ })

/*
 * Completes the set-up of a wheel: with a lease all of its tokens may be out at once,
 * unless the test says how many.
 */
static inline struct timewheel_setup tw_hold_all(struct timewheel_setup setup)
{
	if (setup.lease && !setup.max_held)
		setup.max_held = setup.max_tokens;
	return setup;
}

/* A new file with such a wheel. */
#define TW_OPEN_WHEEL(...) ({						\
	int wheel_ = TW_OPEN(O_RDWR | O_NONBLOCK);			\
	ASSERT_EQ(0, tw_set_up(wheel_, tw_hold_all(TW_MANUAL(__VA_ARGS__)))); \
	wheel_;								\
})

/* Sets up a manual wheel of 1 s ticks, on which most rules of time are tested. */
static inline int tw_setup_manual(int fd, __u32 slots, __u64 max_tokens,
				  __u64 start)
{
	return tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, slots, TW_SEC, max_tokens,
			0, start);
}

static inline int tw_advance(int fd, __u64 tick)
{
	struct timewheel_advance advance = {
		.size = sizeof(advance), .tick = tick,
	};

	return ioctl(fd, TIMEWHEEL_IOC_ADVANCE, &advance);
}

static inline int tw_info(int fd, struct timewheel_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ioctl(fd, TIMEWHEEL_IOC_INFO, info);
}

/* Sets the bits in @mask of a wheel's state to @state. */
static inline int tw_control(int fd, __u32 state, __u32 mask)
{
	struct timewheel_control control = {
		.size = sizeof(control), .state = state, .mask = mask,
	};

	return ioctl(fd, TIMEWHEEL_IOC_CONTROL, &control);
}

/* Carries out one operation and fills in *op. Returns result bits, or -1 and errno. */
static inline int tw_op(int fd, struct timewheel_op *op)
{
	op->size = sizeof(*op);
	if (ioctl(fd, TIMEWHEEL_IOC_OP, op) < 0)
		return -1;
	return op->result;
}

static inline int tw_register(int fd, __u64 id, __u64 delay, __u64 cookie,
			      __u64 *handle)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .id = id, .time = delay,
		.cookie = cookie,
	};
	int result = tw_op(fd, &op);

	if (result >= 0 && handle)
		*handle = op.handle;
	return result;
}

static inline int tw_register_at(int fd, __u64 id, __u64 time, __u64 cookie)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .flags = TIMEWHEEL_OPF_ABSOLUTE,
		.id = id, .time = time, .cookie = cookie,
	};

	return tw_op(fd, &op);
}

static inline int tw_touch_or_register(int fd, __u64 id, __u64 timeout,
				       __u64 cookie)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_TOUCH_OR_REGISTER, .id = id, .time = timeout,
		.cookie = cookie,
	};

	return tw_op(fd, &op);
}

/* @key is an id if @flags is 0, and a handle if @flags is TIMEWHEEL_OPF_BY_HANDLE. */
static inline int tw_key_op(int fd, __u32 code, __u32 flags, __u64 key,
			    __u64 time)
{
	struct timewheel_op op = {
		.code = code, .flags = flags, .id = key, .handle = key,
		.time = time,
	};

	return tw_op(fd, &op);
}

static inline int tw_touch(int fd, __u32 flags, __u64 key)
{
	struct timewheel_touch touch = {
		.size = sizeof(touch), .flags = flags, .key = key,
	};

	return ioctl(fd, TIMEWHEEL_IOC_TOUCH, &touch);
}

/* Returns 0, or -1 and errno. *done is how many keys were touched in either case. */
static inline int tw_touch_keys(int fd, __u32 flags, const __u64 *keys,
				__u32 count, __u32 *done)
{
	struct timewheel_touch_many many = {
		.size = sizeof(many), .flags = flags,
		.keys = (__u64)(uintptr_t)keys, .count = count,
	};
	int ret = ioctl(fd, TIMEWHEEL_IOC_TOUCH_MANY, &many);

	if (done)
		*done = many.done;
	return ret;
}

/*
 * Returns 0, or -1 and errno. *done is how many entries were carried out in either
 * case.
 */
static inline int tw_register_entries(int fd, __u32 flags, __u64 timeout,
				      struct timewheel_entry *entries,
				      __u32 count, __u32 *done)
{
	struct timewheel_register_many many = {
		.size = sizeof(many), .flags = flags, .timeout = timeout,
		.entries = (__u64)(uintptr_t)entries, .count = count,
	};
	int ret = ioctl(fd, TIMEWHEEL_IOC_REGISTER_MANY, &many);

	*done = many.done;
	return ret;
}

static inline int tw_cancel_keys(int fd, __u32 flags, const __u64 *keys,
				 __s32 *results, __u32 count, __u32 *done)
{
	struct timewheel_cancel_many many = {
		.size = sizeof(many), .flags = flags,
		.keys = (__u64)(uintptr_t)keys,
		.results = (__u64)(uintptr_t)results, .count = count,
	};
	int ret = ioctl(fd, TIMEWHEEL_IOC_CANCEL_MANY, &many);

	*done = many.done;
	return ret;
}

static inline int tw_move(int fd, __u32 flags, __u64 key, __u64 time)
{
	return tw_key_op(fd, TIMEWHEEL_OP_MOVE, flags, key, time);
}

static inline int tw_cancel(int fd, __u32 flags, __u64 key)
{
	return tw_key_op(fd, TIMEWHEEL_OP_CANCEL, flags, key, 0);
}

/*
 * Answers a delivery of the token of @key, or deletes the token with a @delivery of 0.
 * @flags and @key are as in tw_key_op().
 */
static inline int tw_answer(int fd, __u32 code, __u32 flags, __u64 key,
			    __u32 delivery, __u64 time)
{
	struct timewheel_op op = {
		.code = code, .flags = flags, .id = key, .handle = key,
		.time = time, .delivery = delivery,
	};

	return tw_op(fd, &op);
}

static inline int tw_ack(int fd, const struct timewheel_event *event)
{
	return tw_answer(fd, TIMEWHEEL_OP_ACK, TIMEWHEEL_OPF_BY_HANDLE,
			 event->handle, event->delivery, 0);
}

/* @flags is 0 or TIMEWHEEL_OPF_ABSOLUTE. */
static inline int tw_register_periodic(int fd, __u32 flags, __u64 id,
				       __u64 time, __u64 period)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .flags = flags, .id = id,
		.time = time, .period = period,
	};

	return tw_op(fd, &op);
}

/* @flags is 0 or TIMEWHEEL_OPF_ABSOLUTE. A touch makes the token due @timeout later. */
static inline int tw_register_timeout(int fd, __u32 flags, __u64 id,
				      __u64 time, __u64 timeout)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .flags = flags, .id = id,
		.time = time, .timeout = timeout,
	};

	return tw_op(fd, &op);
}

/* Returns 0, or -1 and errno. *done is how many @tokens were written. */
static inline int tw_get_keys(int fd, __u32 flags, const __u64 *keys,
			      __u32 count, struct timewheel_token *tokens,
			      __u32 *done)
{
	struct timewheel_get get = {
		.size = sizeof(get), .flags = flags,
		.keys = (__u64)(uintptr_t)keys,
		.tokens = (__u64)(uintptr_t)tokens,
		.count = count, .token_size = sizeof(*tokens),
	};
	int ret = ioctl(fd, TIMEWHEEL_IOC_GET, &get);

	if (done)
		*done = get.done;
	return ret;
}

/*
 * Returns 0, or -1 and errno: ENOENT by id and ESTALE by handle if there is no such
 * token.
 */
static inline int tw_get(int fd, __u32 flags, __u64 key,
			 struct timewheel_token *token)
{
	if (tw_get_keys(fd, flags, &key, 1, token, NULL) < 0)
		return -1;
	if (token->state != TIMEWHEEL_STATE_NONE)
		return 0;
	errno = flags & TIMEWHEEL_OPF_BY_HANDLE ? ESTALE : ENOENT;
	return -1;
}

/*
 * Returns 0, or -1 and errno. *done is how many operations were carried out in either
 * case.
 */
static inline int tw_batch(int fd, struct timewheel_op *ops, __u32 count,
			   __u32 *done)
{
	struct timewheel_batch batch = {
		.size = sizeof(batch), .ops = (__u64)(uintptr_t)ops,
		.count = count, .op_size = sizeof(*ops),
	};
	int ret = ioctl(fd, TIMEWHEEL_IOC_BATCH, &batch);

	if (done)
		*done = batch.done;
	return ret;
}

/* Reads up to @n events. Returns their number, or -1 and errno. */
static inline int tw_read(int fd, struct timewheel_event *events, size_t n)
{
	ssize_t ret = read(fd, events, n * sizeof(*events));

	return ret < 0 ? -1 : (int)(ret / (ssize_t)sizeof(*events));
}

/* Reads all due events from a non-blocking fd. Returns their number. */
static inline int tw_read_all(int fd)
{
	struct timewheel_event events[256];
	int n = 0, got;

	while ((got = tw_read(fd, events, 256)) > 0)
		n += got;
	return n;
}

static inline bool tw_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

/* Writes a file of the kernel. Returns true if the kernel accepted the text. */
static inline bool tw_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) >= 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Maps with these arguments and unmaps again. Returns 0 or -errno. */
static inline int tw_map_ret(size_t length, int prot, int flags, int fd,
			     __u64 offset)
{
	void *at = mmap(NULL, length, prot, flags, fd, offset);

	if (at == MAP_FAILED)
		return -errno;
	munmap(at, length);
	return 0;
}

/*
 * Reads the value of @key in a file's fdinfo. Returns false, and an empty @value, if
 * the file has no such key.
 */
static inline bool tw_fdinfo(int fd, const char *key, char *value, size_t size)
{
	const size_t length = strlen(key);
	char path[64], line[128];
	bool found = false;
	FILE *file;

	*value = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, length) ||
		    strncmp(line + length, ":\t", 2))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(value, size, "%.*s", (int)size - 1, line + length + 2);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

/* Whether a line of the file has @word within its first 255 bytes. */
static inline bool tw_file_mentions(const char *path, const char *word)
{
	FILE *file = fopen(path, "re");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, word);
	if (file)
		fclose(file);
	return found;
}

/* Scales the length of a long test by the fraction TW_SCALE. Returns at least 1. */
static inline unsigned long tw_scaled(unsigned long n)
{
	const char *scale = getenv("TW_SCALE");
	double scaled = scale ? (double)n * atof(scale) : (double)n;

	return scaled < 1 ? 1 : (unsigned long)scaled;
}

/* Returns the time of @clock in ns. */
static inline __u64 tw_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * TW_SEC + ts.tv_nsec;
}

static inline void tw_sleep_ms(unsigned int ms)
{
	struct timespec ts = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * TW_MS,
	};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* Returns a random number by splitmix64, for which every state is a good one. */
static inline __u64 tw_random(__u64 *state)
{
	__u64 z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/*
 * Does the same operation by id on @n tokens @first_id, @first_id + 1, ..., in batches.
 * Returns how many operations succeeded.
 */
static inline size_t tw_op_many(int fd, __u32 code, __u64 first_id, size_t n,
				__u32 flags, __u64 time)
{
	static __thread struct timewheel_op ops[512];
	size_t good = 0;

	for (size_t at = 0; at < n;) {
		__u32 count = n - at < 512 ? n - at : 512, done = 0;

		memset(ops, 0, count * sizeof(*ops));
		for (__u32 i = 0; i < count; i++) {
			ops[i].size = sizeof(*ops);
			ops[i].code = code;
			ops[i].flags = flags;
			ops[i].id = first_id + at + i;
			ops[i].time = time;
		}
		if (tw_batch(fd, ops, count, &done) < 0 || !done)
			return good;
		for (__u32 i = 0; i < done; i++)
			good += ops[i].result >= 0;
		at += done;
	}
	return good;
}

static inline size_t tw_register_many(int fd, __u64 first_id, size_t n,
				      __u32 flags, __u64 time)
{
	return tw_op_many(fd, TIMEWHEEL_OP_REGISTER, first_id, n, flags, time);
}

static inline size_t tw_touch_each(int fd, __u64 first_id, size_t n)
{
	return tw_op_many(fd, TIMEWHEEL_OP_TOUCH, first_id, n, 0, 0);
}

/* Returns how many references the module has, or -1 if the kernel does not tell. */
static inline long tw_refcnt(void)
{
	FILE *file = fopen("/sys/module/timewheel/refcnt", "r");
	long count = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &count) != 1)
		count = -1;
	fclose(file);
	return count;
}

/*
 * Waits for the module to have @count references: the kernel drops some references
 * later.
 */
static inline bool tw_refcnt_becomes(long count)
{
	for (int i = 0; i < 5000 && tw_refcnt() != count; i++)
		tw_sleep_ms(1);
	return tw_refcnt() == count;
}

/*
 * Waits until the task @tid (of any process) sleeps. The task may still be met awake on
 * its way to sleep, so a test must be right without this call, which only makes the
 * more interesting case likely.
 */
static inline void tw_wait_asleep(pid_t tid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	for (int tries = 0; tries < 2000 && state != 'S'; tries++) {
		FILE *file = fopen(path, "r");

		tw_sleep_ms(1);
		if (!file)
			continue;
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(file);
	}
	tw_sleep_ms(5);
}

/* Returns the result of a system call, with -errno in place of -1. */
static inline int tw_ret(long ret)
{
	return ret < 0 ? -errno : (int)ret;
}

/*
 * A failed call must not change this state of a wheel: settings, counters and one
 * token, the witness. The clock, spare memory and the timer's counters are left out,
 * because they change by themselves. Two states are compared by memcmp().
 */
struct tw_state {
	struct timewheel_info info;
	struct timewheel_token witness;
};

/* @flags and @key name the witness as in tw_key_op(). Returns 0 or -errno. */
static inline int tw_get_state(int fd, __u32 flags, __u64 key,
			       struct tw_state *state)
{
	memset(state, 0, sizeof(*state));
	if (tw_info(fd, &state->info) < 0 ||
	    tw_get(fd, flags, key, &state->witness) < 0)
		return -errno;
	if (state->info.clock != TIMEWHEEL_CLOCK_MANUAL) {
		state->info.now = 0;
		state->info.hand = 0;
		state->witness.left = 0;
		state->witness.cycle = 0;
	}
	state->info.bytes = 0;
	state->info.next = 0;
	state->info.refiled = 0;
	state->info.callbacks = 0;
	state->info.quiet = 0;
	return 0;
}

#ifndef TW_NO_HARNESS

/*
 * Expects no change since @before. The arguments behind @before name the call in
 * messages.
 */
#define tw_expect_state(fd, flags, key, before, ...) do {		\
	struct tw_state after_;						\
									\
	ASSERT_EQ(0, tw_get_state(fd, flags, key, &after_));		\
	EXPECT_EQ(0, memcmp(before, &after_, sizeof(after_))) {		\
		TH_LOG("changed the wheel: " __VA_ARGS__);		\
	}								\
} while (0)

/*
 * Expects that one operation fails, alone and as an element of a batch, writes nothing
 * but its result, and leaves the wheel as it is, above all the token of the id
 * @witness.
 */
static inline void _tw_expect_error(struct __test_metadata *_metadata, int fd,
				    __u64 witness, int expected,
				    struct timewheel_op op, int line)
{
	struct timewheel_op old;
	struct tw_state before;
	__u32 done = 0;

	op.size = sizeof(op);
	old = op;
	ASSERT_EQ(0, tw_get_state(fd, 0, witness, &before));
	EXPECT_EQ(expected, tw_ret(ioctl(fd, TIMEWHEEL_IOC_OP, &op))) {
		TH_LOG("operation %u, in line %d", op.code, line);
	}
	EXPECT_EQ(0, memcmp(&old, &op, sizeof(op))) {
		TH_LOG("operation %u, in line %d: wrote", op.code, line);
	}
	tw_expect_state(fd, 0, witness, &before, "operation %u, in line %d",
			op.code, line);

	EXPECT_EQ(0, tw_batch(fd, &op, 1, &done));
	EXPECT_EQ(1U, done);
	EXPECT_EQ(expected, op.result) {
		TH_LOG("operation %u, in line %d: batch", op.code, line);
	}
	old.result = op.result;
	EXPECT_EQ(0, memcmp(&old, &op, sizeof(op))) {
		TH_LOG("operation %u, in line %d: batch wrote", op.code, line);
	}
	tw_expect_state(fd, 0, witness, &before, "operation %u, in line %d",
			op.code, line);
}

#define tw_expect_error(fd, witness, expected, ...)			\
	_tw_expect_error(_metadata, fd, witness, expected,		\
			 (struct timewheel_op) { __VA_ARGS__ }, __LINE__)

#endif /* TW_NO_HARNESS */

#endif /* TW_TEST_H */
