/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for the programs named, named_sharing and named_lifetime: the set-ups of
 * their wheels, ways to look at named wheels from outside, and their fixture, which notes
 * what is there before a test, and checks that the test has left nothing behind.
 *
 * A program defines PREFIX before it includes this file: the names of all wheels that
 * the program creates begin with PREFIX. The fixture destroys the wheels of these names
 * and no others.
 */
#ifndef TW_NAMED_FIXTURE_H
#define TW_NAMED_FIXTURE_H

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "tw_commands.h"
#include "tw_named.h"

#define NODES		"/dev/timewheels"
#define CLASS		"/sys/class/timewheel"
#define ENTRY_NAME	"timewheels!"		/* the wheel's name follows */
#define ENTRY		CLASS "/" ENTRY_NAME
#define DEBUG		"/sys/kernel/debug/timewheel"
#define NAME		PREFIX "a"
#define OTHER		PREFIX "b"
#define NODE		TW_NODES NAME

#define LONG		280	/* seconds; guests may be emulated */

/* Most wheels here have ticks of 1 s, and only the test advances them. */
static const struct timewheel_setup manual = {
	.size = sizeof(manual), .clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60,
	.tick = TW_SEC, .max_tokens = 100,
};

/* This wheel advances by itself. */
static const struct timewheel_setup monotonic = {
	.size = sizeof(monotonic), .clock = TIMEWHEEL_CLOCK_MONOTONIC,
	.slots = 31, .tick = TW_MS, .max_tokens = 1000,
};

static inline bool in_dir(const char *dir, const char *name)
{
	struct stat st;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !lstat(path, &st);
}

static inline bool in_sysfs(const char *name)
{
	char entry[128];

	snprintf(entry, sizeof(entry), ENTRY_NAME "%s", name);
	return in_dir(CLASS, entry);
}

/*
 * Whether a wheel inside this process can be opened. It has no node and no entry in
 * sysfs.
 */
static inline bool opens(const char *name)
{
	int fd = tw_open_named(name, O_RDONLY);

	close(fd);
	return fd >= 0;
}

/* Whether the wheel has both its node and its entry in sysfs. */
static inline bool is_here(const char *name)
{
	if (tw_in_process())
		return opens(name);
	return in_dir(NODES, name) && in_sysfs(name);
}

/* Whether the wheel has neither its node nor its entry in sysfs. */
static inline bool is_gone(const char *name)
{
	if (tw_in_process())
		return !opens(name);
	return !in_dir(NODES, name) && !in_sysfs(name);
}

static inline int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Reads the first line of a file of the kernel, without the end of the line. */
static inline bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok = file && fgets(line, size, file);

	if (file)
		fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = 0;
	return ok;
}

/* Returns the device number of a wheel's node, as sysfs shows it. */
static inline dev_t number_of(const char *name)
{
	char path[128], line[64] = "0:0", *colon;
	unsigned int number;

	snprintf(path, sizeof(path), ENTRY "%s/dev", name);
	read_line(path, line, sizeof(line));
	number = strtoul(line, &colon, 10);
	return makedev(number, strtoul(colon + 1, NULL, 10));
}

/* Returns the number of wheels, private ones too, or -1 if debugfs does not tell. */
static inline int count_wheels(void)
{
	FILE *file = fopen(DEBUG "/wheels", "re");
	int n = -1, c;

	while (file && (c = fgetc(file)) != EOF)
		n += c == '\n';
	if (file)
		fclose(file);
	return n;
}

static inline bool count_wheels_becomes(int count)
{
	for (int i = 0; i < 500 && count_wheels() != count; i++)
		tw_sleep_ms(10);
	return count_wheels() == count;
}

/* Reads a user's charge. Returns false, and two counts of 0, if debugfs does not tell. */
static inline bool account(uid_t uid, unsigned long long *wheels,
			   unsigned long long *tokens)
{
	unsigned long long of, w, t;
	FILE *file = fopen(DEBUG "/users", "re");
	char line[128];

	*wheels = 0;
	*tokens = 0;
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llu %llu %llu", &of, &w, &t) == 3 &&
		    of == uid) {
			*wheels = w;
			*tokens = t;
		}
	}
	fclose(file);
	return true;
}

/* Destroys the wheels of this program, and removes nodes that it left. */
static inline void clear_away(int dev)
{
	DIR *dir = opendir(CLASS);
	struct dirent *entry;
	char path[512];

	while (dir && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, ENTRY_NAME PREFIX,
			     strlen(ENTRY_NAME PREFIX)))
			tw_destroy_named(dev, entry->d_name + strlen(ENTRY_NAME));
	if (dir)
		closedir(dir);
	dir = opendir(NODES);
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
			continue;
		snprintf(path, sizeof(path), TW_NODES "%s", entry->d_name);
		unlink(path);
	}
	if (dir)
		closedir(dir);
}

/* Initializes a barrier in shared memory for @n processes. */
static inline void init_barrier(pthread_barrier_t *barrier, unsigned int n)
{
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attr, n);
}

/* Ends a child: if one of its assertions failed, its exit status tells the test. */
#define END_CHILD()	_exit(_metadata->exit_code)

/* A fixture notes these numbers before a test, with the device open. */
struct found {
	long refs;	/* to the module */
	int entries;	/* in sysfs */
	int wheels;	/* named and private */
};

static inline void note_what_is_there(int dev, struct found *found)
{
	clear_away(dev);
	found->refs = tw_refcnt();
	found->entries = count_entries(CLASS);
	found->wheels = count_wheels();
}

/* Closes all files, and expects that the test has left nothing behind. */
static inline void expect_as_found(struct __test_metadata *_metadata, int dev,
				   const struct found *found)
{
	clear_away(dev);
	for (int fd = 3; fd < 256; fd++)
		if (fd != dev)
			close(fd);
	EXPECT_EQ(found->entries, count_entries(CLASS));
	EXPECT_TRUE(tw_refcnt_becomes(found->refs)) {
		TH_LOG("%ld references, were %ld", tw_refcnt(), found->refs);
	}
	EXPECT_TRUE(count_wheels_becomes(found->wheels)) {
		TH_LOG("%d wheels, were %d", count_wheels(), found->wheels);
	}
	close(dev);
}

FIXTURE(named) {
	int dev;	/* the device, open for reading and writing */
	struct found found;
};

FIXTURE_SETUP(named)
{
	self->dev = TW_OPEN(O_RDWR);
	note_what_is_there(self->dev, &self->found);
}

FIXTURE_TEARDOWN(named)
{
	expect_as_found(_metadata, self->dev, &self->found);
}

/* Makes every call on a file of a destroyed wheel. */
static inline void expect_enodev(struct __test_metadata *_metadata, int fd)
{
	struct timewheel_op op = { .size = sizeof(op), .id = 1, .time = TW_SEC };
	struct timewheel_event event;
	struct iovec iov = { &event, sizeof(event) };
	const struct tw_command *c;
	char arg[512];

	for_each_command(c) {
		int ret;

		memset(arg, 0, sizeof(arg));
		c->fill(arg);
		ret = tw_ret(ioctl(fd, c->number, arg));
		if (c->needs & TW_WHEEL) {
			EXPECT_EQ(-ENODEV, ret) {
				TH_LOG("%s", c->name);
			}
		} else if (c->needs & TW_ONLY_DEVICE) {
			EXPECT_EQ(-ENOTTY, ret);
		} else if (c->number == TIMEWHEEL_IOC_SETUP) {
			EXPECT_TRUE(ret == -EBUSY || ret == -ENODEV);
		} else {
			EXPECT_EQ(0, ret);
		}
	}
	for (op.code = 0; op.code <= TIMEWHEEL_OP_DELETE; op.code++)
		EXPECT_EQ(-ENODEV, tw_ret(ioctl(fd, TIMEWHEEL_IOC_OP, &op)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_batch(fd, NULL, 0, NULL)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_touch(fd, 0, 99)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_touch_keys(fd, 0, NULL, 0, NULL)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_get_keys(fd, 0, NULL, 0, NULL, NULL)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, &event, 1)));
	EXPECT_EQ(-ENODEV, tw_ret(readv(fd, &iov, 1)));
	EXPECT_EQ(-ENODEV, tw_ret(preadv2(fd, &iov, 1, -1, RWF_NOWAIT)));
}

#endif /* TW_NAMED_FIXTURE_H */
