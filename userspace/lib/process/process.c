// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Process: wheels and their files, in place of the module's device.c, named.c, map.c,
 * limits.c and stats.c. Names are names within the process, and nobody is charged.
 *
 * A child by fork(2) has copies of its parent's wheels, of which a lock may be held by a
 * thread that is not there, and timerfds that are its parent's. For this reason no call of the
 * child looks at them: each wheel has the mark of the process that made it.
 */
#include <sys/mman.h>

#include <linux/timewheel.h>

#include "blocks.h"
#include "file.h"
#include "named.h"
#include "process.h"
#include "stats.h"
#include "wheel.h"

/**
 * struct process_wheel - a wheel
 * @next: the next one in the list of names; names_lock
 * @wheel: the wheel
 * @setup: how it was set up; constant
 * @mark: the mark of the process that made it; constant
 * @refs: its files, its mappings and its name; names_lock
 * @name: the name of a named wheel, else empty; constant
 */
struct process_wheel {
	struct process_wheel	*next;
	struct tw_wheel		*wheel;
	struct timewheel_setup	setup;
	u64			mark;
	unsigned int		refs;
	char			name[TIMEWHEEL_NAME_SIZE];
};

/**
 * struct tw_process_file - an open file of a wheel
 * @file: as the module knows it; constant
 * @opened: the wheel's view of it
 * @of: its wheel; constant
 * @fd: a duplicate of the timerfd, for the program; constant. It may be closed by mistake:
 *	so no other call but the file's close uses it
 */
struct tw_process_file {
	struct file		file;
	struct tw_file		opened;
	struct process_wheel	*of;
	int			fd;
};

/* These limits are the module's without parameters, but for the most tokens. */
unsigned int tw_min_tick_ns = 100000;
unsigned int tw_max_tokens = BIT(28);

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static struct process_wheel *names;	/* names_lock */
static u64 *process_mark;		/* 0 in a child; names_lock, or by a wheel's user */
static u32 last_number;			/* atomic */

/* This part has the counters of threads. */

static size_t tw_counter_offset(void)
{
	static __thread unsigned int slot __attribute__((__tls_model__("initial-exec")));
	static unsigned int last;

	if (unlikely(!slot))
		slot = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED) | 1U << 31;

	return slot % TW_COUNTERS * TW_COUNTER_BYTES;
}

/* This part has functions that the module's ioctl.c and wheel.c find elsewhere. */

int tw_limits_charge(struct tw_charge *charge, u32 tokens)
{
	charge->tokens = tokens;

	return 0;
}

void tw_limits_uncharge(const struct tw_charge *charge)
{
	(void)charge;
}

int tw_stats_setup(struct tw_wheel *wheel, const struct timewheel_setup *setup)
{
	return tw_wheel_setup(wheel, setup,
			      __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED));
}

/* This part has the mark of a process. */

static void lock_names(void)
{
	pthread_mutex_lock(&names_lock);
}

static void unlock_names(void)
{
	pthread_mutex_unlock(&names_lock);
}

/* Locks the names around fork(), because a child must not find the lock held. */
static void watch_forks(void)
{
	pthread_atfork(lock_names, unlock_names, unlock_names);
}

/* Makes the mark, in memory that is empty in a child. The caller holds names_lock. */
static int make_mark(void)
{
	u64 *page;

	if (!process_mark) {
		page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return -ENOMEM;
		if (madvise(page, PAGE_SIZE, MADV_WIPEONFORK)) {
			munmap(page, PAGE_SIZE);
			return -ENOSYS;
		}
		process_mark = page;
	}
	if (!*process_mark) {
		/* The names are the parent's. */
		names = NULL;
		*process_mark = ((u64)get_random_u32() << 32 | get_random_u32()) ?: 1;
	}

	return 0;
}

static bool is_mine(const struct process_wheel *of)
{
	return likely(of->mark == *process_mark);
}

/* This part has wheels. Callers hold names_lock. */

/* Makes a wheel and sets it up, with one reference. */
static int new_wheel(const struct timewheel_setup *setup, struct process_wheel **made)
{
	struct process_wheel *of = calloc(1, sizeof(*of));
	struct tw_wheel *wheel = tw_wheel_new();
	struct tw_file opened = { .wheel = wheel };
	struct file file = { .private_data = &opened, .f_mode = FMODE_READ | FMODE_WRITE };
	int err = -ENOMEM;

	if (of && wheel) {
		wheel->timer.fd = -EMFILE;
		wheel->readers.timer = &wheel->timer;
		wheel->pollers = (wait_queue_head_t) { &wheel->timer, true };
		err = tw_ioctl(&file, TIMEWHEEL_IOC_SETUP, (unsigned long)setup);
		if (!err && wheel->timer.fd < 0)
			err = wheel->timer.fd;
	}
	if (err) {
		if (wheel && wheel->stage == TW_NEW && wheel->timer.fd >= 0)
			hrtimer_cancel(&wheel->timer);
		if (wheel)
			tw_wheel_free(wheel);
		free(of);
		return err;
	}
	of->wheel = wheel;
	of->mark = *process_mark;
	of->refs = 1;
	memcpy(&of->setup, setup, sizeof(of->setup.size));
	memcpy(&of->setup, setup, min_t(size_t, of->setup.size, sizeof(*setup)));
	of->setup.size = sizeof(of->setup);
	*made = of;

	return 0;
}

/*
 * Gives back a reference. The last reference of a parent's wheel closes only the timerfd: the
 * wheel's memory may have been changing during the fork().
 */
static void put_wheel(struct process_wheel *of)
{
	if (--of->refs)
		return;
	if (is_mine(of)) {
		tw_wheel_free(of->wheel);
		free(of);
	} else {
		close(of->wheel->timer.fd);
	}
}

static void drop_wheel(struct process_wheel *of)
{
	lock_names();
	put_wheel(of);
	unlock_names();
}

static unsigned int mode_of(int access)
{
	return access == O_RDONLY ? FMODE_READ :
	       access == O_WRONLY ? FMODE_WRITE : FMODE_READ | FMODE_WRITE;
}

/* Opens a wheel, and takes a reference. */
static int new_file(struct process_wheel *of, int access, struct tw_process_file **made)
{
	struct tw_process_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	file->fd = fcntl(of->wheel->timer.fd, F_DUPFD_CLOEXEC, 0);
	if (file->fd < 0) {
		err = -errno;
		free(file);
		return err;
	}
	file->of = of;
	file->opened.wheel = of->wheel;
	file->file.private_data = &file->opened;
	file->file.f_mode = mode_of(access);
	of->refs++;
	*made = file;

	return 0;
}

/* Returns the link to the wheel of a name, or the last link, which is NULL. */
static struct process_wheel **find_name(const char *name)
{
	struct process_wheel **link = &names;

	while (*link && strcmp((*link)->name, name))
		link = &(*link)->next;

	return link;
}

/* This part has files. */

static int begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err;

	pthread_once(&once, watch_forks);
	lock_names();
	err = make_mark();
	if (err)
		unlock_names();

	return err;
}

int tw_process_open(const struct timewheel_setup *setup, int access,
		    struct tw_process_file **file)
{
	struct process_wheel *of;
	int err = begin();

	if (err)
		return err;
	err = new_wheel(setup, &of);
	if (!err) {
		err = new_file(of, access, file);
		put_wheel(of);
	}
	unlock_names();

	return err;
}

int tw_process_open_named(const char *name, int access, struct tw_process_file **file)
{
	struct process_wheel *of;
	int err = begin();

	if (err)
		return err;
	of = *find_name(name);
	err = of ? new_file(of, access, file) : -ENOENT;
	unlock_names();

	return err;
}

void tw_process_close(struct tw_process_file *file)
{
	struct process_wheel *of = file->of;

	if (is_mine(of))
		tw_wheel_return(of->wheel, &file->opened.holder);
	close(file->fd);
	free(file);
	drop_wheel(of);
}

int tw_process_fd(const struct tw_process_file *file)
{
	return file->fd;
}

long tw_process_ioctl(struct tw_process_file *file, unsigned long cmd, void *arg)
{
	if (unlikely(!is_mine(file->of)))
		return -ENODEV;

	return tw_ioctl(&file->file, cmd, (unsigned long)arg);
}

long tw_process_device(int access, unsigned long cmd, void *arg)
{
	static struct tw_wheel none;
	static struct tw_file opened = { .wheel = &none };
	struct file device = { &opened, mode_of(access), 0 };

	return tw_ioctl(&device, cmd, (unsigned long)arg);
}

ssize_t tw_process_read(struct tw_process_file *file, void *to, size_t bytes, bool nowait)
{
	struct hrtimer *timer = &file->opened.wheel->timer;
	struct kiocb iocb = { &file->file, IOCB_NOWAIT };
	struct iov_iter iter = { to, min_t(size_t, bytes, S32_MAX) };
	ssize_t ret;

	if (unlikely(!is_mine(file->of)))
		return -ENODEV;
	if (!(file->file.f_mode & FMODE_READ))
		return -EBADF;
	tw_timer_catch_up(timer, false);
	ret = tw_events_read(&iocb, &iter);
	if (ret != -EAGAIN)
		return ret;
	/* A clock that was set back must not leave the fd readable although nothing is due. */
	if (file->opened.wheel->clock == TIMEWHEEL_CLOCK_REALTIME && wait_for(timer, 0) > 0)
		tw_timer_catch_up(timer, true);
	/* All duplicates of the fd share O_NONBLOCK. */
	if (nowait || fcntl(timer->fd, F_GETFL) & O_NONBLOCK)
		return ret;
	iocb.ki_flags = 0;

	return tw_events_read(&iocb, &iter);
}

/* This part has touch words, which lie in a row and need no mapping. */

int tw_process_map(struct tw_process_file *file, void **words, void **hold)
{
	const unsigned int both = FMODE_READ | FMODE_WRITE;
	struct tw_ring *ring = &file->of->wheel->ring;

	if (!is_mine(file->of))
		return -ENODEV;
	if (!tw_ring_has_words(ring))
		return -EINVAL;
	if ((file->file.f_mode & both) != both)
		return -EACCES;
	lock_names();
	file->of->refs++;
	unlock_names();
	*words = tw_blocks_row(&ring->words);
	*hold = file->of;

	return 0;
}

void tw_process_unmap(void *hold)
{
	drop_wheel(hold);
}

/* This part has named wheels. */

/* @name and @setup have been checked; the size is the one of the caller's structure. */
int tw_named_create(const char *name, const struct timewheel_setup *setup,
		    bool exclusive)
{
	struct timewheel_setup known = *setup;
	struct process_wheel **link, *of;
	int err = begin();

	if (err)
		return err;
	known.size = sizeof(known);
	link = find_name(name);
	if (*link) {
		err = !exclusive && !memcmp(&(*link)->setup, &known, sizeof(known)) ?
		      TIMEWHEEL_RES_EXISTED : -EEXIST;
	} else {
		err = new_wheel(&known, &of);
		if (!err) {
			memcpy(of->name, name, strlen(name));
			of->wheel->name = of->name;
			*link = of;
		}
	}
	unlock_names();

	return err;
}

int tw_named_destroy(const char *name)
{
	struct process_wheel **link, *of;
	int err = begin();

	if (err)
		return err;
	link = find_name(name);
	of = *link;
	if (of) {
		*link = of->next;
		tw_wheel_end(of->wheel);
		put_wheel(of);
	}
	unlock_names();

	return of ? 0 : -ENOENT;
}
