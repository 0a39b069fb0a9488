// SPDX-License-Identifier: GPL-2.0-only
#include "act.h"

struct act_map act_map[ACT_MAPS];
struct timewheel_setup act_named[ACT_NAMES];

static struct act_file act_file[ACT_FILES];
static __u64 act_handles[ACT_HANDLES];
static unsigned int act_nr_handles;
static pid_t act_child[ACT_CHILDREN];
static unsigned int act_nr_children;
static pthread_t act_second;
static bool act_has_second;
static bool act_over;

/* The following functions use memory that may not exist. */

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

/*
 * Copies whole words, and a half word at the end, as far as there is memory. Returns
 * whether there was.
 */
bool act_copy(void *to, const void *from, size_t size)
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
	if (size & 4) {
		const __u32 *half = (const __u32 *)&words[size / 8];
		__u32 word = __atomic_load_n(half, __ATOMIC_RELAXED);

		__atomic_store_n((__u32 *)&at[size / 8], word, __ATOMIC_RELAXED);
	}
	act_guard(false);
	return true;
}

/*
 * Returns an address for @size bytes. @at: the place in the memory, if the address is
 * a good one. An address in a structure has 64 bits for all callers.
 */
__u64 act_address(__u64 where, size_t size, size_t at)
{
	const __u64 begin = (uintptr_t)ACT_MEMORY;
	const __u64 end = begin + ACT_MEMORY_SIZE;
	size_t fits = size < ACT_MEMORY_SIZE ? size : ACT_MEMORY_SIZE;

	switch (where & 15) {
	case 0:
		return begin + at;
	case 1:
		return 0;
	case 2:
		return 1;
	case 3:
		return end + ACT_PAGE;
	case 4:
		return 0xffff888000000000;
	case 5:
		return 0x8000dead00000000;
	case 6:
		return (uintptr_t)ACT_FORBIDDEN;
	case 7:
		return (uintptr_t)ACT_CONSTANT;
	case 8:
		return end - (fits > 8 ? fits - 8 : 0);
	case 9:
		return end - fits;
	case 10:
		return end - fits / 16 * 8;
	case 11:
		return begin + at + 1;
	default:
		return (uintptr_t)act_map[where & 3].at;
	}
}

void *act_where(__u64 where, size_t size, size_t at)
{
	return (void *)(uintptr_t)act_address(where, size, at);
}

__u64 act_put(__u64 where, const void *data, size_t size, size_t at)
{
	act_copy(act_where(where, size, at), data, size);
	return act_address(where, size, at);
}

/* The following functions keep the files, mappings and handles of a program. */

const char *act_path(__u64 which)
{
	static __thread char path[64];

	if (!which)
		return "/dev/timewheel";
	if (which > ACT_NAMES)
		return "/dev/timewheels";
	sprintf(path, "/dev/timewheels/fuzz%u", (unsigned int)which - 1);
	return path;
}

/* Returns a part of a mapping, without some pages at its begin and at its end. */
struct act_map act_part(const __u64 *v)
{
	struct act_map part = act_map[v[0] % ACT_MAPS];
	size_t skip = v[1] * ACT_PAGE, less = v[2] * ACT_PAGE;

	if (skip + less >= part.size)
		return part;
	part.at += skip;
	part.size -= skip + less;
	return part;
}

static struct act_uring act_urings[ACT_FILES];

struct act_uring *act_at_uring(__u64 ring)
{
	return &act_urings[ring % ACT_FILES];
}

/* Unmaps the io_uring of a file, if it has one. */
void act_uring_end(__u64 file)
{
	struct act_uring *uring = act_at_uring(file);

	if (!uring->rings)
		return;
	munmap(uring->rings, uring->size);
	munmap(uring->sqes, uring->sqes_size);
	*uring = (struct act_uring){ 0 };
}

struct act_file *act_at_file(__u64 file)
{
	return &act_file[file % ACT_FILES];
}

int act_fd(__u64 file)
{
	return act_at_file(file)->fd;
}

void act_keep_file(__u64 file, int fd, const struct timewheel_setup *setup)
{
	if (fd < 0)
		return;
	act_at_file(file)->fd = fd;
	if (setup)
		act_at_file(file)->setup = *setup;
}

void act_keep_handle(__u64 handle)
{
	if (handle)
		act_handles[act_nr_handles++ % ACT_HANDLES] = handle;
}

/* Returns the n-th handle that a call has returned, or 0 if there is none. */
__u64 act_handle(__u64 n)
{
	return act_handles[n % ACT_HANDLES];
}

/* Returns a number of ticks in ns. */
__u64 act_ticks(__u64 file, __u64 ticks)
{
	return ticks * act_at_file(file)->setup.tick;
}

/* Returns laps of the ring and @ticks in ns. */
__u64 act_laps(__u64 file, __u64 laps, __u64 ticks)
{
	return act_ticks(file, laps * act_at_file(file)->setup.slots + ticks);
}

static struct timewheel_info act_info_of(__u64 file)
{
	struct timewheel_info info = { .size = sizeof(info) };

	ioctl(act_fd(file), TIMEWHEEL_IOC_INFO, &info);
	return info;
}

/* Returns the time that is @ticks from now, in ns. */
__u64 act_time(__u64 file, __u64 ticks)
{
	return act_info_of(file).now + act_ticks(file, ticks);
}

/* Returns the tick that is @ticks from now. */
__u64 act_tick(__u64 file, __u64 ticks)
{
	return act_info_of(file).hand + ticks;
}

/* Returns the word that a touch of this handle stores @ticks from now. */
__u64 act_stamp(__u64 file, __u64 n, __u64 ticks)
{
	__u32 stamp = act_tick(file, ticks);

	return (act_handle(n) & 0xffffffff00000000) | (stamp ? stamp : 1);
}

/* Wakes all sleeping calls, again and again. */
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

/* Starts the only second thread. The calls behind its part go on beside it. */
void act_thread(void (*run)(const void *part), const void *part,
		unsigned int times)
{
	static struct act_run second;

	if (act_has_second)
		return;
	second = (struct act_run){ run, part, times };
	act_has_second = !pthread_create(&act_second, NULL, act_run_second,
					 &second);
}

void act_fork(void (*run)(const void *part), const void *part)
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

void act_begin(void)
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

void act_end(void)
{
	sigset_t alarm;

	__atomic_store_n(&act_over, true, __ATOMIC_RELAXED);
	/* From now on the signal interrupts only the second thread. */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	/* A join that waits needs a futex, and some kernels have none for 32 bits. */
	while (act_has_second && pthread_tryjoin_np(act_second, NULL) == EBUSY)
		poll(NULL, 0, 1);
	for (unsigned int i = 0; i < act_nr_children; i++)
		waitpid(act_child[i], NULL, 0);
	for (int i = 0; i < ACT_MAPS; i++)
		if (act_map[i].at)
			munmap(act_map[i].at, act_map[i].size);
	for (int i = 0; i < ACT_FILES; i++)
		if (act_file[i].fd >= 0) {
			act_uring_end(i);
			close(act_file[i].fd);
		}
}
