// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of the module: it is loaded, refused, held by its users' files, and removed
 * while others try to open it (P10). TW_MODULE names the module's file; no other
 * program may use the module meanwhile. The tests need root. They load the module at
 * the end, with its default parameters.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>

#include "tw_named.h"
#include "tw_process.h"
#include "tw_test.h"
#include "tw_uring.h"

#define MODULE		"timewheel"
#define NAME		"module"
#define LONG		300	/* seconds that a test may take */
#define MISC_MAJOR	10

static int insert(int image, const char *parameters)
{
	return tw_ret(syscall(SYS_finit_module, image, parameters, 0));
}

static int delete(unsigned int flags)
{
	return tw_ret(syscall(SYS_delete_module, MODULE, O_NONBLOCK | flags));
}

static bool is_loaded(void)
{
	return !access("/sys/module/" MODULE, F_OK);
}

/*
 * Removes the module, and waits meanwhile: the kernel releases closed files a little
 * later.
 */
static int delete_soon(void)
{
	int ret = -EWOULDBLOCK;

	for (int tries = 0; tries < 2000 && ret == -EWOULDBLOCK; tries++) {
		ret = delete(0);
		if (ret == -EWOULDBLOCK)
			tw_sleep_ms(5);
	}
	return ret;
}

FIXTURE(module) {
	int image;
	bool may_change;	/* the test may remove and load the module */
	gid_t gid;		/* the group that may use the device, before the test */
};

static int open_image(void)
{
	return open(getenv("TW_MODULE"), O_RDONLY | O_CLOEXEC);
}

FIXTURE_SETUP(module)
{
	int fd = TW_OPEN(O_RDWR);
	struct stat st;

	ASSERT_EQ(0, fstat(fd, &st));
	self->gid = st.st_gid;
	close(fd);
	TW_NEEDS_ROOT();
	if (!getenv("TW_MODULE"))
		SKIP(return, "TW_MODULE does not name the module's file");
	if (tw_refcnt())
		SKIP(return, "somebody else uses the module");
	self->image = open_image();
	ASSERT_LE(0, self->image);
	self->may_change = true;
}

/* The parent loads the module again, however the test has ended. */
FIXTURE_TEARDOWN_PARENT(module)
{
	int image = self->may_change ? open_image() : -1;

	if (image < 0)
		return;
	/* A test may have left the module loaded with other parameters. */
	if (is_loaded())
		EXPECT_EQ(0, delete_soon());
	EXPECT_EQ(0, insert(image, ""));
	EXPECT_EQ(0, chown(TW_DEVICE, 0, self->gid));
	close(image);
}

TEST_F_TIMEOUT(module, loaded_twice_is_eexist, LONG)
{
	struct timewheel_info info;
	int fd = TW_OPEN(O_RDWR);

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	EXPECT_EQ(-EEXIST, insert(self->image, ""));
	EXPECT_EQ(-EEXIST, insert(self->image, "max_tokens=1"));
	EXPECT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1, tw_refcnt());
	close(fd);
}

static bool dir_mentions(const char *path, const char *word)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = strstr(entry->d_name, word);
	if (dir)
		closedir(dir);
	return found;
}

/* Expects that no list of the kernel mentions the module any more. */
static void expect_gone(struct __test_metadata *_metadata)
{
	static const char *const dirs[] = {
		"/dev", "/sys/module", "/sys/class", "/sys/class/misc",
		"/sys/devices/virtual", "/sys/kernel/slab", "/sys/kernel/debug",
		"/sys/kernel/tracing/events", "/sys/dev/char",
	};
	static const char *const files[] = {
		"/proc/misc", "/proc/devices", "/proc/modules", "/proc/kallsyms",
	};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		EXPECT_FALSE(dir_mentions(dirs[i], MODULE)) {
			TH_LOG("%s", dirs[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		EXPECT_FALSE(tw_file_mentions(files[i], MODULE)) {
			TH_LOG("%s", files[i]);
		}
	}
}

TEST_F_TIMEOUT(module, removed_without_a_trace, LONG)
{
	int fd = TW_OPEN(O_RDWR);

	EXPECT_TRUE(dir_mentions("/dev", MODULE));
	EXPECT_TRUE(tw_file_mentions("/proc/misc", MODULE));
	EXPECT_TRUE(tw_file_mentions("/proc/devices", MODULE));
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 1000, 0));
	ASSERT_EQ(1000UL, tw_register_many(fd, 0, 1000, 0, TW_SEC));
	close(fd);
	ASSERT_EQ(0, delete_soon());
	expect_gone(_metadata);
	EXPECT_EQ(-ENOENT, delete(0));
	EXPECT_EQ(-ENOENT, tw_ret(open(TW_DEVICE, O_RDWR)));
}

/* The node belongs to root until udev has worked. */
TEST_F_TIMEOUT(module, node_is_not_for_all, LONG)
{
	struct stat st;

	ASSERT_EQ(0, delete_soon());
	ASSERT_EQ(0, insert(self->image, ""));
	ASSERT_EQ(0, stat(TW_DEVICE, &st));
	EXPECT_EQ(S_IFCHR | 0660U, st.st_mode);
	EXPECT_EQ(0U, st.st_uid);
	EXPECT_EQ(0U, st.st_gid);
	EXPECT_EQ((unsigned int)MISC_MAJOR, major(st.st_rdev));
}

/* Ordinary users may not remove the module, not even by force. */
TEST_F_TIMEOUT(module, users_may_not_remove_it, LONG)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (setresgid(65534, 65534, 65534) ||
		    setresuid(65534, 65534, 65534))
			_exit(1);
		_exit(delete(0) != -EPERM || delete(O_TRUNC) != -EPERM ||
		      insert(self->image, "") != -EPERM ? 2 : 0);
	}
	EXPECT_EQ(0, tw_reap(child));
	EXPECT_TRUE(is_loaded());
}

/* A bad parameter makes the load fail, and the module is not there. */
TEST_F_TIMEOUT(module, parameters_out_of_range, LONG)
{
	static const char *const names[] = {
		"max_tokens", "max_user_wheels", "max_user_tokens",
		"max_all_wheels", "max_all_tokens", "min_tick_ns",
	};
	static const char *const values[] = {
		"0", "-1", "x", "", "0x", "1.5", "4294967296",
		"18446744073709551616",
	};
	static const char *const others[] = {
		"max_tokens=268435457", "max_tokens=2147483648",
		"min_tick_ns=999", "min_tick_ns=1000000001",
		"min_tick_ns=2147483648", "max_tokens=1 max_all_tokens=0",
	};
	const bool is_short = tw_scaled(20) < 2;
	char parameter[64];

	ASSERT_EQ(0, delete_soon());
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
			int ret;

			/* A load takes long in a kernel with debugging options. */
			if (is_short && (i + j) % 3)
				continue;

			snprintf(parameter, sizeof(parameter), "%s=%s",
				 names[i], values[j]);
			ret = insert(self->image, parameter);
			/* A value beyond an integer is out of range too. */
			EXPECT_TRUE(ret == -EINVAL || ret == -ERANGE) {
				TH_LOG("%s: %d", parameter, ret);
			}
			EXPECT_FALSE(is_loaded());
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		EXPECT_EQ(-EINVAL, insert(self->image, others[i])) {
			TH_LOG("%s", others[i]);
		}
	}
	expect_gone(_metadata);
}

TEST_F_TIMEOUT(module, parameters_at_their_limits, LONG)
{
	static const struct {
		const char *parameters;
		__u64 min_tick, max_tokens;
	} cases[] = {
		{ "min_tick_ns=1000 max_tokens=1", 1000, 1 },
		{ "min_tick_ns=1000000000 max_tokens=268435456", 1000000000,
		  268435456 },
		{ "max_user_wheels=1 max_user_tokens=1 max_all_wheels=1 max_all_tokens=1",
		  100000, 1 << 24 },
		{ "max_user_wheels=4294967295 max_all_wheels=4294967295",
		  100000, 1 << 24 },
		{ "max_user_tokens=4294967295 max_all_tokens=4294967295",
		  100000, 1 << 24 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct timewheel_caps caps = { .size = sizeof(caps) };
		struct timewheel_event event;
		int fd;

		ASSERT_EQ(0, delete_soon());
		ASSERT_EQ(0, insert(self->image, cases[i].parameters));
		fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
		EXPECT_EQ(cases[i].min_tick, caps.min_tick);
		EXPECT_EQ(cases[i].max_tokens, caps.max_tokens);
		EXPECT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31,
				      caps.min_tick, 1, 0, 0));
		EXPECT_EQ(0, tw_register(fd, 1, 1, 0, NULL));
		EXPECT_EQ(-ENOSPC, tw_ret(tw_register(fd, 2, 1, 0, NULL)));
		EXPECT_EQ(1, tw_read(fd, &event, 1));
		close(fd);
	}
}

/*
 * A case holds the module in its own way: it takes over the file @fd in some form, and
 * gives the file up later.
 */
struct held {
	int fd;
	int sockets[2];
	void *at;
	struct tw_uring ring;
};

static bool hold_file(struct held *held)
{
	return held->fd >= 0;
}

static void release_file(struct held *held)
{
	close(held->fd);
}

static bool hold_copy(struct held *held)
{
	int copy = dup(held->fd);

	close(held->fd);
	held->fd = copy;
	return copy >= 0;
}

static bool hold_mapping(struct held *held)
{
	held->at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			held->fd, TIMEWHEEL_MAP_WORDS);
	close(held->fd);
	return held->at != MAP_FAILED;
}

static void release_mapping(struct held *held)
{
	munmap(held->at, 4096);
}

/* Puts the file into a message that no process receives. */
static bool hold_message(struct held *held)
{
	bool ok = !socketpair(AF_UNIX, SOCK_STREAM, 0, held->sockets) &&
		  !tw_send_fd(held->sockets[0], held->fd, 0);

	close(held->fd);
	return ok;
}

static void release_message(struct held *held)
{
	close(held->sockets[0]);
	close(held->sockets[1]);
}

static bool hold_uring_file(struct held *held)
{
	bool ok = !tw_uring_open(&held->ring) &&
		  !syscall(SYS_io_uring_register, held->ring.fd,
			   IORING_REGISTER_FILES, &held->fd, 1);

	close(held->fd);
	return ok;
}

static void release_uring_file(struct held *held)
{
	tw_uring_close(&held->ring);
}

/* Makes a named wheel that no file has open. */
static bool hold_name(struct held *held)
{
	const struct timewheel_setup setup = {
		.slots = 60, .tick = TW_MS, .max_tokens = 10,
	};
	bool ok = !tw_create_named(held->fd, NAME, setup);
	int fd = tw_open_named(NAME, O_RDWR);

	ok = ok && !tw_register(fd, 1, TW_MS, 0, NULL) &&
	     !tw_register(fd, 2, 3600 * TW_SEC, 0, NULL);
	close(fd);
	close(held->fd);
	return ok;
}

static void release_name(struct held *held)
{
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

	(void)held;
	tw_destroy_named(fd, NAME);
	close(fd);
}

/* P10: the module stays while anything holds it, and can be removed afterwards. */
TEST_F_TIMEOUT(module, stays_while_held, LONG)
{
	static const struct {
		const char *what;
		bool (*hold)(struct held *held);
		void (*release)(struct held *held);
	} cases[] = {
		{ "file", hold_file, release_file },
		{ "copy", hold_copy, release_file },
		{ "mapping", hold_mapping, release_mapping },
		{ "message", hold_message, release_message },
		{ "file of an io_uring", hold_uring_file, release_uring_file },
		{ "name", hold_name, release_name },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct held held = { .fd = TW_OPEN(O_RDWR) };

		ASSERT_EQ(0, tw_setup(held.fd, TIMEWHEEL_CLOCK_MONOTONIC, 60,
				      TW_MS, 512, TIMEWHEEL_SETUP_TOUCH_WORDS, 0));
		ASSERT_EQ(512UL, tw_register_many(held.fd, 0, 512, 0, TW_MS));
		EXPECT_TRUE(cases[i].hold(&held)) {
			TH_LOG("%s: %s", cases[i].what, strerror(errno));
		}
		for (int tries = 0; tries < 5; tries++) {
			EXPECT_EQ(-EWOULDBLOCK, delete(0)) {
				TH_LOG("%s", cases[i].what);
			}
			tw_sleep_ms(2);
		}
		cases[i].release(&held);
		EXPECT_EQ(0, delete_soon()) {
			TH_LOG("%s", cases[i].what);
		}
		ASSERT_EQ(0, insert(self->image, ""));
	}
}

/* Starts wheels with timers that go off, due tokens, and far tokens. */
static bool start_wheels(int *fd, size_t wheels, unsigned long tokens)
{
	for (size_t i = 0; i < wheels; i++) {
		fd[i] = open(TW_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (fd[i] < 0 ||
		    tw_setup(fd[i], i % 2 ? TIMEWHEEL_CLOCK_BOOTTIME :
			     TIMEWHEEL_CLOCK_MONOTONIC, 1 + 37 * i, TW_MS / 10,
			     tokens + 65, 0, 0) ||
		    tw_register_many(fd[i], 0, tokens, 0,
				     3600 * TW_SEC) != tokens)
			return false;
		for (int n = 0; n < 64; n++)
			if (tw_register(fd[i], tokens + n, n * TW_MS / 7, 0,
					NULL))
				return false;
	}
	return true;
}

/* Closes a wheel with its timer started, after all due tokens have been read. */
static bool close_armed(int fd, unsigned long id, __u64 delay)
{
	struct timewheel_event events[64];

	while (tw_read(fd, events, 64) > 0)
		;
	return errno == EAGAIN && !tw_register(fd, id, delay, 0, NULL) &&
	       !close(fd);
}

/*
 * The module is removed right after wheels were closed, whose timers are just going off
 * or would go off a little later. No callback comes afterwards, and nothing is left of
 * the module. TW_SCALE shortens the work twice, by the rounds and by the tokens.
 */
TEST_F_TIMEOUT(module, removed_as_soon_as_closed, 4 * LONG)
{
	const unsigned long rounds = tw_scaled(100);
	const unsigned long tokens = tw_scaled(20000);
	enum { WHEELS = 3 };

	for (unsigned long round = 0; round < rounds; round++) {
		struct pollfd p = { .events = POLLIN };
		int fd[WHEELS];

		ASSERT_TRUE(start_wheels(fd, WHEELS,
					 round % 10 ? 10 : tokens)) {
			TH_LOG("%s", strerror(errno));
		}
		p.fd = fd[round % WHEELS];
		ASSERT_EQ(1, poll(&p, 1, -1));
		for (int i = 0; i < WHEELS; i++)
			ASSERT_TRUE(close_armed(fd[i], tokens + 64, i *
						(round * 37 % 100) * TW_MS / 2));
		ASSERT_EQ(0, delete_soon());
		ASSERT_EQ(0, insert(self->image, ""));
	}
	ASSERT_EQ(0, delete_soon());
	expect_gone(_metadata);
}

/*
 * Some threads open the device, one thread removes the module, one thread loads it
 * again.
 */
struct storm {
	_Atomic bool stop;
	_Atomic unsigned long opened, missed, removed, inserted;
	_Atomic int wrong;	/* an unexpected errno */
	int image;
};

static bool is_absence(int error)
{
	return error == ENOENT || error == ENODEV || error == ENXIO;
}

static void use(struct storm *storm, int fd)
{
	struct timewheel_event event;

	if (tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS / 10, 10, 0, 0) ||
	    tw_register(fd, 1, TW_MS / 5, 0, NULL) ||
	    tw_register(fd, 2, 3600 * TW_SEC, 0, NULL) ||
	    tw_read(fd, &event, 1) != 1)
		storm->wrong = errno ?: EPROTO;
}

static void *open_and_use(void *arg)
{
	struct storm *storm = arg;

	while (!storm->stop) {
		int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

		if (fd < 0) {
			if (!is_absence(errno))
				storm->wrong = errno;
			storm->missed++;
			usleep(300);
			continue;
		}
		if (storm->opened++ % 2)
			use(storm, fd);
		close(fd);
		/* The pause makes it likely that no thread has the device open. */
		if (!(storm->opened % 4))
			tw_sleep_ms(2);
	}
	return NULL;
}

static void *remove_again(void *arg)
{
	struct storm *storm = arg;

	while (!storm->stop) {
		int ret = delete(0);

		if (!ret)
			storm->removed++;
		else if (ret != -EWOULDBLOCK && ret != -ENOENT && ret != -EBUSY)
			storm->wrong = -ret;
		usleep(300);
	}
	return NULL;
}

static void *insert_again(void *arg)
{
	struct storm *storm = arg;

	while (!storm->stop) {
		int ret = insert(storm->image, "");

		if (!ret)
			storm->inserted++;
		else if (ret != -EEXIST && ret != -EBUSY)
			storm->wrong = -ret;
		usleep(300);
	}
	return NULL;
}

/* P10: an open either finds the module or fails, and an opened file works. */
TEST_F_TIMEOUT(module, opened_while_it_comes_and_goes, LONG)
{
	static void *(*const runs[])(void *arg) = {
		open_and_use, open_and_use, remove_again, insert_again,
	};
	static struct storm storm;
	__u64 end = tw_now(CLOCK_MONOTONIC) + tw_scaled(10000) * TW_MS;
	pthread_t threads[ARRAY_SIZE(runs)];

	storm.image = self->image;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, runs[i], &storm));
	while (!storm.wrong && (tw_now(CLOCK_MONOTONIC) < end || !storm.opened ||
				!storm.missed || storm.removed < 3))
		tw_sleep_ms(10);
	storm.stop = true;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, storm.wrong) {
		TH_LOG("%s", strerror(storm.wrong));
	}
	TH_LOG("%lu opened, %lu not there; %lu removed, %lu inserted",
	       storm.opened, storm.missed, storm.removed, storm.inserted);
	if (is_loaded())
		ASSERT_EQ(0, delete_soon());
	expect_gone(_metadata);
}

/*
 * Holds the module until the process is killed, and writes a byte when it holds the
 * module.
 */
static void hold_until_killed(int told, bool (*hold)(struct held *held))
{
	struct held held = { .fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC) };

	if (held.fd < 0 ||
	    tw_setup(held.fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS, 512,
		     TIMEWHEEL_SETUP_TOUCH_WORDS, 0) ||
	    tw_register_many(held.fd, 0, 512, 0, TW_MS) != 512 ||
	    !hold(&held) || write(told, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/*
 * P10: the module is removed right after all its users were killed, on busy CPUs. Not
 * all files are released when a process has ended: workers of the kernel release the
 * files of its io_uring, and close a file a little later still. The removal is refused
 * until all files are released, and nothing else is wrong.
 */
TEST_F_TIMEOUT(module, removed_as_soon_as_users_are_killed, LONG)
{
	static bool (*const holds[])(struct held *held) = {
		hold_file, hold_copy, hold_mapping, hold_message, hold_uring_file,
	};
	enum { USERS = ARRAY_SIZE(holds), BUSY = 4 };
	const unsigned long rounds = tw_scaled(20);
	pid_t busy[BUSY], user[USERS];
	__u64 longest = 0;
	int told[2];
	char byte;

	ASSERT_EQ(0, pipe2(told, O_CLOEXEC));
	for (int i = 0; i < BUSY; i++) {
		busy[i] = tw_fork();
		while (!busy[i])
			;
	}
	for (unsigned long round = 0; round < rounds; round++) {
		__u64 since, took;

		for (int i = 0; i < USERS; i++) {
			user[i] = tw_fork();
			if (!user[i])
				hold_until_killed(told[1], holds[i]);
		}
		for (int i = 0; i < USERS; i++)
			ASSERT_EQ(1, read(told[0], &byte, 1));
		for (int i = 0; i < USERS; i++)
			ASSERT_EQ(0, kill(user[i], SIGKILL));
		for (int i = 0; i < USERS; i++)
			ASSERT_EQ(-1, tw_reap(user[i]));
		since = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(0, delete_soon()) {
			TH_LOG("%ld references after %llu ms", tw_refcnt(),
			       (tw_now(CLOCK_MONOTONIC) - since) / TW_MS);
		}
		took = tw_now(CLOCK_MONOTONIC) - since;
		longest = took > longest ? took : longest;
		ASSERT_EQ(0, insert(self->image, ""));
	}
	TH_LOG("the longest removal took %llu ms", longest / TW_MS);
	for (int i = 0; i < BUSY; i++)
		EXPECT_TRUE(tw_kill(busy[i]));
	ASSERT_EQ(0, delete_soon());
	expect_gone(_metadata);
}

TEST_HARNESS_MAIN
