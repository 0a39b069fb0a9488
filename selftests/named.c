// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program tests how named wheels are created and destroyed, which names and
 * set-ups are valid, and what happens to their nodes. A name belongs to one wheel at
 * a time. A call that fails changes nothing (P9), and a node never leads to another
 * wheel than the one that it was made for.
 *
 * Each test ends with a check that it has left nothing behind.
 */
#define _GNU_SOURCE
#define PREFIX	"kselftest-named-"
#include "tw_named_fixture.h"
#include "tw_process.h"

/*
 * Creates a wheel of this name, opens and destroys it. @expected is 0, or the
 * error that both calls have to return.
 */
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
		return;	/* a wheel of this name was there before */
	EXPECT_EQ(entries + (!expected && !tw_in_process()), count_entries(CLASS));
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
#define LONGEST	PREFIX TEN TEN TEN TEN "0123456"

_Static_assert(sizeof(LONGEST) == TIMEWHEEL_NAME_SIZE, "the longest name");

/* Each byte of a name is a letter, a digit, "-" or "_". */
TEST_F(named, names)
{
	static const char alphabet[] =
		"-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	char name[] = PREFIX "?", behind[TIMEWHEEL_NAME_SIZE] = "";

	/* This wheel keeps the folder of the nodes, so that the nodes can be counted. */
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

	/* These names have a meaning in sysfs. */
	expect_name(0, "uevent");
	expect_name(0, "power");
	expect_name(0, "subsystem");
	expect_name(0, "dev");
	expect_name(0, "timewheel");

	/* Only zeros may follow the end of the name. */
	memcpy(behind, NAME, strlen(NAME));
	for (size_t at = strlen(NAME) + 1; at < sizeof(behind); at++) {
		behind[at] = 'a';
		_expect_name(_metadata, self, -EINVAL, behind, sizeof(behind),
			     __LINE__);
		behind[at] = 0;
	}
	_expect_name(_metadata, self, 0, behind, sizeof(behind), __LINE__);
	expect_name(-EINVAL, "\0" NAME);

	/* None of these calls has changed the wheel that is there. */
	EXPECT_TRUE(is_here(PREFIX "other"));
	EXPECT_EQ(0, close(tw_open_named(PREFIX "other", O_RDWR)));
}

/* Names that differ in one byte are different: none is cut off, and case counts. */
TEST_F(named, names_are_distinct)
{
	static const char *const names[] = {
		PREFIX "x", PREFIX "X", PREFIX "xx", PREFIX "x-", PREFIX "x_",
		PREFIX TEN TEN TEN TEN "012345a",
		PREFIX TEN TEN TEN TEN "012345b",
		PREFIX TEN TEN TEN TEN "012345",
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

/*
 * CREATE needs a file of the device that is open for writing, and does not set that
 * file up. CREATE, DESTROY and SETUP fail on a file of a named wheel.
 */
TEST_F(named, files_of_the_wheel)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	int fd, writing = TW_OPEN(O_WRONLY);
	struct timewheel_info info;

	ASSERT_EQ(0, tw_create(writing, NAME, 0, &manual));
	EXPECT_EQ(-EBADFD, tw_ret(tw_info(writing, &info)));
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
	/* Commands that do not exist fail, too. */
	for (unsigned int number = ARRAY_SIZE(tw_commands); number < 0x100; number++)
		EXPECT_EQ(-ENOTTY, tw_ret(ioctl(fd, _IO(TIMEWHEEL_IOC_TYPE,
							number), &caps)));
}

/*
 * CREATE of a wheel that exists with the same set-up succeeds. CREATE fails if its
 * flag asks for a new wheel.
 */
TEST_F(named, existing_wheel_of_the_same_setup)
{
	struct {
		struct timewheel_setup setup;
		__u64 tail[4];
	} larger = { .setup = manual };
	struct timewheel_token token;
	int fd;

	larger.setup.size = sizeof(larger);
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED,
		  tw_create(self->dev, NAME, 0, &larger.setup));
	EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE,
					    &manual)));
	/* The wheel keeps its set-up after it has been used. */
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, tw_register(fd, 1, 7 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 5));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(0, tw_get(fd, 0, 1, &token));
	EXPECT_EQ(7 * TW_SEC, token.deadline);

	/* The name is free again after the wheel has been destroyed. */
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_EQ(0, tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual));
}

/* Returns set-ups that are all different, most of them in one field from the first one. */
static size_t fill_setups(struct timewheel_setup *setups)
{
	size_t n = 0;

	for (int i = 0; i < 10; i++) {
		setups[i] = manual;
		setups[i].start = 50;
	}
	setups[++n].slots++;
	setups[++n].slots = 1;
	setups[++n].tick++;
	setups[++n].tick = 2 * TW_SEC;
	setups[++n].max_tokens++;
	setups[++n].max_tokens--;
	setups[++n].start = 0;
	setups[++n].flags = TIMEWHEEL_SETUP_NO_IDS;
	setups[++n].flags = TIMEWHEEL_SETUP_NO_COOKIES;
	for (__u32 clock = 0; clock < TIMEWHEEL_CLOCK_MANUAL; clock++) {
		setups[++n] = manual;
		setups[n].clock = clock;
	}
	return n + 1;
}

/*
 * CREATE with a set-up that differs in any field from the existing wheel's fails, and
 * leaves the wheel as it is (P9).
 */
TEST_F(named, existing_wheel_of_another_setup)
{
	struct timewheel_setup setups[16];
	const size_t n = fill_setups(setups);

	for (size_t i = 0; i < n; i++) {
		__u64 id = !(setups[i].flags & TIMEWHEEL_SETUP_NO_IDS), handle;
		struct tw_state before;
		long refs;
		int fd;

		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &setups[i]));
		fd = tw_open_named(NAME, O_RDWR);
		refs = tw_refcnt();
		ASSERT_EQ(0, tw_register(fd, id, 100 * TW_SEC, 0, &handle));
		ASSERT_EQ(0, tw_get_state(fd, TIMEWHEEL_OPF_BY_HANDLE, handle, &before));
		for (size_t j = 0; j < n; j++) {
			EXPECT_EQ(i == j ? TIMEWHEEL_RES_EXISTED : -EEXIST,
				  tw_ret(tw_create(self->dev, NAME, 0, &setups[j]))) {
				TH_LOG("set-up %zu beside %zu", j, i);
			}
			tw_expect_state(fd, TIMEWHEEL_OPF_BY_HANDLE, handle, &before,
					"set-up %zu beside %zu", j, i);
			EXPECT_EQ(refs, tw_refcnt());
		}
		close(fd);
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	}
}

/* A wheel that exists may be beyond a limit that was lowered after its creation. */
TEST_F(named, existing_wheel_beyond_a_limit)
{
	static const char parameter[] =
		"/sys/module/timewheel/parameters/max_tokens";
	char before[32];
	int same, exclusive, other;

	NEEDS_KERNEL("a module has parameters");
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	if (!read_line(parameter, before, sizeof(before)) ||
	    !tw_write_file(parameter, "99"))
		SKIP(return, "cannot change the limit");
	same = tw_ret(tw_create(self->dev, NAME, 0, &manual));
	exclusive = tw_ret(tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE,
				     &manual));
	other = tw_ret(tw_create(self->dev, OTHER, 0, &manual));
	ASSERT_TRUE(tw_write_file(parameter, before));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, same);
	EXPECT_EQ(-EEXIST, exclusive);
	EXPECT_EQ(-EINVAL, other);
	EXPECT_TRUE(is_gone(OTHER));
}

/* Registers a token through the node at @path, and reads its event from @fd. */
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
 * Destroys the wheel, of which @fd is the last open file. From then on its node,
 * which has been moved or copied to @path, leads to no wheel.
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
	/* The node does not lead to later wheels either. */
	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
		EXPECT_EQ(-ENXIO, tw_ret(open(path, O_RDWR)));
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
		EXPECT_EQ(-ENXIO, tw_ret(open(path, O_RDWR)));
	}
	EXPECT_EQ(0, unlink(path));
}

/* A node leads to its wheel from wherever it was moved or copied to. */
TEST_F_TIMEOUT(named, node_elsewhere, LONG)
{
	enum { RENAMED, LINKED, COPIED, WAYS };
	const char *path = "/dev/" PREFIX "elsewhere";
	struct stat st;
	int fd;

	NEEDS_KERNEL("a name is a node");
	TW_NEEDS_ROOT();
	unlink(path);
	for (int way = 0; way < WAYS; way++) {
		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
		fd = tw_open_named(NAME, O_RDWR);
		ASSERT_EQ(0, stat(NODE, &st));
		ASSERT_EQ(0, way == RENAMED ? rename(NODE, path) :
			     way == LINKED ? link(NODE, path) :
			     mknod(path, S_IFCHR | 0600, st.st_rdev));
		expect_same_wheel(_metadata, path, fd);
		EXPECT_EQ(way != RENAMED, !access(NODE, F_OK));
		if (way != RENAMED)
			expect_same_wheel(_metadata, NODE, fd);
		/* The name belongs to the wheel wherever the node is. */
		EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME,
						    TIMEWHEEL_CREATE_EXCLUSIVE, &manual)));
		expect_stale(_metadata, self, path, fd);
	}
	/* A node with a number that no wheel has had yet leads to no wheel. */
	for (unsigned int n = 1000; n < 1U << 20; n *= 2) {
		ASSERT_EQ(0, mknod(path, S_IFCHR | 0600,
				   makedev(major(st.st_rdev), n)));
		EXPECT_EQ(-ENXIO, tw_ret(open(path, O_RDWR)));
		unlink(path);
	}
}

TEST_F(named, unlinked_node)
{
	struct stat st;
	int fd;

	NEEDS_KERNEL("a name is a node");
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, stat(NODE, &st));
	ASSERT_EQ(0, unlink(NODE));
	EXPECT_EQ(-ENOENT, tw_ret(open(NODE, O_RDWR)));
	EXPECT_EQ(0, tw_register(fd, 2, TW_SEC, 0, NULL));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(self->dev, NAME, 0, &manual));
	/* The folder may be gone because it is empty. */
	mkdir(NODES, 0755);
	ASSERT_EQ(0, mknod(NODE, S_IFCHR | 0600, st.st_rdev));
	expect_same_wheel(_metadata, NODE, fd);
	ASSERT_EQ(0, unlink(NODE));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
	expect_enodev(_metadata, fd);
	rmdir(NODES);

	/* The next wheel of the name has its node. */
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_TRUE(is_here(NAME));
	EXPECT_EQ(0, close(tw_open_named(NAME, O_RDWR)));
}

/* A file at the node's path stays there, and the wheel has no node of its own. */
TEST_F(named, something_in_the_way)
{
	const char *path = "/dev/" PREFIX "elsewhere";
	struct stat st;
	int file, fd;

	NEEDS_KERNEL("a name is a node");
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

enum { RACERS = 8 };

/*
 * The answers of all processes of a race are counted here, in shared memory, together
 * with the max_tokens of the wheel that was made.
 */
struct race {
	_Atomic unsigned int made, existed, refused, destroyed, missing, odd;
	_Atomic unsigned int opened;
	_Atomic __u64 winner;
	pthread_barrier_t barrier;
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
	/* The node exists when CREATE has returned. */
	fd = ret >= 0 ? tw_open_named(NAME, O_RDWR) : -1;
	race->opened += fd >= 0;
	close(fd);
	pthread_barrier_wait(&race->barrier);
	/* The parent checks the results between these two barriers. */
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

static void expect_one_winner(struct __test_metadata *_metadata, struct race *race, int dev,
			      enum contest how)
{
	const unsigned long rounds = tw_scaled(100);
	struct timewheel_info info;
	pid_t child[RACERS];

	memset(race, 0, sizeof(*race));
	init_barrier(&race->barrier, RACERS + 1);
	for (int i = 0; i < RACERS; i++) {
		child[i] = tw_fork();
		ASSERT_LE(0, child[i]);
		if (child[i])
			continue;
		for (unsigned long n = 0; n < rounds; n++)
			race_once(race, dev, i, how);
		_exit(0);
	}
	for (unsigned int n = 1; n <= rounds; n++) {
		const unsigned int losers = n * (RACERS - 1);
		int fd;

		pthread_barrier_wait(&race->barrier);
		pthread_barrier_wait(&race->barrier);
		EXPECT_EQ(n, race->made);
		EXPECT_EQ(how == SAME ? losers : 0, race->existed);
		EXPECT_EQ(how == SAME ? 0 : losers, race->refused);
		EXPECT_EQ(how == SAME ? n * RACERS : n, race->opened);
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

/*
 * When many processes create a wheel of one name at the same time, exactly one
 * process creates it. When many processes destroy it, exactly one process destroys
 * it.
 */
TEST_F_TIMEOUT(named, one_wins, 3 * LONG)
{
	struct race *race = tw_shared_memory(sizeof(*race));

	NEEDS_KERNEL("other processes see a wheel");
	ASSERT_NE(MAP_FAILED, (void *)race);
	for (enum contest how = EXCLUSIVE; how <= DIFFERENT; how++)
		expect_one_winner(_metadata, race, self->dev, how);
}

TEST_HARNESS_MAIN
