// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several users share named wheels: the program tests what each of them may do with a
 * wheel and its node, which user a namespace charges for a wheel (P9), and how a wheel
 * looks from other namespaces.
 *
 * Each test ends with a check that it has left nothing behind.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#define PREFIX	"kselftest-sharing-"
#include "tw_named_fixture.h"
#include "tw_process.h"

/* This machine does not have these users. */
#define USER		12345
#define USER_GROUP	23456
#define STRANGER	12346

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

TEST_F(named, node_of_root)
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

TEST_F(named, node_of_a_user)
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

static int destroy_it(int dev)
{
	return tw_destroy_named(dev, NAME);
}

/* The creator of a wheel and root may destroy it. The owner of its node may not. */
TEST_F(named, who_may_destroy)
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
	/* CREATE finds the wheel of another user, and leaves its node as it is. */
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, do_as(STRANGER, self->dev, create_it));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	expect_owned(_metadata, USER, USER_GROUP);
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

/* The effective user and group own the wheel, whatever the real user is. */
TEST_F(named, effective_user)
{
	pid_t child;

	NEEDS_KERNEL("a node has an owner");
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, OTHER, 0, &manual));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		EXPECT_EQ(0, setresgid(-1, USER_GROUP, -1));
		EXPECT_EQ(0, setresuid(-1, USER, -1));
		EXPECT_EQ(-EPERM, tw_ret(tw_destroy_named(self->dev, OTHER)));
		EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
		expect_owned(_metadata, USER, USER_GROUP);
		EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
		EXPECT_EQ(0, setresuid(-1, 0, -1));
		EXPECT_EQ(0, tw_destroy_named(self->dev, OTHER));
		END_CHILD();
	}
	EXPECT_EQ(0, tw_reap(child));
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

TEST_F(named, user_namespaces)
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

/* A file open for writing only carries out all commands but those that show tokens. */
TEST_F(named, open_for_writing)
{
	struct timewheel_event event;
	struct iovec iov = { &event, sizeof(event) };
	const struct tw_command *c;
	char arg[512];
	int fd;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_WRONLY);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, tw_register(fd, TW_ID_THERE, TW_SEC, 0, NULL));
	for_each_command(c) {
		int expected = c->needs & TW_ONLY_DEVICE ? -ENOTTY :
			       c->number == TIMEWHEEL_IOC_SETUP ? -EBUSY :
			       c->needs & TW_READ ? -EBADF : 0;

		memset(arg, 0, sizeof(arg));
		c->fill(arg);
		EXPECT_EQ(expected, tw_ret(ioctl(fd, c->number, arg))) {
			TH_LOG("%s", c->name);
		}
	}
	EXPECT_EQ(-EBADF, tw_ret(tw_read(fd, &event, 1)));
	EXPECT_EQ(-EBADF, tw_ret(readv(fd, &iov, 1)));
}

/* The mode and the owner of the node decide who may open the wheel. */
TEST_F(named, node_is_shared_out)
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
TEST_F(named, node_is_its_owners)
{
	NEEDS_KERNEL("a node has an owner");
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, do_as(USER, self->dev, create_it));
	EXPECT_EQ(-EPERM, do_as(STRANGER, self->dev, chmod_it));
	EXPECT_EQ(0, do_as(USER, self->dev, chmod_it));
	EXPECT_EQ(0, open_as(STRANGER, STRANGER, O_RDWR));
}

/* All users of a user namespace are charged to the user who created it (P9). */
TEST_F(named, account_of_a_namespace)
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

TEST_F(named, mount_namespaces)
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

TEST_HARNESS_MAIN
