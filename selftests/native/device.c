// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device /dev/timewheel inside a test, on wheels of the process. Kselftests then
 * run on machines without the module. The linker hands the system calls that a test
 * makes on the device's fds to this file (--wrap). A preloaded library would not do,
 * because a sanitizer has to be preloaded first.
 *
 * An fd of the device is a timerfd, which poll(2) and similar calls understand.
 * Before the set-up of a wheel, the timerfd never goes off. Other work of a kernel,
 * for example the check of addresses, is missing here, and tests of it say
 * NEEDS_KERNEL().
 *
 * The way from an fd to its file takes no lock and has no ordering. Otherwise the
 * thread sanitizer would not see that the wheel itself fails to order something. The
 * memory of a file is therefore never used again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/timewheel.h>

#include "device.h"
#include "process/process.h"

#define DEVICE	"/dev/timewheel"
#define NODES	"/dev/timewheels/"
#define FDS	65536

/**
 * struct opened - an open file of the device
 * @refs: fds, mappings and calls; a file without any is dead for good
 * @access: O_RDONLY, O_WRONLY or O_RDWR; constant
 * @flags: O_NONBLOCK or nothing
 * @wheel: NULL until the file is set up
 */
struct opened {
	atomic_uint			refs;
	int				access;
	atomic_int			flags;
	struct tw_process_file *_Atomic	wheel;
};

/**
 * struct mapped - touch words that are mapped
 * @next: next in the list of all mappings; lock
 * @file: file, which the mapping keeps open; constant
 * @words: address of the words; constant
 * @length: length in bytes; constant
 * @hold: reference that keeps the words; constant
 */
struct mapped {
	struct mapped	*next;
	struct opened	*file;
	void		*words;
	size_t		length;
	void		*hold;
};

/* A program that uses large files calls functions of these names. */
#define LARGE(name, wrapped)	typeof(wrapped) name __attribute__((__alias__(#wrapped)))

/* The lock protects changes of these tables. No call on a wheel is made with it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *_Atomic fds[FDS];
static struct mapped *maps;

/* Turns the result of a wheel of the process into the result of a system call. */
static long result(long ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* The following functions are about files and their fds. */

/* Returns the file of an fd, with a reference, or NULL. */
static struct opened *get(int fd)
{
	struct opened *file = NULL;
	unsigned int refs;

	if (fd >= 0 && fd < FDS)
		file = atomic_load_explicit(&fds[fd], memory_order_acquire);
	if (!file)
		return NULL;
	refs = atomic_load_explicit(&file->refs, memory_order_relaxed);
	while (refs && !atomic_compare_exchange_weak_explicit(&file->refs, &refs, refs + 1,
							      memory_order_relaxed,
							      memory_order_relaxed))
		;
	return refs ? file : NULL;
}

static void put(struct opened *file)
{
	int err = errno;

	if (file && atomic_fetch_sub_explicit(&file->refs, 1, memory_order_release) == 1 &&
	    !atomic_load_explicit(&file->refs, memory_order_acquire) && file->wheel)
		tw_process_close(file->wheel);
	errno = err;
}

/*
 * Makes @fd a descriptor of @file, and takes over the caller's reference. The fd may
 * have belonged to another file. The caller has the lock, which is released.
 */
static int give(int fd, struct opened *file)
{
	struct opened *old = NULL;

	if (fd >= FDS)
		abort();
	if (fd >= 0)
		old = atomic_exchange(&fds[fd], file);
	pthread_mutex_unlock(&lock);
	put(fd >= 0 ? old : file);
	return fd;
}

static int new_file(int fd, int flags, struct tw_process_file *wheel)
{
	struct opened *file = calloc(1, sizeof(*file));

	if (fd < 0 || !file)
		abort();
	atomic_init(&file->refs, 1);
	atomic_init(&file->flags, flags & O_NONBLOCK);
	atomic_init(&file->wheel, wheel);
	file->access = flags & O_ACCMODE;
	pthread_mutex_lock(&lock);
	return give(fd, file);
}

/* Returns an fd, -1 and errno, or -2 if the path is not of the device. */
static int open_wheel(const char *path, int flags)
{
	const int kept = flags & O_CLOEXEC;
	struct tw_process_file *wheel;
	int fd;

	if (flags & O_PATH)
		return -2;
	if (!strcmp(path, DEVICE)) {
		fd = timerfd_create(CLOCK_MONOTONIC, kept ? TFD_CLOEXEC : 0);
		return fd < 0 ? fd : new_file(fd, flags, NULL);
	}
	if (strncmp(path, NODES, strlen(NODES)))
		return -2;
	if (result(tw_process_open_named(path + strlen(NODES), flags & O_ACCMODE, &wheel)) < 0)
		return -1;
	fd = __real_fcntl(tw_process_fd(wheel), kept ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
	if (fd < 0)
		tw_process_close(wheel);
	return fd < 0 ? fd : new_file(fd, flags, wheel);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	int fd = open_wheel(path, flags);
	va_list args;
	mode_t mode;

	if (fd != -2)
		return fd;
	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return __real_openat(dir, path, flags, mode);
}

LARGE(__wrap_openat64, __wrap_openat);

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return __wrap_openat(AT_FDCWD, path, flags, mode);
}

LARGE(__wrap_open64, __wrap_open);

int __wrap_close(int fd)
{
	struct opened *old = NULL;
	int ret;

	pthread_mutex_lock(&lock);
	if (fd >= 0 && fd < FDS)
		old = atomic_exchange(&fds[fd], NULL);
	ret = __real_close(fd);
	pthread_mutex_unlock(&lock);
	put(old);
	return ret;
}

int __wrap_dup(int fd)
{
	struct opened *file = get(fd);

	pthread_mutex_lock(&lock);
	return give(__real_dup(fd), file);
}

int __wrap_dup2(int fd, int to)
{
	struct opened *file = get(fd);

	pthread_mutex_lock(&lock);
	return give(__real_dup2(fd, to), file);
}

int __wrap_dup3(int fd, int to, int flags)
{
	struct opened *file = get(fd);

	pthread_mutex_lock(&lock);
	return give(__real_dup3(fd, to, flags), file);
}

/* All files of a wheel share the timerfd's O_NONBLOCK, which therefore stays off. */
static long file_flags(struct opened *file, int fd, int cmd, long arg)
{
	long flags = __real_fcntl(fd, F_GETFL);

	if (flags < 0)
		return flags;
	if (cmd == F_GETFL)
		return (flags & ~O_ACCMODE) | file->access | file->flags;
	flags = __real_fcntl(fd, F_SETFL, arg & ~O_NONBLOCK);
	if (!flags)
		file->flags = arg & O_NONBLOCK;
	return flags;
}

int __wrap_fcntl(int fd, int cmd, ...)
{
	struct opened *file = get(fd);
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		pthread_mutex_lock(&lock);
		return give(__real_fcntl(fd, cmd, arg), file);
	}
	if (file && (cmd == F_GETFL || cmd == F_SETFL))
		arg = file_flags(file, fd, cmd, arg);
	else
		arg = __real_fcntl(fd, cmd, arg);
	put(file);
	return arg;
}

LARGE(__wrap_fcntl64, __wrap_fcntl);

/* The following functions carry out commands. */

/* Replaces all fds of a file by fds of its wheel. */
static void show(struct opened *file, struct tw_process_file *wheel)
{
	pthread_mutex_lock(&lock);
	for (int fd = 0; fd < FDS; fd++) {
		int kept;

		if (atomic_load_explicit(&fds[fd], memory_order_relaxed) != file)
			continue;
		kept = __real_fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
		if (__real_dup3(tw_process_fd(wheel), fd, kept) < 0)
			abort();
	}
	file->wheel = wheel;
	pthread_mutex_unlock(&lock);
}

static long set_up(struct opened *file, const struct timewheel_setup *setup)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	struct tw_process_file *wheel;
	long ret;

	pthread_mutex_lock(&one);
	if (file->wheel) {
		ret = tw_process_ioctl(file->wheel, TIMEWHEEL_IOC_SETUP, (void *)setup);
	} else {
		/* The set-up opens fds, and calls this file again for them. */
		ret = tw_process_open(setup, file->access, &wheel);
		if (!ret)
			show(file, wheel);
	}
	pthread_mutex_unlock(&one);
	return ret;
}

static struct tw_process_file *wheel_of(struct opened *file)
{
	return atomic_load_explicit(&file->wheel, memory_order_acquire);
}

int __wrap_ioctl(int fd, unsigned long cmd, ...)
{
	struct opened *file = get(fd);
	struct tw_process_file *wheel;
	va_list args;
	void *arg;
	long ret;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (!file)
		return __real_ioctl(fd, cmd, arg);
	wheel = wheel_of(file);
	if (wheel)
		ret = tw_process_ioctl(wheel, cmd, arg);
	else if (cmd == TIMEWHEEL_IOC_SETUP && file->access != O_RDONLY)
		ret = set_up(file, arg);
	else
		ret = tw_process_device(file->access, cmd, arg);
	put(file);
	return result(ret);
}

/* The following functions read and write. A timerfd refuses writes, as the device does. */

static ssize_t read_wheel(struct opened *file, void *to, size_t bytes, bool nowait)
{
	struct tw_process_file *wheel = wheel_of(file);

	if (!wheel)
		return file->access == O_WRONLY ? -EBADF : -EBADFD;
	return tw_process_read(wheel, to, bytes, nowait || file->flags & O_NONBLOCK);
}

ssize_t __wrap_read(int fd, void *to, size_t bytes)
{
	struct opened *file = get(fd);
	ssize_t ret;

	if (!file)
		return __real_read(fd, to, bytes);
	ret = read_wheel(file, to, bytes, false);
	put(file);
	return result(ret);
}

/* Reads into several buffers. An event may lie across their borders. */
static ssize_t read_pieces(struct opened *file, const struct iovec *iov, int count, bool nowait)
{
	ssize_t ret, left;
	size_t bytes = 0;
	char *all, *from;

	for (int i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	all = malloc(bytes ?: 1);
	if (!all)
		return -ENOMEM;
	ret = read_wheel(file, all, bytes, nowait);
	from = all;
	for (left = ret; left > 0; iov++) {
		size_t some = (size_t)left < iov->iov_len ? (size_t)left : iov->iov_len;

		memcpy(iov->iov_base, from, some);
		from += some;
		left -= some;
	}
	free(all);
	return ret;
}

ssize_t __wrap_readv(int fd, const struct iovec *iov, int count)
{
	struct opened *file = get(fd);
	ssize_t ret;

	if (!file)
		return __real_readv(fd, iov, count);
	ret = read_pieces(file, iov, count, false);
	put(file);
	return result(ret);
}

ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int count, off_t at, int flags)
{
	struct opened *file = get(fd);
	ssize_t ret;

	if (!file)
		return __real_preadv2(fd, iov, count, at, flags);
	ret = flags & ~RWF_NOWAIT ? -EOPNOTSUPP : at == -1 ?
	      read_pieces(file, iov, count, flags) : -ESPIPE;
	put(file);
	return result(ret);
}

LARGE(__wrap_preadv64v2, __wrap_preadv2);

ssize_t __wrap_write(int fd, const void *from, size_t bytes)
{
	struct opened *file = get(fd);
	bool refused = file && file->access == O_RDONLY;

	put(file);
	return refused ? result(-EBADF) : __real_write(fd, from, bytes);
}

/* The following functions map touch words. */

/* Returns the length of the mapping of a wheel's words. */
static size_t length_of(struct tw_process_file *wheel)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct timewheel_info info = { .size = sizeof(info) };

	if (tw_process_ioctl(wheel, TIMEWHEEL_IOC_INFO, &info))
		return 0;
	return (info.max_tokens * 8 + page - 1) / page * page;
}

/* Maps a wheel's words. Takes over the caller's reference to the file, unless it fails. */
static int map_wheel(struct opened *file, struct mapped *map)
{
	struct tw_process_file *wheel = wheel_of(file);
	int err = wheel ? tw_process_map(wheel, &map->words, &map->hold) : -EBADFD;

	if (err)
		return err;
	if (map->length != length_of(wheel)) {
		tw_process_unmap(map->hold);
		return -EINVAL;
	}
	map->file = file;
	pthread_mutex_lock(&lock);
	map->next = maps;
	maps = map;
	pthread_mutex_unlock(&lock);
	return 0;
}

void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	struct opened *file = flags & MAP_ANONYMOUS ? NULL : get(fd);
	struct mapped *map;
	int err;

	if (!file)
		return __real_mmap(at, length, prot, flags, fd, offset);
	map = malloc(sizeof(*map));
	if (!map)
		abort();
	map->length = length;
	err = offset == TIMEWHEEL_MAP_WORDS && flags & MAP_SHARED && !(prot & PROT_EXEC) ?
	      map_wheel(file, map) : -EINVAL;
	if (!err)
		return map->words;
	free(map);
	put(file);
	errno = -err;
	return MAP_FAILED;
}

LARGE(__wrap_mmap64, __wrap_mmap);

int __wrap_munmap(void *at, size_t length)
{
	struct mapped **link = &maps, *map;

	pthread_mutex_lock(&lock);
	while (*link && ((*link)->words != at || (*link)->length != length))
		link = &(*link)->next;
	map = *link;
	if (map)
		*link = map->next;
	pthread_mutex_unlock(&lock);
	if (!map)
		return __real_munmap(at, length);
	tw_process_unmap(map->hold);
	put(map->file);
	free(map);
	return 0;
}
