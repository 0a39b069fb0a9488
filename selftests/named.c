// SPDX-License-Identifier: GPL-2.0-only
/*
 * Named wheels: what is created by name is one wheel for all who open its node,
 * turns without them, and is there until it is destroyed by name. Whatever goes
 * wrong or is torn down while in use leaves nothing behind: no node, no entry in
 * sysfs, no reference to the module, nothing on anybody's account (P9, P10).
 *
 * All names begin alike, and the fixture destroys what a test left: each test
 * ends by looking whether all is as it was before.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tw_clock.h"
#include "tw_fault.h"
#include "tw_named.h"
#include "tw_process.h"
#include "tw_sleeper.h"
#include "tw_test.h"
#include "tw_uring.h"

#define TW_GROUP	"/sys/fs/cgroup/timewheel-named-test"
#include "tw_group.h"

#define NODES		"/dev/timewheels"
#define CLASS		"/sys/class/timewheel"
#define ENTRY_NAME	"timewheels!"		/* and the wheel's name */
#define ENTRY		CLASS "/" ENTRY_NAME
#define DEBUG		"/sys/kernel/debug/timewheel"
#define PREFIX		"kselftest-"
#define NAME		PREFIX "a"
#define OTHER		PREFIX "b"
#define NODE		TW_NODES NAME

/* Users that nobody is. */
#define USER		12345
#define USER_GROUP	23456
#define STRANGER	12346

#define LONG		280	/* seconds; guests may be emulated */

/* How most wheels here are: of 1 s ticks, and they wait for the test. */
static const struct timewheel_setup manual = {
	.size = sizeof(manual), .clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60,
	.tick = TW_SEC, .max_tokens = 100,
};

/* One that turns by itself. */
static const struct timewheel_setup monotonic = {
	.size = sizeof(monotonic), .clock = TIMEWHEEL_CLOCK_MONOTONIC,
	.slots = 31, .tick = TW_MS, .max_tokens = 1000,
};

static bool in_dir(const char *dir, const char *name)
{
	struct stat st;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !lstat(path, &st);
}

static bool in_sysfs(const char *name)
{
	char entry[128];

	snprintf(entry, sizeof(entry), ENTRY_NAME "%s", name);
	return in_dir(CLASS, entry);
}

/* Whether this wheel can be seen by its name, and whether nothing of it can. */
static bool is_here(const char *name)
{
	return in_dir(NODES, name) && in_sysfs(name);
}

static bool is_gone(const char *name)
{
	return !in_dir(NODES, name) && !in_sysfs(name);
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* What a file of the kernel's says first, without the end of the line. */
static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok = file && fgets(line, size, file);

	if (file)
		fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = 0;
	return ok;
}

/* Whether a file of the kernel's has this line. */
static bool has_line(const char *path, const char *wanted)
{
	FILE *file = fopen(path, "re");
	bool found = false;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		found |= !strcmp(line, wanted);
	}
	if (file)
		fclose(file);
	return found;
}

/* The number of a wheel's node, out of sysfs. */
static dev_t number_of(const char *name)
{
	char path[128], line[64] = "0:0", *colon;
	unsigned int number;

	snprintf(path, sizeof(path), ENTRY "%s/dev", name);
	read_line(path, line, sizeof(line));
	number = strtoul(line, &colon, 10);
	return makedev(number, strtoul(colon + 1, NULL, 10));
}

/* How many wheels there are of all kinds, -1 if it cannot be told. */
static int count_wheels(void)
{
	FILE *file = fopen(DEBUG "/wheels", "re");
	int n = -1, c;

	while (file && (c = fgetc(file)) != EOF)
		n += c == '\n';
	if (file)
		fclose(file);
	return n;
}

/* What is on a user's account; false when it cannot be told. */
static bool account(uid_t uid, unsigned long long *wheels,
		    unsigned long long *tokens)
{
	unsigned long long of, w, t;
	FILE *file = fopen(DEBUG "/users", "re");
	char line[128];

	if (!file)
		return false;
	*wheels = 0;
	*tokens = 0;
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

static bool count_wheels_becomes(int count)
{
	for (int i = 0; i < 500 && count_wheels() != count; i++)
		tw_sleep_ms(10);
	return count_wheels() == count;
}

/* Destroys what has a name of these tests, and removes nodes that strayed. */
static void clear_away(int dev)
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

/*
 * Becomes an ordinary user for good, but one who may use the device if its group
 * may. Returns whether it did.
 */
static bool become(uid_t uid, gid_t gid)
{
	struct stat st;

	return !stat(TW_DEVICE, &st) && !setgroups(1, &st.st_gid) &&
	       !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid) &&
	       !prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Whether an ordinary user can open the device that way. */
static bool group_may_use_device(void)
{
	struct stat st;

	return !stat(TW_DEVICE, &st) && (st.st_mode & 0060) == 0060;
}

static void init_barrier(pthread_barrier_t *barrier, unsigned int n)
{
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attr, n);
}

#define NEEDS_USERS()						\
	do {							\
		TW_NEEDS_ROOT();				\
		if (!group_may_use_device())			\
			SKIP(return, "the device is root's alone"); \
	} while (0)

/* The end of a child: what it found wrong is the test's failure. */
#define END_CHILD()	_exit(_metadata->exit_code)

FIXTURE(named) {
	int dev;	/* the device, open for reading and writing */
	long refs;	/* to the module, with @dev open */
	int entries;	/* in sysfs */
	int wheels;	/* of all kinds */
};

FIXTURE_SETUP(named)
{
	self->dev = TW_OPEN(O_RDWR);
	clear_away(self->dev);
	self->refs = tw_refcnt();
	self->entries = count_entries(CLASS);
	self->wheels = count_wheels();
}

/* Whatever the test was about, it leaves nothing behind. */
FIXTURE_TEARDOWN(named)
{
	clear_away(self->dev);
	for (int fd = 3; fd < 256; fd++)
		if (fd != self->dev)
			close(fd);
	EXPECT_EQ(self->entries, count_entries(CLASS));
	EXPECT_TRUE(tw_refcnt_becomes(self->refs)) {
		TH_LOG("%ld references, were %ld", tw_refcnt(), self->refs);
	}
	EXPECT_TRUE(count_wheels_becomes(self->wheels)) {
		TH_LOG("%d wheels, were %d", count_wheels(), self->wheels);
	}
	close(self->dev);
}

/* Two processes that have nothing in common but the name have one wheel. */
TEST_F(named, two_processes_share_it)
{
	struct timewheel_event event;
	struct timewheel_op op;
	pid_t child;
	int fd;

	ASSERT_EQ(0, tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual));
	EXPECT_TRUE(is_here(NAME));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		fd = tw_open_named(NAME, O_RDWR);
		EXPECT_LE(0, fd);
		EXPECT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(7ULL, event.id);
		EXPECT_EQ(70ULL, event.cookie);
		EXPECT_EQ(5 * TW_SEC, event.deadline);
		EXPECT_EQ(0, tw_register(fd, 8, 3 * TW_SEC, 80, NULL));
		END_CHILD();
	}
	tw_wait_asleep(child);
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(fd, &event, 1)));
	ASSERT_EQ(0, tw_register(fd, 7, 5 * TW_SEC, 70, NULL));
	ASSERT_EQ(0, tw_advance(fd, 5));
	ASSERT_EQ(0, tw_reap(child));
	ASSERT_EQ(0, tw_get(fd, 0, 8, &op));
	EXPECT_EQ(80ULL, op.cookie);
	EXPECT_EQ(8 * TW_SEC, op.deadline);
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(fd, 0, 7, &op)));
}

/* P3: each of many opens reads what no other reads; the ledger adds up. */
TEST_F(named, one_event_goes_to_one_open)
{
	enum { READERS = 4 };
	const __u32 tokens = tw_scaled(8000);
	struct timewheel_setup setup = monotonic;
	struct timewheel_info info;
	struct {
		_Atomic __u32 ended;
		_Atomic __u8 ends[];
	} *ledger = tw_shared_memory(sizeof(*ledger) + tokens);
	pid_t reader[READERS];
	int fd;

	ASSERT_NE(MAP_FAILED, (void *)ledger);
	setup.max_tokens = tokens;
	ASSERT_EQ(0, tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &setup));
	for (int i = 0; i < READERS; i++) {
		reader[i] = tw_fork();
		ASSERT_LE(0, reader[i]);
		if (reader[i])
			continue;
		fd = tw_open_named(NAME, O_RDONLY | O_NONBLOCK);
		while (ledger->ended < tokens) {
			struct pollfd p = { .fd = fd, .events = POLLIN };
			struct timewheel_event events[8];
			int got = tw_read(fd, events, 1 + i * 2);

			for (int n = 0; n < got; n++) {
				EXPECT_GT(tokens, events[n].id);
				EXPECT_LE(events[n].deadline, events[n].taken);
				ledger->ends[events[n].id % tokens]++;
				ledger->ended++;
			}
			if (got < 0)
				EXPECT_EQ(EAGAIN, errno);
			if (got < 0)
				poll(&p, 1, 10);
		}
		END_CHILD();
	}
	fd = tw_open_named(NAME, O_WRONLY);
	ASSERT_LE(0, fd);
	for (__u32 id = 0; id < tokens; id++)
		ASSERT_EQ(0, tw_register(fd, id, id % 97 * TW_MS, 0, NULL));
	for (int i = 0; i < READERS; i++)
		EXPECT_EQ(0, tw_reap(reader[i]));
	for (__u32 id = 0; id < tokens; id++)
		ASSERT_EQ(1, ledger->ends[id]);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(tokens, info.delivered);
}

/* P5: nobody has it open, its creator is gone, and yet nothing is lost. */
TEST_F(named, turns_with_nobody)
{
	enum { TOKENS = 20, FAR = 99 };
	struct timewheel_event events[TOKENS + 1];
	struct timewheel_info info;
	__u32 seen = 0;
	pid_t child;
	int fd;

	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &monotonic));
		fd = tw_open_named(NAME, O_RDWR);
		/* The later ones often first. */
		for (int i = 0; i < TOKENS; i++)
			EXPECT_EQ(0, tw_register(fd, i,
						 (10 + i * 7 % TOKENS) * TW_MS,
						 i, NULL));
		EXPECT_EQ(0, tw_register(fd, FAR, 3600 * TW_SEC, 0, NULL));
		END_CHILD();
	}
	ASSERT_EQ(0, tw_reap(child));
	if (self->refs >= 0)
		EXPECT_TRUE(tw_refcnt_becomes(self->refs + 1));
	tw_sleep_ms(100);

	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TOKENS + 1ULL, info.pending);
	/* It went off while nobody had it open. */
	EXPECT_LE(1ULL, info.callbacks);
	EXPECT_TRUE(tw_readable(fd));
	ASSERT_EQ(TOKENS, tw_read(fd, events, TOKENS + 1));
	for (int i = 0; i < TOKENS; i++) {
		EXPECT_EQ(events[i].id, events[i].cookie);
		EXPECT_LE(events[i ? i - 1 : 0].deadline, events[i].deadline);
		EXPECT_LE(events[i].deadline, events[i].taken);
		seen |= 1U << events[i].id;
	}
	EXPECT_EQ((1U << TOKENS) - 1, seen);
	EXPECT_EQ(0, tw_cancel(fd, 0, FAR));
}

/* P10: it holds the module, and so does each open file, the last one longest. */
TEST_F(named, module_stays)
{
	int first, second;
	long open_once;

	if (self->refs < 0)
		SKIP(return, "not a module");
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(self->refs + 1, tw_refcnt());
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE,
					    &manual)));
	EXPECT_EQ(self->refs + 1, tw_refcnt());
	first = tw_open_named(NAME, O_RDWR);
	open_once = tw_refcnt();
	EXPECT_LT(self->refs + 1, open_once);
	second = tw_open_named(NAME, O_RDWR);
	ASSERT_LE(0, second);
	EXPECT_LT(open_once, tw_refcnt());
	close(second);
	EXPECT_TRUE(tw_refcnt_becomes(open_once));

	/* Destroyed, not closed: the wheel is still there. */
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	tw_sleep_ms(50);
	EXPECT_EQ(open_once, tw_refcnt());
	close(first);
	EXPECT_TRUE(tw_refcnt_becomes(self->refs));
}

/* P10: with no file open at all, the wheel alone keeps the module. */
TEST_F(named, module_is_not_removed_under_it)
{
	struct timewheel_info info;
	long ret;
	int fd;

	TW_NEEDS_ROOT();
	if (self->refs != 1)
		SKIP(return, "somebody else uses the module, or it is none");
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	close(self->dev);
	EXPECT_TRUE(tw_refcnt_becomes(1));
	ret = syscall(SYS_delete_module, "timewheel", O_NONBLOCK);
	EXPECT_EQ(-1, ret);
	EXPECT_TRUE(errno == EWOULDBLOCK || errno == EBUSY) {
		TH_LOG("%s", strerror(errno));
	}
	self->dev = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->dev);
	fd = tw_open_named(NAME, O_RDWR);
	EXPECT_EQ(0, tw_info(fd, &info));
}

/* The node is the creator's alone, whatever the umask; sysfs tells of it. */
static void expect_owned(struct __test_metadata *_metadata, uid_t uid,
			 gid_t gid)
{
	struct stat st;
	char line[64];

	ASSERT_EQ(0, stat(NODE, &st));
	EXPECT_EQ(uid, st.st_uid);
	EXPECT_EQ(gid, st.st_gid);
	EXPECT_EQ(S_IFCHR | 0600U, st.st_mode);
	EXPECT_EQ(number_of(NAME), st.st_rdev);
	EXPECT_TRUE(in_dir(ENTRY NAME, "subsystem"));

	/* udev would widen the mode of a group's node if it were not told. */
	EXPECT_TRUE(has_line(ENTRY NAME "/uevent",
			     "DEVNAME=timewheels/" NAME));
	EXPECT_TRUE(has_line(ENTRY NAME "/uevent", "DEVMODE=0600"));
	snprintf(line, sizeof(line), "DEVUID=%u", uid);
	EXPECT_EQ(!!uid, has_line(ENTRY NAME "/uevent", line));
	snprintf(line, sizeof(line), "DEVGID=%u", gid);
	EXPECT_EQ(!!gid, has_line(ENTRY NAME "/uevent", line));
}

TEST_F(named, node_of_root)
{
	mode_t mask = umask(0);
	struct stat st;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	expect_owned(_metadata, geteuid(), getegid());
	/* Nobody but root puts anything beside it. */
	ASSERT_EQ(0, stat(NODES, &st));
	EXPECT_EQ(S_IFDIR | 0755U, st.st_mode);
	EXPECT_EQ(0U, st.st_uid);
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_TRUE(is_gone(NAME));
	umask(0777);
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	expect_owned(_metadata, geteuid(), getegid());
	umask(mask);
}

/* Whether @uid of group @gid can open the node: 0 or -errno. */
static int open_as(uid_t uid, gid_t gid, int flags)
{
	pid_t child = tw_fork();

	if (!child) {
		int fd;

		if (!become(uid, gid))
			_exit(255);
		fd = tw_open_named(NAME, flags);
		_exit(fd < 0 ? errno : 0);
	}
	return -tw_reap(child);
}

TEST_F(named, node_of_a_user)
{
	struct timewheel_event event;
	pid_t child;
	int fd;

	NEEDS_USERS();
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		EXPECT_TRUE(become(USER, USER_GROUP));
		/* The group of the device is enough to create one. */
		fd = open(TW_DEVICE, O_RDWR);
		EXPECT_LE(0, fd);
		EXPECT_EQ(0, tw_create(fd, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual));
		close(fd);
		fd = tw_open_named(NAME, O_RDWR);
		EXPECT_LE(0, fd);
		EXPECT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
		EXPECT_EQ(0, tw_advance(fd, 1));
		EXPECT_EQ(1, tw_read(fd, &event, 1));
		END_CHILD();
	}
	ASSERT_EQ(0, tw_reap(child));
	expect_owned(_metadata, USER, USER_GROUP);
	EXPECT_EQ(0, open_as(USER, USER_GROUP, O_RDWR));
	EXPECT_EQ(-EACCES, open_as(STRANGER, USER_GROUP, O_RDWR));
	EXPECT_EQ(-EACCES, open_as(STRANGER, USER_GROUP, O_RDONLY));
	EXPECT_EQ(-EACCES, open_as(STRANGER, USER_GROUP, O_WRONLY));
	EXPECT_EQ(0, open_as(0, 0, O_RDWR));
}

/* It is the effective user and group that count. */
TEST_F(named, node_of_an_effective_user)
{
	pid_t child;

	TW_NEEDS_ROOT();
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		EXPECT_EQ(0, setresgid(-1, USER_GROUP, -1));
		EXPECT_EQ(0, setresuid(-1, USER, -1));
		EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
		END_CHILD();
	}
	ASSERT_EQ(0, tw_reap(child));
	expect_owned(_metadata, USER, USER_GROUP);
}

/* Only the listed bytes make a name; what udev and sysfs would choke on not. */
#define expect_name(expected, text)					\
	_expect_name(_metadata, self, expected, text, sizeof(text) - 1, __LINE__)

static void _expect_name(struct __test_metadata *_metadata,
			 const FIXTURE_DATA(named) *self, int expected,
			 const char *name, size_t length, int line)
{
	struct timewheel_create c = {
		.size = sizeof(c), .flags = TIMEWHEEL_CREATE_EXCLUSIVE,
		.setup = (uintptr_t)&manual,
	};
	struct timewheel_destroy d = { .size = sizeof(d) };
	int entries = count_entries(CLASS), nodes = count_entries(NODES);
	int ret;

	memcpy(c.name, name, length);
	memcpy(d.name, name, length);
	ret = tw_ret(ioctl(self->dev, TIMEWHEEL_IOC_CREATE, &c));
	EXPECT_EQ(expected, ret) {
		TH_LOG("line %d: %.64s", line, name);
	}
	if (ret == -EEXIST)
		return;	/* and is somebody's */
	EXPECT_EQ(entries + !expected, count_entries(CLASS));
	if (!expected) {
		EXPECT_TRUE(is_here(c.name));
		EXPECT_EQ(0, close(tw_open_named(c.name, O_RDWR)));
	}
	EXPECT_EQ(expected, tw_ret(ioctl(self->dev, TIMEWHEEL_IOC_DESTROY, &d))) {
		TH_LOG("line %d: %.64s", line, name);
	}
	EXPECT_EQ(entries, count_entries(CLASS));
	EXPECT_EQ(nodes, count_entries(NODES));
}

#define TEN	"0123456789"
#define LONGEST	PREFIX TEN TEN TEN TEN TEN "abc"

_Static_assert(sizeof(LONGEST) == TIMEWHEEL_NAME_SIZE, "the longest name");

TEST_F(named, names)
{
	static const char alphabet[] =
		"-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	char name[] = PREFIX "?", behind[TIMEWHEEL_NAME_SIZE] = "";

	/* The folder of the nodes is to stay, so that they can be counted. */
	ASSERT_EQ(0, tw_create(self->dev, PREFIX "other", 0, &manual));

	for (int byte = 1; byte < 256; byte++) {
		name[sizeof(PREFIX) - 1] = byte;
		_expect_name(_metadata, self,
			     strchr(alphabet, byte) ? 0 : -EINVAL, name,
			     sizeof(PREFIX), __LINE__);
		name[sizeof(PREFIX) - 1] = '?';
	}
	expect_name(0, "-");
	expect_name(0, "_");
	expect_name(0, "0");
	expect_name(0, PREFIX "--help");
	expect_name(0, LONGEST);
	expect_name(-ENAMETOOLONG, LONGEST "d");
	expect_name(-EINVAL, "");
	expect_name(-EINVAL, ".");
	expect_name(-EINVAL, "..");
	expect_name(-EINVAL, "/");
	expect_name(-EINVAL, "../" NAME);
	expect_name(-EINVAL, "/dev/null");
	expect_name(-EINVAL, NAME "/" NAME);
	expect_name(-EINVAL, NAME "/");
	expect_name(-EINVAL, NAME " ");
	expect_name(-EINVAL, " " NAME);
	expect_name(-EINVAL, NAME "\n");
	expect_name(-EINVAL, NAME "!" NAME);
	expect_name(-EINVAL, NAME "%s%n");
	expect_name(-EINVAL, NAME "\xc3\xa4");

	/* Names that mean something in sysfs. */
	expect_name(0, "uevent");
	expect_name(0, "power");
	expect_name(0, "subsystem");
	expect_name(0, "dev");
	expect_name(0, "timewheel");

	/* Something behind the zero, wherever it stands. */
	memcpy(behind, NAME, strlen(NAME));
	for (size_t at = strlen(NAME) + 1; at < sizeof(behind); at++) {
		behind[at] = 'a';
		_expect_name(_metadata, self, -EINVAL, behind, sizeof(behind),
			     __LINE__);
		behind[at] = 0;
	}
	_expect_name(_metadata, self, 0, behind, sizeof(behind), __LINE__);
	expect_name(-EINVAL, "\0" NAME);

	/* None of the refused calls touched the one that is there. */
	EXPECT_TRUE(is_here(PREFIX "other"));
	EXPECT_EQ(0, close(tw_open_named(PREFIX "other", O_RDWR)));
}

/* Names differ in each byte that they have: nothing is cut off or folded. */
TEST_F(named, names_are_distinct)
{
	static const char *const names[] = {
		PREFIX "x", PREFIX "X", PREFIX "xx", PREFIX "x-", PREFIX "x_",
		PREFIX "0123456789012345678901234567890123456789012345678901a",
		PREFIX "0123456789012345678901234567890123456789012345678901b",
		PREFIX "0123456789012345678901234567890123456789012345678901",
	};
	struct timewheel_info info;

	for (__u32 i = 0; i < ARRAY_SIZE(names); i++) {
		struct timewheel_setup setup = manual;

		setup.slots = 100 + i;
		ASSERT_EQ(0, tw_create(self->dev, names[i], TIMEWHEEL_CREATE_EXCLUSIVE,
				       &setup));
	}
	for (__u32 i = 0; i < ARRAY_SIZE(names); i++) {
		int fd = tw_open_named(names[i], O_RDWR);

		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(100 + i, info.slots);
		close(fd);
	}
	for (__u32 i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(0, tw_destroy_named(self->dev, names[i]));
		for (__u32 j = 0; j < ARRAY_SIZE(names); j++)
			EXPECT_EQ(j > i, is_here(names[j]));
	}
}

/* A structure with one thing wrong, with nothing made of it. */
#define expect_create(expected, ...)					\
	_expect_create(_metadata, self, expected,			\
		       &(struct timewheel_create) {			\
				.size = sizeof(struct timewheel_create), \
				.setup = (uintptr_t)&manual,		\
				.name = NAME, __VA_ARGS__ }, __LINE__)

static void _expect_create(struct __test_metadata *_metadata,
			   const FIXTURE_DATA(named) *self, int expected,
			   const void *arg, int line)
{
	EXPECT_EQ(expected, tw_ret(ioctl(self->dev, TIMEWHEEL_IOC_CREATE, arg))) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(!expected, is_here(NAME)) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(expected ? -ENOENT : 0,
		  tw_ret(tw_destroy_named(self->dev, NAME)));
	EXPECT_EQ(self->entries, count_entries(CLASS));
	EXPECT_TRUE(tw_refcnt_becomes(self->refs)) {
		TH_LOG("in line %d", line);
	}
}

/* As _expect_create(), in memory that ends with the structure or before. */
static void _expect_create_at_end(struct __test_metadata *_metadata,
				  const FIXTURE_DATA(named) *self, int expected,
				  size_t size, size_t room, int tail, int line)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct timewheel_create c = {
		.size = size, .setup = (uintptr_t)&manual, .name = NAME,
	};
	char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = pages + 2 * page - room;

	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, munmap(pages + 2 * page, page));
	memset(at, 0, room);
	memcpy(at, &c, room < sizeof(c) ? room : sizeof(c));
	if (room > sizeof(c))
		at[room - 1] = tail;
	ASSERT_EQ(0, mprotect(pages, 2 * page, PROT_READ));
	_expect_create(_metadata, self, expected, at, line);
	munmap(pages, 2 * page);
}

#define expect_create_at_end(...)					\
	_expect_create_at_end(_metadata, self, __VA_ARGS__, __LINE__)

TEST_F(named, create_arguments)
{
	const size_t size = sizeof(struct timewheel_create);
	const size_t page = sysconf(_SC_PAGESIZE);

	expect_create(0);
	for (int bit = 1; bit < 32; bit++)
		expect_create(-EINVAL, .flags = 1U << bit);
	expect_create(-EINVAL, .flags = ~0U);
	for (__u32 less = 1; less <= size; less++)
		expect_create(-EINVAL, .size = size - less);
	expect_create_at_end(0, size, size, 0);
	expect_create_at_end(-EFAULT, size, size - 1, 0);
	expect_create_at_end(-EFAULT, size, 8, 0);
	expect_create_at_end(0, size + 8, size + 8, 0);
	expect_create_at_end(-E2BIG, size + 8, size + 8, 1);
	expect_create_at_end(0, page, page, 0);
	expect_create_at_end(-E2BIG, page, page, 1);
	expect_create_at_end(-E2BIG, page + 8, page + 8, 0);
	expect_create_at_end(-EFAULT, size + 8, size, 0);
	_expect_create(_metadata, self, -EFAULT, NULL, __LINE__);
	_expect_create(_metadata, self, -EFAULT, (void *)-8L, __LINE__);
}

/* The setup is read as TIMEWHEEL_IOC_SETUP reads it. */
#define expect_setup(expected, ...)					\
	_expect_setup(_metadata, self, expected,			\
		      (struct timewheel_setup) {			\
				.size = sizeof(struct timewheel_setup),	\
				__VA_ARGS__ }, __LINE__)

static void _expect_setup(struct __test_metadata *_metadata,
			  const FIXTURE_DATA(named) *self, int expected,
			  struct timewheel_setup setup, int line)
{
	struct timewheel_create c = {
		.size = sizeof(c), .setup = (uintptr_t)&setup, .name = NAME,
	};

	/* What the caller did not say is as it is on most wheels here. */
	setup.slots = setup.slots == ~0U ? 0 : setup.slots ?: manual.slots;
	setup.tick = setup.tick == ~0ULL ? 0 : setup.tick ?: manual.tick;
	setup.max_tokens = setup.max_tokens == ~0ULL ? 0 :
			   setup.max_tokens ?: manual.max_tokens;
	_expect_create(_metadata, self, expected, &c, line);
}

TEST_F(named, setup_values)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	const __u32 size = sizeof(struct timewheel_setup);

	ASSERT_EQ(0, ioctl(self->dev, TIMEWHEEL_IOC_CAPS, &caps));
	for (__u32 clock = 0; clock <= TIMEWHEEL_CLOCK_MANUAL; clock++)
		expect_setup(0, .clock = clock);
	expect_setup(-EINVAL, .clock = TIMEWHEEL_CLOCK_MANUAL + 1);
	expect_setup(-EINVAL, .clock = ~0U);
	for (int bit = 0; bit < 32; bit++)
		expect_setup(caps.setup_flags & 1U << bit ? 0 : -EINVAL,
			     .clock = TIMEWHEEL_CLOCK_REALTIME,
			     .flags = 1U << bit);
	expect_setup(0, .slots = 1);
	expect_setup(0, .slots = caps.max_slots);
	expect_setup(-EINVAL, .slots = ~0U);		/* none */
	expect_setup(-EINVAL, .slots = caps.max_slots + 1);
	expect_setup(0, .tick = caps.min_tick);
	expect_setup(0, .tick = caps.max_tick);
	expect_setup(-EINVAL, .tick = ~0ULL);		/* none */
	expect_setup(-EINVAL, .tick = caps.min_tick - 1);
	expect_setup(-EINVAL, .tick = caps.max_tick + 1);
	expect_setup(0, .max_tokens = 1);
	expect_setup(-EINVAL, .max_tokens = ~0ULL);	/* none */
	expect_setup(-EINVAL, .max_tokens = caps.max_tokens + 1);
	expect_setup(-EINVAL, .max_tokens = 1ULL << 32);
	expect_setup(0, .events = 1);
	expect_setup(0, .events = 65536);
	expect_setup(-EINVAL, .events = 3);
	expect_setup(-EINVAL, .events = 131072);
	expect_setup(-EINVAL, .reserved = 1);
	expect_setup(0, .clock = TIMEWHEEL_CLOCK_MANUAL, .start = 1);
	expect_setup(-EINVAL, .clock = TIMEWHEEL_CLOCK_MONOTONIC, .start = 1);
	expect_setup(-ERANGE, .clock = TIMEWHEEL_CLOCK_MANUAL,
		     .tick = caps.min_tick, .start = TIMEWHEEL_MAX_TICK + 1);
	expect_setup(-ERANGE, .clock = TIMEWHEEL_CLOCK_MANUAL, .start = ~0ULL);

	_expect_setup(_metadata, self, -EINVAL, (struct timewheel_setup) {
			.size = size - 8 }, __LINE__);
	_expect_setup(_metadata, self, -EINVAL, (struct timewheel_setup) {
			.size = 0 }, __LINE__);
}

/* A setup somewhere in memory: what can be read of it decides. */
TEST_F(named, setup_address)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *hole = pages + 2 * page;
	struct timewheel_setup setup = manual;

	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, munmap(hole, page));
	expect_create(-EFAULT, .setup = 0);
	expect_create(-EFAULT, .setup = 8);
	expect_create(-EFAULT, .setup = (uintptr_t)hole);
	expect_create(-EFAULT, .setup = ~0ULL);
	expect_create(-EFAULT, .setup = ~0ULL - 4095);
	expect_create(-EFAULT, .setup = 1ULL << 63);
	expect_create(-EFAULT, .setup = 0xffff888000000000);
	expect_create(-EFAULT, .setup = 0x800000000000);

	memcpy(hole - sizeof(setup), &setup, sizeof(setup));
	expect_create(0, .setup = (uintptr_t)(hole - sizeof(setup)));
	/* No alignment is asked for. */
	memcpy(pages + 3, &setup, sizeof(setup));
	expect_create(0, .setup = (uintptr_t)(pages + 3));
	for (size_t room = 1; room < sizeof(setup); room++) {
		memcpy(hole - room, &setup, room);
		expect_create(-EFAULT, .setup = (uintptr_t)(hole - room));
	}

	/* A larger one of a later day, with and without news in it. */
	for (size_t more = 8; more <= page - sizeof(setup); more += 504) {
		char *at = hole - sizeof(setup) - more;

		setup.size = sizeof(setup) + more;
		memset(at, 0, hole - at);
		memcpy(at, &setup, sizeof(setup));
		expect_create(0, .setup = (uintptr_t)at);
		hole[-1] = 1;
		expect_create(-E2BIG, .setup = (uintptr_t)at);
		setup.size += 8;
		hole[-1] = 0;
		memcpy(at, &setup, sizeof(setup));
		expect_create(setup.size > page ? -E2BIG : -EFAULT,
			      .setup = (uintptr_t)at);
	}
	setup.size = page + 8;
	memset(pages, 0, 2 * page);
	memcpy(pages, &setup, sizeof(setup));
	expect_create(-E2BIG, .setup = (uintptr_t)pages);
	munmap(pages, 2 * page);
}

#define expect_destroy(expected, ...)					\
	_expect_destroy(_metadata, self, expected,			\
			&(struct timewheel_destroy) {			\
				.size = sizeof(struct timewheel_destroy), \
				.name = NAME, __VA_ARGS__ }, __LINE__)

static void _expect_destroy(struct __test_metadata *_metadata,
			    const FIXTURE_DATA(named) *self, int expected,
			    const void *arg, int line)
{
	EXPECT_EQ(expected, tw_ret(ioctl(self->dev, TIMEWHEEL_IOC_DESTROY, arg))) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(!!expected, is_here(NAME)) {
		TH_LOG("in line %d", line);
	}
}

TEST_F(named, destroy_arguments)
{
	const __u32 size = sizeof(struct timewheel_destroy);
	struct {
		struct timewheel_destroy destroy;
		char tail[8];
	} larger = { .destroy = { .size = sizeof(larger), .name = NAME } };

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	for (int bit = 0; bit < 32; bit++)
		expect_destroy(-EINVAL, .flags = 1U << bit);
	for (__u32 less = 1; less <= size; less++)
		expect_destroy(-EINVAL, .size = size - less);
	_expect_destroy(_metadata, self, -EFAULT, NULL, __LINE__);
	larger.tail[7] = 1;
	_expect_destroy(_metadata, self, -E2BIG, &larger, __LINE__);
	larger.tail[7] = 0;
	_expect_destroy(_metadata, self, 0, &larger, __LINE__);

	/* Once only, and not what never was. */
	EXPECT_EQ(-ENOENT, tw_ret(tw_destroy_named(self->dev, NAME)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_destroy_named(self->dev, OTHER)));
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(-ENOENT, tw_ret(tw_destroy_named(self->dev, NAME "-")));
	EXPECT_EQ(-ENOENT, tw_ret(tw_destroy_named(self->dev, PREFIX)));
	expect_destroy(0);
}

/* Both need the device open for writing, and no wheel on it. */
TEST_F(named, device_files)
{
	int reading = TW_OPEN(O_RDONLY);
	int writing = TW_OPEN(O_WRONLY);
	int path = TW_OPEN(O_PATH);
	struct timewheel_info info;
	struct tw_state before, after;

	EXPECT_EQ(-EBADF, tw_ret(tw_create(reading, NAME, 0, &manual)));
	EXPECT_EQ(-EBADF, tw_ret(tw_create(path, NAME, 0, &manual)));
	EXPECT_TRUE(is_gone(NAME));
	EXPECT_EQ(0, tw_create(writing, NAME, 0, &manual));
	EXPECT_EQ(-EBADF, tw_ret(tw_destroy_named(reading, NAME)));
	EXPECT_EQ(-EBADF, tw_ret(tw_destroy_named(path, NAME)));
	EXPECT_TRUE(is_here(NAME));
	EXPECT_EQ(0, tw_destroy_named(writing, NAME));

	/* The file stays as it is: not set up ... */
	EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(-EBADFD, tw_ret(tw_info(self->dev, &info)));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_EQ(-EBADFD, tw_ret(tw_info(self->dev, &info)));
	/* ... or with its private wheel. */
	ASSERT_EQ(0, tw_setup_manual(self->dev, 31, 10, 0));
	ASSERT_EQ(0, tw_register(self->dev, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_get_state(self->dev, 0, 1, &before));
	EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
	ASSERT_EQ(0, tw_get_state(self->dev, 0, 1, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));

	/* The fixture compares with the wheel gone. */
	close(self->dev);
	self->dev = TW_OPEN(O_RDWR);
}

/* What goes on the device does not go on a named wheel's own file. */
TEST_F(named, files_of_the_wheel)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	struct timewheel_info info;
	int fd;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOTTY, tw_ret(tw_create(fd, OTHER, 0, &manual)));
	EXPECT_EQ(-ENOTTY, tw_ret(tw_create(fd, NAME, 0, &manual)));
	EXPECT_TRUE(is_gone(OTHER));
	EXPECT_EQ(-ENOTTY, tw_ret(tw_destroy_named(fd, NAME)));
	EXPECT_TRUE(is_here(NAME));
	EXPECT_EQ(-EBUSY, tw_ret(tw_setup_manual(fd, 60, 100, 0)));
	EXPECT_EQ(-EBUSY, tw_ret(tw_setup_manual(fd, 31, 10, 0)));
	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(60U, info.slots);
	EXPECT_EQ(100ULL, info.max_tokens);
	/* No command of a later release either. */
	for (int number = 0x0d; number < 0x100; number++)
		EXPECT_EQ(-ENOTTY, tw_ret(ioctl(fd, _IO(TIMEWHEEL_IOC_TYPE,
							number), &caps)));
}

/* Does @what to NAME as @uid. Returns 0 or more, or -errno. */
static int do_as(uid_t uid, int dev, int (*what)(int dev))
{
	pid_t child = tw_fork();
	int ret;

	if (!child) {
		if (!become(uid, USER_GROUP))
			_exit(255);
		ret = what(dev);
		_exit(ret < 0 ? 100 + errno : ret);
	}
	ret = tw_reap(child);
	return ret < 100 ? ret : 100 - ret;
}

static int create_it(int dev)
{
	return tw_create(dev, NAME, 0, &manual);
}

static int create_it_alone(int dev)
{
	return tw_create(dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual);
}

static int destroy_it(int dev)
{
	return tw_destroy_named(dev, NAME);
}

/* It ends by its creator or by the administrator, whoever owns the node. */
TEST_F(named, who_may_destroy)
{
	struct timewheel_info info;
	int fd;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	fd = tw_open_named(NAME, O_RDWR);
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, destroy_it));
	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_TRUE(is_here(NAME));
	EXPECT_EQ(0, do_as(USER, self->dev, destroy_it));
	EXPECT_TRUE(is_gone(NAME));

	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(-EPERM, do_as(USER, self->dev, destroy_it));
	ASSERT_EQ(0, chown(NODE, USER, USER_GROUP));
	ASSERT_EQ(0, chmod(NODE, 0777));
	EXPECT_EQ(-EPERM, do_as(USER, self->dev, destroy_it));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));

	/* Given away by its creator, and out of its reach, but still its. */
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	ASSERT_EQ(0, chown(NODE, STRANGER, USER_GROUP));
	EXPECT_EQ(-EACCES, open_as(USER, USER_GROUP, O_RDONLY));
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, destroy_it));
	EXPECT_EQ(0, do_as(USER, self->dev, destroy_it));

	/* A name that no wheel has is not there for anybody. */
	EXPECT_EQ(-ENOENT, do_as(STRANGER, self->dev, destroy_it));
}

static int create_effectively(int dev)
{
	return setresuid(-1, USER, -1) ? -1 : create_it(dev);
}

/* Root in a user namespace of its own is nobody outside. */
static int destroy_as_root_inside(int dev)
{
	return unshare(CLONE_NEWUSER) ? -1 : tw_destroy_named(dev, NAME);
}

static int create_as_root_inside(int dev)
{
	return unshare(CLONE_NEWUSER) ? -1 : create_it(dev);
}

TEST_F(named, user_namespaces)
{
	struct stat st;
	pid_t child;

	TW_NEEDS_ROOT();
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(!become(USER, USER_GROUP) || unshare(CLONE_NEWUSER));
	if (tw_reap(child))
		SKIP(return, "no user namespaces for users");

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(-EPERM, do_as(USER, self->dev, destroy_as_root_inside));
	EXPECT_TRUE(is_here(NAME));
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));

	/* Inside, it is still the user that it is outside. */
	ASSERT_EQ(0, do_as(USER, self->dev, create_as_root_inside));
	ASSERT_EQ(0, stat(NODE, &st));
	EXPECT_EQ((uid_t)USER, st.st_uid);
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, destroy_as_root_inside));
	EXPECT_EQ(0, do_as(USER, self->dev, destroy_as_root_inside));
}

/* A process with root's identity left as the real one has no say either. */
TEST_F(named, effective_user_destroys)
{
	pid_t child;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		EXPECT_EQ(0, setresuid(-1, USER, -1));
		EXPECT_EQ(-EPERM, tw_ret(tw_destroy_named(self->dev, NAME)));
		EXPECT_EQ(0, setresuid(-1, 0, -1));
		EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
		EXPECT_EQ(0, create_effectively(self->dev));
		EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
		END_CHILD();
	}
	EXPECT_EQ(0, tw_reap(child));
}

/* There already: fine when it is the same, an error when it must be new. */
TEST_F(named, existing_wheel_of_the_same_setup)
{
	struct {
		struct timewheel_setup setup;
		__u64 tail[4];
	} larger = { .setup = manual };
	struct timewheel_op op;
	int fd;

	larger.setup.size = sizeof(larger);
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED,
		  tw_create(self->dev, NAME, 0, &larger.setup));
	EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE,
					    &manual)));
	/* It is the same wheel, whatever has become of it meanwhile. */
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, tw_register(fd, 1, 7 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 5));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(0, tw_get(fd, 0, 1, &op));
	EXPECT_EQ(7 * TW_SEC, op.deadline);

	/* Destroyed, the next one is new, and its name may be had alone. */
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_EQ(0, tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual));
}

/* Another's name is taken all the same; opening is for the node to refuse. */
TEST_F(named, existing_wheel_of_another_user)
{
	struct stat before, after;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	ASSERT_EQ(0, stat(NODE, &before));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, do_as(STRANGER, self->dev, create_it));
	EXPECT_EQ(-EEXIST, do_as(STRANGER, self->dev, create_it_alone));
	EXPECT_EQ(-EACCES, open_as(STRANGER, USER_GROUP, O_RDWR));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	ASSERT_EQ(0, stat(NODE, &after));
	EXPECT_EQ(before.st_uid, after.st_uid);
	EXPECT_EQ(before.st_rdev, after.st_rdev);
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, destroy_it));
}

/* Each difference is one, and the wheel that is there stays as it is (P9). */
TEST_F(named, existing_wheel_of_another_setup)
{
	static const struct timewheel_setup base = {
		.size = sizeof(base), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60, .tick = TW_SEC, .max_tokens = 100, .start = 50,
	};
	struct timewheel_setup others[10];
	struct tw_state before, after;
	long refs;
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		others[i] = base;
	others[0].slots++;
	others[1].slots = 1;
	others[2].tick++;
	others[3].tick = 2 * TW_SEC;
	others[4].max_tokens++;
	others[5].max_tokens--;
	others[6].start = 0;
	others[7].flags = TIMEWHEEL_SETUP_NO_IDS;
	others[8].flags = TIMEWHEEL_SETUP_NO_COOKIES;
	others[9].clock = TIMEWHEEL_CLOCK_MONOTONIC;
	others[9].start = 0;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &base));
	fd = tw_open_named(NAME, O_RDWR);
	refs = tw_refcnt();
	ASSERT_EQ(0, tw_register(fd, 1, 100 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_get_state(fd, 0, 1, &before));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, 0,
						    &others[i]))) {
			TH_LOG("difference %zu", i);
		}
		ASSERT_EQ(0, tw_get_state(fd, 0, 1, &after));
		EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
		EXPECT_EQ(refs, tw_refcnt());
	}
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &base));
	close(fd);
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));

	/* The other way round, and between clocks that start alike. */
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &others[i]));
		EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, 0, &base)));
		EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0,
						       &others[i]));
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	}
	for (__u32 one = 0; one <= TIMEWHEEL_CLOCK_MANUAL; one++) {
		struct timewheel_setup setup = manual;

		setup.clock = one;
		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &setup));
		for (__u32 two = 0; two <= TIMEWHEEL_CLOCK_MANUAL; two++) {
			setup.clock = two;
			EXPECT_EQ(one == two ? TIMEWHEEL_RES_EXISTED : -EEXIST,
				  tw_ret(tw_create(self->dev, NAME, 0, &setup)));
		}
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	}
}

/* Limits that came later do not make an old wheel another one. */
TEST_F(named, existing_wheel_beyond_a_limit)
{
	static const char parameter[] =
		"/sys/module/timewheel/parameters/max_tokens";
	char before[32];
	int same, alone, other;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	if (!read_line(parameter, before, sizeof(before)) ||
	    !tw_write_file(parameter, "99"))
		SKIP(return, "cannot change the limit");
	same = tw_ret(tw_create(self->dev, NAME, 0, &manual));
	alone = tw_ret(tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual));
	other = tw_ret(tw_create(self->dev, OTHER, 0, &manual));
	ASSERT_TRUE(tw_write_file(parameter, before));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, same);
	EXPECT_EQ(-EEXIST, alone);
	EXPECT_EQ(-EINVAL, other);
	EXPECT_TRUE(is_gone(OTHER));
}

/* An epoll that watches @fd for @events. */
static int watch(int fd, __u32 events)
{
	struct epoll_event event = { .events = events };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -1 : epoll;
}

#define DEAD	(EPOLLHUP | EPOLLERR)

/* All who sleep are woken, by whatever they sleep in, and told why. */
TEST_F(named, destroying_wakes_all)
{
	struct tw_sleeper sleepers[15];
	int n = 0, common;
	pid_t child;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	common = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, tw_register(common, 1, TW_SEC, 0, NULL));
	/* Readers of their own files, and of one file. */
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++],
					    tw_open_named(NAME, O_RDONLY),
					    tw_sleep_in_read));
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++], common,
					    tw_sleep_in_read));
	}
	ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++], tw_open_named(NAME, O_RDWR),
				    tw_sleep_in_poll));
	ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++], common, tw_sleep_in_poll));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++],
					    watch(common, EPOLLIN),
					    tw_sleep_in_epoll));
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++],
					    watch(common, EPOLLIN | EPOLLET),
					    tw_sleep_in_epoll));
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++],
					    watch(common,
						  EPOLLIN | EPOLLEXCLUSIVE),
					    tw_sleep_in_epoll));
	}
	ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++], watch(common, 0),
				    tw_sleep_in_epoll));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		struct timewheel_event event;
		int fd = tw_open_named(NAME, O_RDONLY);

		EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, &event, 1)));
		END_CHILD();
	}
	tw_wait_asleep(child);

	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_EQ(0, tw_reap(child));
	for (int i = 0; i < n; i++) {
		struct tw_sleeper *s = &sleepers[i];
		bool reads = s->sleep == tw_sleep_in_read;

		ASSERT_EQ(0, pthread_join(s->thread, NULL));
		EXPECT_EQ(reads ? -ENODEV : 1, s->ret);
		EXPECT_EQ(reads ? 0U : DEAD, s->events) {
			TH_LOG("sleeper %d", i);
		}
	}
}

/* Many readers of one wheel, all in one wait queue: none is left asleep. */
TEST_F(named, destroying_wakes_many_readers)
{
	enum { READERS = 40 };
	struct tw_sleeper sleepers[READERS];
	int fd;

	for (unsigned long round = 0; round < tw_scaled(10); round++) {
		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &monotonic));
		fd = tw_open_named(NAME, O_RDWR);
		for (int i = 0; i < READERS; i++)
			ASSERT_TRUE(tw_start_sleeper(&sleepers[i], fd,
						     tw_sleep_in_read));
		/* Some are asleep by now and some on their way. */
		tw_sleep_ms(round);
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
		for (int i = 0; i < READERS; i++) {
			ASSERT_EQ(0, pthread_join(sleepers[i].thread, NULL));
			EXPECT_EQ(-ENODEV, sleepers[i].ret);
		}
		close(fd);
	}
}

/* No event is announced where none can be read, only the end, to each once. */
TEST_F(named, poll_of_a_destroyed_wheel)
{
	struct pollfd p;
	int fd, level, edge, once;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	p = (struct pollfd) { .fd = fd, .events = POLLIN };
	level = watch(fd, EPOLLIN);
	edge = watch(fd, EPOLLIN | EPOLLET);
	once = watch(fd, EPOLLIN | EPOLLONESHOT);
	/* A token is due, and nobody reads it. */
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLIN, p.revents);
	EXPECT_EQ(EPOLLIN, tw_epoll_now(level));
	EXPECT_EQ(EPOLLIN, tw_epoll_now(edge));
	EXPECT_EQ(0U, tw_epoll_now(edge));
	EXPECT_EQ(EPOLLIN, tw_epoll_now(once));

	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(1, poll(&p, 1, 0));
		EXPECT_EQ(POLLHUP | POLLERR, p.revents);
		EXPECT_EQ(DEAD, tw_epoll_now(level));
		EXPECT_EQ(i ? 0U : DEAD, tw_epoll_now(edge));
		EXPECT_EQ(0U, tw_epoll_now(once));
	}
	p.events = POLLOUT | POLLPRI;
	EXPECT_EQ(1, poll(&p, 1, -1));
	EXPECT_EQ(POLLHUP | POLLERR, p.revents);
	p.events = 0;
	EXPECT_EQ(1, poll(&p, 1, -1));
	EXPECT_EQ(POLLHUP | POLLERR, p.revents);
	/* Who begins to wait only now is told at once, in all ways. */
	EXPECT_EQ(DEAD, tw_epoll_now(watch(fd, EPOLLIN)));
	EXPECT_EQ(DEAD, tw_epoll_now(watch(fd, EPOLLIN | EPOLLET)));
	EXPECT_EQ(DEAD, tw_epoll_now(watch(fd, 0)));
}

TEST_F(named, destroying_wakes_io_uring)
{
	struct timewheel_event events[4];
	struct io_uring_cqe cqe;
	struct tw_uring ring;
	int fd, ended = 0;

	if (tw_uring_open(&ring))
		SKIP(return, "no io_uring");
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	for (int i = 0; i < 4; i++) {
		struct io_uring_sqe sqe = {
			.opcode = i < 2 ? IORING_OP_READ : IORING_OP_POLL_ADD,
			.fd = fd, .user_data = i, .off = i < 2 ? -1 : 0,
			.addr = i < 2 ? (uintptr_t)&events[i] : 0,
			.len = i < 2 ? sizeof(events[i]) : 0,
			.poll32_events = i < 2 ? 0 : POLLIN,
		};

		ASSERT_EQ(1, tw_uring_submit(&ring, &sqe));
	}
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	for (int i = 0; i < 4; i++) {
		ASSERT_TRUE(tw_uring_next(&ring, true, &cqe));
		EXPECT_EQ(cqe.user_data < 2 ? -ENODEV : POLLHUP | POLLERR,
			  cqe.res);
		ended |= 1 << cqe.user_data;
	}
	EXPECT_EQ(0xf, ended);
	/* Who comes after the end need not wait for it. */
	ASSERT_EQ(1, tw_uring_submit(&ring, &(struct io_uring_sqe) {
		.opcode = IORING_OP_READ, .fd = fd, .user_data = 4, .off = -1,
		.addr = (uintptr_t)events, .len = sizeof(events),
	}));
	ASSERT_TRUE(tw_uring_next(&ring, true, &cqe));
	EXPECT_EQ(4ULL, cqe.user_data);
	EXPECT_EQ(-ENODEV, cqe.res);
	tw_uring_close(&ring);
}

/* Every call that needs the wheel, on a destroyed one. */
static void expect_enodev(struct __test_metadata *_metadata, int fd)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	struct timewheel_event event;
	struct timewheel_token token;
	__u64 buckets[TIMEWHEEL_BUCKETS];
	struct timewheel_stats stats = {
		.size = sizeof(stats), .lateness = (uintptr_t)buckets,
	};
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER, .count = 1,
		.tokens = (uintptr_t)&token, .token_size = sizeof(token),
	};
	struct timewheel_op op = { .size = sizeof(op) };
	struct iovec iov = { &event, sizeof(event) };
	struct timewheel_info info;
	int ret;

	for (__u32 code = 0; code <= TIMEWHEEL_OP_GET; code++) {
		op.code = code;
		op.id = 1;
		op.time = TW_SEC;
		EXPECT_EQ(-ENODEV, tw_ret(ioctl(fd, TIMEWHEEL_IOC_OP, &op)));
	}
	EXPECT_EQ(-ENODEV, tw_ret(tw_batch(fd, &op, 1, NULL)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_batch(fd, NULL, 0, NULL)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_touch(fd, 0, 1)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_touch(fd, 0, 99)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_touch_keys(fd, 0, &op.id, 1, NULL)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_touch_keys(fd, 0, NULL, 0, NULL)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_advance(fd, 9)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_info(fd, &info)));
	EXPECT_EQ(-ENODEV, tw_ret(ioctl(fd, TIMEWHEEL_IOC_LIST, &list)));
	EXPECT_EQ(-ENODEV, tw_ret(ioctl(fd, TIMEWHEEL_IOC_STATS, &stats)));
	EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, &event, 1)));
	EXPECT_EQ(-ENODEV, tw_ret(readv(fd, &iov, 1)));
	EXPECT_EQ(-ENODEV, tw_ret(preadv2(fd, &iov, 1, -1, RWF_NOWAIT)));

	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
	EXPECT_EQ(-ENOTTY, tw_ret(tw_create(fd, OTHER, 0, &manual)));
	EXPECT_EQ(-ENOTTY, tw_ret(tw_destroy_named(fd, NAME)));
	ret = tw_ret(tw_setup_manual(fd, 31, 10, 0));
	EXPECT_TRUE(ret == -EBUSY || ret == -ENODEV);
}

TEST_F(named, calls_on_a_destroyed_wheel)
{
	int blocking, fd, copy;
	char path[64], line[128];

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	blocking = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_register(fd, 2, 0, 0, NULL));
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	copy = dup(fd);
	ASSERT_LE(0, copy);
	expect_enodev(_metadata, fd);
	expect_enodev(_metadata, blocking);
	close(fd);
	expect_enodev(_metadata, copy);

	/* What /proc tells of it is harmless. */
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", copy);
	EXPECT_TRUE(read_line(path, line, sizeof(line)));
	EXPECT_EQ(0, close(copy));
	EXPECT_EQ(0, close(blocking));
	EXPECT_TRUE(tw_refcnt_becomes(self->refs));
}

/* The next of its name is another wheel, and the old one stays dead. */
TEST_F(named, next_wheel_of_the_name)
{
	struct timewheel_info first, second;
	struct timewheel_event event;
	struct timewheel_op op;
	struct stat before, after;
	int old, fd;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	ASSERT_EQ(0, stat(NODE, &before));
	old = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_register(old, 1, 0, 0, NULL));
	ASSERT_EQ(0, tw_info(old, &first));
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_TRUE(is_gone(NAME));
	EXPECT_EQ(-ENOENT, tw_ret(tw_open_named(NAME, O_RDWR)));

	ASSERT_EQ(0, tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual));
	ASSERT_EQ(0, stat(NODE, &after));
	EXPECT_NE(before.st_rdev, after.st_rdev);
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_info(fd, &second));
	EXPECT_NE(first.number, second.number);
	EXPECT_EQ(0ULL, second.registered);
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(fd, 0, 1, &op)));
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(fd, &event, 1)));
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	expect_enodev(_metadata, old);
	close(old);
	EXPECT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_TRUE(is_here(NAME));
}

/* Destroyed with a hundred thousand tokens under the hands of many. */
TEST_F(named, destroyed_while_full_and_busy)
{
	enum { BUSY = 4 };
	const __u32 tokens = tw_scaled(50000);
	struct timewheel_setup setup = monotonic;
	pid_t child[BUSY];
	int fd;

	setup.max_tokens = tokens;
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &setup));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(tokens / 2, tw_register_many(fd, 0, tokens / 2, 0,
					       3600 * TW_SEC));
	for (int i = 0; i < BUSY; i++) {
		child[i] = tw_fork();
		ASSERT_LE(0, child[i]);
		if (child[i])
			continue;
		fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
		for (__u32 id = 0;; id = (id + 100) % tokens) {
			struct timewheel_event events[64];

			tw_register_many(fd, tokens + id, 100, 0,
					 id % 20 * TW_MS);
			tw_touch_many(fd, id, 100);
			tw_op_many(fd, TIMEWHEEL_OP_CANCEL, id + 50, 5, 0, 0);
			if (tw_read(fd, events, 64) < 0 && errno != EAGAIN)
				break;
		}
		EXPECT_EQ(ENODEV, errno);
		expect_enodev(_metadata, fd);
		END_CHILD();
	}
	tw_sleep_ms(200);
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	for (int i = 0; i < BUSY; i++)
		EXPECT_EQ(0, tw_reap(child[i]));
	expect_enodev(_metadata, fd);
}

/* What is counted for its creator is so until the last file is closed (P9). */
static int open_and_destroy(int dev)
{
	unsigned long long limit;
	char text[32];
	struct timewheel_setup half = manual;
	int fd;

	if (!read_line("/sys/module/timewheel/parameters/max_user_tokens", text,
		       sizeof(text)))
		return 99;
	limit = strtoull(text, NULL, 10);
	half.max_tokens = limit / 2 + 1;
	for (int round = 0; round < 10; round++) {
		if (tw_create(dev, NAME, 0, &half))
			return 1;
		fd = tw_open_named(NAME, O_RDWR);
		/* Failing, or there already, costs nothing. */
		for (int i = 0; i < 3; i++) {
			if (tw_create(dev, NAME, 0, &half) != TIMEWHEEL_RES_EXISTED)
				return 2;
			if (tw_create(dev, NAME, 0, &manual) >= 0 ||
			    errno != EEXIST)
				return 3;
			if (tw_create(dev, OTHER, 0, &half) >= 0 ||
			    errno != EDQUOT)
				return 4;
		}
		if (!is_gone(OTHER))
			return 5;
		if (tw_destroy_named(dev, NAME))
			return 6;
		if (tw_create(dev, NAME, 0, &half) >= 0 || errno != EDQUOT)
			return 7;
		close(fd);
	}
	return 0;
}

TEST_F(named, account_of_the_creator)
{
	unsigned long long wheels, tokens;
	int fd, ret;

	TW_NEEDS_ROOT();
	ret = do_as(USER, self->dev, open_and_destroy);
	if (ret == 99)
		SKIP(return, "no limits to look at");
	EXPECT_EQ(0, ret);

	if (!account(USER, &wheels, &tokens))
		SKIP(return, "no debugfs");
	EXPECT_EQ(0ULL, wheels);
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	/* It is its creator's, also when another owns and uses it. */
	ASSERT_EQ(0, chown(NODE, STRANGER, USER_GROUP));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_TRUE(account(USER, &wheels, &tokens));
	EXPECT_EQ(1ULL, wheels);
	EXPECT_EQ(manual.max_tokens, tokens);
	ASSERT_TRUE(account(STRANGER, &wheels, &tokens));
	EXPECT_EQ(0ULL, wheels);
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	ASSERT_TRUE(account(USER, &wheels, &tokens));
	EXPECT_EQ(1ULL, wheels);
	EXPECT_EQ(manual.max_tokens, tokens);
	close(fd);
	ASSERT_TRUE(account(USER, &wheels, &tokens));
	EXPECT_EQ(0ULL, wheels);
	EXPECT_EQ(0ULL, tokens);
}

/* A user's namespace with many users in it has the budget of that one (P9). */
TEST_F(named, account_of_a_namespace)
{
	enum { LENT = 200000 };
	unsigned long long wheels, tokens;
	struct stat st;
	int ready[2], go[2];
	char path[64], byte;
	pid_t child;

	TW_NEEDS_ROOT();
	if (!account(USER, &wheels, &tokens))
		SKIP(return, "no debugfs");
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(ready[0]);
		close(go[1]);
		if (!become(USER, USER_GROUP) || unshare(CLONE_NEWUSER))
			_exit(99);
		if (write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(98);
		/* A user whom the administrator has lent to the namespace. */
		EXPECT_EQ(0, setresuid(7, 7, 7));
		EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
		END_CHILD();
	}
	close(ready[1]);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
	if (read(ready[0], &byte, 1) != 1) {
		EXPECT_EQ(99, tw_reap(child));
		SKIP(return, "no user namespaces for users");
	}
	ASSERT_TRUE(tw_write_file(path, "0 12345 1\n7 200000 1\n"));
	ASSERT_EQ(1, write(go[1], "", 1));
	ASSERT_EQ(0, tw_reap(child));

	ASSERT_EQ(0, stat(NODE, &st));
	EXPECT_EQ((uid_t)LENT, st.st_uid);
	ASSERT_TRUE(account(LENT, &wheels, &tokens));
	EXPECT_EQ(0ULL, wheels);
	ASSERT_TRUE(account(USER, &wheels, &tokens));
	EXPECT_EQ(1ULL, wheels);
	EXPECT_EQ(manual.max_tokens, tokens);
	EXPECT_EQ(-EPERM, do_as(USER, self->dev, destroy_it));
	EXPECT_EQ(0, do_as(LENT, self->dev, destroy_it));
	ASSERT_TRUE(account(USER, &wheels, &tokens));
	EXPECT_EQ(0ULL, wheels);
}

/* Who may only read the node sees all and changes nothing but by reading. */
TEST_F(named, open_for_reading)
{
	static const __u32 changing[] = {
		TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_TOUCH,
		TIMEWHEEL_OP_TOUCH_OR_REGISTER, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
	};
	struct timewheel_op ops[ARRAY_SIZE(changing) + 1] = {};
	__u64 buckets[TIMEWHEEL_BUCKETS];
	struct timewheel_stats stats = {
		.size = sizeof(stats), .lateness = (uintptr_t)buckets,
		.wake = (uintptr_t)buckets,
	};
	struct timewheel_token token;
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER, .count = 1,
		.tokens = (uintptr_t)&token, .token_size = sizeof(token),
	};
	struct timewheel_event event;
	struct tw_state before, after;
	struct timewheel_op op;
	__u32 done;
	int fd, ro;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ro = tw_open_named(NAME, O_RDONLY | O_NONBLOCK);
	ASSERT_LE(0, ro);
	ASSERT_EQ(0, tw_register(fd, 1, 10 * TW_SEC, 10, NULL));
	ASSERT_EQ(0, tw_get_state(fd, 0, 1, &before));

	for (size_t i = 0; i < ARRAY_SIZE(changing); i++) {
		/* Most would succeed, and those that would not say the same. */
		for (__u64 id = 1; id <= 2; id++) {
			EXPECT_EQ(-EBADF, tw_ret(tw_key_op(ro, changing[i], 0,
							   id, TW_SEC)));
		}
		ops[i] = (struct timewheel_op) {
			.size = sizeof(op), .code = changing[i], .id = 1 + !i,
			.time = TW_SEC,
		};
	}
	ops[ARRAY_SIZE(changing)] = (struct timewheel_op) {
		.size = sizeof(op), .code = TIMEWHEEL_OP_GET, .id = 1,
	};
	EXPECT_EQ(0, tw_batch(ro, ops, ARRAY_SIZE(ops), &done));
	EXPECT_EQ(ARRAY_SIZE(ops), done);
	for (size_t i = 0; i < ARRAY_SIZE(changing); i++)
		EXPECT_EQ(-EBADF, ops[i].result);
	EXPECT_EQ(0, ops[ARRAY_SIZE(changing)].result);
	EXPECT_EQ(10ULL, ops[ARRAY_SIZE(changing)].cookie);
	EXPECT_EQ(-EBADF, tw_ret(tw_touch(ro, 0, 1)));
	EXPECT_EQ(-EBADF, tw_ret(tw_touch_keys(ro, 0, &token.id, 1, NULL)));
	EXPECT_EQ(-EBADF, tw_ret(tw_advance(ro, 20)));
	ASSERT_EQ(0, tw_get_state(fd, 0, 1, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));

	/* The same state, seen through this file. */
	ASSERT_EQ(0, tw_get_state(ro, 0, 1, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_EQ(0, ioctl(ro, TIMEWHEEL_IOC_LIST, &list));
	EXPECT_EQ(1U, list.listed);
	EXPECT_EQ(1ULL, token.id);
	EXPECT_EQ(0, ioctl(ro, TIMEWHEEL_IOC_STATS, &stats));
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(ro, &event, 1)));
	ASSERT_EQ(0, tw_advance(fd, 10));
	EXPECT_TRUE(tw_readable(ro));
	EXPECT_EQ(1, tw_read(ro, &event, 1));
	EXPECT_EQ(1ULL, event.id);
}

/* And who may only write feeds it, but sees and takes no other's tokens. */
TEST_F(named, open_for_writing)
{
	struct timewheel_stats stats = { .size = sizeof(stats) };
	struct timewheel_token token;
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER, .count = 1,
		.tokens = (uintptr_t)&token, .token_size = sizeof(token),
	};
	struct timewheel_event event;
	struct iovec iov = { &event, sizeof(event) };
	struct timewheel_info info;
	struct timewheel_op op;
	int fd;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_WRONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	EXPECT_EQ(0, tw_touch(fd, 0, 1));
	EXPECT_EQ(0, tw_get(fd, 0, 1, &op));
	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_STATS, &stats));
	EXPECT_EQ(-EBADF, tw_ret(ioctl(fd, TIMEWHEEL_IOC_LIST, &list)));
	EXPECT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ(-EBADF, tw_ret(tw_read(fd, &event, 1)));
	EXPECT_EQ(-EBADF, tw_ret(readv(fd, &iov, 1)));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 1));
}

/* The node's own permissions say who may what. */
TEST_F(named, node_is_shared_out)
{
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	EXPECT_EQ(-EACCES, open_as(STRANGER, STRANGER, O_RDONLY));
	ASSERT_EQ(0, chmod(NODE, 0604));
	EXPECT_EQ(0, open_as(STRANGER, STRANGER, O_RDONLY));
	EXPECT_EQ(-EACCES, open_as(STRANGER, STRANGER, O_WRONLY));
	EXPECT_EQ(-EACCES, open_as(STRANGER, STRANGER, O_RDWR));
	ASSERT_EQ(0, chmod(NODE, 0620));
	EXPECT_EQ(0, open_as(STRANGER, USER_GROUP, O_WRONLY));
	EXPECT_EQ(-EACCES, open_as(STRANGER, USER_GROUP, O_RDONLY));
	EXPECT_EQ(-EACCES, open_as(STRANGER, STRANGER, O_WRONLY));
	ASSERT_EQ(0, chmod(NODE, 0600));
	ASSERT_EQ(0, chown(NODE, STRANGER, STRANGER));
	EXPECT_EQ(0, open_as(STRANGER, STRANGER, O_RDWR));
	EXPECT_EQ(-EACCES, open_as(USER, USER_GROUP, O_RDWR));
	EXPECT_EQ(0, do_as(USER, self->dev, destroy_it));
	EXPECT_TRUE(is_gone(NAME));
}

/* The owner of a node may share it out without root's help. */
static int chmod_it(int dev)
{
	return chmod(NODE, 0666);
}

TEST_F(named, node_is_its_owners)
{
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, chmod_it));
	EXPECT_EQ(0, do_as(USER, self->dev, chmod_it));
	EXPECT_EQ(0, open_as(STRANGER, STRANGER, O_RDWR));
}

/* Registers 1 through @path, reads it through @fd. */
static void expect_same_wheel(struct __test_metadata *_metadata,
			      const char *path, int fd)
{
	int other = open(path, O_RDWR | O_CLOEXEC);
	struct timewheel_event event;

	ASSERT_LE(0, other);
	EXPECT_EQ(0, tw_register(other, 1, 0, 0, NULL));
	EXPECT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(1ULL, event.id);
	close(other);
}

/*
 * A node under another name leads to no wheel when its own, of which @fd is the
 * last open file, has been destroyed.
 */
static void expect_stale(struct __test_metadata *_metadata,
			 const FIXTURE_DATA(named) *self, const char *path,
			 int fd)
{
	int ret;

	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	ret = tw_ret(open(path, O_RDWR));
	EXPECT_TRUE(ret == -ENODEV || ret == -ENXIO) {
		TH_LOG("open: %d", ret);
	}
	expect_enodev(_metadata, fd);
	close(fd);
	EXPECT_EQ(-ENXIO, tw_ret(open(path, O_RDWR)));
	/* Nor does it lead to a wheel that comes later. */
	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
		EXPECT_EQ(-ENXIO, tw_ret(open(path, O_RDWR)));
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
		EXPECT_EQ(-ENXIO, tw_ret(open(path, O_RDWR)));
	}
	EXPECT_EQ(0, unlink(path));
}

TEST_F(named, renamed_node)
{
	const char *path = TW_NODES PREFIX "renamed";
	int fd;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, rename(NODE, path));
	expect_same_wheel(_metadata, path, fd);
	EXPECT_EQ(-ENOENT, tw_ret(open(NODE, O_RDWR)));
	/* The name is taken as before. */
	EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE,
					    &manual)));
	expect_stale(_metadata, self, path, fd);
}

TEST_F(named, linked_node)
{
	const char *path = TW_NODES PREFIX "linked";
	int fd;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, link(NODE, path));
	expect_same_wheel(_metadata, path, fd);
	expect_same_wheel(_metadata, NODE, fd);
	expect_stale(_metadata, self, path, fd);
}

TEST_F(named, unlinked_node)
{
	struct stat st;
	int fd;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, stat(NODE, &st));
	ASSERT_EQ(0, unlink(NODE));
	EXPECT_EQ(-ENOENT, tw_ret(open(NODE, O_RDWR)));
	EXPECT_EQ(0, tw_register(fd, 2, TW_SEC, 0, NULL));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	/* The folder went with its last node, perhaps. */
	mkdir(NODES, 0755);
	ASSERT_EQ(0, mknod(NODE, S_IFCHR | 0600, st.st_rdev));
	expect_same_wheel(_metadata, NODE, fd);
	ASSERT_EQ(0, unlink(NODE));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
	expect_enodev(_metadata, fd);
	rmdir(NODES);

	/* And the next one has its node again. */
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_TRUE(is_here(NAME));
	EXPECT_EQ(0, close(tw_open_named(NAME, O_RDWR)));
}

TEST_F(named, node_elsewhere)
{
	const char *path = "/dev/" PREFIX "elsewhere";
	struct stat st;
	int fd;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, stat(NODE, &st));
	unlink(path);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0600, st.st_rdev));
	expect_same_wheel(_metadata, path, fd);
	expect_stale(_metadata, self, path, fd);
	/* Numbers that no wheel has had yet lead nowhere, either. */
	for (unsigned int n = 1000; n < 1U << 20; n *= 2) {
		ASSERT_EQ(0, mknod(path, S_IFCHR | 0600,
				   makedev(major(st.st_rdev), n)));
		EXPECT_EQ(-ENXIO, tw_ret(open(path, O_RDWR)));
		unlink(path);
	}
}

/* What has the node's path already stays, and the wheel is there without one. */
TEST_F(named, something_in_the_way)
{
	const char *path = "/dev/" PREFIX "elsewhere";
	struct stat st;
	int file, fd;

	TW_NEEDS_ROOT();
	mkdir(NODES, 0755);
	file = open(NODE, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (file < 0)
		SKIP(return, "cannot make a file in " NODES);
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_TRUE(in_dir(CLASS, ENTRY_NAME NAME));
	EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE,
					    &manual)));
	unlink(path);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0600, number_of(NAME)));
	fd = open(path, O_RDWR);
	ASSERT_LE(0, fd);
	expect_same_wheel(_metadata, path, fd);
	EXPECT_EQ(0, unlink(path));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
	expect_enodev(_metadata, fd);

	ASSERT_EQ(0, stat(NODE, &st));
	EXPECT_TRUE(S_ISREG(st.st_mode));
	EXPECT_EQ(0, unlink(NODE));
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	ASSERT_EQ(0, stat(NODE, &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	rmdir(NODES);
}

/* What processes of a race have in common. */
enum { RACERS = 8 };

struct race {
	pthread_barrier_t barrier;
	_Atomic unsigned int made, existed, refused, destroyed, missing, odd;
	_Atomic unsigned int opened;
	_Atomic __u64 winner;
};

enum contest { EXCLUSIVE, SAME, DIFFERENT };

static void race_once(struct race *race, int dev, int racer, enum contest how)
{
	struct timewheel_setup setup = manual;
	int ret, fd;

	if (how == DIFFERENT)
		setup.max_tokens += racer;
	pthread_barrier_wait(&race->barrier);
	ret = tw_ret(tw_create(dev, NAME, how == EXCLUSIVE ? TIMEWHEEL_CREATE_EXCLUSIVE :
			       0, &setup));
	if (!ret) {
		race->made++;
		race->winner = setup.max_tokens;
	} else if (ret == TIMEWHEEL_RES_EXISTED) {
		race->existed++;
	} else if (ret == -EEXIST) {
		race->refused++;
	} else {
		race->odd++;
	}
	/* It is there when the call returns. */
	fd = ret >= 0 ? tw_open_named(NAME, O_RDWR) : -1;
	race->opened += fd >= 0;
	close(fd);
	pthread_barrier_wait(&race->barrier);
	/* The parent looks. */
	pthread_barrier_wait(&race->barrier);
	ret = tw_ret(tw_destroy_named(dev, NAME));
	if (!ret)
		race->destroyed++;
	else if (ret == -ENOENT)
		race->missing++;
	else
		race->odd++;
	pthread_barrier_wait(&race->barrier);
}

FIXTURE(named_race) {
	FIXTURE_DATA(named) named;
};

FIXTURE_VARIANT(named_race) {
	enum contest how;
};

FIXTURE_VARIANT_ADD(named_race, exclusive) { .how = EXCLUSIVE };
FIXTURE_VARIANT_ADD(named_race, same_setup) { .how = SAME };
FIXTURE_VARIANT_ADD(named_race, other_setup) { .how = DIFFERENT };

FIXTURE_SETUP(named_race)
{
	named_setup(_metadata, &self->named, NULL);
}

FIXTURE_TEARDOWN(named_race)
{
	named_teardown(_metadata, &self->named, NULL);
}

/* Of all who create one name at once one makes it, of all who destroy one. */
TEST_F_TIMEOUT(named_race, one_wins, LONG)
{
	const unsigned long rounds = tw_scaled(100);
	struct race *race = tw_shared_memory(sizeof(*race));
	struct timewheel_info info;
	pid_t child[RACERS];

	ASSERT_NE(MAP_FAILED, (void *)race);
	init_barrier(&race->barrier, RACERS + 1);
	for (int i = 0; i < RACERS; i++) {
		child[i] = tw_fork();
		ASSERT_LE(0, child[i]);
		if (child[i])
			continue;
		for (unsigned long n = 0; n < rounds; n++)
			race_once(race, self->named.dev, i, variant->how);
		_exit(0);
	}
	for (unsigned int n = 1; n <= rounds; n++) {
		const unsigned int losers = n * (RACERS - 1);
		int fd;

		pthread_barrier_wait(&race->barrier);
		pthread_barrier_wait(&race->barrier);
		EXPECT_EQ(n, race->made);
		EXPECT_EQ(variant->how == SAME ? losers : 0, race->existed);
		EXPECT_EQ(variant->how == SAME ? 0 : losers, race->refused);
		EXPECT_EQ(variant->how == SAME ? n * RACERS : n, race->opened);
		fd = tw_open_named(NAME, O_RDWR);
		EXPECT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(race->winner, info.max_tokens);
		close(fd);
		pthread_barrier_wait(&race->barrier);
		pthread_barrier_wait(&race->barrier);
		EXPECT_EQ(n, race->destroyed);
		EXPECT_EQ(losers, race->missing);
		EXPECT_EQ(0U, race->odd);
		EXPECT_TRUE(is_gone(NAME));
	}
	for (int i = 0; i < RACERS; i++)
		EXPECT_EQ(0, tw_reap(child[i]));
}

/* All kinds of calls on few names; each may fail in its own ways only. */
struct storm {
	_Atomic bool stop;
	_Atomic unsigned int made, opened, events, dead;
};

static const char *random_name(__u64 *seed)
{
	static const char *const names[] = { NAME, OTHER, PREFIX "c" };

	return names[tw_random(seed) % ARRAY_SIZE(names)];
}

static int open_in_storm(struct __test_metadata *_metadata, struct storm *storm,
			 const char *name, int flags)
{
	int fd = tw_open_named(name, flags);

	EXPECT_TRUE(fd >= 0 || errno == ENOENT || errno == ENODEV ||
		    errno == ENXIO) {
		TH_LOG("open: %s", strerror(errno));
	}
	storm->opened += fd >= 0;
	return fd;
}

/* Some use of an open wheel. Returns whether it is still alive. */
static bool use_in_storm(struct __test_metadata *_metadata,
			 struct storm *storm, int fd, __u64 *seed)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timewheel_event events[4];
	__u64 id = tw_random(seed) % 50;
	char name[128];
	int ret;

	ret = tw_ret(tw_register(fd, id, tw_random(seed) % 4 * TW_MS, 0,
				 NULL));
	EXPECT_TRUE(!ret || ret == -EEXIST || ret == -ENODEV) {
		TH_LOG("register: %d", ret);
	}
	ret = tw_ret(tw_touch(fd, 0, id));
	EXPECT_TRUE(ret >= 0 || ret == -ENOENT || ret == -EINVAL ||
		    ret == -ENODEV) {
		TH_LOG("touch: %d", ret);
	}
	ret = tw_ret(tw_read(fd, events, 4));
	EXPECT_TRUE(ret > 0 || ret == -EAGAIN || ret == -ENODEV) {
		TH_LOG("read: %d", ret);
	}
	storm->events += ret > 0 ? ret : 0;
	tw_fdinfo(fd, "name", name, sizeof(name));
	if (poll(&p, 1, tw_random(seed) % 2) == 1 && p.revents != POLLIN) {
		EXPECT_EQ(POLLHUP | POLLERR, p.revents);
		EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, events, 4)));
		return false;
	}
	return ret != -ENODEV;
}

static void run_storm(struct __test_metadata *_metadata, struct storm *storm,
		      int dev, __u64 seed)
{
	int held[8], ret;

	memset(held, -1, sizeof(held));
	while (!storm->stop) {
		const char *name = random_name(&seed);
		int *fd = &held[tw_random(&seed) % ARRAY_SIZE(held)];
		__u32 what = tw_random(&seed) % 8;

		if (what == 0) {
			ret = tw_ret(tw_create(dev, name, 0, &monotonic));
			EXPECT_LE(0, ret) {
				TH_LOG("create: %d", ret);
			}
			storm->made += !ret;
		} else if (what == 1) {
			ret = tw_ret(tw_create(dev, name, TIMEWHEEL_CREATE_EXCLUSIVE,
					       &monotonic));
			EXPECT_TRUE(!ret || ret == -EEXIST) {
				TH_LOG("exclusive create: %d", ret);
			}
			storm->made += !ret;
		} else if (what == 2) {
			ret = tw_ret(tw_destroy_named(dev, name));
			EXPECT_TRUE(!ret || ret == -ENOENT) {
				TH_LOG("destroy: %d", ret);
			}
		} else if (*fd < 0) {
			*fd = open_in_storm(_metadata, storm, name,
					    O_RDWR | O_NONBLOCK);
		} else if (!use_in_storm(_metadata, storm, *fd, &seed)) {
			storm->dead++;
			close(*fd);
			*fd = -1;
		} else if (what == 3) {
			close(*fd);
			*fd = -1;
		}
	}
}

/* Reads until the wheel is no more, and then the next one. */
static void read_in_storm(struct __test_metadata *_metadata,
			  struct storm *storm, __u64 seed)
{
	struct timewheel_event event;

	while (!storm->stop) {
		int fd = open_in_storm(_metadata, storm, random_name(&seed),
				       O_RDONLY);
		int ret = 0;

		if (fd < 0)
			sched_yield();
		while (fd >= 0 && (ret = tw_ret(tw_read(fd, &event, 1))) == 1)
			storm->events++;
		if (fd >= 0)
			EXPECT_EQ(-ENODEV, ret);
		close(fd);
	}
}

/* Whether all that should happen has. */
static bool storm_was_one(const struct storm *storm)
{
	return storm->made && storm->opened && storm->dead && storm->events;
}

/* Somebody who looks at everything there is to see from outside. */
static void look_around(void)
{
	unsigned long long wheels, tokens;

	count_wheels();
	account(0, &wheels, &tokens);
	has_line(DEBUG "/stats", "");
	has_line(ENTRY NAME "/uevent", "");
	number_of(OTHER);
}

TEST_F_TIMEOUT(named, storm, LONG)
{
	enum { WORKERS = 4, READERS = 3 };
	struct storm *storm = tw_shared_memory(sizeof(*storm));
	__u64 end = tw_now(CLOCK_MONOTONIC) + tw_scaled(6000) * TW_MS;
	pid_t child[WORKERS + READERS], victim;
	__u64 seed = 1;
	int status;

	ASSERT_NE(MAP_FAILED, (void *)storm);
	for (int i = 0; i < WORKERS + READERS; i++) {
		child[i] = tw_fork();
		ASSERT_LE(0, child[i]);
		if (child[i])
			continue;
		if (i < WORKERS)
			run_storm(_metadata, storm, self->dev, i);
		else
			read_in_storm(_metadata, storm, i);
		END_CHILD();
	}
	while (tw_now(CLOCK_MONOTONIC) < end || !storm_was_one(storm)) {
		/* One more, who is killed wherever it is, time and again. */
		victim = tw_fork();
		ASSERT_LE(0, victim);
		if (!victim) {
			run_storm(_metadata, storm, self->dev, tw_random(&seed));
			END_CHILD();
		}
		look_around();
		tw_sleep_ms(tw_random(&seed) % 40);
		kill(victim, SIGKILL);
		EXPECT_EQ(-1, tw_reap(victim));
	}
	storm->stop = true;
	for (int i = 0; i < WORKERS + READERS; i++) {
		/* Readers sleep until what they read from is destroyed. */
		while (!waitpid(child[i], &status, WNOHANG)) {
			clear_away(self->dev);
			tw_sleep_ms(1);
		}
		EXPECT_EQ(0, status);
	}
	TH_LOG("%u made, %u opened, %u found dead, %u events", storm->made,
	       storm->opened, storm->dead, storm->events);
}

/*
 * Open meets create and destroy: what is opened is a whole wheel or a dead one,
 * never one in the making or half gone.
 */
TEST_F_TIMEOUT(named, open_against_create_and_destroy, LONG)
{
	const unsigned long rounds = tw_scaled(500);
	unsigned int alive = 0, dead = 0;
	int status;
	pid_t child;

	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		for (unsigned long n = 0; n < rounds; n++) {
			EXPECT_EQ(0, tw_create(self->dev, NAME,
					       TIMEWHEEL_CREATE_EXCLUSIVE, &manual));
			sched_yield();
			EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
		}
		END_CHILD();
	}
	while (!waitpid(child, &status, WNOHANG)) {
		int fd = tw_open_named(NAME, O_RDWR);
		struct timewheel_info info;
		int ret;

		if (fd < 0) {
			EXPECT_TRUE(errno == ENOENT || errno == ENODEV ||
				    errno == ENXIO) {
				TH_LOG("open: %s", strerror(errno));
			}
			continue;
		}
		ret = tw_ret(tw_info(fd, &info));
		EXPECT_TRUE(!ret || ret == -ENODEV) {
			TH_LOG("info: %d", ret);
		}
		EXPECT_TRUE(ret || info.slots == manual.slots);
		alive += !ret;
		dead += !!ret;
		close(fd);
	}
	EXPECT_EQ(0, status);
	TH_LOG("found %u alive, %u dead", alive, dead);
}

/* A caller whose /dev is another still names wheels for the whole machine. */
static void in_mount_namespace(struct __test_metadata *_metadata, int dev)
{
	int fd;

	EXPECT_EQ(0, mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	EXPECT_EQ(0, mount("none", "/dev", "tmpfs", 0, NULL));
	EXPECT_EQ(0, tw_create(dev, NAME, 0, &manual));
	EXPECT_EQ(-ENOENT, tw_ret(tw_open_named(NAME, O_RDWR)));
	EXPECT_FALSE(in_dir("/dev", "timewheels"));
	/* By a node of its own it comes to the wheel nevertheless. */
	EXPECT_EQ(0, mknod("/dev/own", S_IFCHR | 0600, number_of(NAME)));
	fd = open("/dev/own", O_RDWR);
	EXPECT_LE(0, fd);
	EXPECT_EQ(0, tw_register(fd, 1, TW_SEC, 77, NULL));
	close(fd);
	/* And where the kernel's own /dev is mounted anew, its node is. */
	EXPECT_EQ(0, mkdir("/dev/again", 0755));
	EXPECT_EQ(0, mount("none", "/dev/again", "devtmpfs", 0, NULL));
	fd = open("/dev/again/timewheels/" NAME, O_RDWR);
	EXPECT_LE(0, fd);
	EXPECT_EQ(0, tw_touch(fd, 0, 1));
}

TEST_F(named, mount_namespaces)
{
	struct timewheel_op op;
	pid_t child;
	int fd;

	TW_NEEDS_ROOT();
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (unshare(CLONE_NEWNS))
			_exit(99);
		in_mount_namespace(_metadata, self->dev);
		END_CHILD();
	}
	fd = tw_reap(child);
	if (fd == 99)
		SKIP(return, "no mount namespaces");
	ASSERT_EQ(0, fd);
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_get(fd, 0, 1, &op));
	EXPECT_EQ(77ULL, op.cookie);
}

/* What two processes, each in its own time, and the test in its have in common. */
struct times {
	pthread_barrier_t barrier;
	__u32 clock;
	clockid_t id;
	_Atomic __u64 first, second;	/* deadlines in their makers' times */
	_Atomic __u32 slot;
};

static const __s64 seconds_ahead[] = { 100000, 7000 };

static void expect_own_time(struct __test_metadata *_metadata, int fd,
			    clockid_t id)
{
	__u64 before = tw_now(id);
	struct timewheel_info info;

	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_LE(before, info.now);
	EXPECT_GE(tw_now(id), info.now);
}

/* The token @id, and then its event, tell of @deadline in the caller's time. */
static void expect_token(struct __test_metadata *_metadata, int fd, __u64 id,
			 __u64 deadline)
{
	struct timewheel_token token = {};
	struct timewheel_list list = {
		.size = sizeof(list), .from = deadline, .to = deadline,
		.tokens = (uintptr_t)&token, .token_size = sizeof(token),
		.count = 1,
	};
	struct timewheel_op op;

	EXPECT_LE(0, tw_get(fd, 0, id, &op));
	EXPECT_EQ(deadline, op.deadline);
	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_LIST, &list));
	EXPECT_EQ(1U, list.listed);
	EXPECT_EQ(id, token.id);
	EXPECT_EQ(deadline, token.deadline);
}

static void expect_event(struct __test_metadata *_metadata, int fd, __u64 id,
			 __u64 deadline, clockid_t clock)
{
	struct timewheel_event event;

	EXPECT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(id, event.id);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_LE(deadline, event.taken);
	EXPECT_GE(tw_now(clock), event.taken);
}

/* Registers @id for a time of the caller's. Returns the deadline that it got. */
static __u64 register_ahead(struct __test_metadata *_metadata, int fd, __u64 id,
			    clockid_t clock)
{
	__u64 wish = tw_now(clock) + 300 * TW_MS + 1;
	struct timewheel_op op;

	EXPECT_EQ(0, tw_register_at(fd, id, wish, 0));
	EXPECT_LE(0, tw_get(fd, 0, id, &op));
	EXPECT_LE(wish, op.deadline);
	EXPECT_GT(wish + TW_MS, op.deadline);
	return op.deadline;
}

static void in_time_namespace(struct __test_metadata *_metadata,
			      struct times *times, int who)
{
	const __u64 ahead = (seconds_ahead[1] - seconds_ahead[0]) * TW_SEC;
	int fd;

	EXPECT_TRUE(tw_enter_time_namespace(times->id, seconds_ahead[who]));
	fd = tw_open_named(NAME, O_RDWR);
	EXPECT_LE(0, fd);
	expect_own_time(_metadata, fd, times->id);
	if (!who)
		times->first = register_ahead(_metadata, fd, 1, times->id);
	pthread_barrier_wait(&times->barrier);
	if (who)
		expect_token(_metadata, fd, 1, times->first + ahead);
	pthread_barrier_wait(&times->barrier);
	if (who) {
		expect_event(_metadata, fd, 1, times->first + ahead, times->id);
		times->second = register_ahead(_metadata, fd, 2, times->id);
	}
	pthread_barrier_wait(&times->barrier);
	if (!who)
		expect_event(_metadata, fd, 2, times->second - ahead,
			     times->id);
}

static void share_in_two_times(struct __test_metadata *_metadata, int dev,
			       struct times *times)
{
	struct timewheel_setup setup = monotonic;
	struct timewheel_op op;
	pid_t child[2];
	int fd;

	setup.clock = times->clock;
	ASSERT_EQ(0, tw_create(dev, NAME, 0, &setup));
	init_barrier(&times->barrier, 3);
	for (int who = 0; who < 2; who++) {
		child[who] = tw_fork();
		ASSERT_LE(0, child[who]);
		if (child[who])
			continue;
		in_time_namespace(_metadata, times, who);
		END_CHILD();
	}
	fd = tw_open_named(NAME, O_RDWR);
	pthread_barrier_wait(&times->barrier);
	/* The tick is the wheel's own, whoever asks. */
	EXPECT_LE(0, tw_get(fd, 0, 1, &op));
	EXPECT_EQ(times->first - seconds_ahead[0] * TW_SEC, op.deadline);
	EXPECT_EQ(op.deadline / TW_MS % setup.slots, op.slot);
	expect_token(_metadata, fd, 1, op.deadline);
	pthread_barrier_wait(&times->barrier);
	pthread_barrier_wait(&times->barrier);
	for (int who = 0; who < 2; who++)
		EXPECT_EQ(0, tw_reap(child[who]));
	close(fd);
	ASSERT_EQ(0, tw_destroy_named(dev, NAME));
}

/* One wheel, and each sees the same moment in its own time. */
TEST_F(named, time_namespaces)
{
	struct times *times = tw_shared_memory(sizeof(*times));
	pid_t child;

	TW_NEEDS_ROOT();
	ASSERT_NE(MAP_FAILED, (void *)times);
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(!tw_enter_time_namespace(CLOCK_MONOTONIC, 1));
	if (tw_reap(child))
		SKIP(return, "no time namespaces");
	times->clock = TIMEWHEEL_CLOCK_MONOTONIC;
	times->id = CLOCK_MONOTONIC;
	share_in_two_times(_metadata, self->dev, times);
	times->clock = TIMEWHEEL_CLOCK_BOOTTIME;
	times->id = CLOCK_BOOTTIME;
	share_in_two_times(_metadata, self->dev, times);
}

/* Its name is told to whoever looks at an open file of it, and only there. */
TEST_F(named, fdinfo_tells_the_name)
{
	char name[128];
	int fd;

	ASSERT_EQ(0, tw_create(self->dev, LONGEST, 0, &manual));
	fd = tw_open_named(LONGEST, O_RDONLY);
	EXPECT_TRUE(tw_fdinfo(fd, "name", name, sizeof(name)));
	EXPECT_STREQ(LONGEST, name);
	ASSERT_EQ(0, tw_destroy_named(self->dev, LONGEST));
	tw_fdinfo(fd, "name", name, sizeof(name));

	fd = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	EXPECT_FALSE(tw_fdinfo(fd, "name", name, sizeof(name)));
}

/* Destroyed while a reader holds tokens: they reach it or come to nothing. */
TEST_F(named, destroyed_while_a_reader_copies)
{
	for (int lose = 0; lose < 2; lose++) {
		const size_t page = sysconf(_SC_PAGESIZE);
		struct tw_slow_reader r;
		struct timewheel_event event;
		int fd;

		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
		fd = tw_open_named(NAME, O_RDWR);
		ASSERT_EQ(50UL, tw_register_many(fd, 1, 50, 0, 0));
		TW_START_SLOW_READER(&r, fd, tw_new_pages(page), page);
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
		EXPECT_TRUE(is_gone(NAME));
		EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, &event, 1)));
		ASSERT_TRUE(lose ? tw_lose_pages(r.uffd, r.pages, r.size) :
				   tw_bring_pages(r.uffd, r.pages, r.size));
		ASSERT_EQ(0, pthread_join(r.thread, NULL));
		EXPECT_TRUE(r.ret == -ENODEV || (lose && r.ret == -EFAULT) ||
			    (!lose && r.ret > 0)) {
			TH_LOG("read: %d", r.ret);
		}
		expect_enodev(_metadata, fd);
		close(fd);
		close(r.uffd);
		EXPECT_TRUE(tw_refcnt_becomes(self->refs));
	}
}

/* A memory cgroup that is as small as the test wants it. */
FIXTURE(named_shortage) {
	FIXTURE_DATA(named) named;
};

FIXTURE_SETUP(named_shortage)
{
	TW_NEEDS_ROOT();
	TW_MAKE_GROUP(0);
	named_setup(_metadata, &self->named, NULL);
}

FIXTURE_TEARDOWN(named_shortage)
{
	named_teardown(_metadata, &self->named, NULL);
	rmdir(TW_GROUP);
}

/* Creates a wheel from within the group. Returns 0, an error, -1 when killed. */
static int create_in_group(int dev, const struct timewheel_setup *setup)
{
	pid_t child = tw_fork();

	if (!child) {
		if (!tw_group_enter_locked())
			_exit(255);
		_exit(tw_create(dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, setup) ?
		      errno : 0);
	}
	return tw_reap(child);
}

/* What is charged to the group, in bytes, when all that is kept for later is not. */
static unsigned long charged(void)
{
	/* A limit below it has the kernel settle up. */
	tw_group_limit(0);
	return tw_group_charged();
}

static bool charged_becomes_less_than(unsigned long bytes)
{
	for (int i = 0; i < 100 && charged() >= bytes; i++)
		tw_sleep_ms(50);
	return charged() < bytes;
}

/* P9: wherever memory ends, nothing remains, and the name can be had. */
TEST_F_TIMEOUT(named_shortage, leaves_nothing, LONG)
{
	const unsigned long page = sysconf(_SC_PAGESIZE);
	const unsigned long most = 64UL << 20, little = 64UL << 10;
	unsigned long long wheels, tokens, wheels_before, tokens_before;
	struct timewheel_caps caps = { .size = sizeof(caps) };
	struct timewheel_setup setup = manual;
	int dev = self->named.dev, ret = 0, failed = 0;
	unsigned long limit;
	bool told;

	ASSERT_EQ(0, ioctl(dev, TIMEWHEEL_IOC_CAPS, &caps));
	setup.slots = caps.max_slots;
	setup.max_tokens = caps.max_tokens;
	told = account(0, &wheels_before, &tokens_before);
	for (limit = 0; limit < most; limit += page + limit / 32 / page * page) {
		ASSERT_TRUE(tw_group_limit(limit));
		ret = create_in_group(dev, &setup);
		if (ret != ENOMEM)
			break;
		failed++;
		EXPECT_TRUE(is_gone(NAME));
		EXPECT_TRUE(tw_refcnt_becomes(self->named.refs));
		EXPECT_EQ(self->named.wheels, count_wheels());
		if (told && account(0, &wheels, &tokens)) {
			EXPECT_EQ(wheels_before, wheels);
			EXPECT_EQ(tokens_before, tokens);
		}
	}
	TH_LOG("%d times too little; enough with %lu kB", failed, limit >> 10);
	EXPECT_EQ(0, ret);
	EXPECT_LT(0, failed);
	EXPECT_TRUE(is_here(NAME));
	EXPECT_EQ(0, close(tw_open_named(NAME, O_RDWR)));
	EXPECT_LT(little, charged());
	EXPECT_EQ(0, tw_destroy_named(dev, NAME));
	EXPECT_TRUE(charged_becomes_less_than(little)) {
		TH_LOG("%lu bytes remain", charged());
	}
}

/* A wheel made in a group is there when the group is gone. */
TEST_F(named_shortage, outlives_its_group)
{
	struct timewheel_setup setup = manual;
	int dev = self->named.dev, fd;

	setup.max_tokens = 1000;
	ASSERT_TRUE(tw_group_limit(64UL << 20));
	ASSERT_EQ(0, create_in_group(dev, &setup));
	ASSERT_EQ(0, rmdir(TW_GROUP));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_EQ(1000UL, tw_register_many(fd, 0, 1000, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ(1000, tw_drain(fd));
	EXPECT_EQ(0, tw_destroy_named(dev, NAME));
}

TEST_HARNESS_MAIN
