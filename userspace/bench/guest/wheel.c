// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts on a timing wheel: by ioctl, in batches, by mapped touch words; read
 * from the fd.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/timewheel.h>

#include "bench.h"

#define READ_AT_ONCE	1024

struct config {
	u32 setup_flags;
	u32 key;	/* 0 or TIMEWHEEL_OPF_BY_HANDLE */
};

static const struct config *config;
static int fd, epoll;
static u64 *handles, tick_ns;
static unsigned int room;

static struct timewheel_op ops[BATCH];
static u32 op_of[BATCH];	/* the timeout of each operation */
static unsigned int collected;
static u64 keys[BATCH];		/* keys for TIMEWHEEL_IOC_TOUCH_MANY */
static unsigned int keys_collected;

static _Atomic u64 *words;
static u64 words_size;

static struct timewheel_event events[READ_AT_ONCE];

static void wheel_open(const struct kind *kind, unsigned int n, u64 tick)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 3600, .tick = tick, .max_tokens = n,
	};
	struct epoll_event in = { .events = EPOLLIN };

	config = kind->config;
	setup.flags = config->setup_flags;
	fd = open("/dev/timewheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	NEED(fd >= 0);
	NEED(!ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	NEED(epoll >= 0);
	NEED(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &in));
	handles = grab(n * sizeof(*handles));
	room = n;
	tick_ns = tick;
	if (config->setup_flags & TIMEWHEEL_SETUP_TOUCH_WORDS) {
		words_size = (n * 8ULL + 4095) & ~4095ULL;
		words = mmap(NULL, words_size, PROT_READ | PROT_WRITE,
			     MAP_SHARED, fd, TIMEWHEEL_MAP_WORDS);
		NEED(words != MAP_FAILED);
	}
}

static void wheel_close(void)
{
	if (words)
		NEED(!munmap((void *)words, words_size));
	words = NULL;
	close(epoll);
	close(fd);
	free(handles);
}

/* Ids begin at 1 and are spread, as uids or order numbers may be. */
static u64 id_of(unsigned int i)
{
	return config->setup_flags & TIMEWHEEL_SETUP_NO_IDS ? 0 : (i + 1) * 2654435761ULL;
}

/* The cookie tells the timeout of an event. Without cookies only the count is known. */
static u64 cookie_of(unsigned int i)
{
	return config->setup_flags & TIMEWHEEL_SETUP_NO_COOKIES ? 0 : i;
}

static struct timewheel_op make_op(u32 code, u32 flags, unsigned int i, u64 time)
{
	struct timewheel_op op = {
		.size = sizeof(op), .flags = flags, .code = code, .time = time,
	};

	if (flags & TIMEWHEEL_OPF_BY_HANDLE)
		op.handle = handles[i];
	else
		op.id = id_of(i);
	if (code == TIMEWHEEL_OP_REGISTER || code == TIMEWHEEL_OP_TOUCH_OR_REGISTER)
		op.cookie = cookie_of(i);
	return op;
}

static void one(u32 code, u32 flags, unsigned int i, u64 time)
{
	struct timewheel_op op = make_op(code, flags, i, time);

	NEED(!ioctl(fd, TIMEWHEEL_IOC_OP, &op));
	if (code == TIMEWHEEL_OP_REGISTER || op.result & TIMEWHEEL_RES_REGISTERED)
		handles[i] = op.handle;
}

static void collect(u32 code, u32 flags, unsigned int i, u64 time)
{
	NEED(collected < BATCH);
	op_of[collected] = i;
	ops[collected++] = make_op(code, flags, i, time);
}

/* These are for calls about many tokens of one kind. */
static struct timewheel_entry entries[BATCH];
static unsigned int entry_of[BATCH], entered;
static u32 entered_flags;
static u64 cancels[BATCH];
static unsigned int cancels_collected;

static void entries_flush(void)
{
	unsigned int done = 0;

	while (done < entered) {
		struct timewheel_register_many many = {
			.size = sizeof(many), .flags = entered_flags,
			.entries = (uintptr_t)(entries + done),
			.count = entered - done,
		};

		NEED(!ioctl(fd, TIMEWHEEL_IOC_REGISTER_MANY, &many));
		done += many.done;
	}
	for (unsigned int i = 0; i < entered; i++) {
		NEED(!entries[i].result);
		handles[entry_of[i]] = entries[i].handle;
	}
	entered = 0;
}

static void cancels_flush(void)
{
	static __s32 results[BATCH];
	unsigned int done = 0;

	while (done < cancels_collected) {
		struct timewheel_cancel_many many = {
			.size = sizeof(many), .flags = config->key,
			.keys = (uintptr_t)(cancels + done),
			.results = (uintptr_t)(results + done),
			.count = cancels_collected - done,
		};

		NEED(!ioctl(fd, TIMEWHEEL_IOC_CANCEL_MANY, &many));
		done += many.done;
	}
	for (unsigned int i = 0; i < cancels_collected; i++)
		NEED(results[i] >= 0);
	cancels_collected = 0;
}

static void keys_flush(void)
{
	unsigned int done = 0;

	while (done < keys_collected) {
		struct timewheel_touch_many many = {
			.size = sizeof(many), .flags = config->key,
			.keys = (uintptr_t)(keys + done),
			.count = keys_collected - done,
		};

		NEED(!ioctl(fd, TIMEWHEEL_IOC_TOUCH_MANY, &many));
		done += many.done;
	}
	keys_collected = 0;
}

static void batch_flush(void)
{
	unsigned int done = 0;

	keys_flush();
	entries_flush();
	cancels_flush();

	/* A signal ends a batch early, and work that io_uring left behind does, too. */
	while (done < collected) {
		struct timewheel_batch batch = {
			.size = sizeof(batch), .ops = (uintptr_t)(ops + done),
			.count = collected - done, .op_size = sizeof(ops[0]),
		};

		NEED(!ioctl(fd, TIMEWHEEL_IOC_BATCH, &batch));
		done += batch.done;
	}
	for (unsigned int i = 0; i < collected; i++) {
		NEED(ops[i].result >= 0);
		if (ops[i].code == TIMEWHEEL_OP_REGISTER ||
		    ops[i].result & TIMEWHEEL_RES_REGISTERED)
			handles[op_of[i]] = ops[i].handle;
	}
	collected = 0;
}

static void one_arm(unsigned int i, u64 time, bool absolute)
{
	one(TIMEWHEEL_OP_REGISTER, absolute ? TIMEWHEEL_OPF_ABSOLUTE : 0, i, time);
}

static void one_touch(unsigned int i)
{
	struct timewheel_touch touch = {
		.size = sizeof(touch), .flags = config->key,
		.key = config->key ? handles[i] : id_of(i),
	};

	NEED(ioctl(fd, TIMEWHEEL_IOC_TOUCH, &touch) >= 0);
}

static void one_cancel(unsigned int i)
{
	one(TIMEWHEEL_OP_CANCEL, config->key, i, 0);
}

static void one_move(unsigned int i)
{
	one(TIMEWHEEL_OP_MOVE, config->key, i, FAR - SEC);
}

static void one_upsert(unsigned int i)
{
	one(TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, i, FAR);
}

static void batch_arm(unsigned int i, u64 time, bool absolute)
{
	collect(TIMEWHEEL_OP_REGISTER, absolute ? TIMEWHEEL_OPF_ABSOLUTE : 0, i, time);
}

static void batch_touch(unsigned int i)
{
	collect(TIMEWHEEL_OP_TOUCH, config->key, i, 0);
}

static void keys_touch(unsigned int i)
{
	NEED(keys_collected < BATCH);
	keys[keys_collected++] = config->key ? handles[i] : id_of(i);
}

static void keys_arm(unsigned int i, u64 time, bool absolute)
{
	NEED(entered < BATCH);
	entered_flags = absolute ? TIMEWHEEL_OPF_ABSOLUTE : 0;
	entry_of[entered] = i;
	entries[entered++] = (struct timewheel_entry) {
		.id = id_of(i), .cookie = cookie_of(i), .time = time,
	};
}

static void keys_cancel(unsigned int i)
{
	NEED(cancels_collected < BATCH);
	cancels[cancels_collected++] = config->key ? handles[i] : id_of(i);
}

static void batch_cancel(unsigned int i)
{
	collect(TIMEWHEEL_OP_CANCEL, config->key, i, 0);
}

static void batch_move(unsigned int i)
{
	collect(TIMEWHEEL_OP_MOVE, config->key, i, FAR - SEC);
}

static void batch_upsert(unsigned int i)
{
	collect(TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, i, FAR);
}

/*
 * The program reads the tick once per turn of its loop, when it drains. A touch
 * later in the turn makes its token due a little earlier.
 */
static u64 stamp;

static void take_stamp(void)
{
	u32 tick = now_of(CLOCK_MONOTONIC) / tick_ns;

	stamp = tick ? tick : 1;
}

static void word_arm(unsigned int i, u64 time, bool absolute)
{
	take_stamp();
	batch_arm(i, time, absolute);
}

static void word_touch(unsigned int i)
{
	u64 handle = handles[i];

	atomic_store_explicit(&words[(u32)handle],
			      (handle & 0xffffffff00000000) | stamp,
			      memory_order_relaxed);
}

static void checked_touch(unsigned int i)
{
	u64 handle = handles[i], mine = (handle & 0xffffffff00000000) | stamp;
	_Atomic u64 *word = &words[(u32)handle];
	u64 seen = atomic_load_explicit(word, memory_order_relaxed);

	do {
		NEED((seen ^ handle) >> 32 == 0);
		if ((u32)seen && (int32_t)((u32)seen - (u32)stamp) >= 0)
			return;
	} while (!atomic_compare_exchange_weak(word, &seen, mine));
}

static unsigned int wheel_drain(bool wait)
{
	struct epoll_event got;
	ssize_t bytes;

	if (words)
		take_stamp();
	if (epoll_wait(epoll, &got, 1, wait ? -1 : 0) < 1)
		return 0;
	bytes = read(fd, events, sizeof(events));
	if (bytes < 0)
		return 0;
	return bytes / sizeof(events[0]);
}

#define CONFIG(flags, key)	(&(const struct config){ flags, key })

#define ALL_OF_WHEEL							\
	.open = wheel_open, .close = wheel_close, .drain = wheel_drain,	\
	.most = 16000000

#define BY_IOCTL							\
	.arm = one_arm, .rearm = one_touch, .cancel = one_cancel,	\
	.move = one_move

#define BY_BATCH							\
	.arm = batch_arm, .rearm = batch_touch, .cancel = batch_cancel,	\
	.move = batch_move, .flush = batch_flush

/* Most calls are about many tokens of one kind; moves go in batches. */
#define BY_KEYS								\
	.arm = keys_arm, .rearm = keys_touch, .cancel = keys_cancel,	\
	.move = batch_move, .flush = batch_flush

const struct kind wheel_id = {
	.name = "wheel: ioctl, id", .config = CONFIG(0, 0),
	ALL_OF_WHEEL, BY_IOCTL, .upsert = one_upsert,
};

const struct kind wheel_handle = {
	.name = "wheel: ioctl, handle",
	.config = CONFIG(0, TIMEWHEEL_OPF_BY_HANDLE),
	ALL_OF_WHEEL, BY_IOCTL,
};

const struct kind wheel_batch_id = {
	.name = "wheel: batch, id", .config = CONFIG(0, 0),
	ALL_OF_WHEEL, BY_BATCH, .upsert = batch_upsert,
};

const struct kind wheel_batch_handle = {
	.name = "wheel: batch, handle",
	.config = CONFIG(TIMEWHEEL_SETUP_NO_IDS, TIMEWHEEL_OPF_BY_HANDLE),
	ALL_OF_WHEEL, BY_BATCH,
};

const struct kind wheel_keys_id = {
	.name = "wheel: keys, id", .config = CONFIG(0, 0),
	ALL_OF_WHEEL, BY_KEYS,
};

const struct kind wheel_keys_handle = {
	.name = "wheel: keys, handle",
	.config = CONFIG(TIMEWHEEL_SETUP_NO_IDS, TIMEWHEEL_OPF_BY_HANDLE),
	ALL_OF_WHEEL, BY_KEYS,
};

/* This is the smallest token, without id and cookie. */
const struct kind wheel_plain = {
	.name = "wheel: handle only",
	.config = CONFIG(TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES,
			 TIMEWHEEL_OPF_BY_HANDLE),
	ALL_OF_WHEEL, BY_BATCH,
};

const struct kind wheel_plain_word = {
	.name = "wheel: handle, touch word",
	.config = CONFIG(TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES |
			 TIMEWHEEL_SETUP_TOUCH_WORDS, TIMEWHEEL_OPF_BY_HANDLE),
	ALL_OF_WHEEL, .arm = word_arm, .rearm = word_touch,
	.cancel = batch_cancel, .flush = batch_flush, .stores = true,
};

const struct kind wheel_word = {
	.name = "wheel: touch word",
	.config = CONFIG(TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_TOUCH_WORDS,
			 TIMEWHEEL_OPF_BY_HANDLE),
	ALL_OF_WHEEL, .arm = word_arm, .rearm = word_touch,
	.cancel = batch_cancel, .flush = batch_flush, .stores = true,
};

const struct kind wheel_checked = {
	.name = "wheel: checked touch",
	.config = CONFIG(TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_TOUCH_WORDS,
			 TIMEWHEEL_OPF_BY_HANDLE),
	ALL_OF_WHEEL, .arm = word_arm, .rearm = checked_touch,
	.cancel = batch_cancel, .flush = batch_flush, .stores = true,
};
