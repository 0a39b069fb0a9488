/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtimewheel: the timewheel device for C and C++ programs.
 *
 * A wheel is a ring of slots turned by a timer in the kernel; a token is one
 * pending timeout on it. Tokens are registered, touched, moved and cancelled,
 * singly or in batches; those that expire are read as events. <linux/timewheel.h>
 * describes wheels, tokens and their fields; programs use its structures, flags and
 * result bits as they are.
 *
 *	struct timewheel_setup setup = {
 *		.size = sizeof(setup),
 *		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
 *		.slots = 31,
 *		.tick = TW_SEC(1),
 *		.max_tokens = 100000,
 *	};
 *	struct tw_wheel *wheel = tw_wheel_open(&setup);
 *	struct tw_events *events = tw_events_new(64);
 *	struct timewheel_op op;
 *
 *	tw_op_register(&op, user, TW_SEC(30), 0, 0);
 *	tw_wheel_run(wheel, &op);
 *	...
 *	tw_wheel_touch(wheel, user, 0);
 *	...
 *	n = tw_events_read(events, wheel, TIMEWHEEL_NEVER);
 *	for (i = 0; i < n; i++)
 *		offline(tw_events_at(events, i)->id);
 *
 * Conventions
 *
 * Results: a function that returns int, int64_t or ssize_t returns -1 and sets errno when
 * it fails, one that returns a pointer NULL and errno. A call that fails has
 * changed nothing, unless its description says otherwise. tw_strerror() tells what
 * an error means here.
 *
 * Times: uint64_t nanoseconds. A point of time is one of the wheel's clock; all
 * other times are durations, such as TW_MS(5) or TW_SEC(30). TIMEWHEEL_NEVER is a
 * time that is never reached.
 *
 * Structures: @size of struct timewheel_setup, _info and _caps is set by the
 * caller to sizeof() the structure, that of struct timewheel_op by the functions
 * tw_op_*(). That is how structures grow while programs that were built before go
 * on as they are. %EINVAL: @size is too small (not set?), a flag is undefined, or a
 * reserved field is not zero. %E2BIG: a field is used that the kernel does not
 * know.
 *
 * Keys: a token is named by its id, a number of the program's choice; or, with
 * %TIMEWHEEL_OPF_BY_HANDLE in @flags, by the handle that its registration gave.
 *
 * Delivery: a read ends the token of an event, even if the reader dies then: each
 * event is delivered at most once. On a wheel with leases a read does not end it:
 * each event is delivered at least once, see "Operations on deliveries".
 *
 * Ownership: what an _open(), _new() or _map() function returns belongs to the
 * caller until the caller gives it to the _close(), _free() or _unmap() function
 * of its kind. These take NULL too, and leave errno as it is. Nothing else that is
 * returned is to be freed.
 *
 * Threads: any number of threads may use one wheel at once, for any calls, until
 * one of them closes it. One thread at a time may use a buffer of events, a batch,
 * a cursor, or other memory that is passed. Each operation is a whole, also on a token
 * that others operate on; a call for many operations is not. The library starts no thread,
 * and installs no signal handler. It has no state of its own but for the wheels that
 * the process keeps.
 *
 * Blocking: a function does not block, nor sleep, unless its description says so.
 *
 * Processes: a child by fork(2) shares its parent's wheels and touch words.
 * Wheels are closed on execve(2). A process may send an fd to another, which makes
 * a wheel of it by tw_wheel_open_fd(). "Kernel or process" tells what is so of wheels
 * that this process keeps itself.
 *
 * Errors that a function may give in addition where its description says "those
 * common to all"; %EBADF only if the function changes the wheel:
 *
 * ===========  ===============================================================
 * %EBADF       the wheel was opened for reading only, and the call changes it
 * %ENODEV      the wheel was a named one, and has been destroyed
 * %ENOTTY      the kernel's module is older and does not know the call
 * ===========  ===============================================================
 */
#ifndef TIMEWHEEL_H
#define TIMEWHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <linux/inet_diag.h>
#include <linux/timewheel.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * DOC: Kernel or process
 *
 * The kernel keeps a wheel, by the module. Where no module can be loaded, a process keeps
 * the same wheel itself: tw_wheel_open_process(), or TIMEWHEEL=process in the environment
 * for a program that knows nothing of it. The code is that of the module, so structures,
 * results, errors and the promises are the same, but for what follows. The kernel is
 * the choice for whatever has to outlive a program, to be shared or to be limited; the
 * process is the choice for development, tests, and machines where the module is not.
 *
 * The tokens of a wheel
 *	Kernel: stay while a process has the wheel open, those of a named wheel until it is
 *	destroyed; a program that dies or hangs stops nothing.
 *	Process: end with the process.
 *
 * Names
 *	Kernel: are the machine's: nodes in /dev/timewheels, each with an owner and rights.
 *	Process: are the process's, and everything in it may use them.
 *
 * A child by fork(2)
 *	Kernel: shares the wheel.
 *	Process: gets %ENODEV from all calls on it but the close; it can make wheels of its own.
 *
 * File descriptors
 *	Kernel: can be passed on, also by execve(2), read by read(2), closed by close(2), and
 *	block each for itself.
 *	Process: are of a timerfd, to be polled and nothing else: %ENOTTY says that another
 *	process or program cannot use them, tw_wheel_read() and tw_events_read() read, only
 *	tw_wheel_close() closes, and O_NONBLOCK is that of all that have the wheel open. A
 *	wheel has one more of them.
 *
 * Readable
 *	Kernel: means that a token has expired.
 *	Process: means that it is time to look. A read may find nothing, as after a cancel or
 *	a touch; then the file descriptor is readable no longer.
 *
 * A destroyed wheel
 *	Kernel: makes poll(2) say POLLHUP and POLLERR.
 *	Process: is readable, and a read says %ENODEV.
 *
 * The timer
 *	Kernel: goes off though nobody looks at the wheel, and is counted then.
 *	Process: is counted when somebody looks.
 *
 * Touch words
 *	Kernel: are mapped by mmap(2) with the rights of the open file, which mprotect(2)
 *	cannot widen.
 *	Process: are memory of the process, which tw_words_map() gives to those that have
 *	the wheel open for reading and writing; else it is %EACCES, as in the kernel.
 *
 * Signals
 *	Kernel: end a batch early, and SA_RESTART goes on with a wait.
 *	Process: end a wait, with %EINTR, and nothing else. A signal handler may not use the
 *	wheel, for the thread that it came to may hold the wheel's lock.
 *
 * An address that is not valid
 *	Kernel: is %EFAULT, and nothing is lost.
 *	Process: is SIGSEGV, as of any function.
 *
 * Limits
 *	Kernel: hold for each user, as the module's parameters set them, and memory is
 *	charged to the memory cgroup.
 *	Process: are those of the process, as RLIMIT_AS; addresses for all tokens that
 *	a wheel may have are taken when it is made.
 *
 * Hung threads
 *	Kernel: keep nobody from the wheel.
 *	Process: that stop inside a call, as a debugger stops them, keep the others waiting.
 *
 * 32 bits
 *	Kernel: are fine, on a kernel of 64 bits.
 *	Process: are %ENOSYS.
 *
 * Two copies of the library in one process
 *	Kernel: are fine.
 *	Process: know two sets of names, and no wheel of each other.
 *
 * Figures
 *	Kernel: are in debugfs, tracepoints and fdinfo.
 *	Process: are what tw_wheel_info() and tw_wheel_stats() tell.
 */

/**
 * DOC: struct tw_wheel
 *
 * A wheel that this process has open, private or named.
 */
struct tw_wheel;

/**
 * DOC: struct tw_events
 *
 * A buffer for events, which one read after another fills.
 */
struct tw_events;

/**
 * DOC: struct tw_batch
 *
 * Operations that one call carries out, and their results.
 */
struct tw_batch;

/**
 * DOC: struct tw_cursor
 *
 * A walk through the tokens of a wheel.
 */
struct tw_cursor;

/**
 * struct tw_word - the touch word of a token
 * @value: as timewheel(7) explains; a single store writes it, also where a
 *	uint64_t is aligned to less, as with 32 bits
 */
struct tw_word {
	uint64_t	value __attribute__((aligned(8)));
};

/**
 * struct tw_words - the touch words of a wheel, mapped
 * @words: the words; handle h's word is the one at index (uint32_t)h
 *
 * Made by tw_words_map() only: the library keeps more behind @words.
 */
struct tw_words {
	struct tw_word	*words;
};

/* Durations of 0 to 584 years in ns. @n may be a fraction, as in TW_SEC(1.5). */
#define TW_US(n)	((uint64_t)((n) * 1000ULL))
#define TW_MS(n)	((uint64_t)((n) * 1000000ULL))
#define TW_SEC(n)	((uint64_t)((n) * 1000000000ULL))
#define TW_MIN(n)	((uint64_t)((n) * 60000000000ULL))
#define TW_HOUR(n)	((uint64_t)((n) * 3600000000000ULL))
#define TW_DAY(n)	((uint64_t)((n) * 86400000000000ULL))

/**
 * tw_strerror() - what an error means here
 * @errnum: an errno that a function of this library has set
 *
 * Tells of the errors that have a meaning of their own in this library; of others
 * what strerror(3) says. Many of these errors mean something else there: ESHUTDOWN,
 * for one, is told here as "the wheel is draining: it takes no new tokens". The text
 * does not depend on the locale. Any number of threads may call it at once.
 *
 * Return: a string that is always there. Cannot fail.
 */
const char *tw_strerror(int errnum);

/* The device */

/**
 * tw_device_caps() - what the kernel's module can do, and its limits
 * @caps: filled in; @size set by the caller, @flags 0
 *
 * Needs permission to open /dev/timewheel for reading. Does not block.
 *
 * Errors: %ENOENT, %ENODEV or %ENXIO there is no device: the module is not
 * loaded; %EACCES or %EPERM the caller may not open it; %EINVAL; %E2BIG; %EFAULT
 * @caps is no such address; %EMFILE, %ENFILE, %ENOMEM.
 *
 * Return: 0, or -1 and errno.
 */
int tw_device_caps(struct timewheel_caps *caps);

/* Wheels */

/**
 * tw_wheel_open() - make a private wheel
 * @setup: describes the wheel; @size set by the caller
 *
 * The wheel belongs to this process, and to all that get it by fork(2) or as an
 * fd. It ends, with all its tokens, when the last of them has closed it. Needs
 * permission to open /dev/timewheel for reading and writing. May sleep for memory.
 *
 * Errors: %ENOENT, %ENODEV or %ENXIO there is no device: the module is not
 * loaded; %EACCES or %EPERM the caller may not open it; %EINVAL a value of @setup
 * is outside its range, or does not go with another; %E2BIG; %EFAULT @setup is no
 * such address; %ERANGE with such short ticks the clock, or @start, is beyond the
 * last tick or 2^63 ns; %EDQUOT the user would have more wheels or tokens than a
 * user may have; %ENOSPC there would be more than the machine may have; %EMFILE,
 * %ENFILE, %ENOMEM.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open(const struct timewheel_setup *setup);

/**
 * tw_wheel_open_process() - make a wheel inside this process
 * @setup: describes the wheel; @size set by the caller
 *
 * The wheel is kept by code in this process, the module's own, and needs neither the
 * module nor a right. All functions take such a wheel, and their results are the same,
 * but for what the table "Kernel or process" in timewheel(7) says. The most important
 * differences: the wheel and all its tokens end with the process; a child by fork(2) gets
 * %ENODEV from all functions but tw_wheel_close(); an address that is not valid ends the
 * process, where the kernel says %EFAULT; there are no limits for a user. The wheel takes
 * two fds. May sleep for memory. No signal handler may call functions on it.
 *
 * With TIMEWHEEL=process in the environment tw_wheel_open() does the same, and
 * tw_wheel_create(), tw_wheel_open_named(), tw_wheel_open_or_create() and
 * tw_wheel_destroy() know names within this process. secure_getenv(3) reads the variable,
 * so that a program with another user's rights does not follow it.
 *
 * Errors: %EINVAL, %E2BIG and %ERANGE as of tw_wheel_open(); %EMFILE, %ENFILE, %ENOMEM;
 * %ENOSYS a process of 32 bits cannot keep a wheel.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open_process(const struct timewheel_setup *setup);

/**
 * tw_wheel_is_process() - whether a wheel is kept inside this process
 * @wheel: the wheel
 *
 * Return: 1 if this process keeps it, 0 if the kernel does.
 */
int tw_wheel_is_process(const struct tw_wheel *wheel);

/**
 * tw_wheel_open_named() - open a named wheel that exists
 * @name: its name: 1 to 63 ASCII letters, digits, "-" and "_"
 * @access: %O_RDONLY to read events and to look at tokens, %O_WRONLY to change
 *	tokens, %O_RDWR for both
 *
 * Opens /dev/timewheels/NAME. Does not block.
 *
 * Errors: %EINVAL @name is empty or has another byte in it, or @access is none of
 * the three; %ENAMETOOLONG it is longer; %ENOENT, %ENODEV or %ENXIO there is no
 * wheel of this name, or it is being destroyed; %EACCES or %EPERM the caller may
 * not open the node so; %ENOTTY the node is not one of a wheel; %EMFILE, %ENFILE,
 * %ENOMEM.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open_named(const char *name, int access);

/**
 * tw_wheel_open_or_create() - open a named wheel, make it if there is none
 * @name: its name, as for tw_wheel_open_named()
 * @setup: describes the wheel; @size set by the caller
 * @access: as for tw_wheel_open_named()
 *
 * Calls tw_wheel_create() without flags and tw_wheel_open_named(), and again if
 * the wheel was destroyed between them. A call that fails may have made the wheel
 * all the same. May sleep for memory.
 *
 * Errors: those of the two. %EEXIST: there is a wheel of this name with another
 * setup.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open_or_create(const char *name,
					 const struct timewheel_setup *setup,
					 int access);

/**
 * tw_wheel_open_fd() - make a wheel of an fd
 * @fd: of a wheel that has been set up: received from another process, left by the
 *	program before, or a dup(2) of tw_wheel_fd()
 *
 * On success @fd belongs to the wheel, which closes it; on failure it is still
 * the caller's. It stays as it is, blocking or not, closed on execve(2) or not. It
 * is the same open file as the fd that it came from: what was read by either can
 * be answered by the other, and what the file holds is not due again before both
 * are closed. Does not block.
 *
 * Errors: %EBADF @fd is not open; %ENOTTY it is not that of a wheel; %EBADFD it is
 * of /dev/timewheel but has not been set up; %ENODEV the wheel has been destroyed;
 * %ENOMEM.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open_fd(int fd);

/**
 * tw_wheel_close() - close a wheel
 * @wheel: the wheel, or NULL
 *
 * A private wheel ends with its last open fd, a named one stays. Deliveries that
 * the open file holds are due again at once, unless another fd of the same open
 * file is left. No thread may be in a call on the wheel, or make one from now on;
 * its cursors and touch words have to be given back before. May take a while if
 * many tokens end with the wheel, or are due again.
 */
void tw_wheel_close(struct tw_wheel *wheel);

/**
 * tw_wheel_fd() - the wheel's fd, for poll(2), epoll(7), io_uring and the like
 * @wheel: the wheel
 *
 * The fd is readable while an expired token is there. Edge-triggered waiters must
 * read until tw_events_read() with a timeout of 0 returns 0. A destroyed wheel
 * gives EPOLLHUP and EPOLLERR. The fd belongs to the wheel: the caller does not
 * close it.
 *
 * Return: the fd. Cannot fail.
 */
int tw_wheel_fd(const struct tw_wheel *wheel);

/**
 * tw_wheel_create() - make a named wheel, without opening it
 * @name: its name, as for tw_wheel_open_named()
 * @setup: describes the wheel; @size set by the caller
 * @flags: %TIMEWHEEL_CREATE_EXCLUSIVE: fail if a wheel of this name exists; 0: one
 *	with the same setup will do
 *
 * On return the node /dev/timewheels/NAME exists, owned by the caller's effective
 * user and group, with mode 0600 until chmod(1) and chown(1) change that. The
 * wheel turns until tw_wheel_destroy(), whether it is open or not. Names belong to
 * the whole machine. Needs permission to open /dev/timewheel for reading and writing.
 * May sleep.
 *
 * Without %TIMEWHEEL_CREATE_EXCLUSIVE the call, and so tw_wheel_open_or_create(),
 * accepts a wheel that another user has created. Where users do not trust each other,
 * a program has to find out the owner by fstat(2) of tw_wheel_fd(), or create the
 * wheel exclusively.
 *
 * Errors: those of tw_wheel_open(); %EEXIST a wheel of this name exists, and the
 * call is exclusive or the setup differs; %EINVAL also if @name is empty or has
 * another byte in it, or @flags another flag; %ENAMETOOLONG it is longer; %ENOTTY
 * the kernel's module does not know the call.
 *
 * Return: 0 if the call made the wheel, %TIMEWHEEL_RES_EXISTED if it existed, or
 * -1 and errno.
 */
int tw_wheel_create(const char *name, const struct timewheel_setup *setup,
		    unsigned int flags);

/**
 * tw_wheel_destroy() - end a named wheel
 * @name: its name, as for tw_wheel_open_named()
 *
 * For the user who created it, and for a caller with CAP_SYS_ADMIN. The node goes
 * and the name is free. The wheel's tokens end without events. Calls on the wheel
 * fail with %ENODEV from now on, reads that sleep at once. Needs permission to open
 * /dev/timewheel for reading and writing. May sleep.
 *
 * Errors: %ENOENT no wheel has this name, or there is no device; %EPERM the wheel
 * is another user's, or the caller may not open the device; %EINVAL @name is empty
 * or has another byte in it; %ENAMETOOLONG it is longer; %ENOTTY the kernel's
 * module does not know the call; %ENODEV or %ENXIO there is no device; %EACCES the
 * caller may not open it; %EMFILE, %ENFILE, %ENOMEM.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_destroy(const char *name);

/**
 * tw_wheel_info() - a wheel's settings, state and counters
 * @wheel: the wheel
 * @info: filled in; @size set by the caller, @flags 0
 *
 * The figures are of one moment. Does not block.
 *
 * Errors: %EINVAL; %E2BIG; %EFAULT @info is no such address; those common to all.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_info(const struct tw_wheel *wheel, struct timewheel_info *info);

/**
 * tw_wheel_advance() - put the hand of a MANUAL wheel
 * @wheel: the wheel
 * @tick: the tick to which the hand goes, forward or back, 0 to
 *	%TIMEWHEEL_MAX_TICK
 *
 * What is due by then can be read at once. So a program's timeouts can be tested
 * without waiting for them. Does not block.
 *
 * Errors: %EINVAL the wheel's clock is not MANUAL; %ERANGE @tick is beyond
 * %TIMEWHEEL_MAX_TICK or 2^63 ns; those common to all.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_advance(struct tw_wheel *wheel, uint64_t tick);

/**
 * tw_wheel_pause() - deliver no events until tw_wheel_resume()
 * @wheel: the wheel
 *
 * For all processes that have the wheel open. Time passes and all operations go
 * on, but what falls due waits: reads behave as if nothing were due, and the fd is
 * not readable. A read that is under way may still bring events. Deliveries that
 * are out can be answered; those whose lease is over come again after the pause.
 * Does not block.
 *
 * Errors: those common to all.
 *
 * Return: 0, also if the wheel was paused, or -1 and errno.
 */
int tw_wheel_pause(struct tw_wheel *wheel);

/**
 * tw_wheel_resume() - end tw_wheel_pause()
 * @wheel: the wheel
 *
 * What fell due meanwhile can be read at once. Does not block.
 *
 * Errors: those common to all.
 *
 * Return: 0, also if the wheel was not paused, or -1 and errno.
 */
int tw_wheel_resume(struct tw_wheel *wheel);

/**
 * tw_wheel_drain() - take no new tokens until tw_wheel_undrain()
 * @wheel: the wheel
 *
 * For all processes that have the wheel open: an operation that would register a
 * token fails with %ESHUTDOWN. All else goes on. In time the wheel becomes empty,
 * except for tokens that are periodic, or acked with a delay: these have to be
 * cancelled, or acked without a delay. @pending, @taken and @held of tw_wheel_info()
 * tell how many are left, and @state whether the wheel is paused or draining. Does not
 * block.
 *
 * Errors: those common to all.
 *
 * Return: 0, also if the wheel was draining, or -1 and errno.
 */
int tw_wheel_drain(struct tw_wheel *wheel);

/**
 * tw_wheel_undrain() - end tw_wheel_drain()
 * @wheel: the wheel
 *
 * Does not block.
 *
 * Errors: those common to all.
 *
 * Return: 0, also if the wheel was not draining, or -1 and errno.
 */
int tw_wheel_undrain(struct tw_wheel *wheel);

/*
 * Operations on tokens
 *
 * An operation is prepared in a struct timewheel_op, then carried out by
 * tw_wheel_run(), or with others by tw_batch_run():
 *
 *	struct timewheel_op op;
 *
 *	tw_op_move(&op, user, TW_MIN(5), 0);
 *	if (tw_wheel_run(wheel, &op) < 0)
 *		puts(tw_strerror(errno));
 *
 * The functions tw_op_*() prepare. They fill in all of @op, check nothing and
 * cannot fail. Other fields may be set afterwards: @timeout for REGISTER and MOVE.
 * A token that is past its deadline is still there until a reader has taken it.
 * Arguments with the same name have the same meaning in all of them:
 *
 * ===========  ===============================================================
 * @op          the operation, which the function fills in
 * @id          the token's id: any number of the program's choice
 * @key         the token's id, or with %TIMEWHEEL_OPF_BY_HANDLE its handle
 * @delivery    the number of the delivery that is answered, from its event
 * @time        a delay in ns, or with %TIMEWHEEL_OPF_ABSOLUTE a point of time
 * @cookie      a number that comes back with the token's events; 0 on a wheel
 *              without cookies
 * @flags       the flags that are named there, or 0
 * ===========  ===============================================================
 *
 * The errors that are told there are those of tw_wheel_run() and
 * tw_batch_result(). These have one meaning:
 *
 * ===========  ===============================================================
 * %ENOENT      no token of this id is pending: it never was registered, has been
 *              cancelled, or a reader has taken it. Of operations on deliveries:
 *              no token has this id
 * %ESTALE      the same of a handle. Of an answer also: the delivery is no longer
 *              out, since it has been answered or its lease was over
 * %EINVAL      a flag is undefined or does not go with the operation, or a token
 *              is named by id on a wheel without ids
 * %ERANGE      the deadline would be beyond the last tick or 2^63 ns, or too far
 *              ahead for a wheel with touch words (@max_word_ticks of the caps)
 * ===========  ===============================================================
 */

/**
 * tw_op_prepare() - prepare an operation by its code
 * @op: filled in
 * @code: one of enum timewheel_code
 * @key: the token's id or handle
 * @flags: flags of the operation
 *
 * All other fields become 0. The functions that follow are made of this one.
 */
static inline void tw_op_prepare(struct timewheel_op *op, uint32_t code,
				 uint64_t key, unsigned int flags)
{
	memset(op, 0, sizeof(*op));
	op->size = sizeof(*op);
	op->code = code;
	op->flags = flags;
	if (flags & TIMEWHEEL_OPF_BY_HANDLE)
		op->handle = key;
	else
		op->id = key;
}

/**
 * tw_op_register() - prepare to register a token
 * @op: filled in
 * @id: an id that no other token of the wheel has; 0 on a wheel without ids
 * @time: when the token is due. The delay also becomes its timeout
 * @cookie: comes back with the token's event
 * @flags: %TIMEWHEEL_OPF_ABSOLUTE
 *
 * A token has no timeout, and cannot be touched, if it is registered for a point
 * of time or for a delay of 0; unless the caller sets @timeout of @op. A point of
 * time that has passed is due at once. Afterwards @handle of @op is the token's
 * handle and @deadline its deadline. A caller that wants to spread the deadlines
 * of many tokens adds a random number to each @time.
 *
 * Errors: %EEXIST a token has this id; %EINVAL, also an id or a cookie on a wheel
 * without them; %ENOMEM; %ENOSPC the wheel has its @max_tokens tokens; %ERANGE;
 * %ESHUTDOWN the wheel is draining.
 */
static inline void tw_op_register(struct timewheel_op *op, uint64_t id,
				  uint64_t time, uint64_t cookie,
				  unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_REGISTER, id, flags);
	op->time = time;
	op->cookie = cookie;
}

/**
 * tw_op_register_periodic() - prepare to register a token that is due periodically
 * @op: filled in
 * @id: an id that no other token of the wheel has; 0 on a wheel without ids
 * @time: when the token is due for the first time
 * @period: ns from one deadline to the next, a tick or more
 * @cookie: comes back with each of the token's events
 * @flags: %TIMEWHEEL_OPF_ABSOLUTE
 *
 * For a wheel with %TIMEWHEEL_SETUP_PERIODS. After each event, or on a wheel with
 * leases after each ack, the token is pending again. Its deadlines are whole
 * periods from the first one, to the ns, however late events are read: they do
 * not drift. If several periods have passed since its last event, there is one
 * event, for the last of them, and @missed tells how many had none.
 *
 * The token ends when it is cancelled or deleted. It has no timeout. For a token
 * that is to rest for some time after each event, the reader registers it again,
 * or on a wheel with leases acks it with a delay.
 *
 * Errors: those of tw_op_register(). %EINVAL also: @period is shorter than a
 * tick, or the wheel has no periods. %ERANGE also: @period is 2^63 ns or more.
 */
static inline void tw_op_register_periodic(struct timewheel_op *op, uint64_t id,
					   uint64_t time, uint64_t period,
					   uint64_t cookie, unsigned int flags)
{
	tw_op_register(op, id, time, cookie, flags);
	op->period = period;
}

/**
 * tw_op_touch() - prepare to touch a token: it is due its whole timeout from now
 * @op: filled in
 * @key: the token's id or handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 *
 * For a batch. Alone, tw_wheel_touch() is faster.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL, also the token has no timeout; %ERANGE.
 */
static inline void tw_op_touch(struct timewheel_op *op, uint64_t key,
			       unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_TOUCH, key, flags);
}

/**
 * tw_op_touch_or_register() - prepare to touch a token, or register it
 * @op: filled in
 * @id: the token's id
 * @time: if the call registers the token: its delay, which is its timeout too
 * @cookie: if the call registers the token: its cookie
 * @flags: 0
 *
 * The result has %TIMEWHEEL_RES_REGISTERED if there was no such token. Then
 * @handle of @op is the token's handle afterwards, else 0. A token that is there
 * keeps its timeout and its cookie.
 *
 * Errors: %EEXIST the token is held; %EINVAL, also the token has no
 * timeout, or a cookie on a wheel without them; %ENOMEM; %ENOSPC the wheel has
 * its @max_tokens tokens; %ERANGE; %ESHUTDOWN there is no such token, and the
 * wheel is draining.
 */
static inline void tw_op_touch_or_register(struct timewheel_op *op, uint64_t id,
					   uint64_t time, uint64_t cookie,
					   unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_TOUCH_OR_REGISTER, id, flags);
	op->time = time;
	op->cookie = cookie;
}

/**
 * tw_op_move() - prepare to give a token another deadline, earlier or later
 * @op: filled in
 * @key: the token's id or handle
 * @time: when the token is due. A delay also becomes its timeout
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE, %TIMEWHEEL_OPF_ABSOLUTE
 *
 * With a point of time, or a delay of 0, the timeout stays; unless the caller sets
 * @timeout of @op. A periodic token counts its periods from the new deadline.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL; %ERANGE.
 */
static inline void tw_op_move(struct timewheel_op *op, uint64_t key,
			      uint64_t time, unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_MOVE, key, flags);
	op->time = time;
}

/**
 * tw_op_cancel() - prepare to end a token: no event of it will come
 * @op: filled in
 * @key: the token's id or handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL.
 */
static inline void tw_op_cancel(struct timewheel_op *op, uint64_t key,
				unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_CANCEL, key, flags);
}

/*
 * Operations on deliveries
 *
 * On a wheel with leases (@lease in struct timewheel_setup) the reader of an event
 * holds its token and owes an answer: ACK when the work is done, NACK when the
 * token is to come again. Without an answer it comes again, to any reader, when the
 * lease is over, and at once when the open file that holds it is released, as when
 * the reader dies. So each token is delivered at least once, and to one reader at a time:
 *
 *	while ((n = tw_events_read(events, wheel, TIMEWHEEL_NEVER)) > 0)
 *		for (i = 0; i < n; i++) {
 *			event = tw_events_at(events, i);
 *			if (remind(event->id))
 *				tw_op_ack(&op, event->id, event->delivery, 0);
 *			else
 *				tw_op_nack(&op, event->id, event->delivery,
 *					   TW_MIN(1), 0);
 *			tw_wheel_run(wheel, &op);
 *		}
 *
 * Each delivery of a token has a number, which the answer repeats: an answer that
 * comes too late does not count for a later delivery. The event's @attempts tells how
 * often a token has been delivered: a reader that gives up after so many acks the token.
 *
 * An open file holds a token, not a thread or a process. Each file of the wheel that is
 * open for writing may answer. Of several answers to one delivery one counts; the others
 * get %ENOENT or %ESTALE.
 *
 * @max_held in struct timewheel_setup tells how many tokens may be held at once. What is
 * due beyond that waits until one is answered or comes back: a prefetch has its bound
 * there.
 *
 * All of these fail with %EINVAL also if the wheel has no leases, and with %ESTALE
 * also while a reader is copying the token.
 */

/**
 * tw_op_ack() - prepare to tell that a delivery has been dealt with
 * @op: filled in
 * @key: the token's id or handle
 * @delivery: the delivery's number
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 *
 * The token ends, or is pending for its next period. A program whose work is to come
 * again some time after it has ended registers another token then.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL.
 */
static inline void tw_op_ack(struct timewheel_op *op, uint64_t key,
			     uint32_t delivery, unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_ACK, key, flags);
	op->delivery = delivery;
}

/**
 * tw_op_nack() - prepare to tell that a delivery has not been dealt with
 * @op: filled in
 * @key: the token's id or handle
 * @delivery: the delivery's number
 * @time: when the token is due again; a delay of 0 is at once
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE, %TIMEWHEEL_OPF_ABSOLUTE
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL; %ERANGE.
 */
static inline void tw_op_nack(struct timewheel_op *op, uint64_t key,
			      uint32_t delivery, uint64_t time,
			      unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_NACK, key, flags);
	op->delivery = delivery;
	op->time = time;
}

/**
 * tw_op_extend() - prepare to hold a delivery for longer
 * @op: filled in
 * @key: the token's id or handle
 * @delivery: the delivery's number, which stays
 * @time: ns from now until the lease is over; 0 stands for the wheel's lease. A lease
 *	that ends later than that stays as it is
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE; %TIMEWHEEL_OPF_ABSOLUTE: the lease ends at @time,
 *	be that later or earlier than before
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL; %ERANGE.
 */
static inline void tw_op_extend(struct timewheel_op *op, uint64_t key,
				uint32_t delivery, uint64_t time,
				unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_EXTEND, key, flags);
	op->delivery = delivery;
	op->time = time;
}

/**
 * tw_op_delete() - prepare to end a token, whether it is pending or held
 * @op: filled in
 * @key: the token's id or handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 *
 * A reader that holds the token learns of it by the error of its answer.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL.
 */
static inline void tw_op_delete(struct timewheel_op *op, uint64_t key,
				unsigned int flags)
{
	tw_op_prepare(op, TIMEWHEEL_OP_DELETE, key, flags);
}

/* Calls on tokens */

/**
 * tw_wheel_run() - carry out an operation
 * @wheel: the wheel
 * @op: the operation, as one of the functions tw_op_*() has prepared it. It then
 *	has what the operation tells: @deadline, and @handle of a token that was
 *	registered. It may be carried out again
 *
 * May sleep for memory if the operation registers a token, else does not block.
 *
 * Errors: those of the operation; %EINVAL also: there is no such @code, or @size
 * is too small (not prepared?); %E2BIG; %EFAULT @op is no such address; those
 * common to all.
 *
 * Return: bits of enum timewheel_result, 0 for nothing special, or -1 and errno. With
 * %TIMEWHEEL_RES_WAS_DUE the token was past its deadline, but no reader had taken it: the
 * operation won. With %TIMEWHEEL_RES_REGISTERED a touch or registration found no token,
 * and registered one.
 */
int tw_wheel_run(struct tw_wheel *wheel, struct timewheel_op *op);

/**
 * tw_wheel_touch() - touch a token: it is due its whole timeout from now
 * @wheel: the wheel
 * @key: the token's id or handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 *
 * A touch never brings a deadline nearer. Does not block.
 *
 * Errors: those of tw_op_touch(); those common to all.
 *
 * Return: 0 or %TIMEWHEEL_RES_WAS_DUE, or -1 and errno.
 */
int tw_wheel_touch(struct tw_wheel *wheel, uint64_t key, unsigned int flags);

/**
 * tw_wheel_touch_many() - touch many tokens, up to the first that cannot be
 * @wheel: the wheel
 * @keys: the tokens' ids or handles
 * @count: how many keys there are, at most %TIMEWHEEL_MAX_BATCH
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 * @done: the call stores here how many tokens, from the first on, it has touched;
 *	or NULL
 *
 * Does what tw_wheel_touch() does for each key in turn, at a fraction of the cost.
 * An error is that of keys[@done]; the tokens of the keys behind it have not been
 * touched. Does not block.
 *
 * Errors: those of tw_op_touch(); %EINVAL also: @count is too large, and @done is
 * 0; %EFAULT @keys is no such address; %EINTR a signal came first: the caller goes
 * on from keys[@done]; those common to all.
 *
 * Return: 0 if all were touched, or -1 and errno.
 */
int tw_wheel_touch_many(struct tw_wheel *wheel, const uint64_t *keys,
			size_t count, unsigned int flags, size_t *done);

/**
 * tw_wheel_get() - tell about a token, whether it is pending or held
 * @wheel: the wheel, open for reading
 * @key: the token's id or handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 * @token: filled in
 *
 * Changes nothing. Of a pending token @deadline is its deadline, @left the ns until then,
 * or 0 if it has passed, and @cycle and @slot its place on the ring. Does not block.
 *
 * Errors: %ENOENT no token has this id; %ESTALE no token has this handle; %EINVAL
 * an undefined flag, or an id on a wheel without ids; %EFAULT @token is no such
 * address; those common to all.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_get(const struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		 struct timewheel_token *token);

/**
 * tw_wheel_get_many() - tell about many tokens
 * @wheel: the wheel, open for reading
 * @keys: the tokens' ids or handles
 * @count: how many keys there are, at most %TIMEWHEEL_MAX_BATCH
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 * @tokens: array of @count, filled in. A key that names no token gets one that is
 *	all zeros, with a @state of %TIMEWHEEL_STATE_NONE
 * @done: the call stores here how many tokens, from the first on, it has filled
 *	in; or NULL
 *
 * Changes nothing. Does not block.
 *
 * Errors: %EINVAL an undefined flag, @count is too large, or ids on a wheel
 * without ids; %EFAULT @keys or @tokens is no such address; %EINTR a signal came
 * first: the caller goes on from keys[@done]; those common to all.
 *
 * Return: 0 if all were filled in, or -1 and errno.
 */
int tw_wheel_get_many(const struct tw_wheel *wheel, const uint64_t *keys,
		      size_t count, unsigned int flags,
		      struct timewheel_token *tokens, size_t *done);

/* Events */

/**
 * tw_events_new() - make a buffer for events
 * @capacity: how many events it holds at most, 1 or more; 64 is plenty unless tens
 *	of thousands expire at once
 *
 * Errors: %EINVAL @capacity is 0; %ENOMEM.
 *
 * Return: the buffer, empty, to be freed by tw_events_free(), or NULL and errno.
 */
struct tw_events *tw_events_new(size_t capacity);

/**
 * tw_events_free() - free a buffer for events
 * @events: the buffer, or NULL
 */
void tw_events_free(struct tw_events *events);

/**
 * tw_wheel_read() - take due events into an array
 * @wheel: the wheel, open for reading
 * @events: the array
 * @count: how many there is room for; one and more
 * @nowait: not 0: the call does not wait, whether the fd blocks or not
 *
 * For programs that keep events in memory of their own; others have tw_events_read().
 * This is read(2) of a wheel of the kernel, and the one way to read a wheel of the
 * process, whose fd is only there to be polled. Waits until there is an event, unless
 * @nowait or %O_NONBLOCK forbid it. Threads may read one wheel at the same time: each event
 * goes to one of them.
 *
 * Errors: %EAGAIN nothing is due, and the call does not wait; %EINTR a signal came first;
 * %EBADF the wheel is not open for reading; %EINVAL @count is 0; %EFAULT @events is no such
 * address; %ENODEV the wheel was destroyed, or belongs to the parent of this process.
 *
 * Return: how many events were taken, or -1 and errno.
 */
int tw_wheel_read(struct tw_wheel *wheel, struct timewheel_event *events, size_t count,
		  int nowait);

/**
 * tw_events_read() - read expired tokens
 * @events: the buffer; the call discards what it held
 * @wheel: the wheel
 * @timeout: longest time in ns to wait for the first event: 0 does not wait,
 *	%TIMEWHEEL_NEVER waits without limit
 *
 * Reads as many as are due and fit, in the order of their due ticks. Each event
 * goes to one reader only, and ends its token, unless the wheel has leases or the
 * token is periodic. Blocks while nothing is due, or the wheel is paused, for
 * @timeout of CLOCK_MONOTONIC at most, whether the fd is a blocking one or not.
 * With %TIMEWHEEL_NEVER and a blocking fd one sleeping thread is woken at a time,
 * else all of them.
 *
 * Errors: %EINTR a signal came while nothing was due (with SA_RESTART the signal's
 * handler does not end a wait without limit on a blocking fd); %EBADF the wheel was
 * opened for writing only, or its fd has been closed; %ENODEV the named wheel has been
 * destroyed, perhaps while the call waited.
 *
 * Return: how many events there are, 0 if nothing was due in time, or -1 and
 * errno.
 */
ssize_t tw_events_read(struct tw_events *events, struct tw_wheel *wheel,
		       uint64_t timeout);

/**
 * tw_events_count() - how many events the last read brought
 * @events: the buffer
 *
 * Return: their number. Cannot fail.
 */
size_t tw_events_count(const struct tw_events *events);

/**
 * tw_events_at() - one of the events that the last read brought
 * @events: the buffer
 * @index: which event, less than tw_events_count()
 *
 * The events are an array, which begins with the first one. They are there until
 * the buffer is read into again, or freed.
 *
 * Errors: %EDOM there is no event at @index.
 *
 * Return: the event, or NULL and errno.
 */
const struct timewheel_event *tw_events_at(const struct tw_events *events,
					   size_t index);

/*
 * Batches
 *
 * Many operations by one call. Each is prepared in the batch:
 *
 *	op = tw_batch_next(batch);
 *	tw_op_cancel(op, user, 0);
 *	...
 *	failed = tw_batch_run(batch, wheel);
 */

/**
 * tw_batch_new() - make a batch
 * @capacity: how many operations it holds at most, 1 to %TIMEWHEEL_MAX_BATCH
 *
 * Errors: %EINVAL @capacity is outside its range; %ENOMEM.
 *
 * Return: the batch, empty, to be freed by tw_batch_free(), or NULL and errno.
 */
struct tw_batch *tw_batch_new(size_t capacity);

/**
 * tw_batch_free() - free a batch, carried out or not
 * @batch: the batch, or NULL
 */
void tw_batch_free(struct tw_batch *batch);

/**
 * tw_batch_clear() - empty a batch, to use it again
 * @batch: the batch
 */
void tw_batch_clear(struct tw_batch *batch);

/**
 * tw_batch_next() - add an operation, which the caller prepares
 * @batch: the batch
 *
 * The operation belongs to the batch, and is there until tw_batch_clear() or
 * tw_batch_free(). Its index is one less than tw_batch_count(). The caller prepares
 * it by one of the functions tw_op_*() before tw_batch_run(). An operation that is
 * not prepared fails with %EINVAL.
 *
 * Errors: %ENOSPC the batch is full.
 *
 * Return: the operation, or NULL and errno.
 */
struct timewheel_op *tw_batch_next(struct tw_batch *batch);

/**
 * tw_batch_touch_many() - add a touch of each of many tokens
 * @batch: the batch
 * @keys: the tokens' ids or handles
 * @count: how many keys there are
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE
 *
 * Does what tw_batch_next() and tw_op_touch() do for each key in turn. Where the results
 * of single touches do not matter, tw_wheel_touch_many() costs even less.
 *
 * Errors: %ENOSPC the batch has no room for so many: none was added.
 *
 * Return: 0, or -1 and errno.
 */
int tw_batch_touch_many(struct tw_batch *batch, const uint64_t *keys, size_t count,
			unsigned int flags);

/**
 * tw_batch_count() - how many operations are in a batch
 * @batch: the batch
 *
 * Return: their number. Cannot fail.
 */
size_t tw_batch_count(const struct tw_batch *batch);

/**
 * tw_batch_run() - carry out the operations of a batch that have not been yet
 * @batch: the batch. Its operations stay in it, with their results, until
 *	tw_batch_clear()
 * @wheel: the wheel
 *
 * Carries them out in the order in which they were added, each by itself: one that
 * fails does not end the batch. May sleep for memory if some of them register
 * tokens, else does not block.
 *
 * Errors: %EINTR a signal came first: the next call goes on from there; those
 * common to all, when the rest has not been carried out.
 *
 * Return: how many of all operations in the batch have failed, 0 for none, see
 * tw_batch_result(); or -1 and errno.
 */
int tw_batch_run(struct tw_batch *batch, struct tw_wheel *wheel);

/**
 * tw_batch_result() - the result of one operation of a batch
 * @batch: the batch
 * @index: which operation, 0 for the first
 *
 * Errors: those of the operation; %EINPROGRESS it has not been carried out yet;
 * %EDOM there is no operation at @index.
 *
 * Return: bits of enum timewheel_result, 0 for nothing special, or -1 and errno.
 */
int tw_batch_result(const struct tw_batch *batch, size_t index);

/**
 * tw_batch_op() - one operation of a batch, with all that it told
 * @batch: the batch
 * @index: which operation, 0 for the first
 *
 * It is there until tw_batch_clear() or tw_batch_free().
 *
 * Errors: %EDOM there is no operation at @index.
 *
 * Return: the operation, or NULL and errno.
 */
const struct timewheel_op *tw_batch_op(const struct tw_batch *batch,
				       size_t index);

/* Listing */

/**
 * tw_cursor_open() - begin a walk through a wheel's tokens
 * @wheel: the wheel, which has to stay open until tw_cursor_close()
 * @from: only tokens whose deadline or lease's end is this point of time or
 *	later; 0 for all
 * @to: only tokens for which it is this point of time or earlier;
 *	%TIMEWHEEL_NEVER for all
 *
 * Looks at no token yet. Does not block.
 *
 * Errors: %ENOMEM.
 *
 * Return: the cursor, to be closed by tw_cursor_close(), or NULL and errno.
 */
struct tw_cursor *tw_cursor_open(const struct tw_wheel *wheel, uint64_t from,
				 uint64_t to);

/**
 * tw_cursor_close() - end a walk, whether it is complete or not
 * @cursor: the cursor, or NULL
 */
void tw_cursor_close(struct tw_cursor *cursor);

/**
 * tw_cursor_next() - the next token
 * @cursor: the cursor
 * @token: the call stores the token's address here; it is there until the next call
 *	on @cursor
 *
 * Tokens come in no order of time, whether they are pending or held. A
 * token that is there throughout comes exactly once, whatever other callers do
 * meanwhile; one that comes or goes meanwhile at most once. Does not block.
 *
 * Errors: %EBADF the wheel was opened for writing only; those common to all.
 *
 * Return: 1, or 0 if there are no more, or -1 and errno. *@token stays as it was
 * unless the call returns 1.
 */
int tw_cursor_next(struct tw_cursor *cursor,
		   const struct timewheel_token **token);

/*
 * Mapped touches
 *
 * Tokens of a wheel with %TIMEWHEEL_SETUP_TOUCH_WORDS can be touched by a store to
 * memory. That takes a few instructions and no system call, but has to name the
 * tick, and does not tell of a touch that comes too late. timewheel(7) tells what it
 * costs.
 *
 *	uint32_t tick = tw_tick(words);		// once per turn of a loop
 *
 *	for (i = 0; i < packets; i++)
 *		tw_touch(words, handle_of(packet[i]), tick);
 *
 * Any number of threads and processes may touch the same tokens at once, also in
 * signal handlers. None of the calls blocks, except tw_words_map().
 */

/**
 * tw_words_map() - map a wheel's touch words
 * @wheel: the wheel, which has to stay open until tw_words_unmap()
 *
 * The wheel has to be open for reading and writing. A child by fork(2) has the
 * words too; one in another time namespace has to map them again. May sleep for
 * memory.
 *
 * Errors: %EACCES the wheel was not opened for both; %EINVAL it was set up
 * without %TIMEWHEEL_SETUP_TOUCH_WORDS; %ENODEV the named wheel has been destroyed;
 * %ENOMEM also if the address space is too small; %EAGAIN mlockall(2) is in force,
 * and this would lock too much memory.
 *
 * Return: the words, to be unmapped by tw_words_unmap(), or NULL and errno.
 */
struct tw_words *tw_words_map(struct tw_wheel *wheel);

/**
 * tw_words_unmap() - unmap touch words
 * @words: the words, or NULL
 */
void tw_words_unmap(struct tw_words *words);

/**
 * tw_tick() - the tick of now, to touch with
 * @words: the touch words of the wheel
 *
 * Reads the clock without a system call where the kernel's vDSO can do that, in 20
 * to 50 ns. On a MANUAL wheel it is the hand, by a system call; 0 if the wheel has
 * been destroyed. It is enough to call it once per turn of a loop: a touch says
 * that the token lived on this tick, and an older tick makes it due that much
 * earlier.
 *
 * Return: the low 32 bits of the tick. Cannot fail.
 */
uint32_t tw_tick(const struct tw_words *words);

/**
 * tw_touch_word() - what a touch stores in a token's word
 * @handle: the token's handle
 * @tick: as from tw_tick()
 *
 * For programs that do the store themselves.
 *
 * Return: the value of the word. Cannot fail.
 */
static inline uint64_t tw_touch_word(uint64_t handle, uint32_t tick)
{
	/* A 0 there says "not touched". */
	return (handle & 0xffffffff00000000ULL) | (tick ? tick : 1);
}

/**
 * tw_touch() - touch a token: it is due its whole timeout after the end of a tick
 * @words: the touch words of the wheel
 * @handle: the handle of a token of this wheel, which may have ended; no other
 *	value, not even 0: there may be no memory where its word would be
 * @tick: as from tw_tick()
 *
 * One store. Never brings a deadline nearer. A touch of a token without a timeout
 * does nothing. The call does not tell whether the token was still there. If it
 * was not, the touch is lost; if another token has its place by then, that one may
 * be touched instead, and be late by one timeout at most. Of two plain touches at
 * once the earlier one may win.
 */
static inline void tw_touch(struct tw_words *words, uint64_t handle,
			    uint32_t tick)
{
	__atomic_store_n(&words->words[(uint32_t)handle].value,
			 tw_touch_word(handle, tick), __ATOMIC_RELAXED);
}

/**
 * tw_touch_checked() - touch a token if it is there, and tell
 * @words: the touch words of the wheel
 * @handle: as for tw_touch()
 * @tick: as from tw_tick()
 *
 * As tw_touch(), by a compare-and-swap. The answer is right as long as all touches
 * of the wheel's words are checked ones. A plain touch may undo a checked one of
 * the same moment. A plain touch by the handle of a token that has ended makes
 * checked touches by that handle succeed, and those of the token that has its
 * place now fail, until a reader or an operation comes by.
 *
 * Return: true if the token was there and is touched, false if it has ended.
 */
static inline bool tw_touch_checked(struct tw_words *words, uint64_t handle,
				    uint32_t tick)
{
	struct tw_word *word = &words->words[(uint32_t)handle];
	const uint64_t touched = tw_touch_word(handle, tick);
	uint64_t old = __atomic_load_n(&word->value, __ATOMIC_RELAXED);

	do {
		if ((old ^ handle) >> 32)
			return false;
		/* Ticks wrap: not older is less than half of them ahead. */
		if ((uint32_t)old && (uint32_t)(old - touched) <= INT32_MAX)
			return true;
	} while (!__atomic_compare_exchange_n(&word->value, &old, touched,
					      false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

/*
 * Connections without touches
 *
 * A token of a TCP connection need not be touched. It is registered with its timeout
 * when the connection opens. When it comes due, its reader asks when data last came
 * in. If that is long enough ago, the connection is silent; else the reader registers
 * the token again for what is left:
 *
 *	int64_t idle = tw_tcp_idle(fd);
 *
 *	if (idle < 0)
 *		;			// the connection has ended
 *	else if ((uint64_t)idle >= timeout)
 *		offline(fd);
 *	else
 *		tw_op_register(&op, fd, timeout - idle, 0, 0);
 *
 * So each connection is asked once in a timeout, however much data it carries.
 * timewheel(7) tells when that is right, and when a program has to touch.
 *
 * TCP counts this time in jiffies of at most 10 ms, from when data came in order. A
 * keep-alive probe, an acknowledgment, and data that was there before do not count.
 * The count begins with the connection, and after 49 days of silence begins again.
 * TCP does not see data that a BPF program moves between two sockets of the machine.
 */

/**
 * struct tw_tcp - a TCP connection, which may be another process' one
 * @id: its addresses, ports, interface and cookie, as tw_tcp_name() or sock_diag(7)
 *	tells them. Without the cookie it might be another connection with the same
 *	ports
 * @family: %AF_INET or %AF_INET6
 * @error: out: 0; %ENOTCONN it has ended; another errno the kernel does not answer;
 *	%EINPROGRESS it has not been asked
 * @received: out: ns since data last came in
 * @sent: out: ns since data was last sent
 */
struct tw_tcp {
	struct inet_diag_sockid	id;
	int32_t			family;
	int32_t			error;
	uint64_t		received;
	uint64_t		sent;
};

/**
 * tw_tcp_idle() - for how long no data has come in on a TCP connection
 * @fd: a file descriptor of the connection
 *
 * May wait for a call of another thread that is busy with the socket.
 *
 * Errors: %EBADF @fd is not open; %ENOTCONN the socket is not connected, or its
 * connection has ended; %ENOTSOCK @fd is no socket; %EPROTONOSUPPORT its protocol is
 * not TCP, but MPTCP, say.
 *
 * Return: ns since data last came in, or -1 and errno.
 */
int64_t tw_tcp_idle(int fd);

/**
 * tw_tcp_name() - who a connection is, for tw_tcp_ask() in another process
 * @fd: a file descriptor of the connection
 * @tcp: the call stores @id and @family here, and 0 in all else
 *
 * May wait for a call of another thread that is busy with the socket.
 *
 * Errors: those of tw_tcp_idle(). *@tcp stays as it was then.
 *
 * Return: 0, or -1 and errno.
 */
int tw_tcp_name(int fd, struct tw_tcp *tcp);

/**
 * tw_tcp_ask() - when data last came in and went out on connections of any process
 * @diag: socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), opened in the
 *	network namespace of the connections. One thread at a time may use it
 * @tcp: array of @count connections: @id and @family are what is asked, the other
 *	fields are the answer
 * @count: how many
 *
 * Needs no right, and touches no process: it may hang. Also tells of connections
 * that no process has accepted yet. 64 questions are one system call, and so each
 * costs less than one by itself. May wait for a call of a thread that is busy with
 * such a socket.
 *
 * Errors: %ENOBUFS the receive buffer of @diag has no room for one answer;
 * %EPROTONOSUPPORT the kernel lacks the module tcp_diag; also what send(2) and recv(2)
 * fail with.
 *
 * Return: 0, each connection has been asked, see its @error; or -1 and errno, and the
 * @error of those that have not been asked is %EINPROGRESS.
 */
int tw_tcp_ask(int diag, struct tw_tcp *tcp, size_t count);

/* Statistics */

/**
 * tw_wheel_stats() - how late a wheel's events have been
 * @wheel: the wheel
 * @lateness: array of %TIMEWHEEL_BUCKETS: histogram of the events read so far: ns
 *	from the deadline until a reader took the token
 *
 * A wheel opened for reading only will do. May sleep for memory.
 *
 * Errors: %EFAULT @lateness is no such address; %ENOMEM; those common to all.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_stats(const struct tw_wheel *wheel, uint64_t *lateness);

/**
 * tw_histogram_bounds() - which values a bucket of a histogram counts
 * @bucket: which one, less than %TIMEWHEEL_BUCKETS
 * @low: the call stores the least of them here; or NULL
 * @high: the call stores the greatest of them here; or NULL
 *
 * Does not block.
 *
 * Errors: %EDOM there is no such bucket.
 *
 * Return: 0, or -1 and errno.
 */
int tw_histogram_bounds(unsigned int bucket, uint64_t *low, uint64_t *high);

/**
 * tw_histogram_percentile() - the value that a share of all do not exceed
 * @buckets: a histogram: array of %TIMEWHEEL_BUCKETS, as of tw_wheel_stats()
 * @percent: the share, 0 to 100: 50 for the median, 99.9, 100 for the greatest
 * @value: the call stores the value here: the greatest of the first bucket with
 *	which at least @percent of all values, and at least one, are reached. It is
 *	at most a quarter too high
 *
 * Does not block.
 *
 * Errors: %EINVAL @percent is outside its range; %ENODATA nothing was counted.
 *
 * Return: 0, or -1 and errno.
 */
int tw_histogram_percentile(const uint64_t *buckets, double percent,
			    uint64_t *value);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* TIMEWHEEL_H */
