/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Acts, of which programs of the fuzzer are made: calls on tables of open files,
 * mappings and handles, with numbers for arguments. Acts use only libc and the UAPI
 * header. A program is printed as this file, act.c, the other act_*.c, and a main()
 * that makes its calls.
 */
#ifndef ACT_H
#define ACT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
/* Times and offsets have 64 bits also for callers of 32 bits. */
#define _TIME_BITS		64
#define _FILE_OFFSET_BITS	64
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

#include <linux/io_uring.h>
#include <linux/timewheel.h>

/*
 * A call has at most so many arguments. ARGS() names the arguments that are not 0 by
 * their index.
 */
#define ACT_ARGS	32
#define ARGS(...)	((const __u64[ACT_ARGS]){ __VA_ARGS__ })

#define ACT_FILES	8
#define ACT_MAPS	4
#define ACT_NAMES	4
#define ACT_HANDLES	16
#define ACT_CHILDREN	4

/* The arguments of calls are at fixed addresses, with holes around them. */
#define ACT_PAGE	4096UL
#define ACT_MEMORY	((char *)0x20000000)
#define ACT_MEMORY_SIZE	(1UL << 20)
#define ACT_ARRAY	(64 * 1024)	/* an array behind the structures */
#define ACT_VECTOR	(32 * 1024)	/* vectors of arrays */
#define ACT_OTHER	(512 * 1024)	/* a second array */
#define ACT_FORBIDDEN	(ACT_MEMORY + ACT_MEMORY_SIZE + 4 * ACT_PAGE)
#define ACT_CONSTANT	(ACT_FORBIDDEN + 2 * ACT_PAGE)

/* At most so many elements of an array are filled in. */
#define ACT_FILLED	2048

/* The fields of an operation, in the order of its arguments. */
#define ACT_OP(FIELD)							\
	FIELD(code, CODE)						\
	FIELD(id, ID)							\
	FIELD(handle, HANDLE)						\
	FIELD(time, TIME)						\
	FIELD(cookie, ID)						\
	FIELD(period, SPAN)						\
	FIELD(delivery, NUMBER)						\
	FIELD(timeout, SPAN)						\
	FIELD(reserved, NUMBER)

/* A call that sleeps is interrupted after so many us. */
#define ACT_ALARM	5000

/**
 * struct act_file - an open file
 * @fd: its descriptor, -1 if there is none
 * @setup: the set-up of its wheel, as far as it is known
 */
struct act_file {
	int			fd;
	struct timewheel_setup	setup;
};

struct act_map {
	char	*at;
	size_t	size;
};

/**
 * struct act_uring - the state of an io_uring besides its file
 * @rings: heads, tails and completions; NULL if there is no io_uring
 * @size: bytes of @rings
 * @sqes: requests
 * @sqes_size: bytes of @sqes
 * @params: parameters of its set-up
 * @tail: number of requests so far
 * @of: file of the last request
 */
struct act_uring {
	char			*rings;
	size_t			size;
	char			*sqes;
	size_t			sqes_size;
	struct io_uring_params	params;
	__u32			tail;
	__u64			of;
};

/* Threads share the tables without a lock. A race makes calls only more random. */
extern struct act_map act_map[ACT_MAPS];
extern struct timewheel_setup act_named[ACT_NAMES];

/* The outcome of a call whose code does not show it, or 0. */
extern __thread int act_outcome;

void act_begin(void);
void act_end(void);
void act_thread(void (*run)(const void *part), const void *part,
		unsigned int times);
void act_fork(void (*run)(const void *part), const void *part);

/* These functions use memory that may not exist. */
bool act_copy(void *to, const void *from, size_t size);
__u64 act_address(__u64 where, size_t size, size_t at);
void *act_where(__u64 where, size_t size, size_t at);
__u64 act_put(__u64 where, const void *data, size_t size, size_t at);

/* These functions keep the files, mappings and handles of a program. */
struct act_file *act_at_file(__u64 file);
int act_fd(__u64 file);
void act_keep_file(__u64 file, int fd, const struct timewheel_setup *setup);
void act_keep_handle(__u64 handle);
const char *act_path(__u64 which);
struct act_map act_part(const __u64 *v);
struct act_uring *act_at_uring(__u64 ring);
void act_uring_end(__u64 file);

/* These functions make values of arguments. */
__u64 act_handle(__u64 n);
__u64 act_ticks(__u64 file, __u64 ticks);
__u64 act_laps(__u64 file, __u64 laps, __u64 ticks);
__u64 act_time(__u64 file, __u64 ticks);
__u64 act_tick(__u64 file, __u64 ticks);
__u64 act_stamp(__u64 file, __u64 n, __u64 ticks);

/* These functions are the acts. */
long act_caps(const __u64 *v);
long act_setup(const __u64 *v);
long act_create(const __u64 *v);
long act_destroy(const __u64 *v);
long act_info(const __u64 *v);
long act_op(const __u64 *v);
long act_batch(const __u64 *v);
long act_touch(const __u64 *v);
long act_touch_many(const __u64 *v);
long act_get(const __u64 *v);
long act_advance(const __u64 *v);
long act_list(const __u64 *v);
long act_stats(const __u64 *v);
long act_control(const __u64 *v);
long act_ioctl(const __u64 *v);

long act_open(const __u64 *v);
long act_close(const __u64 *v);
long act_dup(const __u64 *v);
long act_read(const __u64 *v);
long act_readv(const __u64 *v);
long act_refused(const __u64 *v);
long act_fcntl(const __u64 *v);
long act_poll(const __u64 *v);
long act_epoll(const __u64 *v);
long act_epoll_ctl(const __u64 *v);
long act_epoll_wait(const __u64 *v);
long act_proc(const __u64 *v);

long act_mmap(const __u64 *v);
long act_munmap(const __u64 *v);
long act_mremap(const __u64 *v);
long act_mprotect(const __u64 *v);
long act_madvise(const __u64 *v);
long act_reach(const __u64 *v);
long act_store(const __u64 *v);
long act_load(const __u64 *v);
long act_scribble(const __u64 *v);

long act_uring(const __u64 *v);
long act_uring_files(const __u64 *v);
long act_uring_buffers(const __u64 *v);
long act_uring_register(const __u64 *v);
long act_uring_read(const __u64 *v);
long act_uring_poll(const __u64 *v);
long act_uring_cancel(const __u64 *v);
long act_uring_do(const __u64 *v);
long act_uring_enter(const __u64 *v);

long act_sleep(const __u64 *v);
long act_set_clock(const __u64 *v);
long act_fail(const __u64 *v);
long act_user(const __u64 *v);
long act_time_namespace(const __u64 *v);

#endif /* ACT_H */
