// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits on wheels and tokens, for each user and for the whole machine: a user can
 * exhaust only its own budget (P9). The tests ask how many wheels and tokens a user may
 * have, how many there may be in all, and who pays for a wheel and until when, and try
 * the module's parameters. They need root, and debugfs to read accounts. The users that
 * appear here have only wheels of the tests.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "tw_named.h"
#include "tw_process.h"
#include "tw_test.h"

#define TW_GROUP	"/sys/fs/cgroup/timewheel-limits"
#include "tw_group.h"

#define PARAMETERS	"/sys/module/timewheel/parameters/"
#define DEBUGFS		"/sys/kernel/debug"

#define ROOT		0
#define USER		48211
#define OTHER		48212
#define NAMES		8	/* wheels "limits-0" to "limits-7" */
#define MANY		64	/* wheels that a namespace asks for */

static const char *const parameters[] = {
	"max_tokens", "max_user_wheels", "max_user_tokens", "max_all_wheels",
	"max_all_tokens", "min_tick_ns",
};

#define N_PARAMETERS	ARRAY_SIZE(parameters)

static bool set_text(const char *parameter, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "%s", parameter);
	return tw_write_file(path, text);
}

static bool set_limit(const char *parameter, unsigned long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	return set_text(parameter, text);
}

/* Reads a parameter as the kernel shows it, or an empty text if there is none. */
static void get_text(const char *parameter, char *text, size_t size)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), PARAMETERS "%s", parameter);
	file = fopen(path, "re");
	if (!file || !fgets(text, size, file))
		*text = 0;
	if (file)
		fclose(file);
}

struct account {
	unsigned long long wheels, tokens;
	bool listed;	/* the file has a line for the account */
};

/*
 * Reads the account of @whose from the file @path, or the sum of all accounts if @whose
 * is -1.
 */
static struct account read_account(const char *path, const char *header,
				   unsigned int whose)
{
	FILE *file = fopen(path, "re");
	struct account sum = {}, line;
	char first[64];
	unsigned int owner;

	if (!file || !fgets(first, sizeof(first), file) ||
	    strcmp(first, header))
		sum.wheels = ~0ULL;
	while (file && fscanf(file, "%u %llu %llu", &owner, &line.wheels,
			      &line.tokens) == 3) {
		if (whose != -1U && whose != owner)
			continue;
		sum.wheels += line.wheels;
		sum.tokens += line.tokens;
		sum.listed = true;
	}
	if (file)
		fclose(file);
	return sum;
}

/* Returns the account of user @uid, or the sum of all accounts if @uid is -1. */
static struct account account_of(uid_t uid)
{
	return read_account(DEBUGFS "/timewheel/users", "uid wheels tokens\n",
			    uid);
}

/*
 * Returns the account of the user namespace @number, or the sum of all if @number is
 * -1.
 */
static struct account namespace_account(unsigned int number)
{
	return read_account(DEBUGFS "/timewheel/namespaces",
			    "user_ns wheels tokens\n", number);
}

#define expect_account(uid, wheels, tokens)				\
	_expect_account(_metadata, uid, wheels, tokens, __LINE__)

/* The file has no line for a user without wheels. */
static void _expect_account(struct __test_metadata *_metadata, uid_t uid,
			    unsigned long long wheels,
			    unsigned long long tokens, int line)
{
	struct account has = account_of(uid);

	EXPECT_EQ(wheels, has.wheels) {
		TH_LOG("user %u in line %d", uid, line);
	}
	EXPECT_EQ(tokens, has.tokens) {
		TH_LOG("user %u in line %d", uid, line);
	}
	EXPECT_EQ(wheels > 0, has.listed);
}

/* Waits for an empty account: the kernel cleans some wheels away a little later. */
static bool account_becomes_empty(uid_t uid)
{
	for (int i = 0; i < 5000 && account_of(uid).listed; i++)
		tw_sleep_ms(1);
	return !account_of(uid).listed;
}

/*
 * Makes the process, with all its threads, act as @uid. Only root can return from
 * there.
 */
static void become(uid_t uid)
{
	if (seteuid(uid))
		abort();
}

static int ioctl_as(uid_t uid, int fd, unsigned int command, void *arg)
{
	int ret;

	become(uid);
	ret = tw_ret(ioctl(fd, command, arg));
	become(ROOT);
	return ret;
}

/* Returns the set-up of the smallest wheel that may have @tokens. */
static struct timewheel_setup setup_of(__u64 tokens)
{
	return (struct timewheel_setup) {
		.size = sizeof(struct timewheel_setup),
		.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 1, .tick = TW_SEC,
		.max_tokens = tokens,
	};
}

static int setup_as(uid_t uid, int fd, __u64 tokens)
{
	struct timewheel_setup setup = setup_of(tokens);

	return ioctl_as(uid, fd, TIMEWHEEL_IOC_SETUP, &setup);
}

/*
 * Makes a private wheel of @uid on a file that root opens. Returns the file, or -errno.
 */
static int new_wheel(uid_t uid, __u64 tokens)
{
	int fd = open(TW_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int ret = fd < 0 ? -errno : setup_as(uid, fd, tokens);

	if (ret < 0 && fd >= 0)
		close(fd);
	return ret < 0 ? ret : fd;
}

/* Gives CAP_SYS_RESOURCE to the caller, or takes the capability away. */
static bool may_exceed(bool may)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	if (may)
		data[0].effective |= 1U << CAP_SYS_RESOURCE;
	return !syscall(SYS_capset, &header, data);
}

/* Makes a private wheel of @uid with the capability. Returns the file, or -errno. */
static int new_capable_wheel(uid_t uid, __u64 tokens)
{
	struct timewheel_setup setup = setup_of(tokens);
	int fd = open(TW_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int ret;

	become(uid);
	ret = may_exceed(true) ?
	      tw_ret(ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup)) : -EPERM;
	become(ROOT);
	if (ret < 0)
		close(fd);
	return ret < 0 ? ret : fd;
}

static void fill_name(char *name, int n)
{
	memset(name, 0, TIMEWHEEL_NAME_SIZE);
	snprintf(name, TIMEWHEEL_NAME_SIZE, "limits-%d", n);
}

/* Creates the named wheel @n. Returns 0, TIMEWHEEL_RES_EXISTED or -errno. */
static int create_as(uid_t uid, int control, int n, __u64 tokens, __u32 flags)
{
	struct timewheel_setup setup = setup_of(tokens);
	struct timewheel_create create = {
		.size = sizeof(create), .flags = flags,
		.setup = (__u64)(uintptr_t)&setup,
	};

	fill_name(create.name, n);
	return ioctl_as(uid, control, TIMEWHEEL_IOC_CREATE, &create);
}

static int destroy_as(uid_t uid, int control, int n)
{
	struct timewheel_destroy destroy = { .size = sizeof(destroy) };

	fill_name(destroy.name, n);
	return ioctl_as(uid, control, TIMEWHEEL_IOC_DESTROY, &destroy);
}

static int open_named(int n)
{
	char name[TIMEWHEEL_NAME_SIZE];

	fill_name(name, n);
	return tw_open_named(name, O_RDWR | O_NONBLOCK);
}

FIXTURE(limits) {
	int control;	/* a file of the device that is never set up */
	struct account all, root;	/* before the test */
	char saved[N_PARAMETERS][32];
};

FIXTURE_SETUP(limits)
{
	struct rlimit files = { 4096, 4096 };
	struct statfs fs;

	self->control = TW_OPEN(O_RDWR);
	TW_NEEDS_ROOT();
	if (statfs(DEBUGFS, &fs) || fs.f_type != DEBUGFS_MAGIC)
		SKIP(return, "needs " DEBUGFS);
	for (size_t i = 0; i < N_PARAMETERS; i++) {
		get_text(parameters[i], self->saved[i],
			 sizeof(self->saved[i]));
		ASSERT_NE(0, self->saved[i][0]);
	}
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	for (int n = 0; n < NAMES; n++)
		destroy_as(ROOT, self->control, n);
	expect_account(USER, 0, 0);
	expect_account(OTHER, 0, 0);
	self->all = account_of(-1);
	self->root = account_of(ROOT);
}

/* The parent cleans up, which is still root however the test has ended. */
FIXTURE_TEARDOWN_PARENT(limits)
{
	int control = open(TW_DEVICE, O_RDWR);

	for (size_t i = 0; i < N_PARAMETERS; i++)
		EXPECT_TRUE(set_text(parameters[i], self->saved[i]));
	for (int n = 0; n < NAMES; n++)
		destroy_as(ROOT, control, n);
	close(control);
	EXPECT_TRUE(account_becomes_empty(USER));
	EXPECT_TRUE(account_becomes_empty(OTHER));
}

/* A wheel too many is EDQUOT until another wheel is gone. Other users do not notice. */
TEST_F(limits, wheels_of_a_user)
{
	int fd[3], more = TW_OPEN(O_RDWR), other[3], root[5];
	struct timewheel_info info;

	ASSERT_TRUE(set_limit("max_user_wheels", 3));
	for (int i = 0; i < 3; i++) {
		fd[i] = new_wheel(USER, 10);
		ASSERT_LE(0, fd[i]);
		expect_account(USER, i + 1, 10 * (i + 1));
	}
	EXPECT_EQ(-EDQUOT, setup_as(USER, more, 10));
	EXPECT_EQ(-EDQUOT, setup_as(USER, more, 1));
	EXPECT_EQ(-EDQUOT, create_as(USER, self->control, 0, 10, 0));
	EXPECT_EQ(-EBADFD, tw_ret(tw_info(more, &info)));
	EXPECT_GT(0, open_named(0));
	expect_account(USER, 3, 30);

	/* Other users have budgets of their own, and root needs no budget. */
	for (int i = 0; i < 3; i++) {
		other[i] = new_wheel(OTHER, 10);
		EXPECT_LE(0, other[i]);
	}
	EXPECT_EQ(-EDQUOT, new_wheel(OTHER, 10));
	expect_account(OTHER, 3, 30);
	for (int i = 0; i < 5; i++) {
		root[i] = new_wheel(ROOT, 10);
		EXPECT_LE(0, root[i]);
	}
	expect_account(ROOT, self->root.wheels + 5, self->root.tokens + 50);
	expect_account(USER, 3, 30);

	/* The file whose set-up was refused is as good as new. */
	close(fd[1]);
	expect_account(USER, 2, 20);
	EXPECT_EQ(0, setup_as(USER, more, 7));
	EXPECT_EQ(0, tw_info(more, &info));
	expect_account(USER, 3, 27);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 10));

	close(fd[0]);
	close(fd[2]);
	close(more);
	expect_account(USER, 0, 0);
	expect_account(OTHER, 3, 30);
	for (int i = 0; i < 3; i++)
		close(other[i]);
	expect_account(OTHER, 0, 0);
	for (int i = 0; i < 5; i++)
		close(root[i]);
	expect_account(ROOT, self->root.wheels, self->root.tokens);
}

/* Tokens count as they are set up, whether they are registered or not. */
TEST_F(limits, tokens_of_a_user)
{
	int first, second, other;

	ASSERT_TRUE(set_limit("max_user_tokens", 1000));
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1001));
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1 << 24));
	expect_account(USER, 0, 0);
	first = new_wheel(USER, 600);
	ASSERT_LE(0, first);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 401));
	second = new_wheel(USER, 400);
	ASSERT_LE(0, second);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	expect_account(USER, 2, 1000);
	EXPECT_EQ(600UL, tw_register_many(first, 1, 600, 0, TW_SEC));
	EXPECT_EQ(-ENOSPC, tw_ret(tw_register(first, 601, TW_SEC, 0, NULL)));
	EXPECT_EQ(600UL, tw_op_many(first, TIMEWHEEL_OP_CANCEL, 1, 600, 0, 0));
	expect_account(USER, 2, 1000);
	other = new_wheel(OTHER, 1000);
	EXPECT_LE(0, other);
	expect_account(USER, 2, 1000);

	close(second);
	expect_account(USER, 1, 600);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 401));
	second = new_wheel(USER, 399);
	ASSERT_LE(0, second);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 2));
	expect_account(USER, 2, 999);
	close(first);
	close(second);
	close(other);
	expect_account(USER, 0, 0);
	expect_account(OTHER, 0, 0);
}

/* Private and named wheels are paid from one purse. */
TEST_F(limits, private_and_named_together)
{
	int fd, named;

	ASSERT_TRUE(set_limit("max_user_wheels", 3));
	ASSERT_TRUE(set_limit("max_user_tokens", 1000));
	ASSERT_EQ(0, create_as(USER, self->control, 0, 500, 0));
	expect_account(USER, 1, 500);
	fd = new_wheel(USER, 300);
	ASSERT_LE(0, fd);
	expect_account(USER, 2, 800);
	EXPECT_EQ(-EDQUOT, create_as(USER, self->control, 1, 201, 0));
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 201));
	ASSERT_EQ(0, create_as(USER, self->control, 1, 100, 0));
	expect_account(USER, 3, 900);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	EXPECT_EQ(-EDQUOT, create_as(USER, self->control, 2, 1, 0));

	/* Opening the node costs no user anything: the wheel is there already. */
	named = open_named(0);
	ASSERT_LE(0, named);
	expect_account(USER, 3, 900);
	expect_account(ROOT, self->root.wheels, self->root.tokens);
	/*
	 * A CREATE of an existing wheel costs nothing either, at the limit or
	 * elsewhere.
	 */
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, create_as(USER, self->control, 0, 500, 0));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, create_as(OTHER, self->control, 0, 500,
						   0));
	expect_account(USER, 3, 900);
	expect_account(OTHER, 0, 0);

	close(fd);
	expect_account(USER, 2, 600);
	ASSERT_EQ(0, create_as(USER, self->control, 2, 400, 0));
	expect_account(USER, 3, 1000);
	/* A destroyed wheel is paid back only when nobody has the wheel open any more. */
	EXPECT_EQ(0, destroy_as(USER, self->control, 0));
	expect_account(USER, 3, 1000);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	close(named);
	expect_account(USER, 2, 500);
	EXPECT_EQ(0, destroy_as(USER, self->control, 1));
	EXPECT_EQ(0, destroy_as(ROOT, self->control, 2));
	expect_account(USER, 0, 0);
}

/*
 * Returns a limit for all users of which ordinary users may use up @ordinary: the last
 * eighth is for users with CAP_SYS_RESOURCE.
 */
static unsigned long long with_reserve(unsigned long long ordinary)
{
	return ordinary + (ordinary - 1) / 7;
}

/* The limit for all users binds everybody, root too, and gives ENOSPC. */
TEST_F(limits, wheels_of_all)
{
	int root, user, more = TW_OPEN(O_RDWR);

	if (self->all.wheels > 4)
		SKIP(return, "there would be a reserve");
	ASSERT_TRUE(set_limit("max_all_wheels", self->all.wheels + 3));
	root = new_wheel(ROOT, 10);
	user = new_wheel(USER, 10);
	ASSERT_LE(0, root);
	ASSERT_LE(0, user);
	ASSERT_EQ(0, create_as(OTHER, self->control, 0, 10, 0));
	EXPECT_EQ(-ENOSPC, setup_as(ROOT, more, 1));
	EXPECT_EQ(-ENOSPC, setup_as(USER, more, 1));
	EXPECT_EQ(-ENOSPC, setup_as(OTHER, more, 1));
	EXPECT_EQ(-ENOSPC, create_as(ROOT, self->control, 1, 1, 0));
	EXPECT_EQ(-ENOSPC, create_as(USER, self->control, 1, 1, 0));
	expect_account(ROOT, self->root.wheels + 1, self->root.tokens + 10);
	expect_account(USER, 1, 10);
	expect_account(OTHER, 1, 10);
	/* A user that has used up its own share gets EDQUOT. */
	ASSERT_TRUE(set_limit("max_user_wheels", 1));
	EXPECT_EQ(-EDQUOT, setup_as(USER, more, 1));
	EXPECT_EQ(-ENOSPC, setup_as(ROOT, more, 1));

	EXPECT_EQ(0, destroy_as(OTHER, self->control, 0));
	EXPECT_EQ(-EDQUOT, setup_as(USER, more, 1));
	EXPECT_EQ(0, setup_as(ROOT, more, 1));
	EXPECT_EQ(-ENOSPC, new_wheel(OTHER, 1));
	close(root);
	root = new_wheel(OTHER, 1);
	EXPECT_LE(0, root);
	close(root);
	close(user);
	close(more);
	expect_account(USER, 0, 0);
	expect_account(OTHER, 0, 0);
	expect_account(ROOT, self->root.wheels, self->root.tokens);
}

TEST_F(limits, tokens_of_all)
{
	const unsigned long long ordinary = self->all.tokens + 1000;
	const unsigned long long reserve = with_reserve(ordinary) - ordinary;
	int root, user, other;

	ASSERT_TRUE(set_limit("max_all_tokens", with_reserve(ordinary)));
	EXPECT_EQ(-ENOSPC, new_wheel(ROOT, reserve + 1001));
	EXPECT_EQ(-ENOSPC, new_wheel(USER, 1001));
	root = new_wheel(ROOT, 500);
	user = new_wheel(USER, 300);
	ASSERT_LE(0, root);
	ASSERT_LE(0, user);
	EXPECT_EQ(-ENOSPC, new_wheel(OTHER, 201));
	EXPECT_EQ(-ENOSPC, create_as(ROOT, self->control, 0, reserve + 201, 0));
	other = new_wheel(OTHER, 200);
	ASSERT_LE(0, other);
	EXPECT_EQ(-ENOSPC, new_wheel(ROOT, reserve + 1));
	EXPECT_EQ(-ENOSPC, new_wheel(USER, 1));
	close(user);
	EXPECT_EQ(-ENOSPC, create_as(ROOT, self->control, 0, reserve + 301, 0));
	EXPECT_EQ(0, create_as(ROOT, self->control, 0, 300, 0));
	EXPECT_EQ(-ENOSPC, new_wheel(USER, 1));
	EXPECT_EQ(0, destroy_as(ROOT, self->control, 0));
	user = new_wheel(USER, 300);
	EXPECT_LE(0, user);
	close(root);
	close(user);
	close(other);
	expect_account(ROOT, self->root.wheels, self->root.tokens);
}

/* Ordinary users cannot use up all: root still gets a wheel. */
TEST_F(limits, reserve_for_the_capable)
{
	const unsigned long long ordinary = self->all.tokens + 7000;
	const unsigned long long reserve = with_reserve(ordinary) - ordinary;
	struct timewheel_setup setup = setup_of(1);
	int users, root, user, more = TW_OPEN(O_RDWR);

	ASSERT_LE(999ULL, reserve);
	ASSERT_TRUE(set_limit("max_all_tokens", with_reserve(ordinary)));
	users = new_wheel(USER, 7000);
	ASSERT_LE(0, users);
	EXPECT_EQ(-ENOSPC, setup_as(USER, more, 1));
	EXPECT_EQ(-ENOSPC, setup_as(OTHER, more, 1));
	ASSERT_TRUE(may_exceed(false));
	EXPECT_EQ(-ENOSPC, tw_ret(ioctl(more, TIMEWHEEL_IOC_SETUP, &setup)));
	ASSERT_TRUE(may_exceed(true));
	root = new_wheel(ROOT, reserve - 1);
	ASSERT_LE(0, root);
	EXPECT_EQ(-ENOSPC, setup_as(ROOT, more, 2));
	/* The reserve is for the capability, whatever the user is. */
	user = new_capable_wheel(USER, 1);
	ASSERT_LE(0, user);
	EXPECT_EQ(-ENOSPC, new_wheel(ROOT, 1));
	close(users);
	close(root);
	close(user);
	close(more);
	expect_account(USER, 0, 0);
}

/* The module's defaults are enough for anything sane, and for no more. */
TEST_F(limits, defaults)
{
	enum { WHEELS = 1024, TOKENS = 1048576 };
	static int fd[WHEELS];
	char text[32];
	int most;

	get_text("max_all_wheels", text, sizeof(text));
	EXPECT_STREQ("65536\n", text);
	get_text("max_all_tokens", text, sizeof(text));
	EXPECT_STREQ("268435456\n", text);
	most = new_wheel(USER, TOKENS);
	ASSERT_LE(0, most);
	expect_account(USER, 1, TOKENS);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	close(most);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, TOKENS + 1));
	most = new_wheel(ROOT, TOKENS + 1);
	EXPECT_LE(0, most);
	close(most);

	for (int i = 0; i < WHEELS; i++) {
		fd[i] = new_wheel(USER, TOKENS / WHEELS);
		ASSERT_LE(0, fd[i]);
	}
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	expect_account(USER, WHEELS, TOKENS);
	for (int i = 0; i < WHEELS; i++)
		close(fd[i]);
	expect_account(USER, 0, 0);
}

/* The limits are as large as can be, and the wheels together would just pass 32 bits. */
TEST_F(limits, sums_do_not_wrap)
{
	const __u64 most = 1 << 28, all = (1ULL << 32) - 1;
	int fd[16];

	if (self->all.tokens)
		SKIP(return, "somebody else has wheels");
	ASSERT_TRUE(set_limit("max_tokens", most));
	ASSERT_TRUE(set_limit("max_user_tokens", all));
	ASSERT_TRUE(set_limit("max_all_tokens", all));
	for (int n = 0; n < 14; n++) {
		fd[n] = new_wheel(USER, most);
		ASSERT_LE(0, fd[n]);
	}
	/* The remaining tokens are for users with the capability. */
	EXPECT_EQ(-ENOSPC, new_wheel(USER, 1));
	fd[14] = new_capable_wheel(USER, most);
	ASSERT_LE(0, fd[14]);
	expect_account(USER, 15, 15 * most);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, most));
	EXPECT_EQ(-ENOSPC, new_wheel(ROOT, most));
	EXPECT_EQ(-EINVAL, new_wheel(ROOT, most + 1));
	EXPECT_EQ(-EINVAL, new_wheel(ROOT, (1ULL << 32) + 1));
	fd[15] = new_capable_wheel(USER, most - 1);
	ASSERT_LE(0, fd[15]);
	expect_account(USER, 16, all);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	EXPECT_EQ(-ENOSPC, new_wheel(ROOT, 1));
	for (int n = 0; n < 16; n++)
		close(fd[n]);
	expect_account(USER, 0, 0);
}

/* The capability makes the difference, not the user number 0. */
TEST_F(limits, capability)
{
	struct timewheel_setup setup = setup_of(10);
	int fd[4];

	for (int i = 0; i < 4; i++)
		fd[i] = TW_OPEN(O_RDWR);
	ASSERT_TRUE(set_limit("max_user_wheels", self->root.wheels + 1));
	ASSERT_EQ(0, setup_as(ROOT, fd[0], 10));
	ASSERT_TRUE(may_exceed(false));
	EXPECT_EQ(-EDQUOT, tw_ret(ioctl(fd[1], TIMEWHEEL_IOC_SETUP, &setup)));
	ASSERT_TRUE(may_exceed(true));
	EXPECT_EQ(0, tw_ret(ioctl(fd[1], TIMEWHEEL_IOC_SETUP, &setup)));
	expect_account(ROOT, self->root.wheels + 2, self->root.tokens + 20);

	/*
	 * Another user with the capability may exceed the limit, and is charged all the
	 * same.
	 */
	ASSERT_TRUE(set_limit("max_user_wheels", 1));
	become(USER);
	ASSERT_TRUE(may_exceed(true));
	EXPECT_EQ(0, tw_ret(ioctl(fd[2], TIMEWHEEL_IOC_SETUP, &setup)));
	EXPECT_EQ(0, tw_ret(ioctl(fd[3], TIMEWHEEL_IOC_SETUP, &setup)));
	become(ROOT);
	expect_account(USER, 2, 20);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 10));
	close(fd[2]);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 10));
	close(fd[3]);
	fd[3] = new_wheel(USER, 10);
	EXPECT_LE(0, fd[3]);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
}

/* The effective user of the caller of SETUP pays, not the user that opened the file. */
TEST_F(limits, caller_of_setup_pays)
{
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_setup setup = setup_of(10);
	struct stat device;

	/*
	 * One user opens the file, another user sets it up, and a third user registers
	 * tokens.
	 */
	ASSERT_EQ(0, setup_as(USER, fd, 10));
	EXPECT_EQ(-EBUSY, setup_as(OTHER, fd, 10));
	become(OTHER);
	EXPECT_EQ(10UL, tw_register_many(fd, 1, 10, 0, TW_SEC));
	become(ROOT);
	expect_account(USER, 1, 10);
	expect_account(OTHER, 0, 0);
	close(fd);
	expect_account(USER, 0, 0);

	/* The effective user pays, not the real user or the saved user. */
	fd = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, setresuid(OTHER, USER, ROOT));
	EXPECT_EQ(0, tw_ret(ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup)));
	ASSERT_EQ(0, setresuid(ROOT, ROOT, ROOT));
	expect_account(USER, 1, 10);
	expect_account(OTHER, 0, 0);
	close(fd);

	/* A user opens the file, and root sets it up. */
	ASSERT_EQ(0, stat(TW_DEVICE, &device));
	ASSERT_EQ(0, setegid(device.st_gid));
	become(USER);
	fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	become(ROOT);
	ASSERT_EQ(0, setegid(0));
	if (fd < 0)
		SKIP(return, "the device's group may not open it");
	expect_account(USER, 0, 0);
	ASSERT_EQ(0, setup_as(ROOT, fd, 10));
	expect_account(USER, 0, 0);
	expect_account(ROOT, self->root.wheels + 1, self->root.tokens + 10);
	close(fd);
	expect_account(ROOT, self->root.wheels, self->root.tokens);
}

/* Makes the calling child @uid for good. */
static bool be_only(uid_t uid)
{
	return !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid);
}

/* Sets @fd up in a child, and sends the file over @socket. */
static int make_and_send(int fd, int socket)
{
	struct timewheel_setup setup = setup_of(10);

	if (!be_only(USER) || ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup))
		return 1;
	return tw_send_fd(socket, fd, 0) ? 2 : 0;
}

/*
 * Receives the file in another process, leaves it to a child, and tells the child's
 * pid.
 */
static int receive_and_leave(int socket, int tell)
{
	int fd;
	pid_t child;

	if (!be_only(OTHER))
		return 1;
	fd = tw_receive_fd(socket, 0);
	if (fd < 0 || tw_register(fd, 1, TW_SEC, 0, NULL))
		return 2;
	child = fork();
	if (child)
		return child < 0 ? 3 : 0;
	child = getpid();
	if (write(tell, &child, sizeof(child)) == sizeof(child))
		pause();
	return 4;
}

/*
 * A wheel stays charged to its maker, wherever its file goes: over a socket to another
 * user, and to a child of that user, when the maker is long dead. The charge is paid
 * back when the last file is gone.
 */
TEST_F(limits, charge_stays_with_the_maker)
{
	int fd = TW_OPEN(O_RDWR);
	int sockets[2], tell[2];
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	ASSERT_EQ(0, pipe(tell));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(make_and_send(fd, sockets[0]));
	ASSERT_EQ(0, tw_reap(child));
	expect_account(USER, 1, 10);
	/* The file is in the socket only. */
	close(fd);
	expect_account(USER, 1, 10);

	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(receive_and_leave(sockets[1], tell[1]));
	ASSERT_EQ(0, tw_reap(child));
	ASSERT_EQ((ssize_t)sizeof(child), read(tell[0], &child, sizeof(child)));
	expect_account(USER, 1, 10);
	expect_account(OTHER, 0, 0);
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_TRUE(account_becomes_empty(USER));
}

/* The creator pays for a named wheel, even when dead, and after a chown of the node. */
TEST_F(limits, charge_stays_with_the_creator)
{
	struct stat node;
	pid_t child;
	int fd;

	ASSERT_TRUE(set_limit("max_user_wheels", 1));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(create_as(USER, self->control, 0, 10, 0) ? 1 : 0);
	ASSERT_EQ(0, tw_reap(child));
	expect_account(USER, 1, 10);

	ASSERT_EQ(0, stat(TW_NODES "limits-0", &node));
	EXPECT_EQ((uid_t)USER, node.st_uid);
	ASSERT_EQ(0, chown(TW_NODES "limits-0", OTHER, OTHER));
	expect_account(USER, 1, 10);
	expect_account(OTHER, 0, 0);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 10));
	become(OTHER);
	fd = open_named(0);
	become(ROOT);
	ASSERT_LE(0, fd);
	EXPECT_EQ(10UL, tw_register_many(fd, 1, 10, 0, TW_SEC));
	expect_account(USER, 1, 10);
	expect_account(OTHER, 0, 0);

	/* The owner of the node does not own the wheel. */
	EXPECT_EQ(-EPERM, destroy_as(OTHER, self->control, 0));
	expect_account(USER, 1, 10);
	EXPECT_EQ(0, destroy_as(USER, self->control, 0));
	/* The wheel's name is free before the charge of the wheel is paid back. */
	EXPECT_EQ(-EDQUOT, create_as(USER, self->control, 0, 10, 0));
	EXPECT_EQ(0, create_as(OTHER, self->control, 0, 20, 0));
	expect_account(USER, 1, 10);
	expect_account(OTHER, 1, 20);
	close(fd);
	expect_account(USER, 0, 0);
	EXPECT_EQ(0, destroy_as(OTHER, self->control, 0));
	expect_account(OTHER, 0, 0);
}

/* A user with all the wheels that it may have is killed; then there is room again. */
TEST_F(limits, killed_user_is_paid_back)
{
	struct timewheel_setup setup = setup_of(10);
	int fd[4], ready[2];
	pid_t child;
	char byte;

	ASSERT_TRUE(set_limit("max_user_wheels", 4));
	ASSERT_EQ(0, pipe(ready));
	for (int i = 0; i < 4; i++)
		fd[i] = TW_OPEN(O_RDWR);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (!be_only(USER))
			_exit(1);
		for (int i = 0; i < 4; i++) {
			if (ioctl(fd[i], TIMEWHEEL_IOC_SETUP, &setup) ||
			    tw_register_many(fd[i], 0, 10, 0, TW_SEC) != 10)
				_exit(2);
		}
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(3);
	}
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	expect_account(USER, 4, 40);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 10));
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(-1, tw_reap(child));
	EXPECT_TRUE(account_becomes_empty(USER));
	fd[0] = new_wheel(USER, 10);
	EXPECT_LE(0, fd[0]);
	close(fd[0]);
}

#define expect_refused(expected, command, arg)				\
	_expect_refused(_metadata, self, expected, command, arg, __LINE__)

/* A call that fails as USER, on a new file, costs nobody anything. */
static void _expect_refused(struct __test_metadata *_metadata,
			    const FIXTURE_DATA(limits) *self, int expected,
			    unsigned int command, void *arg, int line)
{
	struct account user = account_of(USER), all = account_of(-1), now;
	int fd = TW_OPEN(O_RDWR);

	EXPECT_EQ(expected, ioctl_as(USER, fd, command, arg)) {
		TH_LOG("in line %d", line);
	}
	_expect_account(_metadata, USER, user.wheels, user.tokens, line);
	now = account_of(-1);
	EXPECT_EQ(all.wheels, now.wheels);
	EXPECT_EQ(all.tokens, now.tokens);
	close(fd);
	_expect_account(_metadata, USER, user.wheels, user.tokens, line);
}

#pragma GCC diagnostic ignored "-Woverride-init"

/* The set-up is valid but for the given fields, for a private wheel and a named wheel. */
#define expect_setup_refused(expected, ...) do {			\
	struct timewheel_setup setup_ = {				\
		.size = sizeof(setup_), .clock = TIMEWHEEL_CLOCK_MANUAL, \
		.slots = 1, .tick = TW_SEC, .max_tokens = 10,		\
		__VA_ARGS__ };						\
	struct timewheel_create create_ = {				\
		.size = sizeof(create_), .name = "limits-7",		\
		.setup = (__u64)(uintptr_t)&setup_ };			\
									\
	expect_refused(expected, TIMEWHEEL_IOC_SETUP, &setup_);		\
	expect_refused(expected, TIMEWHEEL_IOC_CREATE, &create_);		\
	EXPECT_EQ(-ENOENT, destroy_as(ROOT, self->control, 7));		\
} while (0)

/* The creation is valid but for the given fields. */
#define expect_create_refused(expected, ...) do {			\
	struct timewheel_setup setup_ = setup_of(10);			\
	struct timewheel_create create_ = {				\
		.size = sizeof(create_), .name = "limits-7",		\
		.setup = (__u64)(uintptr_t)&setup_, __VA_ARGS__ };	\
									\
	expect_refused(expected, TIMEWHEEL_IOC_CREATE, &create_);		\
} while (0)

static void refuse_all(struct __test_metadata *_metadata,
		       const FIXTURE_DATA(limits) *self)
{
	expect_setup_refused(-EINVAL, .size = 0);
	expect_setup_refused(-EINVAL, .flags = 1U << 31);
	expect_setup_refused(-EINVAL, .clock = TIMEWHEEL_CLOCK_MANUAL + 1);
	expect_setup_refused(-EINVAL, .slots = 0);
	expect_setup_refused(-EINVAL, .slots = 65537);
	expect_setup_refused(-EINVAL, .tick = 0);
	expect_setup_refused(-EINVAL, .tick = ~0ULL);
	expect_setup_refused(-EINVAL, .max_tokens = 0);
	expect_setup_refused(-EINVAL, .max_tokens = 1ULL << 32);
	expect_setup_refused(-EINVAL, .max_tokens = ~0ULL);
	expect_setup_refused(-EINVAL, .clock = TIMEWHEEL_CLOCK_MONOTONIC,
			     .start = 1);
	expect_setup_refused(-ERANGE, .start = ~0ULL);
	expect_refused(-EFAULT, TIMEWHEEL_IOC_SETUP, NULL);
	expect_refused(-EFAULT, TIMEWHEEL_IOC_CREATE, NULL);
	expect_create_refused(-EFAULT, .setup = 0);
	expect_create_refused(-EFAULT, .setup = ~0ULL);
	expect_create_refused(-EINVAL, .size = 0);
	expect_create_refused(-EINVAL, .flags = 1U << 31);
	expect_create_refused(-EINVAL, .name = "");
	expect_create_refused(-EINVAL, .name = "a/b");
	expect_create_refused(-EINVAL, .name = "a\0b");
	expect_create_refused(-ENAMETOOLONG, .name =
		"0123456789012345678901234567890123456789012345678901234567890123");
}

/* A refused call is never charged, whatever the reason. */
TEST_F(limits, what_fails_costs_nothing)
{
	const __u64 before = self->all.wheels;
	struct timewheel_setup setup = setup_of(10);
	int fd, named;

	refuse_all(_metadata, self);
	expect_account(USER, 0, 0);

	/*
	 * The errors are the same if the user may have one wheel more, and if the user
	 * may not.
	 */
	fd = new_wheel(USER, 10);
	ASSERT_LE(0, fd);
	refuse_all(_metadata, self);
	ASSERT_TRUE(set_limit("max_user_wheels", 1));
	refuse_all(_metadata, self);
	expect_setup_refused(-EDQUOT, .max_tokens = 1);
	ASSERT_TRUE(set_limit("max_all_wheels", before + 1));
	refuse_all(_metadata, self);
	expect_setup_refused(-EDQUOT, .max_tokens = 1);
	ASSERT_TRUE(set_limit("max_user_wheels", 9));
	expect_setup_refused(-ENOSPC, .max_tokens = 1);
	ASSERT_TRUE(set_limit("max_all_wheels", 65536));

	/*
	 * A set-up within the limit of wheels and beyond the limit of tokens is charged
	 * for neither.
	 */
	ASSERT_TRUE(set_limit("max_user_tokens", 15));
	expect_setup_refused(-EDQUOT, .max_tokens = 6);
	ASSERT_TRUE(set_limit("max_all_tokens", self->all.tokens + 14));
	expect_setup_refused(-ENOSPC, .max_tokens = 5);
	ASSERT_TRUE(set_limit("max_all_tokens", 1 << 28));
	ASSERT_TRUE(set_limit("max_user_tokens", 1048576));

	EXPECT_EQ(-EBUSY, ioctl_as(USER, fd, TIMEWHEEL_IOC_SETUP, &setup));
	EXPECT_EQ(-EBUSY, ioctl_as(OTHER, fd, TIMEWHEEL_IOC_SETUP, &setup));
	expect_account(USER, 1, 10);
	expect_account(OTHER, 0, 0);

	ASSERT_EQ(0, create_as(OTHER, self->control, 0, 10, 0));
	EXPECT_EQ(-EEXIST, create_as(USER, self->control, 0, 11, 0));
	EXPECT_EQ(-EEXIST, create_as(USER, self->control, 0, 10,
				     TIMEWHEEL_CREATE_EXCLUSIVE));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, create_as(USER, self->control, 0, 10, 0));
	EXPECT_EQ(-EPERM, destroy_as(USER, self->control, 0));
	EXPECT_EQ(-ENOENT, destroy_as(USER, self->control, 1));
	named = open_named(0);
	ASSERT_LE(0, named);
	EXPECT_EQ(-EBUSY, ioctl_as(USER, named, TIMEWHEEL_IOC_SETUP, &setup));
	EXPECT_EQ(-ENOTTY, create_as(USER, named, 1, 10, 0));
	expect_account(USER, 1, 10);
	expect_account(OTHER, 1, 10);
	close(named);
	EXPECT_EQ(0, destroy_as(OTHER, self->control, 0));
	close(fd);
	expect_account(USER, 0, 0);
	expect_account(OTHER, 0, 0);
}

/* Sets up large wheels until a set-up fails, in a child that may have little memory. */
static int set_up_until_error(const int *fd, int n)
{
	struct timewheel_setup setup = setup_of(10);

	setup.slots = 65536;
	if (!tw_group_enter_locked())
		return 1;
	become(USER);
	for (int i = 0; i < n; i++) {
		if (ioctl(fd[i], TIMEWHEEL_IOC_SETUP, &setup))
			return errno;
	}
	return 2;
}

/* A set-up that fails for want of memory costs nothing either. */
TEST_F(limits, no_memory_costs_nothing)
{
	enum { FILES = 200 };
	int fd[FILES];
	unsigned int good = 0;
	struct timewheel_info info;
	pid_t child;

	TW_MAKE_GROUP(8 << 20);
	for (int i = 0; i < FILES; i++)
		fd[i] = TW_OPEN(O_RDWR);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(set_up_until_error(fd, FILES));
	EXPECT_EQ(ENOMEM, tw_reap(child));
	while (good < FILES && !tw_info(fd[good], &info))
		good++;
	EXPECT_LT(0U, good);
	expect_account(USER, good, 10 * good);
	/* The file whose set-up failed is like any other file when there is memory. */
	EXPECT_EQ(0, setup_as(USER, fd[good], 5));
	expect_account(USER, good + 1, 10 * good + 5);
	for (int i = 0; i < FILES; i++)
		close(fd[i]);
	expect_account(USER, 0, 0);
	rmdir(TW_GROUP);
}

static bool write_map(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) ==
			     (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* A child, as root of a user namespace, tries to get more wheels than @fd[0]. */
static int escape(const int *fd, int control, uid_t uid)
{
	struct timewheel_setup setup = setup_of(1);
	struct timewheel_create create = {
		.size = sizeof(create), .name = "limits-0",
		.setup = (__u64)(uintptr_t)&setup,
	};
	char map[32];

	if (uid && !be_only(uid))
		return 1;
	if (ioctl(fd[0], TIMEWHEEL_IOC_SETUP, &setup))
		return 2;
	if (tw_ret(ioctl(fd[1], TIMEWHEEL_IOC_SETUP, &setup)) !=
	    (uid ? -EDQUOT : 0))
		return 3;
	for (int depth = 0; depth < 2; depth++) {
		/*
		 * Only a dumpable process owns its own /proc, where it has to write its
		 * map.
		 */
		if (prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
			return depth ? 4 : 77;
		/* The process is an unknown user before it has a map. */
		if (tw_ret(ioctl(fd[2], TIMEWHEEL_IOC_SETUP, &setup)) != -EDQUOT)
			return 5;
		snprintf(map, sizeof(map), "0 %u 1", depth ? 0 : uid);
		if (!write_map("/proc/self/setgroups", "deny") ||
		    !write_map("/proc/self/gid_map", map) ||
		    !write_map("/proc/self/uid_map", map) || geteuid())
			return 6;
		/* The process has all capabilities inside its namespace. */
		if (!may_exceed(true))
			return 7;
		if (tw_ret(ioctl(fd[2], TIMEWHEEL_IOC_SETUP, &setup)) != -EDQUOT ||
		    tw_ret(ioctl(control, TIMEWHEEL_IOC_CREATE, &create)) !=
		    -EDQUOT)
			return 8;
	}
	return 0;
}

/* A user in a user namespace is charged as the same user outside, with no more rights. */
TEST_F(limits, user_namespace)
{
	const uid_t uids[] = { USER, ROOT };

	for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
		unsigned long long had = uids[i] ? 0 : self->root.wheels;
		int fd[3], status;
		pid_t child;

		ASSERT_TRUE(set_limit("max_user_wheels", had + 1));
		for (int n = 0; n < 3; n++)
			fd[n] = TW_OPEN(O_RDWR);
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			_exit(escape(fd, self->control, uids[i]));
		status = tw_reap(child);
		if (status == 77)
			SKIP(return, "user %u may not make user namespaces",
			     uids[i]);
		EXPECT_EQ(0, status) {
			TH_LOG("user %u", uids[i]);
		}
		EXPECT_EQ(had + (uids[i] ? 1 : 2), account_of(uids[i]).wheels);
		for (int n = 0; n < 3; n++)
			close(fd[n]);
		EXPECT_EQ(had, account_of(uids[i]).wheels);
	}
}

/*
 * Makes a namespace in a child of root, waits for its maps, becomes @uid in it, makes
 * another namespace inside if @nested, and gets the first of two wheels: the limit is
 * one.
 */
static int take_inside(uid_t maker, uid_t uid, bool nested, const int *fd,
		       int ready, int mapped)
{
	struct timewheel_setup setup = setup_of(10);
	char byte = 0;

	if (maker && !be_only(maker))
		return 1;
	if (unshare(CLONE_NEWUSER))
		return 77;
	if (write(ready, &byte, 1) != 1 || read(mapped, &byte, 1) != 1 ||
	    setresuid(uid, uid, uid) || (nested && unshare(CLONE_NEWUSER)))
		return 2;
	if (ioctl(fd[0], TIMEWHEEL_IOC_SETUP, &setup))
		return 3;
	return tw_ret(ioctl(fd[1], TIMEWHEEL_IOC_SETUP, &setup)) == -EDQUOT ? 0 : 4;
}

/* Gives @child its maps of users and of its group, as root, when the child is ready. */
static bool give_maps(pid_t child, const char *uids, gid_t gid, int ready,
		      int mapped)
{
	char uid_map[64], gid_map[64], gids[32], byte;

	snprintf(uid_map, sizeof(uid_map), "/proc/%d/uid_map", child);
	snprintf(gid_map, sizeof(gid_map), "/proc/%d/gid_map", child);
	snprintf(gids, sizeof(gids), "0 %u 1", gid);
	return read(ready, &byte, 1) == 1 && write_map(uid_map, uids) &&
	       write_map(gid_map, gids) && write(mapped, &byte, 1) == 1;
}

/*
 * The user that made a namespace pays for all wheels in it, whatever ids the namespace
 * was lent. In a namespace that root has made each user is charged as the same user
 * outside.
 */
TEST_F(limits, user_namespace_is_charged_outside)
{
	static const struct {
		uid_t maker, uid;
		const char *map;
		uid_t payer;
		bool nested;
	} cases[] = {
		{ USER, OTHER, "48212 48211 1", USER },
		{ USER, 0, "0 48211 1\n1 48212 1", USER },
		{ USER, 1, "0 48211 1\n1 48212 1", USER },
		{ USER, 1000, "0 48211 1\n1 100000 65536", USER },
		{ USER, 1, "0 48211 1\n1 0 1", USER },
		{ ROOT, 0, "0 48212 1", OTHER },
		{ ROOT, 1, "0 48211 2", OTHER },
		{ USER, 1000, "0 48211 1\n1 100000 65536", USER, true },
		{ ROOT, 1, "0 48211 2", OTHER, true },
	};

	ASSERT_TRUE(set_limit("max_user_wheels", 1));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd[2] = { TW_OPEN(O_RDWR), TW_OPEN(O_RDWR) };
		int ready[2], mapped[2], status;
		pid_t child;

		ASSERT_EQ(0, pipe(ready));
		ASSERT_EQ(0, pipe(mapped));
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			_exit(take_inside(cases[i].maker, cases[i].uid,
					  cases[i].nested, fd, ready[1],
					  mapped[0]));
		close(ready[1]);
		if (!give_maps(child, cases[i].map, cases[i].maker, ready[0],
			       mapped[1]))
			kill(child, SIGKILL);
		status = tw_reap(child);
		if (status == 77)
			SKIP(return, "user %u may not make user namespaces",
			     cases[i].maker);
		EXPECT_EQ(0, status) {
			TH_LOG("case %zu", i);
		}
		expect_account(cases[i].payer, 1, 10);
		EXPECT_EQ(self->all.wheels + 1, account_of(-1).wheels);
		close(fd[0]);
		close(fd[1]);
		expect_account(cases[i].payer, 0, 0);
		close(ready[0]);
		close(mapped[0]);
		close(mapped[1]);
	}
}

/* A space is a namespace that root makes, with the files of the wheels that it gets. */
struct space {
	unsigned int number;
	int fd[MANY];
};

/*
 * Makes a namespace in a child of root, tells its number, and sets wheels up until a
 * set-up fails. Each wheel is of another user. If @nested, all wheels are of the user
 * that has made another namespace inside.
 */
static int take_all(const struct space *space, __u64 tokens, bool nested,
		    int ready, int mapped)
{
	struct timewheel_setup setup = setup_of(tokens);
	struct stat ns;
	char byte = 0;
	int ret = 0;

	if (unshare(CLONE_NEWUSER))
		return 77;
	if (write(ready, &byte, 1) != 1 || read(mapped, &byte, 1) != 1 ||
	    setresuid(0, 0, 0) || stat("/proc/self/ns/user", &ns) ||
	    write(ready, &(unsigned int){ ns.st_ino }, 4) != 4 ||
	    (nested && unshare(CLONE_NEWUSER)))
		return 1;
	for (int i = 0; i < MANY && !ret; i++) {
		if (!nested)
			become(1 + i);
		ret = tw_ret(ioctl(space->fd[i], TIMEWHEEL_IOC_SETUP, &setup));
		if (!nested)
			become(0);
	}
	return ret == -ENOSPC ? 0 : 2;
}

/*
 * Fills a new namespace with wheels. Returns the status of the child: 0 when the child
 * got all wheels that it could.
 */
static int fill_space(struct space *space, __u64 tokens, bool nested)
{
	int ready[2], mapped[2], status;
	pid_t child;

	for (int i = 0; i < MANY; i++)
		space->fd[i] = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	if (pipe(ready) || pipe(mapped))
		return -1;
	child = fork();
	if (!child)
		_exit(take_all(space, tokens, nested, ready[1], mapped[0]));
	close(ready[1]);
	if (!give_maps(child, "0 300000 100", ROOT, ready[0], mapped[1]) ||
	    read(ready[0], &space->number, 4) != 4)
		kill(child, SIGKILL);
	status = tw_reap(child);
	close(ready[0]);
	close(mapped[0]);
	close(mapped[1]);
	return status;
}

static void close_all(const int *fd, int n)
{
	for (int i = 0; i < n; i++)
		close(fd[i]);
}

/*
 * A namespace that root has made gets no more than it leaves to others, however many
 * users it has. All of its wheels count until they are gone, even if the namespace is
 * gone.
 */
TEST_F(limits, namespace_leaves_as_much)
{
	static const struct {
		const char *parameter;
		unsigned int each, tokens;	/* of a wheel */
		bool nested;
	} cases[] = {
		{ "max_all_wheels", 1, 1, false },
		{ "max_all_tokens", 100, 100, false },
		{ "max_all_tokens", 100, 100, true },
	};
	struct space first, second;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int tokens = cases[i].tokens;
		unsigned long long had = i ? self->all.tokens :
					     self->all.wheels;
		int user[15], root, status;

		ASSERT_TRUE(set_limit(cases[i].parameter,
				      with_reserve(had + 60 * cases[i].each)));
		status = fill_space(&first, tokens, cases[i].nested);
		if (status == 77)
			SKIP(return, "no user namespaces");
		EXPECT_EQ(0, status);
		EXPECT_EQ(30ULL, namespace_account(first.number).wheels);
		/* Another namespace gets half of the rest. */
		EXPECT_EQ(0, fill_space(&second, tokens, cases[i].nested));
		EXPECT_NE(first.number, second.number);
		EXPECT_EQ(15ULL, namespace_account(second.number).wheels);
		EXPECT_EQ(30ULL, namespace_account(first.number).wheels);
		EXPECT_EQ(30ULL * tokens, namespace_account(first.number).tokens);
		/* Users of the host may have all that is left, except the reserve. */
		for (int n = 0; n < 15; n++) {
			user[n] = new_wheel(USER, tokens);
			EXPECT_LE(0, user[n]);
		}
		EXPECT_EQ(-ENOSPC, new_wheel(USER, tokens));
		root = new_wheel(ROOT, tokens);
		EXPECT_LE(0, root);
		EXPECT_EQ(self->all.wheels + 61, account_of(-1).wheels);
		EXPECT_EQ(45ULL, namespace_account(-1).wheels);

		close(root);
		close_all(user, 15);
		close_all(first.fd, MANY);
		EXPECT_FALSE(namespace_account(first.number).listed);
		EXPECT_EQ(15ULL, namespace_account(-1).wheels);
		close_all(second.fd, MANY);
		EXPECT_FALSE(namespace_account(-1).listed);
		EXPECT_TRUE(set_limit(cases[i].parameter, 1 << 28));
	}
}

/* Bad values are refused and change nothing; only root may write a value. */
TEST_F(limits, parameters)
{
	static const char *const bad[] = {
		"0", "-1", "x", "1x", "", " ", "0x", "1 2", "1.5",
		"99999999999999999999999",
	};
	static const char *const good[] = { "1", "77", "0x10", "1000" };
	char path[128], old[32], now[32];
	int fd;

	for (size_t i = 0; i < N_PARAMETERS; i++) {
		bool tick = !strcmp(parameters[i], "min_tick_ns");

		snprintf(path, sizeof(path), PARAMETERS "%s", parameters[i]);
		become(USER);
		EXPECT_EQ(-EACCES, tw_ret(open(path, O_WRONLY)));
		become(ROOT);
		for (size_t j = 0; !tick && j < ARRAY_SIZE(good); j++) {
			EXPECT_TRUE(set_text(parameters[i], good[j])) {
				TH_LOG("%s = %s", parameters[i], good[j]);
			}
			get_text(parameters[i], now, sizeof(now));
			EXPECT_EQ(strtoul(good[j], NULL, 0),
				  strtoul(now, NULL, 0));
		}
		get_text(parameters[i], old, sizeof(old));
		fd = open(path, O_WRONLY | O_CLOEXEC);
		ASSERT_LE(0, fd);
		for (size_t j = 0; j < ARRAY_SIZE(bad); j++) {
			size_t size = strlen(bad[j]) ?: 1;
			int ret = tw_ret(write(fd, bad[j], size));

			/* A value that no integer holds is out of range, too. */
			EXPECT_TRUE(ret == -EINVAL ||
				    (ret == -ERANGE && size > 10)) {
				TH_LOG("%s = '%s': %d", parameters[i], bad[j],
				       ret);
			}
			get_text(parameters[i], now, sizeof(now));
			EXPECT_STREQ(old, now);
		}
		close(fd);
		EXPECT_TRUE(set_text(parameters[i], self->saved[i]));
	}
}

/* max_tokens ends where a token's index ends; min_tick_ns goes from 1000 ns to 1 s. */
TEST_F(limits, parameters_out_of_range)
{
	static const struct {
		const char *parameter, *last, *beyond;
	} cases[] = {
		{ "max_tokens", "268435456", "268435457" },
		{ "min_tick_ns", "1000000000", "1000000001" },
		{ "min_tick_ns", "1000", "999" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char now[32];

		EXPECT_TRUE(set_text(cases[i].parameter, cases[i].last));
		EXPECT_FALSE(set_text(cases[i].parameter, cases[i].beyond));
		EXPECT_EQ(EINVAL, errno);
		get_text(cases[i].parameter, now, sizeof(now));
		EXPECT_EQ(atoll(cases[i].last), atoll(now));
	}
}

/* A limit may be lowered below use: existing wheels stay, and new wheels have to fit. */
TEST_F(limits, lowered_below_use)
{
	static const char *const lowered[] = {
		"max_user_wheels", "max_user_tokens", "max_all_wheels",
		"max_all_tokens", "max_tokens",
	};
	struct timewheel_event events[100];
	int fd[3], named;

	for (int i = 0; i < 3; i++) {
		fd[i] = new_wheel(USER, 100);
		ASSERT_LE(0, fd[i]);
	}
	ASSERT_EQ(0, create_as(USER, self->control, 0, 100, 0));
	for (size_t i = 0; i < ARRAY_SIZE(lowered); i++)
		ASSERT_TRUE(set_limit(lowered[i], 1));
	expect_account(USER, 4, 400);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	EXPECT_EQ(-ENOSPC, new_wheel(ROOT, 1));
	EXPECT_EQ(-EINVAL, new_wheel(ROOT, 2));
	/* CREATE of a wheel that exists succeeds. */
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, create_as(USER, self->control, 0, 100, 0));
	/* Existing wheels keep all that they were promised. */
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(100UL, tw_register_many(fd[i], 1, 100, 0, TW_SEC));
		EXPECT_EQ(0, tw_advance(fd[i], 1));
		EXPECT_EQ(100, tw_read(fd[i], events, 100));
	}
	named = open_named(0);
	ASSERT_LE(0, named);
	EXPECT_EQ(100UL, tw_register_many(named, 1, 100, 0, TW_SEC));

	close(fd[0]);
	close(fd[1]);
	expect_account(USER, 2, 200);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	close(fd[2]);
	EXPECT_EQ(0, destroy_as(USER, self->control, 0));
	expect_account(USER, 1, 100);
	EXPECT_EQ(-EDQUOT, new_wheel(USER, 1));
	close(named);
	expect_account(USER, 0, 0);
	if (!self->all.wheels) {
		fd[0] = new_wheel(USER, 1);
		EXPECT_LE(0, fd[0]);
		close(fd[0]);
	}
	expect_account(USER, 0, 0);
}

/*
 * Changes the user of the calling thread alone. The C library is left out, because it
 * would change the user of all threads.
 */
static bool thread_becomes(uid_t uid)
{
#ifdef SYS_setresuid32
	return !syscall(SYS_setresuid32, -1, uid, -1);
#else
	return !syscall(SYS_setresuid, -1, uid, -1);
#endif
}

/*
 * A purse counts the wheels and tokens of a user's threads, never more than the kernel
 * counts.
 */
struct purse {
	_Atomic int wheels, tokens;
	uid_t uid;
	int most_wheels, most_tokens;
	bool enough;	/* for all threads at once: none is ever refused */
};

struct racer {
	pthread_t thread;
	void *(*run)(void *racer);
	struct purse *purse;
	int control;
	int name;	/* number of its named wheel, or -1 for private wheels */
	unsigned long wheels;	/* number of wheels that it still wants to have had */
	const char *error;
};

/*
 * Has one wheel, from set-up to end, if the user may. Returns an error's text, or NULL.
 */
static const char *have_a_wheel(struct racer *r, int fd, int tokens)
{
	struct timewheel_setup setup = setup_of(tokens);
	struct timewheel_create create = {
		.size = sizeof(create), .setup = (__u64)(uintptr_t)&setup,
	};
	struct timewheel_destroy destroy = { .size = sizeof(destroy) };
	struct purse *p = r->purse;
	bool named = r->name >= 0;
	const char *error = NULL;

	fill_name(create.name, r->name);
	fill_name(destroy.name, r->name);
	if (named ? ioctl(r->control, TIMEWHEEL_IOC_CREATE, &create) :
		    ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup))
		return errno == EDQUOT && !p->enough ? NULL : strerror(errno);
	r->wheels--;
	if (atomic_fetch_add(&p->wheels, 1) + 1 > p->most_wheels)
		error = "too many wheels";
	if (atomic_fetch_add(&p->tokens, tokens) + tokens > p->most_tokens)
		error = "too many tokens";
	sched_yield();
	atomic_fetch_sub(&p->tokens, tokens);
	atomic_fetch_sub(&p->wheels, 1);
	if (named && ioctl(r->control, TIMEWHEEL_IOC_DESTROY, &destroy))
		error = "not destroyed";
	return error;
}

static void *race(void *arg)
{
	struct racer *r = arg;

	for (unsigned int i = 0; r->wheels && !r->error; i++) {
		int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

		if (fd < 0 || !thread_becomes(r->purse->uid)) {
			r->error = "cannot begin";
			break;
		}
		r->error = have_a_wheel(r, fd, 1 + i * 7 % 50);
		if (!thread_becomes(ROOT))
			r->error = "cannot return";
		close(fd);
	}
	return NULL;
}

#define RACERS	8

static void run_racers(struct __test_metadata *_metadata, struct racer *racers)
{
	for (int i = 0; i < RACERS; i++)
		ASSERT_EQ(0, pthread_create(&racers[i].thread, NULL,
					    racers[i].run, &racers[i]));
	for (int i = 0; i < RACERS; i++) {
		ASSERT_EQ(0, pthread_join(racers[i].thread, NULL));
		EXPECT_NULL(racers[i].error) {
			TH_LOG("racer %d: %s", i, racers[i].error);
		}
	}
}

/* A user never has more than the limit at once, and owes exactly nothing in the end. */
TEST_F_TIMEOUT(limits, many_at_once, 120)
{
	struct purse purse = {
		.uid = USER, .most_wheels = 3, .most_tokens = 100,
	};
	struct racer racers[RACERS] = {};

	ASSERT_TRUE(set_limit("max_user_wheels", purse.most_wheels));
	ASSERT_TRUE(set_limit("max_user_tokens", purse.most_tokens));
	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer) {
			.purse = &purse, .control = self->control,
			.run = race, .name = i < RACERS / 4 ? i : -1,
			.wheels = tw_scaled(i < RACERS / 4 ? 100 : 500),
		};
	}
	run_racers(_metadata, racers);
	expect_account(USER, 0, 0);
	EXPECT_EQ(self->all.wheels, account_of(-1).wheels);
	EXPECT_EQ(self->all.tokens, account_of(-1).tokens);
}

/*
 * Users do not get in each other's way: each has just enough for its threads, so that
 * no thread is ever refused.
 */
TEST_F_TIMEOUT(limits, many_users_at_once, 120)
{
	struct purse purses[] = {
		{ .uid = USER, .most_wheels = RACERS / 2,
		  .most_tokens = RACERS / 2 * 50, .enough = true },
		{ .uid = OTHER, .most_wheels = RACERS / 2,
		  .most_tokens = RACERS / 2 * 50, .enough = true },
	};
	struct racer racers[RACERS] = {};

	ASSERT_TRUE(set_limit("max_user_wheels", purses[0].most_wheels));
	ASSERT_TRUE(set_limit("max_user_tokens", purses[0].most_tokens));
	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer) {
			.purse = &purses[i % 2], .control = self->control,
			.run = race, .name = i < RACERS / 4 ? i : -1,
			.wheels = tw_scaled(i < RACERS / 4 ? 100 : 500),
		};
	}
	run_racers(_metadata, racers);
	expect_account(USER, 0, 0);
	expect_account(OTHER, 0, 0);
	EXPECT_EQ(self->all.wheels, account_of(-1).wheels);
}

/* Asks all the time for more tokens than the user may have. */
static void *be_refused(void *arg)
{
	struct racer *r = arg;
	struct timewheel_setup setup = setup_of(r->purse->most_tokens + 1);

	if (!thread_becomes(r->purse->uid))
		r->error = "cannot begin";
	while (r->wheels-- && !r->error) {
		if (!ioctl(r->control, TIMEWHEEL_IOC_SETUP, &setup) ||
		    errno != EDQUOT)
			r->error = "not refused";
	}
	return NULL;
}

/*
 * A user has nothing, then a wheel, then nothing again, and meanwhile all its threads
 * are refused more: no refusal costs the user or others anything.
 */
TEST_F(limits, refused_at_once)
{
	struct purse purse = {
		.uid = USER, .most_wheels = RACERS / 4,
		.most_tokens = RACERS / 4 * 50, .enough = true,
	};
	struct racer racers[RACERS] = {};

	ASSERT_TRUE(set_limit("max_user_tokens", purse.most_tokens));
	for (int i = 0; i < RACERS; i++) {
		bool refused = i >= RACERS / 4;

		racers[i] = (struct racer) {
			.purse = &purse, .control = self->control, .name = -1,
			.run = refused ? be_refused : race,
			.wheels = tw_scaled(refused ? 5000 : 500),
		};
	}
	run_racers(_metadata, racers);
	expect_account(USER, 0, 0);
	EXPECT_EQ(self->all.wheels, account_of(-1).wheels);
	EXPECT_EQ(self->all.tokens, account_of(-1).tokens);
}

struct contender {
	pthread_t thread;
	pthread_barrier_t *start;
	uid_t uid;
	int fd, ret;
};

static void *contend(void *arg)
{
	struct contender *c = arg;
	struct timewheel_setup setup = setup_of(c->uid);

	if (!thread_becomes(c->uid))
		return "cannot begin";
	pthread_barrier_wait(c->start);
	c->ret = tw_ret(ioctl(c->fd, TIMEWHEEL_IOC_SETUP, &setup));
	return NULL;
}

/* Two users set one file up at the same time: only the user that succeeds pays. */
TEST_F(limits, two_users_one_file)
{
	const unsigned long rounds = tw_scaled(200);
	pthread_barrier_t start;

	ASSERT_EQ(0, pthread_barrier_init(&start, NULL, 2));
	for (unsigned long i = 0; i < rounds; i++) {
		int fd = TW_OPEN(O_RDWR);
		struct contender c[2] = {};

		for (int k = 0; k < 2; k++) {
			c[k].start = &start;
			c[k].uid = k ? OTHER : USER;
			c[k].fd = fd;
			ASSERT_EQ(0, pthread_create(&c[k].thread, NULL, contend,
						    &c[k]));
		}
		for (int k = 0; k < 2; k++) {
			void *error;

			ASSERT_EQ(0, pthread_join(c[k].thread, &error));
			ASSERT_NULL(error);
		}
		ASSERT_TRUE((!c[0].ret && c[1].ret == -EBUSY) ||
			    (!c[1].ret && c[0].ret == -EBUSY));
		expect_account(USER, !c[0].ret, c[0].ret ? 0 : USER);
		expect_account(OTHER, !c[1].ret, c[1].ret ? 0 : OTHER);
		close(fd);
	}
	expect_account(USER, 0, 0);
	expect_account(OTHER, 0, 0);
}

TEST_HARNESS_MAIN
