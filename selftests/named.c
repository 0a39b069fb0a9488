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
#include <sys/mman.h>

#define PREFIX	"kselftest-named-"
#include "tw_named_fixture.h"
#include "tw_process.h"

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

/* Calls CREATE, with fields that differ from those of a valid call. */
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
	EXPECT_EQ(self->found.entries, count_entries(CLASS));
	EXPECT_TRUE(tw_refcnt_becomes(self->found.refs)) {
		TH_LOG("in line %d", line);
	}
}

/*
 * Calls CREATE with a structure that says @size and lies in the last @room bytes of
 * mapped memory. If there is room behind the fields, @tail is the last byte.
 */
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

	NEEDS_KERNEL("EFAULT");
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

/* Calls CREATE with this set-up, to which the rules of TIMEWHEEL_IOC_SETUP apply. */
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

	/*
	 * A field that the caller left at 0 gets its value from "manual". The value
	 * ~0 stands for 0.
	 */
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
			     .flags = 1U << bit);
	expect_setup(0, .slots = 1);
	expect_setup(0, .slots = caps.max_slots);
	expect_setup(-EINVAL, .slots = ~0U);		/* 0 slots */
	expect_setup(-EINVAL, .slots = caps.max_slots + 1);
	expect_setup(0, .tick = caps.min_tick);
	expect_setup(0, .tick = caps.max_tick);
	expect_setup(-EINVAL, .tick = ~0ULL);		/* a tick of 0 */
	expect_setup(-EINVAL, .tick = caps.min_tick - 1);
	expect_setup(-EINVAL, .tick = caps.max_tick + 1);
	expect_setup(0, .max_tokens = 1);
	expect_setup(-EINVAL, .max_tokens = ~0ULL);	/* 0 tokens */
	expect_setup(-EINVAL, .max_tokens = caps.max_tokens + 1);
	expect_setup(-EINVAL, .max_tokens = 1ULL << 32);
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

/* CREATE fails with EFAULT unless it can read the whole set-up at its address. */
TEST_F(named, setup_address)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *hole = pages + 2 * page;
	struct timewheel_setup setup = manual;

	NEEDS_KERNEL("EFAULT");
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
	/* The set-up need not be aligned. */
	memcpy(pages + 3, &setup, sizeof(setup));
	expect_create(0, .setup = (uintptr_t)(pages + 3));
	for (size_t room = 1; room < sizeof(setup); room++) {
		memcpy(hole - room, &setup, room);
		expect_create(-EFAULT, .setup = (uintptr_t)(hole - room));
	}

	/*
	 * The structure of a later release is larger; the bytes behind the known
	 * fields have to be 0.
	 */
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

/*
 * Calls DESTROY for a wheel that exists, with fields that differ from those of a
 * valid call.
 */
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

	NEEDS_KERNEL("EFAULT");
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

	/* DESTROY fails for a wheel that is gone, and for a wheel that never was. */
	EXPECT_EQ(-ENOENT, tw_ret(tw_destroy_named(self->dev, NAME)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_destroy_named(self->dev, OTHER)));
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(-ENOENT, tw_ret(tw_destroy_named(self->dev, NAME "-")));
	EXPECT_EQ(-ENOENT, tw_ret(tw_destroy_named(self->dev, PREFIX)));
	expect_destroy(0);
}

/*
 * CREATE and DESTROY need the device open for writing. They do not change the file's
 * wheel.
 */
TEST_F(named, device_files)
{
	int reading = TW_OPEN(O_RDONLY);
	int writing = TW_OPEN(O_WRONLY);
	struct timewheel_info info;
	struct tw_state before, after;
	int path;

	NEEDS_KERNEL("O_PATH opens a device's node");
	path = TW_OPEN(O_PATH);
	EXPECT_EQ(-EBADF, tw_ret(tw_create(reading, NAME, 0, &manual)));
	EXPECT_EQ(-EBADF, tw_ret(tw_create(path, NAME, 0, &manual)));
	EXPECT_TRUE(is_gone(NAME));
	EXPECT_EQ(0, tw_create(writing, NAME, 0, &manual));
	EXPECT_EQ(-EBADF, tw_ret(tw_destroy_named(reading, NAME)));
	EXPECT_EQ(-EBADF, tw_ret(tw_destroy_named(path, NAME)));
	EXPECT_TRUE(is_here(NAME));
	EXPECT_EQ(0, tw_destroy_named(writing, NAME));

	/* CREATE and DESTROY do not set up the file through which they are called. */
	EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(-EBADFD, tw_ret(tw_info(self->dev, &info)));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_EQ(-EBADFD, tw_ret(tw_info(self->dev, &info)));
	/* A file that has a private wheel keeps it. */
	ASSERT_EQ(0, tw_setup_manual(self->dev, 31, 10, 0));
	ASSERT_EQ(0, tw_register(self->dev, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_get_state(self->dev, 0, 1, &before));
	EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	EXPECT_EQ(0, tw_destroy_named(self->dev, NAME));
	ASSERT_EQ(0, tw_get_state(self->dev, 0, 1, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));

	/* The private wheel has to be gone when the fixture counts wheels. */
	close(self->dev);
	self->dev = TW_OPEN(O_RDWR);
}

/* CREATE, DESTROY and SETUP fail on a file of a named wheel. */
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

/*
 * CREATE with a set-up that differs in any field from the existing wheel's fails, and
 * leaves the wheel as it is (P9).
 */
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

	/* CREATE fails too if the two set-ups are exchanged, and for each pair of clocks. */
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &others[i]));
		EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, 0, &base)));
		EXPECT_EQ(TIMEWHEEL_RES_EXISTED,
			  tw_create(self->dev, NAME, 0, &others[i]));
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

/*
 * The fdinfo of a named wheel's file shows its name. The fdinfo of a private wheel
 * has no name.
 */
TEST_F(named, fdinfo_tells_the_name)
{
	char name[128];
	int fd;

	NEEDS_KERNEL("fdinfo");
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

TEST_F(named, renamed_node)
{
	const char *path = TW_NODES PREFIX "renamed";
	int fd;

	NEEDS_KERNEL("a name is a node");
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, rename(NODE, path));
	expect_same_wheel(_metadata, path, fd);
	EXPECT_EQ(-ENOENT, tw_ret(open(NODE, O_RDWR)));
	/* The name still belongs to the wheel whose node was renamed. */
	EXPECT_EQ(-EEXIST, tw_ret(tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE,
					    &manual)));
	expect_stale(_metadata, self, path, fd);
}

TEST_F(named, linked_node)
{
	const char *path = TW_NODES PREFIX "linked";
	int fd;

	NEEDS_KERNEL("a name is a node");
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

TEST_F(named, node_elsewhere)
{
	const char *path = "/dev/" PREFIX "elsewhere";
	struct stat st;
	int fd;

	NEEDS_KERNEL("a name is a node");
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, stat(NODE, &st));
	unlink(path);
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0600, st.st_rdev));
	expect_same_wheel(_metadata, path, fd);
	expect_stale(_metadata, self, path, fd);
	/* A node with a number that no wheel has had yet leads to no wheel. */
	for (unsigned int n = 1000; n < 1U << 20; n *= 2) {
		ASSERT_EQ(0, mknod(path, S_IFCHR | 0600,
				   makedev(major(st.st_rdev), n)));
		EXPECT_EQ(-ENXIO, tw_ret(open(path, O_RDWR)));
		unlink(path);
	}
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

FIXTURE(named_race) {
	int dev;
	struct found found;
};

FIXTURE_VARIANT(named_race) {
	enum contest how;
};

FIXTURE_VARIANT_ADD(named_race, exclusive) { .how = EXCLUSIVE };
FIXTURE_VARIANT_ADD(named_race, same_setup) { .how = SAME };
FIXTURE_VARIANT_ADD(named_race, other_setup) { .how = DIFFERENT };

FIXTURE_SETUP(named_race)
{
	self->dev = TW_OPEN(O_RDWR);
	note_what_is_there(self->dev, &self->found);
}

FIXTURE_TEARDOWN(named_race)
{
	expect_as_found(_metadata, self->dev, &self->found);
}

/*
 * When many processes create a wheel of one name at the same time, exactly one
 * process creates it. When many processes destroy it, exactly one process destroys
 * it.
 */
TEST_F_TIMEOUT(named_race, one_wins, LONG)
{
	const unsigned long rounds = tw_scaled(100);
	struct race *race = tw_shared_memory(sizeof(*race));
	struct timewheel_info info;
	pid_t child[RACERS];

	NEEDS_KERNEL("other processes see a wheel");
	ASSERT_NE(MAP_FAILED, (void *)race);
	init_barrier(&race->barrier, RACERS + 1);
	for (int i = 0; i < RACERS; i++) {
		child[i] = tw_fork();
		ASSERT_LE(0, child[i]);
		if (child[i])
			continue;
		for (unsigned long n = 0; n < rounds; n++)
			race_once(race, self->dev, i, variant->how);
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

TEST_HARNESS_MAIN
