// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several files, processes and users share named wheels: the program tests which of
 * them gets an event, what each may do with the wheel and its node, which user is
 * charged for the wheel (P9), and how the wheel looks from other namespaces.
 *
 * Each test ends with a check that it has left nothing behind.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#define PREFIX	"kselftest-sharing-"
#include "tw_clock.h"
#include "tw_named_fixture.h"
#include "tw_process.h"

/* This machine does not have these users. */
#define USER		12345
#define USER_GROUP	23456
#define STRANGER	12346

FIXTURE(named_sharing) {
	int dev;	/* the device, open for reading and writing */
	struct found found;
};

FIXTURE_SETUP(named_sharing)
{
	self->dev = TW_OPEN(O_RDWR);
	note_what_is_there(self->dev, &self->found);
}

FIXTURE_TEARDOWN(named_sharing)
{
	expect_as_found(_metadata, self->dev, &self->found);
}

/* Two processes that each open the node use the same wheel. */
TEST_F(named_sharing, two_processes_share_it)
{
	struct timewheel_event event;
	struct timewheel_token token;
	pid_t child;
	int fd;

	NEEDS_KERNEL("other processes see a wheel");
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
	ASSERT_EQ(0, tw_get(fd, 0, 8, &token));
	EXPECT_EQ(80ULL, token.cookie);
	EXPECT_EQ(8 * TW_SEC, token.deadline);
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(fd, 0, 7, &token)));
}

/* P3: exactly one of several open files gets each event. */
TEST_F(named_sharing, one_event_goes_to_one_open)
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

	NEEDS_KERNEL("other processes see a wheel");
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

/* Returns whether a file of the kernel's contains this line. */
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

/*
 * Makes the process an ordinary user for good. The user is in the device's group.
 * Returns whether the change of the user worked.
 */
static bool become(uid_t uid, gid_t gid)
{
	struct stat st;

	return !stat(TW_DEVICE, &st) && !setgroups(1, &st.st_gid) &&
	       !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid) &&
	       !prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Returns whether the device's group may open the device for reading and writing. */
static bool group_may_use_device(void)
{
	struct stat st;

	return !stat(TW_DEVICE, &st) && (st.st_mode & 0060) == 0060;
}

#define NEEDS_USERS()						\
	do {							\
		TW_NEEDS_ROOT();				\
		if (!group_may_use_device())			\
			SKIP(return, "the device is root's alone"); \
	} while (0)

/*
 * The node belongs to the wheel's creator, and no other user may open it, whatever
 * the umask is. Sysfs shows the same owner and mode.
 */
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

	/* Without DEVMODE, udev would give the node of a group a wider mode. */
	EXPECT_TRUE(has_line(ENTRY NAME "/uevent",
			     "DEVNAME=timewheels/" NAME));
	EXPECT_TRUE(has_line(ENTRY NAME "/uevent", "DEVMODE=0600"));
	snprintf(line, sizeof(line), "DEVUID=%u", uid);
	EXPECT_EQ(!!uid, has_line(ENTRY NAME "/uevent", line));
	snprintf(line, sizeof(line), "DEVGID=%u", gid);
	EXPECT_EQ(!!gid, has_line(ENTRY NAME "/uevent", line));
}

TEST_F(named_sharing, node_of_root)
{
	mode_t mask = umask(0);
	struct stat st;

	NEEDS_KERNEL("a node has an owner");
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	expect_owned(_metadata, geteuid(), getegid());
	/* Only root may put anything into the folder of the nodes. */
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

/* Opens the node as user @uid of group @gid. Returns 0 or -errno. */
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

TEST_F(named_sharing, node_of_a_user)
{
	struct timewheel_event event;
	pid_t child;
	int fd;

	NEEDS_KERNEL("a node has an owner");
	NEEDS_USERS();
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		EXPECT_TRUE(become(USER, USER_GROUP));
		/* A user of the device's group may create wheels. */
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

/* The node belongs to the effective user and group of its creator. */
TEST_F(named_sharing, node_of_an_effective_user)
{
	pid_t child;

	NEEDS_KERNEL("a node has an owner");
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

/* Calls @what as user @uid. Returns its result, or -errno. */
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

static int create_exclusively(int dev)
{
	return tw_create(dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual);
}

static int destroy_it(int dev)
{
	return tw_destroy_named(dev, NAME);
}

/* The creator of a wheel and root may destroy it. The owner of its node may not. */
TEST_F(named_sharing, who_may_destroy)
{
	struct timewheel_info info;
	int fd;

	NEEDS_KERNEL("a node has an owner");
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

	/* The creator may destroy the wheel also if another user owns the node. */
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	ASSERT_EQ(0, chown(NODE, STRANGER, USER_GROUP));
	EXPECT_EQ(-EACCES, open_as(USER, USER_GROUP, O_RDONLY));
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, destroy_it));
	EXPECT_EQ(0, do_as(USER, self->dev, destroy_it));

	/* If there is no wheel, the error is the same for all users. */
	EXPECT_EQ(-ENOENT, do_as(STRANGER, self->dev, destroy_it));
}

static int create_effectively(int dev)
{
	return setresuid(-1, USER, -1) ? -1 : create_it(dev);
}

/* Root in a user namespace of its own has no rights outside of it. */
static int destroy_as_root_inside(int dev)
{
	return unshare(CLONE_NEWUSER) ? -1 : tw_destroy_named(dev, NAME);
}

static int create_as_root_inside(int dev)
{
	return unshare(CLONE_NEWUSER) ? -1 : create_it(dev);
}

TEST_F(named_sharing, user_namespaces)
{
	struct stat st;
	pid_t child;

	NEEDS_KERNEL("a node has an owner");
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

	/*
	 * A process in a user namespace creates wheels as its user outside of the
	 * namespace.
	 */
	ASSERT_EQ(0, do_as(USER, self->dev, create_as_root_inside));
	ASSERT_EQ(0, stat(NODE, &st));
	EXPECT_EQ((uid_t)USER, st.st_uid);
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, destroy_as_root_inside));
	EXPECT_EQ(0, do_as(USER, self->dev, destroy_as_root_inside));
}

/* The effective user may destroy its wheel, whatever the real user is. */
TEST_F(named_sharing, effective_user_destroys)
{
	pid_t child;

	NEEDS_KERNEL("a node has an owner");
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

/*
 * CREATE finds a wheel of the name also if another user has created it. Only the mode
 * and the owner of its node decide who may open the wheel.
 */
TEST_F(named_sharing, existing_wheel_of_another_user)
{
	struct stat before, after;

	NEEDS_KERNEL("a node has an owner");
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	ASSERT_EQ(0, stat(NODE, &before));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, do_as(STRANGER, self->dev, create_it));
	EXPECT_EQ(-EEXIST, do_as(STRANGER, self->dev, create_exclusively));
	EXPECT_EQ(-EACCES, open_as(STRANGER, USER_GROUP, O_RDWR));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	ASSERT_EQ(0, stat(NODE, &after));
	EXPECT_EQ(before.st_uid, after.st_uid);
	EXPECT_EQ(before.st_rdev, after.st_rdev);
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, destroy_it));
}

/* A file open for reading only shows everything. Of all changes it allows only read. */
TEST_F(named_sharing, open_for_reading)
{
	static const __u32 changing[] = {
		TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_TOUCH,
		TIMEWHEEL_OP_TOUCH_OR_REGISTER, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
	};
	struct timewheel_op ops[ARRAY_SIZE(changing)] = {};
	__u64 buckets[TIMEWHEEL_BUCKETS];
	struct timewheel_stats stats = {
		.size = sizeof(stats), .lateness = (uintptr_t)buckets,
	};
	struct timewheel_token token;
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER, .count = 1,
		.tokens = (uintptr_t)&token, .token_size = sizeof(token),
	};
	struct timewheel_event event;
	struct tw_state before, after;
	__u32 done;
	int fd, ro;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ro = tw_open_named(NAME, O_RDONLY | O_NONBLOCK);
	ASSERT_LE(0, ro);
	ASSERT_EQ(0, tw_register(fd, 1, 10 * TW_SEC, 10, NULL));
	ASSERT_EQ(0, tw_get_state(fd, 0, 1, &before));

	for (size_t i = 0; i < ARRAY_SIZE(changing); i++) {
		/*
		 * Token 1 exists and token 2 does not. The error is the same for both
		 * tokens.
		 */
		for (__u64 id = 1; id <= 2; id++) {
			EXPECT_EQ(-EBADF, tw_ret(tw_key_op(ro, changing[i], 0,
							   id, TW_SEC)));
		}
		ops[i] = (struct timewheel_op) {
			.size = sizeof(ops[i]), .code = changing[i],
			.id = 1 + !i, .time = TW_SEC, .result = 77,
		};
	}
	/* The batch itself fails, even an empty batch, and no operation is carried out. */
	EXPECT_EQ(-EBADF, tw_ret(tw_batch(ro, ops, 0, NULL)));
	EXPECT_EQ(-EBADF, tw_ret(tw_batch(ro, ops, ARRAY_SIZE(ops), &done)));
	EXPECT_EQ(0U, done);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		EXPECT_EQ(77, ops[i].result);
	EXPECT_EQ(-EBADF, tw_ret(tw_touch(ro, 0, 1)));
	EXPECT_EQ(-EBADF, tw_ret(tw_touch_keys(ro, 0, &ops[1].id, 1, NULL)));
	EXPECT_EQ(-EBADF, tw_ret(tw_advance(ro, 20)));
	EXPECT_EQ(-EBADF, tw_ret(tw_control(ro, 0, 0)));
	ASSERT_EQ(0, tw_get_state(fd, 0, 1, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));

	/* The file for reading shows the same state as the file for reading and writing. */
	ASSERT_EQ(0, tw_get_state(ro, 0, 1, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_EQ(0, ioctl(ro, TIMEWHEEL_IOC_LIST, &list));
	EXPECT_EQ(1U, list.listed);
	EXPECT_EQ(0, memcmp(&before.witness, &token, sizeof(token)));
	EXPECT_EQ(0, ioctl(ro, TIMEWHEEL_IOC_STATS, &stats));
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(ro, &event, 1)));
	ASSERT_EQ(0, tw_advance(fd, 10));
	EXPECT_TRUE(tw_readable(ro));
	EXPECT_EQ(1, tw_read(ro, &event, 1));
	EXPECT_EQ(1ULL, event.id);
}

/*
 * A file open for writing only runs operations. It can neither list tokens nor read
 * events.
 */
TEST_F(named_sharing, open_for_writing)
{
	__u64 buckets[TIMEWHEEL_BUCKETS];
	struct timewheel_stats stats = {
		.size = sizeof(stats), .lateness = (uintptr_t)buckets,
	};
	struct timewheel_token token;
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER, .count = 1,
		.tokens = (uintptr_t)&token, .token_size = sizeof(token),
	};
	struct timewheel_event event;
	struct iovec iov = { &event, sizeof(event) };
	struct timewheel_info info;
	int fd;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_WRONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	EXPECT_EQ(0, tw_touch(fd, 0, 1));
	EXPECT_EQ(-EBADF, tw_ret(tw_get(fd, 0, 1, &token)));
	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_STATS, &stats));
	EXPECT_EQ(-EBADF, tw_ret(ioctl(fd, TIMEWHEEL_IOC_LIST, &list)));
	EXPECT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ(-EBADF, tw_ret(tw_read(fd, &event, 1)));
	EXPECT_EQ(-EBADF, tw_ret(readv(fd, &iov, 1)));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 1));
}

/* The mode and the owner of the node decide who may open the wheel. */
TEST_F(named_sharing, node_is_shared_out)
{
	NEEDS_KERNEL("a node has an owner");
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

static int chmod_it(int dev)
{
	return chmod(NODE, 0666);
}

/* The owner of a node may change its mode. */
TEST_F(named_sharing, node_is_its_owners)
{
	NEEDS_KERNEL("a node has an owner");
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, chmod_it));
	EXPECT_EQ(0, do_as(USER, self->dev, chmod_it));
	EXPECT_EQ(0, open_as(STRANGER, STRANGER, O_RDWR));
}

/*
 * Creates and destroys wheels of more than half of a user's tokens: a second wheel
 * beside the first is over the limit. Returns 0, the number of the step that failed,
 * or 99 without a limit.
 */
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
		/* Calls that create nothing are not charged. */
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

/* A wheel is charged to its creator until its last file is closed (P9). */
TEST_F(named_sharing, account_of_the_creator)
{
	unsigned long long wheels, tokens;
	int fd, ret;

	NEEDS_KERNEL("a user is charged");
	TW_NEEDS_ROOT();
	ret = do_as(USER, self->dev, open_and_destroy);
	if (ret == 99)
		SKIP(return, "no limits to look at");
	EXPECT_EQ(0, ret);

	if (!account(USER, &wheels, &tokens))
		SKIP(return, "no debugfs");
	EXPECT_EQ(0ULL, wheels);
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	/* The charge stays the same if another user owns the wheel's node and opens it. */
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

/* All users of a user namespace are charged to the user who created it (P9). */
TEST_F(named_sharing, account_of_a_namespace)
{
	enum { LENT = 200000 };
	unsigned long long wheels, tokens;
	struct stat st;
	int ready[2], go[2];
	char path[64], byte;
	pid_t child;

	NEEDS_KERNEL("a user is charged");
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
		/* Root has mapped this user into the namespace. */
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

/* Names are valid on the whole machine, also for a caller with a /dev of its own. */
static void in_mount_namespace(struct __test_metadata *_metadata, int dev)
{
	int fd;

	EXPECT_EQ(0, mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	EXPECT_EQ(0, mount("none", "/dev", "tmpfs", 0, NULL));
	EXPECT_EQ(0, tw_create(dev, NAME, 0, &manual));
	EXPECT_EQ(-ENOENT, tw_ret(tw_open_named(NAME, O_RDWR)));
	EXPECT_FALSE(in_dir("/dev", "timewheels"));
	/* A node that the caller makes in its own /dev leads to the wheel. */
	EXPECT_EQ(0, mknod("/dev/own", S_IFCHR | 0600, number_of(NAME)));
	fd = open("/dev/own", O_RDWR);
	EXPECT_LE(0, fd);
	EXPECT_EQ(0, tw_register(fd, 1, TW_SEC, 77, NULL));
	close(fd);
	/* The kernel's node is visible wherever devtmpfs is mounted. */
	EXPECT_EQ(0, mkdir("/dev/again", 0755));
	EXPECT_EQ(0, mount("none", "/dev/again", "devtmpfs", 0, NULL));
	fd = open("/dev/again/timewheels/" NAME, O_RDWR);
	EXPECT_LE(0, fd);
	EXPECT_EQ(0, tw_touch(fd, 0, 1));
}

TEST_F(named_sharing, mount_namespaces)
{
	struct timewheel_token token;
	pid_t child;
	int fd;

	NEEDS_KERNEL("other processes see a wheel");
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
	ASSERT_EQ(0, tw_get(fd, 0, 1, &token));
	EXPECT_EQ(77ULL, token.cookie);
}

/* The test and two processes share this memory. Each process has its own time namespace. */
struct times {
	pthread_barrier_t barrier;
	__u32 clock;
	clockid_t id;
	_Atomic __u64 first, second;	/* deadlines in the time of the process */
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

/* GET and LIST have to show @deadline, which is in the caller's time. */
static void expect_token(struct __test_metadata *_metadata, int fd, __u64 id,
			 __u64 deadline)
{
	struct timewheel_token got, listed = {};
	struct timewheel_list list = {
		.size = sizeof(list), .from = deadline, .to = deadline,
		.tokens = (uintptr_t)&listed, .token_size = sizeof(listed),
		.count = 1,
	};

	EXPECT_EQ(0, tw_get(fd, 0, id, &got));
	EXPECT_EQ(deadline, got.deadline);
	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_LIST, &list));
	EXPECT_EQ(1U, list.listed);
	EXPECT_EQ(id, listed.id);
	EXPECT_EQ(deadline, listed.deadline);
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

/* Registers @id for a time of the caller's. Returns its deadline in the caller's time. */
static __u64 register_ahead(struct __test_metadata *_metadata, int fd, __u64 id,
			    clockid_t clock)
{
	__u64 wish = tw_now(clock) + 300 * TW_MS + 1;
	struct timewheel_token token;

	EXPECT_EQ(0, tw_register_at(fd, id, wish, 0));
	EXPECT_EQ(0, tw_get(fd, 0, id, &token));
	EXPECT_LE(wish, token.deadline);
	EXPECT_GT(wish + TW_MS, token.deadline);
	return token.deadline;
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
	struct timewheel_token token;
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
	/* The token's slot is computed from the time of the wheel. */
	EXPECT_EQ(0, tw_get(fd, 0, 1, &token));
	EXPECT_EQ(times->first - seconds_ahead[0] * TW_SEC, token.deadline);
	EXPECT_EQ(token.deadline / TW_MS % setup.slots, token.slot);
	expect_token(_metadata, fd, 1, token.deadline);
	pthread_barrier_wait(&times->barrier);
	pthread_barrier_wait(&times->barrier);
	for (int who = 0; who < 2; who++)
		EXPECT_EQ(0, tw_reap(child[who]));
	close(fd);
	ASSERT_EQ(0, tw_destroy_named(dev, NAME));
}

/* Two processes see the times of one wheel, and each process in its own time namespace. */
TEST_F(named_sharing, time_namespaces)
{
	struct times *times = tw_shared_memory(sizeof(*times));
	pid_t child;

	NEEDS_KERNEL("other processes see a wheel");
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

TEST_HARNESS_MAIN
