/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs of the fuzzer are made of: calls on tables of open files, mappings
 * and handles, each with numbers for arguments. It knows libc and the UAPI header
 * only: a program is printed as this file and a main() that makes its calls.
 */
#ifndef ACT_H
#define ACT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/timewheel.h>

/* Most arguments of a call; ARGS() names those that are not 0 by their place. */
#define ACT_ARGS	24
#define ARGS(...)	((const __u64[ACT_ARGS]){ __VA_ARGS__ })

#define ACT_FILES	8
#define ACT_MAPS	4
#define ACT_NAMES	4
#define ACT_HANDLES	16
#define ACT_CHILDREN	4

/* Where calls have their arguments: at fixed addresses, with holes around. */
#define ACT_PAGE	4096UL
#define ACT_MEMORY	((char *)0x20000000)
#define ACT_MEMORY_SIZE	(1UL << 20)
#define ACT_ARRAY	(64 * 1024)	/* behind the structures */
#define ACT_OTHER	(512 * 1024)	/* a second array */
#define ACT_FORBIDDEN	(ACT_MEMORY + ACT_MEMORY_SIZE + 4 * ACT_PAGE)
#define ACT_CONSTANT	(ACT_FORBIDDEN + 2 * ACT_PAGE)

/* Most elements of an array that are filled in. */
#define ACT_FILLED	2048

/* How often a call that sleeps is interrupted, in us. */
#define ACT_ALARM	5000

/**
 * struct act_file - an open file
 * @fd: its descriptor, -1 if there is none
 * @setup: how its wheel was set up, as far as is known
 */
struct act_file {
	int			fd;
	struct timewheel_setup	setup;
};

struct act_map {
	char	*at;
	size_t	size;
};

/* Shared by threads without a lock: what comes of that is as random as the rest. */
static struct act_file act_file[ACT_FILES];
static struct act_map act_map[ACT_MAPS];
static struct timewheel_setup act_named[ACT_NAMES];
static __u64 act_handles[ACT_HANDLES];
static unsigned int act_nr_handles;
static pid_t act_child[ACT_CHILDREN];
static unsigned int act_nr_children;
static pthread_t act_second;
static bool act_has_second;
static bool act_over;

/*
 * Memory that may not be there.
 */

static __thread sigjmp_buf act_jump;
static __thread bool act_guarded;

static void act_on_fault(int signal)
{
	if (__atomic_load_n(&act_guarded, __ATOMIC_RELAXED))
		siglongjmp(act_jump, 1);
	_exit(100 + signal);
}

static void act_on_alarm(int signal)
{
	(void)signal;
}

static void act_guard(bool on)
{
	__atomic_store_n(&act_guarded, on, __ATOMIC_SEQ_CST);
}

/* Copies whole words, as far as there is memory. Returns whether there was. */
static bool act_copy(void *to, const void *from, size_t size)
{
	const __u64 *words = from;
	__u64 *at = to;

	if (sigsetjmp(act_jump, 0)) {
		act_guard(false);
		return false;
	}
	act_guard(true);
	for (size_t i = 0; i < size / 8; i++) {
		__u64 word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);

		__atomic_store_n(&at[i], word, __ATOMIC_RELAXED);
	}
	act_guard(false);
	return true;
}

/* An address for @size bytes; @at: at which place, if it is a good one. */
static void *act_where(__u64 where, size_t size, size_t at)
{
	char *end = ACT_MEMORY + ACT_MEMORY_SIZE;
	size_t fits = size < ACT_MEMORY_SIZE ? size : ACT_MEMORY_SIZE;

	switch (where & 15) {
	case 0:
		return ACT_MEMORY + at;
	case 1:
		return NULL;
	case 2:
		return (void *)1;
	case 3:
		return end + ACT_PAGE;
	case 4:
		return (void *)0xffff888000000000;
	case 5:
		return (void *)0x8000dead00000000;
	case 6:
		return ACT_FORBIDDEN;
	case 7:
		return ACT_CONSTANT;
	case 8:
		return end - (fits > 8 ? fits - 8 : 0);
	case 9:
		return end - fits;
	case 10:
		return end - fits / 16 * 8;
	case 11:
		return ACT_MEMORY + at + 1;
	default:
		return act_map[where & 3].at;
	}
}

static void *act_put(__u64 where, const void *data, size_t size, size_t at)
{
	void *to = act_where(where, size, at);

	act_copy(to, data, size);
	return to;
}

/*
 * What programs remember.
 */

static struct act_file *act_at_file(__u64 file)
{
	return &act_file[file % ACT_FILES];
}

static int act_fd(__u64 file)
{
	return act_at_file(file)->fd;
}

static void act_keep_file(__u64 file, int fd, const struct timewheel_setup *setup)
{
	if (fd < 0)
		return;
	act_at_file(file)->fd = fd;
	if (setup)
		act_at_file(file)->setup = *setup;
}

static void act_keep_handle(__u64 handle)
{
	if (handle)
		act_handles[act_nr_handles++ % ACT_HANDLES] = handle;
}

/* The n-th handle that a call has returned, 0 if there is none. */
static __attribute__((unused)) __u64 act_handle(__u64 n)
{
	return act_handles[n % ACT_HANDLES];
}

/* That many ticks, in ns. */
static __u64 act_ticks(__u64 file, __u64 ticks)
{
	return ticks * act_at_file(file)->setup.tick;
}

/* That many laps of the ring, and @ticks. */
static __u64 act_laps(__u64 file, __u64 laps, __u64 ticks)
{
	return act_ticks(file, laps * act_at_file(file)->setup.slots + ticks);
}

static struct timewheel_info act_info_of(__u64 file)
{
	struct timewheel_info info = { .size = sizeof(info) };

	ioctl(act_fd(file), TIMEWHEEL_INFO, &info);
	return info;
}

/* So many ticks from now, as a time. */
static __attribute__((unused)) __u64 act_time(__u64 file, __u64 ticks)
{
	return act_info_of(file).now + act_ticks(file, ticks);
}

/* So many ticks from now, as a tick. */
static __attribute__((unused)) __u64 act_tick(__u64 file, __u64 ticks)
{
	return act_info_of(file).hand + ticks;
}

/* What a touch of this handle stores, that many ticks from now. */
static __attribute__((unused)) __u64 act_stamp(__u64 file, __u64 n, __u64 ticks)
{
	__u32 stamp = act_tick(file, ticks);

	return (act_handle(n) & 0xffffffff00000000) | (stamp ? stamp : 1);
}

/* The event ring's tail, of which @map is the kernel's part. */
static __attribute__((unused)) __u64 act_tail(__u64 map)
{
	__u64 tail = 0;

	act_copy(&tail, act_map[map % ACT_MAPS].at, sizeof(tail));
	return tail;
}

/*
 * Commands.
 */

/*
 * A command with a structure, of which the first word is its size: more than
 * @known is zeros, or, if the upper half of @v[2] says so, is not. @v: file,
 * where, size, ... What comes back is in *arg.
 */
static long act_command(const __u64 *v, unsigned long command, void *arg,
			size_t known)
{
	static __thread char whole[2 * ACT_PAGE];
	__u32 size = v[2];
	size_t most = size > known ? size : known;
	void *at;
	long ret;

	if (most > sizeof(whole))
		most = sizeof(whole);
	memset(whole, v[2] >> 32 ? 0xff : 0, sizeof(whole));
	*(__u32 *)arg = size;
	memcpy(whole, arg, known);
	at = act_put(v[1], whole, (most + 7) & ~7UL, 0);
	ret = ioctl(act_fd(v[0]), command, at);
	act_copy(arg, at, known);
	return ret;
}

static long act_caps(const __u64 *v)
{
	struct timewheel_caps caps = { .flags = v[3], .reserved = v[4] };

	return act_command(v, TIMEWHEEL_CAPS, &caps, sizeof(caps));
}

static struct timewheel_setup act_setup_of(const __u64 *v)
{
	return (struct timewheel_setup){
		.size = v[0], .flags = v[1], .clock = v[2], .slots = v[3],
		.tick = v[4], .max_tokens = v[5], .start = v[6],
		.events = v[7], .max_attempts = v[8], .lease = v[9],
		.slack = v[10], .jitter = v[11], .misfire = v[12],
		.reserved = v[13],
	};
}

static long act_setup(const __u64 *v)
{
	struct timewheel_setup setup = act_setup_of(v + 2);
	const struct timewheel_setup wanted = setup;
	long ret = act_command(v, TIMEWHEEL_SETUP, &setup, sizeof(setup));

	if (!ret)
		act_at_file(v[0])->setup = wanted;
	return ret;
}

/* The names are few, and some of them wrong. */
static void act_name(char *name, __u64 which)
{
	memset(name, 0, TIMEWHEEL_NAME_SIZE);
	switch (which) {
	case ACT_NAMES:
		break;
	case ACT_NAMES + 1:
		memset(name, 'x', TIMEWHEEL_NAME_SIZE);
		break;
	case ACT_NAMES + 2:
		strcpy(name, "../fuzz");
		break;
	case ACT_NAMES + 3:
		strcpy(name, "fuzz");
		name[TIMEWHEEL_NAME_SIZE - 1] = 'x';
		break;
	default:
		sprintf(name, "fuzz%u", (unsigned int)which % ACT_NAMES);
	}
}

static long act_create(const __u64 *v)
{
	struct timewheel_setup setup = act_setup_of(v + 6);
	struct timewheel_create create = {
		.flags = v[3],
		.setup = (uintptr_t)act_put(v[5], &setup, sizeof(setup),
					    ACT_ARRAY),
	};
	long ret;

	act_name(create.name, v[4]);
	ret = act_command(v, TIMEWHEEL_CREATE, &create, sizeof(create));
	if (ret >= 0)
		act_named[v[4] % ACT_NAMES] = setup;
	return ret;
}

static long act_destroy(const __u64 *v)
{
	struct timewheel_destroy destroy = { .flags = v[3] };

	act_name(destroy.name, v[4]);
	return act_command(v, TIMEWHEEL_DESTROY, &destroy, sizeof(destroy));
}

static long act_info(const __u64 *v)
{
	struct timewheel_info info = { .flags = v[3] };

	return act_command(v, TIMEWHEEL_INFO, &info, sizeof(info));
}

static bool act_registers(__u32 code)
{
	return code == TIMEWHEEL_REGISTER ||
	       code == TIMEWHEEL_TOUCH_OR_REGISTER ||
	       code == TIMEWHEEL_REGISTER_PERIODIC;
}

static long act_op(const __u64 *v)
{
	struct timewheel_op op = {
		.flags = v[3], .code = v[4], .id = v[5], .handle = v[6],
		.time = v[7], .cookie = v[8], .period = v[9], .lease = v[10],
	};
	long ret = act_command(v, TIMEWHEEL_OP, &op, sizeof(op));

	if (!ret && act_registers(v[4]))
		act_keep_handle(op.handle);
	return ret;
}

/* Of two kinds in turn, on ids that follow each other. */
static void act_put_ops(char *at, const __u64 *v)
{
	__u32 op_size = v[5];

	for (__u64 i = 0; i < v[4] && i < ACT_FILLED; i++, at += op_size) {
		const struct timewheel_op op = {
			.size = op_size, .flags = v[8], .code = v[9 + i % 2],
			.id = v[11] + i * (v[12] + 1), .handle = v[13],
			.time = v[14] + i * v[15], .cookie = v[16],
			.period = v[17], .lease = v[18],
		};

		if (!act_copy(at, &op, sizeof(op)))
			return;
	}
}

static long act_batch(const __u64 *v)
{
	__u32 op_size = v[5];
	char *ops = act_where(v[7], v[4] * op_size, ACT_ARRAY);
	struct timewheel_batch batch = {
		.flags = v[3], .ops = (uintptr_t)ops, .count = v[4],
		.op_size = op_size, .reserved = v[6],
	};
	long ret;

	act_put_ops(ops, v);
	ret = act_command(v, TIMEWHEEL_BATCH, &batch, sizeof(batch));
	for (__u32 i = 0; i < batch.done && i < ACT_HANDLES; i++) {
		struct timewheel_op op;

		if (act_copy(&op, ops + i * op_size, sizeof(op)) &&
		    op.result >= 0 && act_registers(op.code))
			act_keep_handle(op.handle);
	}
	return ret;
}

static long act_touch(const __u64 *v)
{
	struct timewheel_touch touch = { .flags = v[3], .key = v[4] };

	if (v[3] & TIMEWHEEL_BY_HANDLE)
		touch.key = v[5];
	return act_command(v, TIMEWHEEL_TOUCH, &touch, sizeof(touch));
}

static long act_touch_many(const __u64 *v)
{
	__u64 *keys = act_where(v[5], v[4] * sizeof(*keys), ACT_ARRAY);
	struct timewheel_touch_many many = {
		.flags = v[3], .keys = (uintptr_t)keys, .count = v[4],
	};

	for (__u64 i = 0; i < v[4] && i < ACT_FILLED; i++) {
		__u64 key = v[3] & TIMEWHEEL_BY_HANDLE ? act_handle(v[6] + i) :
							 v[6] + i * (v[7] + 1);

		if (!act_copy(&keys[i], &key, sizeof(key)))
			break;
	}
	return act_command(v, TIMEWHEEL_TOUCH_MANY, &many, sizeof(many));
}

static long act_advance(const __u64 *v)
{
	struct timewheel_advance advance = { .flags = v[3], .tick = v[4] };

	return act_command(v, TIMEWHEEL_ADVANCE, &advance, sizeof(advance));
}

static long act_list(const __u64 *v)
{
	static __u64 cursor;
	struct timewheel_list list = {
		.flags = v[3], .cursor = v[4] == 1 ? cursor : v[4],
		.from = v[5], .to = v[6], .count = v[8],
		.token_size = v[9], .reserved = v[10],
	};
	long ret;

	list.tokens = (uintptr_t)act_where(v[7], v[8] * list.token_size,
					   ACT_ARRAY);
	ret = act_command(v, TIMEWHEEL_LIST, &list, sizeof(list));
	if (!ret)
		cursor = list.cursor;
	return ret;
}

static long act_stats(const __u64 *v)
{
	const size_t size = TIMEWHEEL_BUCKETS * sizeof(__u64);
	struct timewheel_stats stats = {
		.flags = v[3],
		.lateness = (uintptr_t)act_where(v[4], size, ACT_ARRAY),
		.wake = (uintptr_t)act_where(v[5], size, ACT_OTHER),
	};

	return act_command(v, TIMEWHEEL_STATS, &stats, sizeof(stats));
}

static long act_control(const __u64 *v)
{
	struct timewheel_control control = {
		.flags = v[3], .mask = v[4], .reserved = v[5],
	};

	return act_command(v, TIMEWHEEL_CONTROL, &control, sizeof(control));
}

/* Any number, with what is left of other calls for an argument. */
static long act_ioctl(const __u64 *v)
{
	return ioctl(act_fd(v[0]), v[2], act_where(v[1], 80, 0));
}

/*
 * Files.
 */

static const char *act_path(__u64 which)
{
	static __thread char path[64];

	if (!which)
		return "/dev/timewheel";
	if (which > ACT_NAMES)
		return "/dev/timewheels";
	sprintf(path, "/dev/timewheels/fuzz%u", (unsigned int)which - 1);
	return path;
}

static long act_open(const __u64 *v)
{
	int fd = open(act_path(v[2]), v[1] | O_CLOEXEC);

	act_keep_file(v[0], fd, v[2] && v[2] <= ACT_NAMES ?
				&act_named[v[2] - 1] : NULL);
	return fd;
}

static long act_close(const __u64 *v)
{
	long ret = close(act_fd(v[0]));

	act_at_file(v[0])->fd = -1;
	return ret;
}

static long act_dup(const __u64 *v)
{
	int fd = dup(act_fd(v[1]));

	act_keep_file(v[0], fd, &act_at_file(v[1])->setup);
	return fd;
}

static long act_read(const __u64 *v)
{
	return read(act_fd(v[0]), act_where(v[1], v[2], ACT_ARRAY), v[2]);
}

static long act_readv(const __u64 *v)
{
	const struct iovec iov[] = {
		{ act_where(v[1], v[2], ACT_ARRAY), v[2] },
		{ act_where(v[3], v[4], ACT_OTHER), v[4] },
	};

	return preadv2(act_fd(v[0]), iov, (v[5] + 2) % 3, (long)v[6] - 1, v[7]);
}

/* What a wheel cannot do. */
static long act_refused(const __u64 *v)
{
	int fd = act_fd(v[0]), other = act_fd(v[2]);
	char *at = act_where(v[3], 64, ACT_ARRAY);

	switch (v[1] % 8) {
	case 0:
		return write(fd, at, 64);
	case 1:
		return lseek(fd, 48, SEEK_SET);
	case 2:
		return pread(fd, at, 64, 0);
	case 3:
		return sendfile(other, fd, NULL, 96);
	case 4:
		return splice(fd, NULL, other, NULL, 96, SPLICE_F_NONBLOCK);
	case 5:
		return fsync(fd);
	case 6:
		return ftruncate(fd, 0);
	default:
		return fallocate(fd, 0, 0, 4096);
	}
}

static long act_fcntl(const __u64 *v)
{
	return fcntl(act_fd(v[0]), F_SETFL, (int)v[1]);
}

static long act_poll(const __u64 *v)
{
	struct pollfd p[] = {
		{ .fd = act_fd(v[0]), .events = v[1] },
		{ .fd = act_fd(v[2]), .events = v[1] },
	};

	return poll(p, 2, v[3] % 8);
}

static long act_epoll(const __u64 *v)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	act_keep_file(v[0], fd, NULL);
	return fd;
}

static long act_epoll_ctl(const __u64 *v)
{
	struct epoll_event event = {
		.events = EPOLLIN | v[3] << 24, .data.u64 = v[1],
	};

	return epoll_ctl(act_fd(v[0]), v[2] ? v[2] % 5 : EPOLL_CTL_ADD,
			 act_fd(v[1]), &event);
}

static long act_epoll_wait(const __u64 *v)
{
	struct epoll_event events[4];

	return epoll_wait(act_fd(v[0]), events, 4, v[1] % 8);
}

/* Reads a file about files. */
static long act_proc(const __u64 *v)
{
	static const char * const paths[] = {
		"/sys/kernel/debug/timewheel/wheels",
		"/sys/kernel/debug/timewheel/users",
		"/sys/kernel/debug/timewheel/stats",
		"/proc/self/smaps", "/proc/self/maps",
		"/sys/module/timewheel/parameters/max_tokens",
		"/sys/class/timewheel",
	};
	size_t which = v[1] % 8;
	char path[64], text[512];
	int fd;

	sprintf(path, "/proc/self/fdinfo/%d", act_fd(v[0]));
	fd = open(which ? paths[which - 1] : path, O_RDONLY | O_CLOEXEC);
	while (read(fd, text, sizeof(text)) > 0)
		;
	return close(fd);
}

/*
 * Mappings.
 */

static size_t act_map_size(const struct timewheel_setup *setup, __u64 at)
{
	size_t size = ACT_PAGE;

	if (at == TIMEWHEEL_MAP_WORDS)
		size = setup->max_tokens * sizeof(__u64);
	else if (at == TIMEWHEEL_MAP_PRODUCED)
		size = TIMEWHEEL_EVENTS_AT +
		       setup->events * sizeof(struct timewheel_event);
	return (size + ACT_PAGE - 1) & -ACT_PAGE;
}

/* @v[3]: pages more than there are. */
static long act_mmap(const __u64 *v)
{
	size_t size = act_map_size(&act_at_file(v[0])->setup, v[2]) +
		      v[3] * ACT_PAGE;
	char *at = mmap(NULL, size, v[4], v[5], act_fd(v[0]), v[2]);

	if (at == MAP_FAILED)
		return -1;
	act_map[v[1] % ACT_MAPS] = (struct act_map){ at, size };
	return 0;
}

/* A part of a mapping: pages left out at its begin, and at its end. */
static struct act_map act_part(const __u64 *v)
{
	struct act_map part = act_map[v[0] % ACT_MAPS];
	size_t skip = v[1] * ACT_PAGE, less = v[2] * ACT_PAGE;

	if (skip + less >= part.size)
		return part;
	part.at += skip;
	part.size -= skip + less;
	return part;
}

static long act_munmap(const __u64 *v)
{
	struct act_map part = act_part(v);
	long ret = munmap(part.at, part.size);

	if (!ret && !v[1] && !v[2])
		act_map[v[0] % ACT_MAPS] = (struct act_map){ 0 };
	return ret;
}

static long act_mremap(const __u64 *v)
{
	struct act_map part = act_part(v);
	char *at = mremap(part.at, v[5] ? 0 : part.size,
			  part.size + v[3] * ACT_PAGE, v[4]);

	if (at == MAP_FAILED)
		return -1;
	act_map[v[0] % ACT_MAPS] =
		(struct act_map){ at, part.size + v[3] * ACT_PAGE };
	return 0;
}

static long act_mprotect(const __u64 *v)
{
	struct act_map part = act_part(v);

	return mprotect(part.at, part.size, v[3]);
}

static long act_madvise(const __u64 *v)
{
	struct act_map part = act_part(v);

	return madvise(part.at, part.size, v[3]);
}

/* Others who reach for its pages. */
static long act_reach(const __u64 *v)
{
	struct act_map part = act_part(v);
	struct iovec remote = { part.at, part.size };
	struct iovec local = { ACT_MEMORY + ACT_ARRAY, 4 * ACT_PAGE };
	long ret;
	int fd;

	switch (v[3] % 6) {
	case 0:
		return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	case 1:
		return process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
	case 2:
		return mlock(part.at, part.size);
	case 3:
		return msync(part.at, part.size, MS_SYNC);
	case 4:
		return mincore(part.at, part.size, (void *)ACT_MEMORY);
	default:
		fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		ret = pwrite(fd, ACT_MEMORY, 64, (uintptr_t)part.at);
		close(fd);
		return ret;
	}
}

static long act_store(const __u64 *v)
{
	__u64 *words = (__u64 *)act_map[v[1] % ACT_MAPS].at;

	return act_copy(words + v[2], &v[3], sizeof(__u64)) ? 0 : -1;
}

static long act_load(const __u64 *v)
{
	__u64 *words = (__u64 *)act_map[v[1] % ACT_MAPS].at;
	__u64 word;

	return act_copy(&word, words + v[2], sizeof(word)) ? 0 : -1;
}

/* Nonsense for all words of a page. */
static long act_scribble(const __u64 *v)
{
	__u64 *words = (__u64 *)act_map[v[0] % ACT_MAPS].at;
	__u64 random = v[1] * 0x9e3779b97f4a7c15 + 1;

	for (size_t i = 0; i < ACT_PAGE / sizeof(*words); i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (!act_copy(&words[i], &random, sizeof(random)))
			return -1;
	}
	return 0;
}

/*
 * The rest of the world.
 */

static long act_sleep(const __u64 *v)
{
	struct timespec ts = { .tv_nsec = v[0] % 16 * 1000000 };

	return nanosleep(&ts, NULL);
}

/* Sets the wall's clock so many seconds ahead, or back. */
static long act_set_clock(const __u64 *v)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += (__s64)v[0];
	return clock_settime(CLOCK_REALTIME, &ts);
}

static long act_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	long ret = write(fd, text, strlen(text));

	close(fd);
	return ret;
}

/* Has the n-th thing fail that can fail, where the kernel was built for that. */
static long act_fail(const __u64 *v)
{
	char text[32];

	sprintf(text, "%u", (unsigned int)v[0]);
	return act_write_file("/proc/thread-self/fail-nth", text);
}

static long act_user(const __u64 *v)
{
	return syscall(SYS_setresuid, -1, (uid_t)v[0], -1);
}

/* A time namespace in which it is later; a thread cannot go there alone. */
static long act_time_namespace(const __u64 *v)
{
	char text[64];
	long ret;
	int fd;

	sprintf(text, "monotonic %u 0\nboottime %u 5\n", (unsigned int)v[0],
		(unsigned int)v[0]);
	if (unshare(0x80 /* CLONE_NEWTIME */))
		return -1;
	act_write_file("/proc/self/timens_offsets", text);
	fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
	ret = setns(fd, 0);
	close(fd);
	return ret;
}

/* Wakes all that sleeps, again and again. */
static void act_wake(void)
{
	const struct itimerval timer = {
		.it_interval.tv_usec = ACT_ALARM, .it_value.tv_usec = ACT_ALARM,
	};

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* A part of a program, for a second thread or another process. */
struct act_run {
	void		(*run)(const void *part);
	const void	*part;
	unsigned int	times;
};

static void *act_run_second(void *arg)
{
	const struct act_run *run = arg;

	for (unsigned int i = 0; i < run->times &&
	     !__atomic_load_n(&act_over, __ATOMIC_RELAXED); i++)
		run->run(run->part);
	return NULL;
}

/* Only one; what follows goes on beside it. */
static __attribute__((unused)) void act_thread(void (*run)(const void *part),
					       const void *part,
					       unsigned int times)
{
	static struct act_run second;

	if (act_has_second)
		return;
	second = (struct act_run){ run, part, times };
	act_has_second = !pthread_create(&act_second, NULL, act_run_second,
					 &second);
}

static __attribute__((unused)) void act_fork(void (*run)(const void *part),
					     const void *part)
{
	pid_t pid;

	if (act_nr_children == ACT_CHILDREN)
		return;
	pid = fork();
	if (!pid) {
		act_wake();
		run(part);
		_exit(0);
	}
	if (pid > 0)
		act_child[act_nr_children++] = pid;
}

static void act_begin(void)
{
	const struct sigaction fault = {
		.sa_handler = act_on_fault, .sa_flags = SA_NODEFER,
	};
	const struct sigaction alarm = { .sa_handler = act_on_alarm };
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	for (int i = 0; i < ACT_FILES; i++)
		act_file[i].fd = -1;
	mmap(ACT_MEMORY, ACT_MEMORY_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
	mmap(ACT_FORBIDDEN, ACT_PAGE, PROT_NONE, flags, -1, 0);
	mmap(ACT_CONSTANT, ACT_PAGE, PROT_READ, flags, -1, 0);
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
	sigaction(SIGALRM, &alarm, NULL);
	act_wake();
}

static void act_end(void)
{
	__atomic_store_n(&act_over, true, __ATOMIC_RELAXED);
	if (act_has_second)
		pthread_join(act_second, NULL);
	for (unsigned int i = 0; i < act_nr_children; i++)
		while (waitpid(act_child[i], NULL, 0) < 0 && errno == EINTR)
			;
	for (int i = 0; i < ACT_MAPS; i++)
		if (act_map[i].at)
			munmap(act_map[i].at, act_map[i].size);
	for (int i = 0; i < ACT_FILES; i++)
		if (act_file[i].fd >= 0)
			close(act_file[i].fd);
}

#endif /* ACT_H */
