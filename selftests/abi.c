// SPDX-License-Identifier: GPL-2.0-only
/*
 * The binary interface: layouts, sizes, flags, reserved fields, addresses,
 * command numbers and the file operations that the device does not have. Bad
 * input gets the documented errno and changes nothing (P9).
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tw_commands.h"
#include "tw_named.h"

_Static_assert(TIMEWHEEL_CLOCK_MONOTONIC == 0 && TIMEWHEEL_CLOCK_BOOTTIME == 1 &&
	       TIMEWHEEL_CLOCK_REALTIME == 2 && TIMEWHEEL_CLOCK_MANUAL == 3,
	       "clocks are frozen");
_Static_assert(TIMEWHEEL_SETUP_NO_IDS == 1 && TIMEWHEEL_SETUP_NO_COOKIES == 2 &&
	       TIMEWHEEL_SETUP_TOUCH_WORDS == 4 && TIMEWHEEL_SETUP_PERIODS == 8 &&
	       TIMEWHEEL_CREATE_EXCLUSIVE == 1 && TIMEWHEEL_OPF_BY_HANDLE == 1 &&
	       TIMEWHEEL_OPF_ABSOLUTE == 2 &&
	       TIMEWHEEL_RES_WAS_DUE == 1 && TIMEWHEEL_RES_REGISTERED == 2 &&
	       TIMEWHEEL_RES_EXISTED == 4 &&
	       TIMEWHEEL_CONTROL_PAUSED == 1 && TIMEWHEEL_CONTROL_DRAINING == 2 &&
	       TIMEWHEEL_MAP_WORDS == 0,
	       "flags and results are frozen");
_Static_assert(TIMEWHEEL_NAME_SIZE == 64 && TIMEWHEEL_BUCKETS == 252,
	       "array sizes are frozen");
_Static_assert(TIMEWHEEL_STATE_NONE == 0 && TIMEWHEEL_STATE_PENDING == 1 &&
	       TIMEWHEEL_STATE_TAKEN == 2 && TIMEWHEEL_STATE_HELD == 3,
	       "states are frozen");
_Static_assert(TIMEWHEEL_OP_REGISTER == 0 && TIMEWHEEL_OP_TOUCH == 1 &&
	       TIMEWHEEL_OP_TOUCH_OR_REGISTER == 2 && TIMEWHEEL_OP_MOVE == 3 &&
	       TIMEWHEEL_OP_CANCEL == 4 && TIMEWHEEL_OP_ACK == 5 &&
	       TIMEWHEEL_OP_NACK == 6 && TIMEWHEEL_OP_EXTEND == 7 &&
	       TIMEWHEEL_OP_DELETE == 8,
	       "operations are frozen");

#define WITNESS		TW_ID_THERE	/* a token that only a touch may change */
#define WITNESS_DUE	100	/* due tick of the witness; the hand stands on tick 1 */
#define FRESH		TW_ID_NEW	/* the id that OP and BATCH register */
#define POISON		0xcc

#define NAME		TW_COMMANDS_NAME

FIXTURE(abi) {
	int fd;
	size_t page_size;
	char *page;	/* last of the two mapped pages, zero */
	char *end;	/* end of both; the page behind is not mapped */
};

/* Puts everything back to the state in which a failed call has to leave it. */
static void undo(int fd)
{
	struct timewheel_op move = {
		.code = TIMEWHEEL_OP_MOVE, .flags = TIMEWHEEL_OPF_ABSOLUTE,
		.id = WITNESS, .time = WITNESS_DUE * TW_SEC,
	};

	tw_control(fd, 0, TIMEWHEEL_CONTROL_PAUSED | TIMEWHEEL_CONTROL_DRAINING);
	tw_cancel(fd, 0, FRESH);
	tw_advance(fd, 1);
	tw_op(fd, &move);
}

/* Creates the named wheel that DESTROY ends. */
static int create(int fd)
{
	struct timewheel_create create;

	tw_fill_create(&create);
	create.flags = TIMEWHEEL_CREATE_EXCLUSIVE;
	return tw_ret(ioctl(fd, TIMEWHEEL_IOC_CREATE, &create));
}

static int destroy(int fd)
{
	struct timewheel_destroy destroy;

	tw_fill_destroy(&destroy);
	return tw_ret(ioctl(fd, TIMEWHEEL_IOC_DESTROY, &destroy));
}

FIXTURE_SETUP(abi)
{
	self->page_size = sysconf(_SC_PAGESIZE);
	self->page = mmap(NULL, 3 * self->page_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	self->page += self->page_size;
	self->end = self->page + self->page_size;
	ASSERT_EQ(0, munmap(self->end, self->page_size));

	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	destroy(self->fd);
	ASSERT_EQ(0, tw_setup_manual(self->fd, 60, 10, 0));
	ASSERT_EQ(0, tw_register(self->fd, WITNESS, WITNESS_DUE * TW_SEC, 7,
				 NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
}

FIXTURE_TEARDOWN(abi)
{
	destroy(self->fd);
	close(self->fd);
}

/*
 * For all commands but SETUP: the wheel must stay as it was when @expected is an error.
 */
static void expect_on_wheel(struct __test_metadata *_metadata, int fd,
			    const struct tw_command *c, void *arg, int expected,
			    const char *what)
{
	struct tw_state before;

	ASSERT_EQ(0, tw_get_state(fd, 0, WITNESS, &before));
	EXPECT_EQ(expected, tw_ret(ioctl(fd, c->number, arg))) {
		TH_LOG("%s: %s", c->name, what);
	}
	if (expected < 0)
		tw_expect_state(fd, 0, WITNESS, &before, "%s: %s", c->name, what);
	undo(fd);
}

/* For SETUP: a file whose set-up failed is as good as new. */
static void expect_on_new_file(struct __test_metadata *_metadata,
			       const struct tw_command *c, void *arg, int expected,
			       const char *what)
{
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_info info;
	struct timewheel_setup good = {};

	EXPECT_EQ(expected, tw_ret(ioctl(fd, c->number, arg))) {
		TH_LOG("%s: %s", c->name, what);
	}
	if (expected < 0) {
		EXPECT_EQ(-EBADFD, tw_ret(tw_info(fd, &info))) {
			TH_LOG("%s: %s: set up all the same", c->name, what);
		}
		tw_fill_setup(&good);
		EXPECT_EQ(0, ioctl(fd, c->number, &good));
	}
	close(fd);
}

/* For CREATE and DESTROY: a call that fails makes and ends no wheel. */
static void expect_on_named(struct __test_metadata *_metadata, int fd,
			    const struct tw_command *c, void *arg, int expected,
			    const char *what)
{
	bool creates = c->number == TIMEWHEEL_IOC_CREATE;

	if (!creates)
		ASSERT_EQ(0, create(fd));
	expect_on_wheel(_metadata, fd, c, arg, expected, what);
	EXPECT_EQ(creates == !expected ? 0 : -ENOENT, destroy(fd)) {
		TH_LOG("%s: %s: not what was returned", c->name, what);
	}
}

static void expect_call(struct __test_metadata *_metadata, int fd,
			const struct tw_command *c, void *arg, int expected,
			const char *what)
{
	switch (c->number) {
	case TIMEWHEEL_IOC_SETUP:
		expect_on_new_file(_metadata, c, arg, expected, what);
		break;
	case TIMEWHEEL_IOC_CREATE:
	case TIMEWHEEL_IOC_DESTROY:
		expect_on_named(_metadata, fd, c, arg, expected, what);
		break;
	default:
		expect_on_wheel(_metadata, fd, c, arg, expected, what);
	}
}

/* Returns a valid argument that ends @beyond bytes behind the mapped pages. */
static void *fill_at_end(const FIXTURE_DATA(abi) *self,
			 const struct tw_command *c, size_t beyond)
{
	char *arg = self->end - c->size;
	char valid[512] = {};

	c->fill(valid);
	memcpy(arg + beyond, valid, c->size - beyond);
	return arg + beyond;
}

static void *fill(const FIXTURE_DATA(abi) *self, const struct tw_command *c)
{
	memset(self->page, 0, self->page_size);
	c->fill(self->page);
	return self->page;
}

/* A program that was built years ago knows a command by its number alone. */
TEST(numbers_are_frozen)
{
	for (size_t i = 0; i < ARRAY_SIZE(tw_commands); i++) {
		EXPECT_EQ(_IO(0xbe, i), tw_commands[i].number) {
			TH_LOG("%s", tw_commands[i].name);
		}
	}
}

/* The other tests would find errors for the wrong reason if valid calls failed. */
TEST_F(abi, valid_calls_succeed)
{
	const struct tw_command *c;

	for_each_command(c) {
		expect_call(_metadata, self->fd, c, fill(self, c), 0, "valid");
		expect_call(_metadata, self->fd, c, fill_at_end(self, c, 0), 0,
			    "at the end of the page");
		/* A structure need not be aligned. */
		memset(self->page, 0, self->page_size);
		memmove(self->page + 1, fill_at_end(self, c, 0), c->size);
		expect_call(_metadata, self->fd, c, self->page + 1, 0,
			    "not aligned");
		*(__u32 *)fill(self, c) = c->first;
		expect_call(_metadata, self->fd, c, self->page, 0,
			    "as in the first release");
	}
}

/*
 * A size may not be smaller than in the first release. Newer programs, whose sizes are
 * larger, work as long as they use nothing that the module does not know.
 */
TEST_F(abi, sizes_with_zero_tail)
{
	const struct tw_command *c;

	for_each_command(c) {
		const __u32 sizes[] = {
			0, 1, 4, 8, c->first / 2, c->first - 8, c->first - 1,
			c->size + 1, c->size + 8, c->size + 64, self->page_size,
		};

		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			__u32 *arg = fill(self, c);

			*arg = sizes[i];
			expect_call(_metadata, self->fd, c, arg,
				    sizes[i] < c->first ? -EINVAL : 0,
				    "another size");
		}
	}
}

/* Whether the module is as old as this program, and so knows nothing behind CAPS. */
static bool knows_no_more(int fd)
{
	char arg[sizeof(struct timewheel_caps) + 8] = {};

	tw_fill_caps(arg);
	*(__u32 *)arg = sizeof(arg);
	arg[sizeof(struct timewheel_caps)] = 1;
	return tw_ret(ioctl(fd, TIMEWHEEL_IOC_CAPS, arg)) == -E2BIG;
}

/* A newer module may know the beginning of a tail, but not all of so long a tail. */
TEST_F(abi, larger_size_with_nonzero_tail_is_e2big)
{
	const bool same_age = knows_no_more(self->fd);
	const struct tw_command *c;

	for_each_command(c) {
		const __u32 tails[] = {
			1, 8, 9, 64, self->page_size - c->size
		};

		for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
			__u32 *arg = fill(self, c);
			__u32 size = c->size + tails[i];

			if (tails[i] < 64 && !same_age)
				continue;
			*arg = size;
			((char *)arg)[size - 1] = 1;
			expect_call(_metadata, self->fd, c, arg, -E2BIG,
				    "last byte of the tail set");
			arg = fill(self, c);
			*arg = size;
			((char *)arg)[same_age ? c->size : size - 8] = 0x80;
			expect_call(_metadata, self->fd, c, arg, -E2BIG,
				    "first byte of what is not known set");
		}
	}
}

/* A structure larger than a page is too big, even if all of its tail is zero. */
TEST_F(abi, larger_than_a_page_is_e2big)
{
	const struct tw_command *c;
	char *pages = mmap(NULL, 2 * self->page_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, pages);
	for_each_command(c) {
		memset(pages, 0, 2 * self->page_size);
		memcpy(pages, fill(self, c), c->size);
		*(__u32 *)pages = self->page_size + 8;
		expect_call(_metadata, self->fd, c, pages, -E2BIG, "two pages");
	}
	munmap(pages, 2 * self->page_size);
}

/* The module refuses a size that no memory of this program holds. */
TEST_F(abi, absurd_size_is_refused)
{
	const __u32 sizes[] = { 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff };
	const struct tw_command *c;

	for_each_command(c) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct timewheel_info info;
			struct tw_state before;
			__u32 *arg = fill(self, c);
			int fd = TW_OPEN(O_RDWR);
			int ret;

			*arg = sizes[i];
			ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS,
						  &before));
			ret = tw_ret(ioctl(c->number == TIMEWHEEL_IOC_SETUP ? fd :
					   self->fd, c->number, arg));
			EXPECT_TRUE(ret == -EFAULT || ret == -E2BIG) {
				TH_LOG("%s: size %#x: %d", c->name, sizes[i],
				       ret);
			}
			tw_expect_state(self->fd, 0, WITNESS, &before,
					"%s: size %#x", c->name, sizes[i]);
			EXPECT_EQ(-EBADFD, tw_ret(tw_info(fd, &info)));
			close(fd);
		}
	}
}

TEST_F(abi, each_undefined_flag_is_einval)
{
	const struct tw_command *c;

	for_each_command(c) {
		for (int bit = 0; bit < 32; bit++) {
			__u32 *arg = fill(self, c);

			if (c->flags & 1U << bit)
				continue;
			arg[1] = 1U << bit;
			expect_call(_metadata, self->fd, c, arg, -EINVAL,
				    "undefined flag");
			/* An undefined flag may not hide behind defined flags either. */
			if (c->number == TIMEWHEEL_IOC_SETUP) {
				arg[1] |= c->flags;
				expect_call(_metadata, self->fd, c, arg,
					    -EINVAL, "undefined flag too");
			}
		}
	}
}

TEST_F(abi, each_reserved_byte_is_einval)
{
	const struct tw_command *c;

	for_each_command(c) {
		for (size_t i = 0; c->reserved != TW_NONE && i < 4; i++) {
			char *arg = fill(self, c);

			arg[c->reserved + i] = 1;
			expect_call(_metadata, self->fd, c, arg, -EINVAL,
				    "reserved field");
			arg = fill(self, c);
			arg[c->reserved + i] = 0x80;
			expect_call(_metadata, self->fd, c, arg, -EINVAL,
				    "reserved field");
		}
	}
}

TEST_F(abi, bad_address_is_efault)
{
	char *no_access = self->page - self->page_size;
	void *const addresses[] = {
		NULL, (void *)1, (void *)8, no_access,
		no_access + self->page_size - 4, self->end,
#ifdef __x86_64__
		(void *)0x7ffffffff000,		/* the last page of user space */
		(void *)0x00007ffffffffff8,
		(void *)0x0000800000000000,	/* not canonical */
		(void *)0xffff888000000000,	/* in the kernel */
		(void *)0xffffffff81000000,
#endif
		(void *)-4096L, (void *)-8L, (void *)-1L,
	};
	const struct tw_command *c;

	NEEDS_KERNEL("EFAULT");
	ASSERT_EQ(0, mprotect(no_access, self->page_size, PROT_NONE));
	for_each_command(c) {
		for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
			expect_call(_metadata, self->fd, c, addresses[i],
				    -EFAULT, "bad address");
	}
}

TEST_F(abi, structure_over_the_last_page_is_efault)
{
	const struct tw_command *c;

	NEEDS_KERNEL("EFAULT");
	for_each_command(c) {
		const size_t beyond[] = {
			1, 4, 8, c->size / 2, c->size - 8, c->size - 4,
			c->size - 1,
		};
		__u32 *arg;

		for (size_t i = 0; i < ARRAY_SIZE(beyond); i++)
			expect_call(_metadata, self->fd, c,
				    fill_at_end(self, c, beyond[i]), -EFAULT,
				    "over the last page");
		/*
		 * The whole structure is mapped, but not the tail that its size claims.
		 */
		arg = fill_at_end(self, c, 0);
		*arg = c->size + 64;
		expect_call(_metadata, self->fd, c, arg, -EFAULT,
			    "tail over the last page");
	}
}

TEST_F(abi, what_is_only_read_may_be_read_only)
{
	const struct tw_command *c;

	for_each_command(c) {
		void *arg = fill(self, c);

		if (c->outputs[0][1])
			continue;
		ASSERT_EQ(0, mprotect(self->page, self->page_size, PROT_READ));
		expect_call(_metadata, self->fd, c, arg, 0, "read-only");
		ASSERT_EQ(0, mprotect(self->page, self->page_size,
				      PROT_READ | PROT_WRITE));
	}
}

/*
 * Commands that change a wheel are left out: they are done although they cannot tell.
 * The tests below are for them.
 */
TEST_F(abi, read_only_output_is_efault)
{
	const struct tw_command *c;

	NEEDS_KERNEL("EFAULT");
	for_each_command(c) {
		void *arg = fill(self, c);

		if (!c->outputs[0][1] || c->needs & TW_WRITE)
			continue;
		ASSERT_EQ(0, mprotect(self->page, self->page_size, PROT_READ));
		expect_call(_metadata, self->fd, c, arg, -EFAULT, "read-only");
		ASSERT_EQ(0, mprotect(self->page, self->page_size,
				      PROT_READ | PROT_WRITE));
	}
}

/*
 * A command has been carried out, as documented, or it has not, although it cannot tell:
 * the wheel's counters and tokens agree, and no token is left without a name.
 */
TEST_F(abi, what_is_done_but_cannot_be_told)
{
	const struct tw_command *c;

	NEEDS_KERNEL("EFAULT");
	for_each_command(c) {
		struct timewheel_info before, info;
		struct timewheel_token found;
		void *arg = fill(self, c);
		__u64 registered;

		if (!c->outputs[0][1] || !(c->needs & TW_WRITE))
			continue;
		ASSERT_EQ(0, tw_info(self->fd, &before));
		ASSERT_EQ(0, mprotect(self->page, self->page_size, PROT_READ));
		EXPECT_EQ(-EFAULT, tw_ret(ioctl(self->fd, c->number, arg))) {
			TH_LOG("%s", c->name);
		}
		ASSERT_EQ(0, mprotect(self->page, self->page_size,
				      PROT_READ | PROT_WRITE));
		ASSERT_EQ(0, tw_info(self->fd, &info));
		registered = info.registered - before.registered;
		EXPECT_GE(1ULL, registered);
		EXPECT_EQ(before.pending + registered, info.pending);
		EXPECT_EQ(registered ? 0 : -ENOENT,
			  tw_ret(tw_get(self->fd, 0, FRESH, &found)));
		if (c->number == TIMEWHEEL_IOC_OP) {
			EXPECT_EQ(1ULL, registered);
			EXPECT_EQ(6 * TW_SEC, found.deadline);
		}
		ASSERT_EQ(0, tw_get(self->fd, 0, WITNESS, &found));
		EXPECT_EQ((WITNESS_DUE + (c->number == TIMEWHEEL_IOC_TOUCH_MANY)) *
			  TW_SEC, found.deadline);
		undo(self->fd);
	}
}

/* The structure that CREATE points to is checked like any other structure. */
TEST_F(abi, setup_of_a_creation)
{
	const struct tw_command *c = &tw_commands[_IOC_NR(TIMEWHEEL_IOC_CREATE)];
	const size_t size = sizeof(struct timewheel_setup);
	const bool same_age = knows_no_more(self->fd);
	struct timewheel_create arg;
	struct timewheel_setup *setup = (void *)self->page;
	const struct {
		const char *what;
		__u32 size, flags;
		size_t nonzero;	/* offset of a byte that is set */
		int expected;
	} cases[] = {
		{ "no size", 0, 0, TW_NONE, -EINVAL },
		{ "small size", size - 1, 0, TW_NONE, -EINVAL },
		{ "small size", size - 8, 0, TW_NONE, -EINVAL },
		{ "undefined flag", size, 16, TW_NONE, -EINVAL },
		{ "undefined flag", size, 1U << 31, TW_NONE, -EINVAL },
		{ "zero tail", size + 1, 0, TW_NONE, 0 },
		{ "zero tail", size + 8, 0, TW_NONE, 0 },
		{ "zero tail", self->page_size, 0, TW_NONE, 0 },
		{ "tail set", size + 1, 0, size, -E2BIG },
		{ "tail set", size + 8, 0, size + 7, -E2BIG },
		{ "tail set", size + 64, 0, size + 63, -E2BIG },
		{ "tail set", self->page_size, 0, self->page_size - 1, -E2BIG },
		{ "two pages", 2 * self->page_size, 0, TW_NONE, -E2BIG },
	};

	NEEDS_KERNEL("EFAULT");
	ASSERT_EQ(TIMEWHEEL_IOC_CREATE, c->number);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* A newer module may know a tail as short as these. */
		if (cases[i].nonzero < size + 63 && !same_age)
			continue;
		memset(self->page, 0, self->page_size);
		tw_fill_setup(setup);
		setup->size = cases[i].size;
		setup->flags = cases[i].flags;
		if (cases[i].nonzero != TW_NONE)
			self->page[cases[i].nonzero] = 1;
		tw_fill_create(&arg);
		arg.setup = (__u64)(uintptr_t)setup;
		expect_call(_metadata, self->fd, c, &arg, cases[i].expected,
			    cases[i].what);
	}
	for (size_t beyond = 0; beyond <= size; beyond += 4) {
		setup = (void *)(self->end - size + beyond);
		tw_fill_setup(&tw_named_setup);
		memcpy(setup, &tw_named_setup, size - beyond);
		arg.setup = (__u64)(uintptr_t)setup;
		expect_call(_metadata, self->fd, c, &arg,
			    beyond ? -EFAULT : 0, "over the last page");
	}
	setup = (void *)(self->end - size);
	memcpy(setup, &tw_named_setup, size);
	setup->size = size + 8;
	arg.setup = (__u64)(uintptr_t)setup;
	expect_call(_metadata, self->fd, c, &arg, -EFAULT,
		    "tail over the last page");
	arg.setup = 0;
	expect_call(_metadata, self->fd, c, &arg, -EFAULT, "no address");
	arg.setup = 0xffff888000000000;
	expect_call(_metadata, self->fd, c, &arg, -EFAULT, "the kernel's");
}

/* Bytes of @outputs may differ; all other bytes must not. */
static void expect_only_outputs_changed(struct __test_metadata *_metadata,
					const char *what, const void *before,
					const void *after, size_t size,
					const size_t (*outputs)[2])
{
	const unsigned char *old = before, *new = after;

	for (size_t i = 0; i < size; i++) {
		bool output = false;

		for (const size_t (*o)[2] = outputs; (*o)[1]; o++)
			output |= i >= (*o)[0] && i < (*o)[0] + (*o)[1];
		EXPECT_TRUE(output || old[i] == new[i]) {
			TH_LOG("%s: byte %zu: %#x became %#x", what, i, old[i],
			       new[i]);
		}
	}
}

/* Fields that came after the first release are 0 unless their test uses them. */
static void poison_op(struct timewheel_op *op)
{
	memset(op, 0, sizeof(*op));
	memset(op, POISON, tw_commands[_IOC_NR(TIMEWHEEL_IOC_OP)].first);
}

/*
 * An operation leaves all fields but its outputs as they were, and writes each output
 * in whole: no byte of the kernel's memory gets out between the fields. An operation
 * that fails writes nothing.
 */
TEST_F(abi, ops_write_their_outputs_only)
{
	static const size_t registers[][2] = {
		TW_OUT(timewheel_op, result), TW_OUT(timewheel_op, handle),
		TW_OUT(timewheel_op, deadline), {}
	};
	static const size_t changes[][2] = {
		TW_OUT(timewheel_op, result), TW_OUT(timewheel_op, deadline), {}
	};
	enum { NEW, PENDING, HELD };	/* the states of the token before */
	static const struct {
		const char *name;
		__u32 code, flags, state;
		__u64 period;
	} cases[] = {
		{ "REGISTER", TIMEWHEEL_OP_REGISTER, 0, NEW },
		{ "REGISTER at", TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OPF_ABSOLUTE, NEW },
		{ "REGISTER with a period", TIMEWHEEL_OP_REGISTER, 0, NEW, 5 * TW_SEC },
		{ "touch or REGISTER", TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, NEW },
		{ "TOUCH or register", TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, PENDING },
		{ "TOUCH", TIMEWHEEL_OP_TOUCH, 0, PENDING },
		{ "TOUCH by handle", TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OPF_BY_HANDLE, PENDING },
		{ "MOVE", TIMEWHEEL_OP_MOVE, 0, PENDING },
		{ "MOVE to", TIMEWHEEL_OP_MOVE, TIMEWHEEL_OPF_ABSOLUTE, PENDING },
		{ "MOVE by handle", TIMEWHEEL_OP_MOVE, TIMEWHEEL_OPF_BY_HANDLE, PENDING },
		{ "CANCEL", TIMEWHEEL_OP_CANCEL, 0, PENDING },
		{ "CANCEL by handle", TIMEWHEEL_OP_CANCEL, TIMEWHEEL_OPF_BY_HANDLE, PENDING },
		{ "ACK", TIMEWHEEL_OP_ACK, 0, HELD },
		{ "NACK", TIMEWHEEL_OP_NACK, 0, HELD },
		{ "EXTEND", TIMEWHEEL_OP_EXTEND, 0, HELD },
		{ "DELETE", TIMEWHEEL_OP_DELETE, 0, PENDING },
		{ "DELETE held", TIMEWHEEL_OP_DELETE, 0, HELD },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = TW_OPEN_WHEEL(.lease = 30 * TW_SEC,
				       .flags = TIMEWHEEL_SETUP_PERIODS);
		const __u32 code = cases[i].code;
		const bool either = code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;
		struct timewheel_event event;
		struct timewheel_op before, op;
		__u64 handle = 0;

		ASSERT_EQ(0, tw_advance(fd, 1));
		if (cases[i].state != NEW)
			ASSERT_EQ(0, tw_register(fd, FRESH, 5 * TW_SEC,
						 0x5555555555555555, &handle));
		if (cases[i].state == HELD) {
			ASSERT_EQ(0, tw_advance(fd, 6));
			ASSERT_EQ(1, tw_read(fd, &event, 1));
		}
		poison_op(&op);
		op.size = sizeof(op);
		op.flags = cases[i].flags;
		op.code = code;
		if (op.flags & TIMEWHEEL_OPF_BY_HANDLE)
			op.handle = handle;
		else
			op.id = FRESH;
		op.time = code == TIMEWHEEL_OP_ACK ? 0 : 5 * TW_SEC;
		/*
		 * Only REGISTER and MOVE read a timeout, and only REGISTER reads a
		 * period.
		 */
		if (code == TIMEWHEEL_OP_REGISTER || code == TIMEWHEEL_OP_MOVE)
			op.timeout = 0;
		if (code == TIMEWHEEL_OP_REGISTER)
			op.period = cases[i].period;
		op.delivery = code >= TIMEWHEEL_OP_ACK && code <= TIMEWHEEL_OP_EXTEND;
		op.reserved = 0;
		before = op;
		EXPECT_EQ(0, tw_ret(ioctl(fd, TIMEWHEEL_IOC_OP, &op))) {
			TH_LOG("%s", cases[i].name);
		}
		expect_only_outputs_changed(_metadata, cases[i].name, &before, &op,
					    sizeof(op), cases[i].state == NEW ?
					    registers : changes);
		EXPECT_EQ(cases[i].state == NEW && either ?
			  TIMEWHEEL_RES_REGISTERED : 0, op.result);
		if (cases[i].state == NEW)
			EXPECT_NE(0ULL, op.handle);
		if (cases[i].state != HELD)
			EXPECT_EQ((op.flags & TIMEWHEEL_OPF_ABSOLUTE ? 5 : 6) * TW_SEC,
				  op.deadline);

		/* The id exists now, the token is not there, or its delivery is not out. */
		if (either)
			before.flags = TIMEWHEEL_OPF_BY_HANDLE;
		if (code != TIMEWHEEL_OP_REGISTER) {
			before.id = WITNESS;
			before.handle = WITNESS;
		}
		op = before;
		EXPECT_EQ(-1, ioctl(fd, TIMEWHEEL_IOC_OP, &op)) {
			TH_LOG("%s", cases[i].name);
		}
		EXPECT_EQ(0, memcmp(&before, &op, sizeof(op))) {
			TH_LOG("%s failed and wrote", cases[i].name);
		}
		close(fd);
	}
}

/*
 * Bytes that are still poison were not written by the call. LIST also reads its cursor.
 */
TEST_F(abi, commands_write_their_outputs_only)
{
	const struct tw_command *c;
	char before[512];

	for_each_command(c) {
		char *arg = fill(self, c);

		for (int i = 0; c->outputs[i][1]; i++)
			memset(arg + c->outputs[i][0], POISON, c->outputs[i][1]);
		if (c->number == TIMEWHEEL_IOC_LIST)
			((struct timewheel_list *)arg)->cursor = 0;
		memcpy(before, arg, c->size);
		expect_call(_metadata, self->fd, c, arg, 0, "outputs");
		expect_only_outputs_changed(_metadata, c->name, before, arg,
					    c->size, c->outputs);
		for (int i = 0; c->outputs[i][1]; i++) {
			size_t at = c->outputs[i][0];

			EXPECT_NE(0, memcmp(before + at, arg + at,
					    c->outputs[i][1])) {
				TH_LOG("%s: not written: byte %zu", c->name, at);
			}
		}
	}
}

/* Each field of CAPS and INFO has its right value. */
TEST_F(abi, what_caps_and_info_tell)
{
	const bool same_age = knows_no_more(self->fd);
	struct timewheel_caps caps;
	struct timewheel_info info, expected;

	memset(&caps, POISON, sizeof(caps));
	caps.size = sizeof(caps);
	caps.flags = 0;
	EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_CAPS, &caps));
	EXPECT_EQ(0xfU, caps.clocks);
	EXPECT_EQ(0xfU, caps.setup_flags);
	EXPECT_EQ(0x1ffU, caps.codes);
	EXPECT_EQ(65536U, caps.max_slots);
	EXPECT_EQ(86400 * TW_SEC, caps.max_tick);
	EXPECT_EQ((__u32)TIMEWHEEL_MAX_BATCH, caps.max_batch);
	EXPECT_EQ(1ULL << 30, caps.max_word_ticks);
	if (same_age) {
		EXPECT_EQ(sizeof(struct timewheel_op), caps.op_size);
		EXPECT_EQ(sizeof(struct timewheel_token), caps.token_size);
	}
	EXPECT_EQ(sizeof(struct timewheel_event), caps.event_size);
	EXPECT_NE(0ULL, caps.min_tick);
	EXPECT_NE(0ULL, caps.max_tokens);
	EXPECT_GT(1ULL << 32, caps.max_tokens);

	memset(&info, POISON, sizeof(info));
	info.size = sizeof(info);
	info.flags = 0;
	EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_INFO, &info));
	EXPECT_GE(WITNESS_DUE * TW_SEC, info.next);
	expected = (struct timewheel_info) {
		.size = sizeof(info), .clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60,
		.tick = TW_SEC, .max_tokens = 10, .now = TW_SEC, .hand = 1,
		.pending = 1, .registered = 1, .number = info.number,
		.next = info.next, .bytes = info.bytes, .refiled = info.refiled,
		.quiet = info.quiet,
	};
	EXPECT_EQ(0, memcmp(&expected, &info, sizeof(info)));
	/* A field that the call did not write would still be poison. */
	EXPECT_NE(0xccccccccU, info.number);
	EXPECT_NE(0U, info.number);
	EXPECT_GT(1ULL << 40, info.bytes);
	EXPECT_GT(1ULL << 40, info.refiled);
	EXPECT_GT(1ULL << 40, info.quiet);
}

/* LIST and GET write whole tokens, and nothing behind the last token. */
TEST_F(abi, list_and_get_write_whole_tokens)
{
	struct timewheel_token expected[2], found;
	struct timewheel_list list;
	struct timewheel_get get;
	__u64 absent = FRESH;

	ASSERT_EQ(0, tw_get(self->fd, 0, WITNESS, &found));
	EXPECT_NE(0ULL, found.handle);
	memset(expected, POISON, sizeof(expected));
	expected[0] = (struct timewheel_token) {
		.id = WITNESS, .handle = found.handle, .cookie = 7,
		.deadline = WITNESS_DUE * TW_SEC,
		.left = (WITNESS_DUE - 1) * TW_SEC,
		.timeout = WITNESS_DUE * TW_SEC,
		.cycle = (WITNESS_DUE - 1 - 1) / 60, .slot = WITNESS_DUE % 60,
		.state = TIMEWHEEL_STATE_PENDING,
	};

	memset(tw_tokens, POISON, sizeof(tw_tokens));
	tw_fill_list(&list);
	EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &list));
	EXPECT_EQ(1U, list.listed);
	EXPECT_EQ(0, memcmp(expected, tw_tokens, sizeof(expected)));

	memset(tw_tokens, POISON, sizeof(tw_tokens));
	tw_fill_get(&get);
	EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_GET, &get));
	EXPECT_EQ(1U, get.done);
	EXPECT_EQ(0, memcmp(expected, tw_tokens, sizeof(expected)));

	/* A record which tells that there is no token is written whole, too. */
	memset(tw_tokens, POISON, sizeof(tw_tokens));
	memset(&expected[0], 0, sizeof(expected[0]));
	tw_fill_get(&get);
	get.keys = (__u64)(uintptr_t)&absent;
	EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_GET, &get));
	EXPECT_EQ(1U, get.done);
	EXPECT_EQ(0, memcmp(expected, tw_tokens, sizeof(expected)));
}

/* read(2) writes whole events and nothing behind them. */
TEST_F(abi, events_are_written_whole)
{
	char buffer[4 * sizeof(struct timewheel_event)];
	struct timewheel_event *event = (void *)buffer;

	for (__u64 id = 10; id < 13; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, id * TW_SEC, ~id, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 50));

	memset(buffer, POISON, sizeof(buffer));
	/* The buffer has room for two events and all but one byte of the third. */
	ASSERT_EQ((ssize_t)(2 * sizeof(*event)),
		  read(self->fd, buffer, 3 * sizeof(*event) - 1));
	for (size_t i = 2 * sizeof(*event); i < sizeof(buffer); i++)
		ASSERT_EQ(POISON, (unsigned char)buffer[i]);
	ASSERT_EQ((ssize_t)sizeof(*event),
		  read(self->fd, event + 2, 2 * sizeof(*event)));
	for (size_t i = 3 * sizeof(*event); i < sizeof(buffer); i++)
		ASSERT_EQ(POISON, (unsigned char)buffer[i]);
	for (__u64 i = 0; i < 3; i++) {
		EXPECT_EQ(10 + i, event[i].id);
		EXPECT_EQ(~(10 + i), event[i].cookie);
		EXPECT_EQ((11 + i) * TW_SEC, event[i].deadline);
		EXPECT_EQ(50 * TW_SEC, event[i].taken);
		EXPECT_EQ(0U, event[i].delivery);
		EXPECT_EQ(0U, event[i].missed);
	}
}

/* The argument is valid for @c, so that only the number is wrong. */
static void expect_enotty(struct __test_metadata *_metadata, int fd,
			  const struct tw_command *c, unsigned int number)
{
	char valid[512] = {};

	c->fill(valid);
	EXPECT_EQ(-ENOTTY, tw_ret(ioctl(fd, number, valid))) {
		TH_LOG("%s: %#x", c->name, number);
	}
	EXPECT_EQ(-ENOTTY, tw_ret(ioctl(fd, number, NULL)));
}

static bool is_command(unsigned int number)
{
	const struct tw_command *c;

	for_each_command(c) {
		if (c->number == number)
			return true;
	}
	return false;
}

TEST_F(abi, unknown_commands_are_enotty)
{
	const struct tw_command *c;
	struct tw_state before;

	ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS, &before));
	for (unsigned int nr = 0; nr < 256; nr++) {
		if (!is_command(_IO(TIMEWHEEL_IOC_TYPE, nr)))
			expect_enotty(_metadata, self->fd, tw_commands,
				      _IO(TIMEWHEEL_IOC_TYPE, nr));
	}
	for_each_command(c) {
		const size_t sizes[] = { 0, 1, 4, 8, c->size, 0x3fff };
		unsigned int nr = _IOC_NR(c->number);

		for (unsigned int dir = 0; dir < 4; dir++) {
			for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
				unsigned int number =
					_IOC(dir, TIMEWHEEL_IOC_TYPE, nr, sizes[i]);

				if (number != c->number)
					expect_enotty(_metadata, self->fd, c,
						      number);
			}
		}
		for (unsigned int type = 1; type < 256; type++) {
			/* Some types have commands that every file answers. */
			if (type != TIMEWHEEL_IOC_TYPE &&
			    !strchr("TfX\x12\x94", type))
				expect_enotty(_metadata, self->fd, c,
					      _IO(type, nr));
		}
	}
	tw_expect_state(self->fd, 0, WITNESS, &before, "unknown commands");
}

#if defined(__x86_64__) && !defined(__ILP32__)
/*
 * Programs with 32-bit pointers in 64-bit mode use another number for ioctl(2). Most
 * kernels do not know this number; kernels that know it answer as for all other
 * programs.
 */
#define X32_IOCTL	(0x40000000L | 514)

TEST_F(abi, calls_by_x32)
{
	const int unknown = tw_ret(syscall(X32_IOCTL, -1, 0, NULL));
	const bool known = unknown == -EBADF;
	char *low = mmap(NULL, self->page_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	const struct tw_command *c;

	ASSERT_NE(MAP_FAILED, low);
	for_each_command(c) {
		int fd = c->number == TIMEWHEEL_IOC_SETUP ? TW_OPEN(O_RDWR) :
			 self->fd;

		memset(low, 0, self->page_size);
		c->fill(low);
		if (c->number == TIMEWHEEL_IOC_DESTROY)
			create(fd);
		EXPECT_EQ(known ? 0 : unknown,
			  tw_ret(syscall(X32_IOCTL, fd, c->number, low))) {
			TH_LOG("%s", c->name);
		}
		EXPECT_EQ(known ? -EFAULT : unknown,
			  tw_ret(syscall(X32_IOCTL, fd, c->number,
					 low + self->page_size - 1)));
		if (c->number == TIMEWHEEL_IOC_CREATE)
			destroy(fd);
		undo(self->fd);
		if (fd != self->fd)
			close(fd);
	}
	EXPECT_EQ(known ? -ENOTTY : unknown,
		  tw_ret(syscall(X32_IOCTL, self->fd, 0xbeff, NULL)));
	munmap(low, self->page_size);
}
#endif

/* No call, however bad, makes the module write into the kernel's log. */
TEST_F(abi, bad_calls_say_nothing)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const struct tw_command *c;
	char record[8192];
	ssize_t size;
	int said = 0;

	NEEDS_KERNEL("EFAULT");
	if (log < 0)
		SKIP(return, "cannot read the kernel's log");
	ASSERT_LE(0, lseek(log, 0, SEEK_END));
	for (int round = 0; round < 50; round++) {
		for_each_command(c) {
			__u32 *arg = fill(self, c);

			arg[1] = ~0U;
			ioctl(self->fd, c->number, arg);
			arg[1] = 0;
			arg[0] = ~0U;
			ioctl(self->fd, c->number, arg);
			ioctl(self->fd, c->number, self->end);
			ioctl(self->fd, c->number | 0x80, arg);
		}
		read(self->fd, self->end, 4096);
		mmap(NULL, self->page_size, PROT_EXEC, MAP_PRIVATE, self->fd,
		     round * self->page_size);
	}
	while ((size = read(log, record, sizeof(record) - 1)) > 0) {
		record[size] = 0;
		EXPECT_NULL(strstr(record, "timewheel")) {
			TH_LOG("%s", record);
		}
		said++;
	}
	EXPECT_EQ(EAGAIN, errno);
	/*
	 * Other parts of the kernel may have written a few messages. A limit of rates
	 * would let 10 messages of the module pass.
	 */
	EXPECT_GT(10, said);
	close(log);
}

TEST_F(abi, o_path_is_ebadf)
{
	int fd = open(TW_DEVICE, O_PATH | O_CLOEXEC);
	struct timewheel_event event;
	const struct tw_command *c;

	NEEDS_KERNEL("O_PATH opens a device's node");
	ASSERT_GE(fd, 0);
	for_each_command(c)
		EXPECT_EQ(-EBADF, tw_ret(ioctl(fd, c->number, fill(self, c))));
	EXPECT_EQ(-EBADF, tw_ret(read(fd, &event, sizeof(event))));
	close(fd);
}

/*
 * Calls that change a wheel need a file that is open for writing; calls that read or
 * list its tokens need a file that is open for reading. All but a few need a file that
 * is set up: @fd is not, and no call has set it up.
 */
static void expect_no_wheel(struct __test_metadata *_metadata, int fd, bool writable)
{
	struct timewheel_event event;
	const struct tw_command *c;
	__u64 before[64], arg[64];

	for_each_command(c) {
		int ret;

		if (writable && !(c->needs & TW_WHEEL))
			continue;
		memset(arg, 0, sizeof(arg));
		c->fill(arg);
		memcpy(before, arg, sizeof(arg));
		ret = tw_ret(ioctl(fd, c->number, arg));
		/* Either error may come first. */
		EXPECT_TRUE((c->needs & TW_WHEEL && ret == -EBADFD) ||
			    (!writable && c->needs & TW_WRITE && ret == -EBADF) ||
			    (!(c->needs & (TW_WHEEL | TW_WRITE)) && !ret)) {
			TH_LOG("%s: %d", c->name, ret);
		}
		EXPECT_TRUE(!ret || !memcmp(before, arg, sizeof(arg)));
	}
	EXPECT_EQ(-EBADFD, tw_ret(tw_read(fd, &event, 1)));
	/* EBADFD comes even if something is wrong with the buffer. */
	EXPECT_EQ(-EBADFD, tw_ret(read(fd, &event, sizeof(event) - 1)));
	EXPECT_FALSE(tw_readable(fd));
}

TEST_F(abi, read_only_file)
{
	int fd = TW_OPEN(O_RDONLY | O_NONBLOCK);
	struct timewheel_event event = {};

	expect_no_wheel(_metadata, fd, false);
	EXPECT_EQ(-EBADF, tw_ret(write(fd, &event, sizeof(event))));
	close(fd);
}

TEST_F(abi, not_set_up)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_op op = { .time = TW_SEC, .period = TW_SEC };
	struct timewheel_info info;

	expect_no_wheel(_metadata, fd, true);
	for (op.code = 0; op.code <= TIMEWHEEL_OP_DELETE; op.code++)
		EXPECT_EQ(-EBADFD, tw_ret(tw_op(fd, &op)));
	/* Calls without an element are refused, too. */
	EXPECT_EQ(-EBADFD, tw_ret(tw_batch(fd, NULL, 0, NULL)));
	EXPECT_EQ(-EBADFD, tw_ret(tw_touch_keys(fd, 0, NULL, 0, NULL)));
	EXPECT_EQ(-EBADFD, tw_ret(tw_get_keys(fd, 0, NULL, 0, NULL, NULL)));
	EXPECT_EQ(0, tw_setup_manual(fd, 60, 10, 0));
	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.registered);
	close(fd);
}

/* A read-only file of a wheel changes nothing, and tells everything about the wheel. */
TEST_F(abi, read_only_file_of_a_wheel)
{
	struct timewheel_event event;
	struct timewheel_token token;
	const struct tw_command *c;
	struct tw_state before;
	int writer, reader;

	ASSERT_EQ(0, create(self->fd));
	writer = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, writer);
	reader = tw_open_named(NAME, O_RDONLY | O_NONBLOCK);
	ASSERT_LE(0, reader);
	ASSERT_EQ(0, tw_register(writer, WITNESS, TW_SEC, 7, NULL));
	ASSERT_EQ(0, tw_get_state(reader, 0, WITNESS, &before));
	for_each_command(c) {
		void *arg = fill(self, c);
		int ret = tw_ret(ioctl(reader, c->number, arg));
		int expected = c->needs & TW_ONLY_DEVICE ? -ENOTTY :
			       c->needs & TW_WRITE ? -EBADF : 0;

		EXPECT_EQ(expected, ret) {
			TH_LOG("%s", c->name);
		}
		tw_expect_state(reader, 0, WITNESS, &before, "%s", c->name);
	}
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(reader, 0, FRESH, &token)));
	/* An empty batch has no operation, but is refused all the same. */
	EXPECT_EQ(-EBADF, tw_ret(tw_batch(reader, NULL, 0, NULL)));
	ASSERT_EQ(0, tw_advance(writer, 1));
	EXPECT_EQ(1, tw_read(reader, &event, 1));
	EXPECT_EQ((__u64)WITNESS, event.id);
	close(reader);
	close(writer);
}

TEST_F(abi, write_only_file)
{
	int fd = TW_OPEN(O_WRONLY | O_NONBLOCK);
	struct timewheel_event event;
	struct timewheel_list list;
	struct timewheel_token token;
	__u64 id = 1;

	tw_fill_list(&list);
	EXPECT_EQ(-EBADF, tw_ret(tw_read(fd, &event, 1)));
	ASSERT_EQ(0, tw_setup_manual(fd, 60, 10, 0));
	EXPECT_EQ(0, tw_register(fd, id, TW_SEC, 0, NULL));
	EXPECT_EQ(-EBADF, tw_ret(tw_get(fd, 0, id, &token)));
	EXPECT_EQ(-EBADF, tw_ret(ioctl(fd, TIMEWHEEL_IOC_LIST, &list)));
	EXPECT_EQ(0, tw_touch(fd, 0, 1));
	EXPECT_EQ(0, tw_touch_keys(fd, 0, &id, 1, NULL));
	EXPECT_EQ(0, tw_move(fd, 0, 1, 2 * TW_SEC));
	EXPECT_EQ(0, tw_advance(fd, 2));
	EXPECT_TRUE(tw_readable(fd));
	EXPECT_EQ(-EBADF, tw_ret(tw_read(fd, &event, 1)));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 1));
	close(fd);
}

/* The device answers operations that it lacks by an error, and consumes no event. */
TEST_F(abi, operations_that_do_not_exist)
{
	struct timewheel_event event = {};
	const size_t size = sizeof(event);
	struct iovec iov = { &event, size };
	struct tw_state before;
	int pipes[2], on = 1;
	loff_t offset = 0;
	off_t at = 0;

	NEEDS_KERNEL("an fd is a device's, not a timerfd's");
	ASSERT_EQ(0, tw_register(self->fd, FRESH, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 2));
	ASSERT_EQ(0, pipe2(pipes, O_NONBLOCK | O_CLOEXEC));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, FRESH, &before));

	EXPECT_EQ(-EINVAL, tw_ret(write(self->fd, &event, sizeof(event))));
	EXPECT_EQ(-EINVAL, tw_ret(writev(self->fd, &iov, 1)));
	EXPECT_EQ(-ESPIPE, tw_ret(pwrite(self->fd, &event, sizeof(event), 0)));
	EXPECT_EQ(-ESPIPE, tw_ret(pread(self->fd, &event, sizeof(event), 0)));
	EXPECT_EQ(-ESPIPE, tw_ret(preadv(self->fd, &iov, 1, 0)));
	EXPECT_EQ(-ESPIPE, tw_ret(lseek(self->fd, 0, SEEK_SET)));
	EXPECT_EQ(-ESPIPE, tw_ret(lseek(self->fd, 0, SEEK_CUR)));
	EXPECT_EQ(-ESPIPE, tw_ret(lseek(self->fd, 0, SEEK_END)));
	EXPECT_EQ(-EINVAL, tw_ret(ftruncate(self->fd, 0)));
	EXPECT_EQ(-EINVAL, tw_ret(fsync(self->fd)));

	EXPECT_EQ(-EINVAL, tw_ret(sendfile(pipes[1], self->fd, NULL, size)));
	EXPECT_EQ(-ESPIPE, tw_ret(sendfile(pipes[1], self->fd, &at, size)));
	EXPECT_EQ(-EINVAL, tw_ret(splice(self->fd, NULL, pipes[1], NULL, size,
					 0)));
	EXPECT_EQ(-EINVAL, tw_ret(splice(self->fd, &offset, pipes[1], NULL, size,
					 0)));
	ASSERT_EQ((ssize_t)size, write(pipes[1], &event, size));
	EXPECT_EQ(-EINVAL, tw_ret(splice(pipes[0], NULL, self->fd, NULL, size,
					 0)));

	/* This wheel was set up with nothing to map. */
	for (int prot = 0; prot < 4; prot++) {
		EXPECT_EQ(MAP_FAILED, mmap(NULL, self->page_size, prot,
					   MAP_SHARED, self->fd, 0));
		EXPECT_EQ(EINVAL, errno);
		EXPECT_EQ(MAP_FAILED, mmap(NULL, self->page_size, prot,
					   MAP_PRIVATE, self->fd, 0));
		EXPECT_EQ(EINVAL, errno);
	}

	EXPECT_EQ(-ENOTTY, tw_ret(ioctl(self->fd, FIOASYNC, &on)));
	EXPECT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK | O_ASYNC));
	EXPECT_EQ(0, fcntl(self->fd, F_GETFL) & O_ASYNC);
	EXPECT_EQ(-ENOTTY, tw_ret(ioctl(self->fd, FIONREAD, &on)));

	ASSERT_EQ(0, tw_advance(self->fd, 2));
	tw_expect_state(self->fd, 0, FRESH, &before, "what does not exist");
	EXPECT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ((__u64)FRESH, event.id);
	close(pipes[0]);
	close(pipes[1]);
}

TEST_HARNESS_MAIN
