/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtimewheel: the timewheel device for C and C++ programs.
 *
 * A wheel is a ring of slots turned by a timer in the kernel; a token is one
 * pending timeout on it. Tokens are registered, touched, moved and cancelled,
 * singly or in batches; those that expire are read as events. What a wheel, a
 * token and their fields are is told once, in <linux/timewheel.h>, of which
 * programs see all structures, flags and result bits as they are.
 *
 *	struct timewheel_setup setup = {
 *		.size = sizeof(setup),
 *		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
 *		.slots = 31,
 *		.tick = 1000000000,
 *		.max_tokens = 100000,
 *	};
 *	struct tw_wheel *wheel = tw_wheel_open(&setup);
 *	struct tw_events *events = tw_events_new(64);
 *
 *	tw_wheel_touch_or_register(wheel, user, 30000000000, 0, 0, NULL);
 *	...
 *	n = tw_events_read(events, wheel, TIMEWHEEL_NEVER);
 *	for (i = 0; i < n; i++)
 *		offline(tw_events_at(events, i)->id);
 *
 * Conventions
 *
 * Results: a function that returns int or ssize_t returns -1 and sets errno
 * when it fails, one that returns a pointer NULL and errno. A call that fails
 * has changed nothing, unless it says otherwise.
 *
 * Times: uint64_t nanoseconds. Durations are those, absolute times are of the
 * wheel's clock. TIMEWHEEL_NEVER is a time that is never reached.
 *
 * Structures: @size is set by the caller to sizeof() the structure, as it
 * knows it, in struct timewheel_setup, _op, _info and _caps. That is how they
 * grow, and programs built before go on as they are. %EINVAL: @size is too small
 * (not set?), an undefined flag, a reserved field that is not zero. %E2BIG: a
 * field is used that the kernel does not know.
 *
 * Keys: a token is named by its id, a number of the program's choice; or, with
 * %TIMEWHEEL_OPF_BY_HANDLE in @flags, by the handle that its registration gave.
 *
 * Delivery: a read ends the token of an event, even if the reader dies then: each
 * event is delivered at most once. On a wheel with a @lease a read does not end it:
 * each event is delivered at least once, see "Delivery".
 *
 * Ownership: whatever a _open(), _new() or _map() function returns belongs to the
 * caller until it is given to the _close(), _free() or _unmap() function of its
 * kind, which takes NULL too, and leaves errno as it is. Nothing else that is
 * returned is to be freed.
 *
 * Threads: any number of them may use one wheel at once, for whatever calls,
 * until one closes it. A buffer of events, a batch, a cursor is for one thread at a
 * time, as is any other memory that is passed. The library has no state of its own,
 * starts no thread, and installs no signal handler.
 *
 * Processes: a fork(2) shares its parent's wheels, and what is mapped of them.
 * Wheels are closed on execve(2). An fd may be sent to another process, which makes a
 * wheel of it by tw_wheel_open_fd().
 *
 * Errors that a function may give besides its own where it says "those common to
 * all", of which %EBADF only where it changes the wheel:
 *
 * ===========  ===============================================================
 * %EBADF       the wheel was opened for reading only, and the call changes it;
 *              or for writing only, and the call is tw_events_read()
 * %ENODEV      the wheel was a named one, and has been destroyed
 * %ENOTTY      the kernel's module is older and does not know the call
 * ===========  ===============================================================
 */
#ifndef TIMEWHEEL_H
#define TIMEWHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* C99 has no unnamed unions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <linux/timewheel.h>
#pragma GCC diagnostic pop

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * DOC: struct tw_wheel
 *
 * A wheel that this process has open: private or named. Any number of threads
 * may use it at once.
 */
struct tw_wheel;

/**
 * DOC: struct tw_events
 *
 * A buffer for events, to be filled by one read after another.
 */
struct tw_events;

/**
 * DOC: struct tw_batch
 *
 * Operations that are to be carried out by one call, and their results.
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
 * @value: as <linux/timewheel.h> says; where a uint64_t is aligned to less, as for
 *	32 bit, it is still to be written as one
 */
struct tw_word {
	uint64_t	value __attribute__((aligned(8)));
};

/**
 * struct tw_words - the touch words of a wheel, mapped
 * @words: the words; handle h's is the one at index (uint32_t)h
 *
 * Made by tw_words_map() only: behind @words is more, which is the library's.
 */
struct tw_words {
	struct tw_word	*words;
};

/* The device */

/**
 * tw_device_caps() - what the kernel's module can do, and its limits
 * @caps: filled in; @size set by the caller, @flags and @reserved 0
 *
 * Needs the right to open /dev/timewheel for reading. Does not block.
 *
 * Errors: %ENOENT, %ENODEV or %ENXIO there is no device: the module is not
 * loaded; %EACCES or %EPERM it may not be opened; %EINVAL; %E2BIG; %EFAULT @caps
 * is no such address; %EMFILE, %ENFILE, %ENOMEM.
 *
 * Return: 0, or -1 and errno.
 */
int tw_device_caps(struct timewheel_caps *caps);

/* Wheels */

/**
 * tw_wheel_open() - make a private wheel
 * @setup: how it is to be; @size set by the caller
 *
 * The wheel is this process's, and belongs to all processes that get it by fork(2) or
 * as an fd. It ends, with all its tokens, when the last of them has closed it. Needs the
 * right to open /dev/timewheel for reading and writing. May sleep for memory.
 *
 * Errors: %ENOENT, %ENODEV or %ENXIO there is no device: the module is not
 * loaded; %EACCES or %EPERM it may not be opened; %EINVAL a value of @setup is
 * outside its range, or does not go with another; %E2BIG; %EFAULT @setup is no
 * such address; %ERANGE with such short ticks the clock is, or @start would be,
 * beyond the last tick or 2^63 ns; %EDQUOT the user would have more wheels or
 * tokens than a user may; %ENOSPC there would be more than there may be in all;
 * %EMFILE, %ENFILE, %ENOMEM.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open(const struct timewheel_setup *setup);

/**
 * tw_wheel_open_named() - open a named wheel that is there
 * @name: its name: 1 to 63 ASCII letters, digits, "-" and "_"
 * @access: %O_RDONLY to read events, list and look, %O_WRONLY to do all else,
 *	%O_RDWR for both
 *
 * Opens /dev/timewheels/NAME. Does not block.
 *
 * Errors: %EINVAL @name is empty or has another byte in it, or @access is none of
 * the three; %ENAMETOOLONG it is longer; %ENOENT, %ENODEV or %ENXIO there is no
 * wheel of this name, or it is being destroyed; %EACCES or %EPERM the node may
 * not be opened so; %ENOTTY the node is none of timewheel's; %EMFILE, %ENFILE,
 * %ENOMEM.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open_named(const char *name, int access);

/**
 * tw_wheel_open_or_create() - open a named wheel, make it if there is none
 * @name: its name, as for tw_wheel_open_named()
 * @setup: how it is to be; @size set by the caller
 * @access: as for tw_wheel_open_named()
 *
 * tw_wheel_create() without flags and tw_wheel_open_named(), again when the
 * wheel was destroyed between them. When it fails the wheel may have been made
 * all the same. May sleep for memory.
 *
 * Errors: those of the two. %EEXIST: there is one of this name that was set up
 * in another way.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open_or_create(const char *name,
					 const struct timewheel_setup *setup,
					 int access);

/**
 * tw_wheel_open_fd() - make a wheel of an fd
 * @fd: of a wheel that has been set up: received from another process or left
 *	by the one before, or a dup(2) of tw_wheel_fd()
 *
 * On success @fd belongs to the wheel, which closes it; when the call fails it
 * is still the caller's. It stays as it is, blocking or not, kept on execve(2) or
 * not. It is the same open file as the one that it was made of: what was read by
 * either fd can be answered by the other, and what they hold is not due again before
 * both are closed. Does not block.
 *
 * Errors: %EBADF @fd is not open; %ENOTTY it is no wheel's; %EBADFD it is of
 * /dev/timewheel but has not been set up; %ENODEV the wheel has been destroyed;
 * %ENOMEM.
 *
 * Return: the wheel, to be closed by tw_wheel_close(), or NULL and errno.
 */
struct tw_wheel *tw_wheel_open_fd(int fd);

/**
 * tw_wheel_close() - have done with a wheel
 * @wheel: the wheel, or NULL
 *
 * A private wheel ends with its last holder, a named one stays. What was read from
 * it under a lease, and has not been answered, is due again at once, unless the
 * same open file is open elsewhere. No thread may be in a call on it or make one
 * from now on, and its cursors are to be closed before. May take a while when many
 * tokens end with the wheel, or come back to it.
 */
void tw_wheel_close(struct tw_wheel *wheel);

/**
 * tw_wheel_fd() - the wheel's fd, for poll(2), epoll(7), io_uring and the like
 * @wheel: the wheel
 *
 * It is readable while an expired token is there. Edge-triggered waiters
 * must read until tw_events_read() with a timeout of 0 says 0. A destroyed
 * wheel gives EPOLLHUP and EPOLLERR. The fd stays the wheel's: not to be closed.
 *
 * Return: the fd. Cannot fail.
 */
int tw_wheel_fd(const struct tw_wheel *wheel);

/**
 * tw_wheel_create() - make a named wheel, without opening it
 * @name: its name, as for tw_wheel_open_named()
 * @setup: how it is to be; @size set by the caller
 * @flags: %TIMEWHEEL_CREATE_EXCLUSIVE: only a new wheel will do; else one of this name
 *	that was set up the same will do as well
 *
 * The node /dev/timewheels/NAME is there on return, owned by the caller's
 * effective user and group, mode 0600 until chmod(1) and chown(1) say otherwise.
 * The wheel turns until tw_wheel_destroy(), with or without anybody. Needs the
 * right to open /dev/timewheel for reading and writing. May sleep.
 *
 * Errors: those of tw_wheel_open(); %EEXIST there is one of this name, and the
 * call is exclusive or the setup another; %EINVAL also when @name is empty or
 * has another byte in it, or @flags another flag; %ENAMETOOLONG it is longer;
 * %ENOTTY the kernel's module has no named wheels.
 *
 * Return: 0 when it made the wheel, %TIMEWHEEL_RES_EXISTED (1) when that was there,
 * or -1 and errno.
 */
int tw_wheel_create(const char *name, const struct timewheel_setup *setup,
		    unsigned int flags);

/**
 * tw_wheel_destroy() - end a named wheel
 * @name: its name, as for tw_wheel_open_named()
 *
 * For the user who created it, and for a caller with CAP_SYS_ADMIN. The node goes and
 * the name is free. Its tokens end without events. Calls on the wheel fail with
 * %ENODEV from now on, and a read that sleeps does so at once. Needs the right to
 * open /dev/timewheel for reading and writing. May sleep.
 *
 * Errors: %ENOENT no wheel of this name, or no device; %EPERM it is not the
 * caller's, or the device may not be opened; %EINVAL @name is empty or has
 * another byte in it; %ENAMETOOLONG it is longer; %ENOTTY the kernel's module has
 * no named wheels; %ENODEV or %ENXIO no device; %EACCES it may not be opened;
 * %EMFILE, %ENFILE, %ENOMEM.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_destroy(const char *name);

/**
 * tw_wheel_info() - a wheel's settings, state and counters
 * @wheel: the wheel
 * @info: filled in; @size set by the caller, @flags 0
 *
 * The figures are taken at one moment. Does not block.
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
 * What is due by then can be read at once. Does not block.
 *
 * Errors: %EINVAL the wheel's clock is not MANUAL; %ERANGE @tick is beyond
 * %TIMEWHEEL_MAX_TICK or 2^63 ns; those common to all.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_advance(struct tw_wheel *wheel, uint64_t tick);

/**
 * tw_wheel_pause() - deliver nothing until tw_wheel_resume()
 * @wheel: the wheel
 *
 * It concerns all processes that have the wheel open. Time passes, all operations go
 * on, what falls due waits. Reads wait as if nothing were due, and the fd is not readable; a read
 * that is under way may still bring events. Deliveries that are out can be answered;
 * those whose lease is over come again after the pause. Does not block.
 *
 * Errors: those common to all.
 *
 * Return: 0, also when it was paused, or -1 and errno.
 */
int tw_wheel_pause(struct tw_wheel *wheel);

/**
 * tw_wheel_resume() - the end of tw_wheel_pause()
 * @wheel: the wheel
 *
 * What fell due meanwhile can be read at once. Does not block.
 *
 * Errors: those common to all.
 *
 * Return: 0, also when it was not paused, or -1 and errno.
 */
int tw_wheel_resume(struct tw_wheel *wheel);

/**
 * tw_wheel_drain() - take no new tokens until tw_wheel_undrain()
 * @wheel: the wheel
 *
 * It concerns all processes that have the wheel open: an operation that would register
 * a token fails with %ESHUTDOWN. All else goes on. The wheel becomes empty in time,
 * but for tokens that are periodic, acked with a delay, or buried: these have to be
 * cancelled, acked without one, or deleted. @pending, @taken, @held and @buried of
 * tw_wheel_info() tell what is left. An empty wheel goes on draining. Does not block.
 *
 * Errors: those common to all.
 *
 * Return: 0, also when it was draining, or -1 and errno.
 */
int tw_wheel_drain(struct tw_wheel *wheel);

/**
 * tw_wheel_undrain() - the end of tw_wheel_drain()
 * @wheel: the wheel
 *
 * Does not block.
 *
 * Errors: those common to all.
 *
 * Return: 0, also when it was not draining, or -1 and errno.
 */
int tw_wheel_undrain(struct tw_wheel *wheel);

/*
 * Operations on a token
 *
 * They return bits that tell how it went, 0 for nothing special:
 * TIMEWHEEL_RES_WAS_DUE: the token was past its deadline, but no reader had taken
 * it: the operation won. TIMEWHEEL_RES_REGISTERED: tw_wheel_touch_or_register()
 * found none and registered one. TIMEWHEEL_RES_HELD and TIMEWHEEL_RES_BURIED: see
 * tw_wheel_get() and tw_wheel_nack().
 *
 * %ENOENT: no token of this id is pending: never registered, cancelled, or taken
 * by a reader, who may still hold it. %ESTALE: the token of this handle is no
 * longer pending. %EINVAL also: an undefined flag, or one that does not go with
 * the operation; by id on a wheel without ids.
 */

/**
 * tw_wheel_register() - register a token
 * @wheel: the wheel
 * @id: its id, any value that no token has that is pending, held or buried; 0 on
 *	a wheel without ids
 * @time: the delay in ns after which it is due, which also becomes its timeout;
 *	0 is due at once, and no timeout
 * @cookie: handed back with its event, any value; 0 on a wheel without cookies
 * @flags: %TIMEWHEEL_OPF_ABSOLUTE: @time is a time of the wheel's clock; one
 *	that has passed is due at once; the token has no timeout
 * @handle: where its handle goes, or NULL
 *
 * A caller that wants to spread the deadlines of many tokens adds a random number to
 * each @time itself. May sleep for memory, does not block else.
 *
 * Errors: %EEXIST the id is pending, held or buried; %EINVAL see above, or an id
 * or a cookie on a wheel without; %ENOSPC the wheel has its @max_tokens tokens;
 * %ENOMEM; %ERANGE the deadline is beyond the last tick or 2^63 ns, or the delay too
 * long for a wheel with touch words; %ESHUTDOWN the wheel is draining; those common
 * to all.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_register(struct tw_wheel *wheel, uint64_t id, uint64_t time,
		      uint64_t cookie, unsigned int flags, uint64_t *handle);

/**
 * tw_wheel_register_periodic() - register a token that is due again and again
 * @wheel: the wheel, set up with %TIMEWHEEL_SETUP_PERIODS
 * @id: as for tw_wheel_register()
 * @time: the delay in ns after which it is due for the first time
 * @period: ns from one time to the next, a tick and more
 * @cookie: as for tw_wheel_register(); handed back with each of its events
 * @flags: %TIMEWHEEL_OPF_ABSOLUTE: @time is a time of the wheel's clock
 * @handle: where its handle goes, or NULL; it is valid as long as the token
 *
 * It is pending again by itself after each event, on a wheel with a @lease after
 * its ack: one event of it is out at a time. It does not drift: its deadlines are
 * whole periods from the first one, whenever events were read. If several periods
 * have passed because no reader came or an ack was late, there is one event, at once,
 * for the last of them: @missed of that tells how many periods before it had no
 * event of their own.
 *
 * A token that is to rest for some time after each event is not a periodic one.
 * Without a lease, the reader registers it again for that delay. On a wheel with a
 * @lease, the reader acks it with that delay: see tw_wheel_ack().
 *
 * It ends by tw_wheel_cancel() while it is pending, by tw_wheel_delete() on a wheel
 * with a @lease, or with the wheel. It has no timeout and cannot be touched. May
 * sleep for memory, does not block else.
 *
 * Errors: those of tw_wheel_register(); %EINVAL also when @period is shorter than a
 * tick, or the wheel was set up without periods; %ERANGE also when it is 2^63 ns
 * and more.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_register_periodic(struct tw_wheel *wheel, uint64_t id,
			       uint64_t time, uint64_t period, uint64_t cookie,
			       unsigned int flags, uint64_t *handle);

/**
 * tw_wheel_touch() - it lives: due its whole timeout from now
 * @wheel: the wheel
 * @key: the token's id, or its handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE: @key is a handle
 *
 * Never brings a deadline nearer. The quickest of the operations. Does not
 * block.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL see above, or the token has no timeout;
 * %ERANGE the deadline would be beyond the last tick or 2^63 ns; those common to
 * all.
 *
 * Return: 0 or %TIMEWHEEL_RES_WAS_DUE, or -1 and errno.
 */
int tw_wheel_touch(struct tw_wheel *wheel, uint64_t key, unsigned int flags);

/**
 * tw_wheel_touch_many() - touch many tokens, up to the first that cannot be
 * @wheel: the wheel
 * @keys: the tokens' ids, or their handles
 * @count: how many, at most %TIMEWHEEL_MAX_BATCH
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE: @keys are handles
 * @done: where goes how many, from the first on, were touched; or NULL
 *
 * As tw_wheel_touch() one after the other, for a fraction of the cost. An error is
 * that of the token of keys[@done]; those behind it have not been touched. Does not
 * block.
 *
 * Errors: those of tw_wheel_touch(); %EINVAL also: @count is too large, nothing is
 * touched; %EFAULT @keys is no such address; %EINTR a signal came before the end:
 * go on from keys[@done].
 *
 * Return: 0 when all were touched, or -1 and errno.
 */
int tw_wheel_touch_many(struct tw_wheel *wheel, const uint64_t *keys,
			size_t count, unsigned int flags, size_t *done);

/**
 * tw_wheel_touch_or_register() - touch a token, register it if there is none
 * @wheel: the wheel
 * @id: its id
 * @time: its timeout in ns if it is registered; a pending one keeps its own
 * @cookie: its cookie if it is registered; a pending one keeps its own
 * @flags: 0
 * @handle: where its handle goes if it is registered, or NULL
 *
 * May sleep for memory, does not block else.
 *
 * Errors: %EINVAL see above, or the token has no timeout, or a cookie on a wheel
 * without; %EEXIST the token is held or buried; %ENOSPC the wheel has its @max_tokens
 * tokens; %ENOMEM; %ERANGE the deadline would be beyond the last tick or 2^63 ns, or
 * the delay too long for a wheel with touch words; %ESHUTDOWN it would register and
 * the wheel is draining; those common to all.
 *
 * Return: %TIMEWHEEL_RES_REGISTERED, or 0 or %TIMEWHEEL_RES_WAS_DUE when it was touched
 * (then *@handle stays as it was), or -1 and errno.
 */
int tw_wheel_touch_or_register(struct tw_wheel *wheel, uint64_t id,
			       uint64_t time, uint64_t cookie,
			       unsigned int flags, uint64_t *handle);

/**
 * tw_wheel_move() - give a token another deadline, earlier or later
 * @wheel: the wheel
 * @key: the token's id, or its handle
 * @time: the delay in ns after which it is due, which also becomes its timeout;
 *	0 is due at once, and leaves the timeout
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE: @key is a handle; %TIMEWHEEL_OPF_ABSOLUTE: @time is
 *	a time of the wheel's clock, the timeout stays
 *
 * Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL see above; %ERANGE the deadline would be
 * beyond the last tick or 2^63 ns; those common to all.
 *
 * Return: 0 or %TIMEWHEEL_RES_WAS_DUE, or -1 and errno.
 */
int tw_wheel_move(struct tw_wheel *wheel, uint64_t key, uint64_t time,
		  unsigned int flags);

/**
 * tw_wheel_cancel() - end a token: no event will come of it
 * @wheel: the wheel
 * @key: the token's id, or its handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE: @key is a handle
 *
 * Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL see above; those common to all.
 *
 * Return: 0 or %TIMEWHEEL_RES_WAS_DUE, or -1 and errno.
 */
int tw_wheel_cancel(struct tw_wheel *wheel, uint64_t key, unsigned int flags);

/**
 * tw_wheel_get() - tell about a token, change nothing
 * @wheel: the wheel
 * @key: the token's id, or its handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE: @key is a handle
 * @op: filled in; @size set by the caller, all else 0 or as it came out before.
 *	Then @id, @handle, @cookie, @deadline, @cycle and @slot are the token's,
 *	@time the ns until its deadline, 0 when that has passed, and @lease the
 *	number of its last delivery, 0 when there was none
 *
 * Also when it is held, with the end of the lease for a deadline, or buried. A wheel
 * opened for reading only will do. Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL see above, or @size; %E2BIG; those common to
 * all. *@op is then not to be used.
 *
 * Return: bits: %TIMEWHEEL_RES_WAS_DUE when it is past its deadline,
 * %TIMEWHEEL_RES_HELD when a delivery of it is out, %TIMEWHEEL_RES_BURIED when it is
 * buried; or -1 and errno.
 */
int tw_wheel_get(const struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		 struct timewheel_op *op);

/**
 * tw_wheel_op() - any one operation, with all that it takes and tells
 * @wheel: the wheel
 * @op: the operation; the caller sets @size and what the operation reads, and finds
 *	there what it tells: a deadline, say. See struct timewheel_op
 *
 * May sleep for memory when it registers, does not block else.
 *
 * Errors: those of the operation; %EINVAL also when there is no such @code, or
 * @size, or a reserved field; %E2BIG; %EFAULT @op is no such address: when it
 * cannot be written the operation has been carried out; those common to all.
 *
 * Return: op's @result, or -1 and errno.
 */
int tw_wheel_op(struct tw_wheel *wheel, struct timewheel_op *op);

/* Events */

/**
 * tw_events_new() - a buffer for events
 * @capacity: how many of them it holds at most, 1 and more; 64 is plenty unless
 *	tens of thousands expire at once
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
 * tw_events_read() - read expired tokens
 * @events: the buffer; what it held is gone when the call is made
 * @wheel: the wheel
 * @timeout: longest time in ns to wait for the first: 0 does not wait,
 *	%TIMEWHEEL_NEVER waits as long as it takes
 *
 * Reads as many as are due and fit, in the order of their due ticks. Each event
 * goes to one reader only, and ends its token, unless the wheel has a @lease or the
 * token is periodic. Blocks while nothing is due, or the wheel is paused, for
 * @timeout of CLOCK_MONOTONIC at most, whether the fd is a blocking one or not.
 * With %TIMEWHEEL_NEVER and a blocking fd one sleeping thread is woken at a time,
 * else all of them.
 *
 * Errors: %EINTR a signal came while nothing was due (one whose handler is set up
 * with SA_RESTART does not end a wait without end on a blocking fd); %EBADF the
 * wheel was opened for writing only; %ENODEV the named wheel has been destroyed,
 * maybe while the call waited; %ENOMEM only the first read of a wheel with a @lease.
 *
 * Return: how many there are, 0 when nothing was due in time, or -1 and errno.
 */
ssize_t tw_events_read(struct tw_events *events, struct tw_wheel *wheel,
		       uint64_t timeout);

/**
 * tw_events_count() - how many events the last read brought
 * @events: the buffer
 *
 * Return: that. Cannot fail.
 */
size_t tw_events_count(const struct tw_events *events);

/**
 * tw_events_at() - one of the events that the last read brought
 * @events: the buffer
 * @index: which one, less than tw_events_count()
 *
 * They follow each other in memory: the first is an array of all. They are there
 * until the buffer is read into again, or freed.
 *
 * Errors: %EDOM there is none at @index.
 *
 * Return: the event, or NULL and errno.
 */
const struct timewheel_event *tw_events_at(const struct tw_events *events,
					   size_t index);

/*
 * Delivery
 *
 * On a wheel that was set up with a @lease, the reader of an event holds its token and
 * owes an answer: tw_wheel_ack() when the work has been done, which ends the token;
 * tw_wheel_nack() when the token is to come again later; tw_wheel_bury() when it is
 * not to come again. Without an answer it comes again, to any reader, when the lease
 * is over, and at once when the open file that it was read from is released, as by
 * the end of its processes. So each token is delivered at least once, perhaps more
 * often, and to one reader at a time.
 *
 *	while ((n = tw_events_read(events, wheel, TIMEWHEEL_NEVER)) > 0)
 *		for (i = 0; i < n; i++) {
 *			event = tw_events_at(events, i);
 *			if (remind(event->id))
 *				tw_wheel_ack(wheel, event->id, 0, event->lease);
 *			else
 *				tw_wheel_nack(wheel, event->id, 0, event->lease,
 *					      60000000000);
 *		}
 *
 * Each delivery of a token has a number, @lease of its event. An answer names it, so
 * that an answer which comes too late does not count for a later delivery. After
 * @max_attempts deliveries, if that was set up, a token is buried instead of coming
 * again. A token is held by an open file, not by a thread or a process: every process
 * that shares the fd may answer. An answer by another open file of the same wheel fails
 * with %EPERM, so that nobody answers by mistake, unless it has
 * %TIMEWHEEL_OPF_ANY_FILE.
 *
 * The words are those of beanstalkd's protocol (bury, kick, delete) and RabbitMQ's
 * (ack, nack); beanstalkd's touch is extend here, where a touch is another thing.
 *
 * Errors of all of these: %ENOENT: no token has this id. %ESTALE: none has this
 * handle, or it is being read at this moment; of an answer also: this delivery is
 * not out any more, as it was answered, or its lease was over and the token has
 * been delivered again or buried. %EPERM: another open file holds the delivery.
 * %EINVAL: the wheel has no leases, or as for the operations above.
 */

/**
 * tw_wheel_ack() - a delivery has been dealt with: its token ends
 * @wheel: the wheel
 * @key: the token's id, or its handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE: @key is a handle; %TIMEWHEEL_OPF_ANY_FILE: also when
 *	another open file holds the delivery
 * @lease: the number of the delivery, from its event
 *
 * A periodic token does not end, but is pending again. So is any token if the ack has
 * a delay, by tw_wheel_op() with %TIMEWHEEL_OP_ACK and a @time other than 0, or a
 * point of time with %TIMEWHEEL_OPF_ABSOLUTE: it is then due at that time, with all
 * its attempts before it, and one that is periodic counts its periods from there.
 * Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EPERM; %EINVAL; those common to all.
 *
 * Return: bits, 0 for nothing special, or -1 and errno.
 */
int tw_wheel_ack(struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		 uint32_t lease);

/**
 * tw_wheel_nack() - a delivery has not been dealt with: its token is due again
 * @wheel: the wheel
 * @key: as for tw_wheel_ack()
 * @flags: as for tw_wheel_ack(); %TIMEWHEEL_OPF_ABSOLUTE: @time is a time of the
 *	wheel's clock
 * @lease: as for tw_wheel_ack()
 * @time: the delay in ns after which it is due again, 0 for at once
 *
 * The attempt counts: after @max_attempts of them the token is buried instead.
 * Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EPERM; %EINVAL; %ERANGE the deadline would be beyond
 * the last tick or 2^63 ns; those common to all.
 *
 * Return: bits, of which %TIMEWHEEL_RES_BURIED says that it is buried, 0 for nothing
 * special; or -1 and errno.
 */
int tw_wheel_nack(struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		  uint32_t lease, uint64_t time);

/**
 * tw_wheel_extend() - a delivery takes longer than its lease
 * @wheel: the wheel
 * @key: as for tw_wheel_ack()
 * @flags: as for tw_wheel_ack()
 * @lease: as for tw_wheel_ack(); the number stays
 * @time: ns from now after which the lease is over, 0 for the wheel's @lease
 *
 * Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EPERM; %EINVAL; %ERANGE that would be beyond the last
 * tick or 2^63 ns, or more than %TIMEWHEEL_MAX_LEASES leases after the delivery;
 * those common to all.
 *
 * Return: bits, 0 for nothing special, or -1 and errno.
 */
int tw_wheel_extend(struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		    uint32_t lease, uint64_t time);

/**
 * tw_wheel_bury() - keep a token aside until tw_wheel_kick() or tw_wheel_delete()
 * @wheel: the wheel
 * @key: as for tw_wheel_ack()
 * @flags: as for tw_wheel_ack()
 * @lease: as for tw_wheel_ack(); 0: the token is pending, no delivery of it is out
 *
 * It keeps its id, and counts towards the wheel's @max_tokens. tw_cursor_next()
 * finds what is buried. Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EPERM; %EINVAL; those common to all.
 *
 * Return: bits, 0 for nothing special, or -1 and errno.
 */
int tw_wheel_bury(struct tw_wheel *wheel, uint64_t key, unsigned int flags,
		  uint32_t lease);

/**
 * tw_wheel_kick() - a token that is buried or pending is due now
 * @wheel: the wheel
 * @key: the token's id, or its handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE: @key is a handle
 *
 * It has all its attempts before it again. What is periodic is delivered besides, and
 * keeps to its times. Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EBUSY the token is held; %EINVAL; those common to
 * all.
 *
 * Return: bits, 0 for nothing special, or -1 and errno.
 */
int tw_wheel_kick(struct tw_wheel *wheel, uint64_t key, unsigned int flags);

/**
 * tw_wheel_delete() - end a token, whether it is pending, held or buried
 * @wheel: the wheel
 * @key: the token's id, or its handle
 * @flags: %TIMEWHEEL_OPF_BY_HANDLE: @key is a handle
 *
 * Who holds it, if anybody does, learns of it by the %ENOENT or %ESTALE of the
 * answer. Does not block.
 *
 * Errors: %ENOENT; %ESTALE; %EINVAL; those common to all.
 *
 * Return: bits, 0 for nothing special, or -1 and errno.
 */
int tw_wheel_delete(struct tw_wheel *wheel, uint64_t key, unsigned int flags);

/* Batches */

/**
 * tw_batch_new() - room for operations
 * @capacity: how many of them it holds at most, 1 to %TIMEWHEEL_MAX_BATCH
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
 * tw_batch_register() - add the registration of a token
 * @batch: the batch
 * @id: as for tw_wheel_register()
 * @time: as for tw_wheel_register()
 * @cookie: as for tw_wheel_register()
 * @flags: as for tw_wheel_register()
 *
 * Nothing of it is looked at before tw_batch_run(). Afterwards @handle and
 * @deadline of tw_batch_op() are the token's.
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_register(struct tw_batch *batch, uint64_t id, uint64_t time,
		      uint64_t cookie, unsigned int flags);

/**
 * tw_batch_touch() - add the touch of a token
 * @batch: the batch
 * @key: as for tw_wheel_touch()
 * @flags: as for tw_wheel_touch()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_touch(struct tw_batch *batch, uint64_t key, unsigned int flags);

/**
 * tw_batch_touch_or_register() - add the touch or registration of a token
 * @batch: the batch
 * @id: as for tw_wheel_touch_or_register()
 * @time: as for tw_wheel_touch_or_register()
 * @cookie: as for tw_wheel_touch_or_register()
 * @flags: as for tw_wheel_touch_or_register()
 *
 * Nothing of it is looked at before tw_batch_run(). Afterwards, if it was
 * registered, @handle of tw_batch_op() is the token's.
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_touch_or_register(struct tw_batch *batch, uint64_t id,
			       uint64_t time, uint64_t cookie,
			       unsigned int flags);

/**
 * tw_batch_move() - add the move of a token
 * @batch: the batch
 * @key: as for tw_wheel_move()
 * @time: as for tw_wheel_move()
 * @flags: as for tw_wheel_move()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_move(struct tw_batch *batch, uint64_t key, uint64_t time,
		  unsigned int flags);

/**
 * tw_batch_cancel() - add the cancellation of a token
 * @batch: the batch
 * @key: as for tw_wheel_cancel()
 * @flags: as for tw_wheel_cancel()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_cancel(struct tw_batch *batch, uint64_t key, unsigned int flags);

/**
 * tw_batch_get() - add a look at a token
 * @batch: the batch
 * @key: as for tw_wheel_get()
 * @flags: as for tw_wheel_get()
 *
 * Nothing of it is looked at before tw_batch_run(). Afterwards tw_batch_op()
 * tells about the token.
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_get(struct tw_batch *batch, uint64_t key, unsigned int flags);

/**
 * tw_batch_register_periodic() - add the registration of a periodic token
 * @batch: the batch
 * @id: as for tw_wheel_register_periodic()
 * @time: as for tw_wheel_register_periodic()
 * @period: as for tw_wheel_register_periodic()
 * @cookie: as for tw_wheel_register_periodic()
 * @flags: as for tw_wheel_register_periodic()
 *
 * Nothing of it is looked at before tw_batch_run(). Afterwards @handle and
 * @deadline of tw_batch_op() are the token's.
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_register_periodic(struct tw_batch *batch, uint64_t id,
			       uint64_t time, uint64_t period, uint64_t cookie,
			       unsigned int flags);

/**
 * tw_batch_ack() - add the ack of a delivery
 * @batch: the batch
 * @key: as for tw_wheel_ack()
 * @flags: as for tw_wheel_ack()
 * @lease: as for tw_wheel_ack()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_ack(struct tw_batch *batch, uint64_t key, unsigned int flags,
		 uint32_t lease);

/**
 * tw_batch_nack() - add the nack of a delivery
 * @batch: the batch
 * @key: as for tw_wheel_nack()
 * @flags: as for tw_wheel_nack()
 * @lease: as for tw_wheel_nack()
 * @time: as for tw_wheel_nack()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_nack(struct tw_batch *batch, uint64_t key, unsigned int flags,
		  uint32_t lease, uint64_t time);

/**
 * tw_batch_extend() - add the extension of a lease
 * @batch: the batch
 * @key: as for tw_wheel_extend()
 * @flags: as for tw_wheel_extend()
 * @lease: as for tw_wheel_extend()
 * @time: as for tw_wheel_extend()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_extend(struct tw_batch *batch, uint64_t key, unsigned int flags,
		    uint32_t lease, uint64_t time);

/**
 * tw_batch_bury() - add the burial of a token
 * @batch: the batch
 * @key: as for tw_wheel_bury()
 * @flags: as for tw_wheel_bury()
 * @lease: as for tw_wheel_bury()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_bury(struct tw_batch *batch, uint64_t key, unsigned int flags,
		  uint32_t lease);

/**
 * tw_batch_kick() - add the kick of a token
 * @batch: the batch
 * @key: as for tw_wheel_kick()
 * @flags: as for tw_wheel_kick()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_kick(struct tw_batch *batch, uint64_t key, unsigned int flags);

/**
 * tw_batch_delete() - add the end of a token
 * @batch: the batch
 * @key: as for tw_wheel_delete()
 * @flags: as for tw_wheel_delete()
 *
 * Nothing of it is looked at before tw_batch_run().
 *
 * Errors: %ENOBUFS the batch is full.
 *
 * Return: the operation's index in the batch, or -1 and errno.
 */
int tw_batch_delete(struct tw_batch *batch, uint64_t key, unsigned int flags);

/**
 * tw_batch_count() - how many operations are in a batch
 * @batch: the batch
 *
 * Return: that. Cannot fail.
 */
size_t tw_batch_count(const struct tw_batch *batch);

/**
 * tw_batch_run() - carry out what of a batch has not been carried out yet
 * @batch: the batch; its operations stay there, with their results, until
 *	tw_batch_clear()
 * @wheel: the wheel
 *
 * In the order in which they were added, each by itself: one that fails does not
 * end the batch. May sleep for memory when some of them register, does not block
 * else.
 *
 * Errors: %EINTR a signal came before all were carried out: call it again to go
 * on from there; %ENODEV the named wheel has been destroyed: the rest was not
 * carried out.
 *
 * Return: how many of all operations in the batch have failed, 0 for none, see
 * tw_batch_result(); or -1 and errno.
 */
int tw_batch_run(struct tw_batch *batch, struct tw_wheel *wheel);

/**
 * tw_batch_result() - how one operation of a batch went
 * @batch: the batch
 * @index: which one, as it was returned when it was added
 *
 * Errors: those of the operation; %EBADF the wheel was opened for reading only,
 * and the operation changes it; %EINPROGRESS it has not been carried out yet;
 * %EDOM there is none at @index.
 *
 * Return: what the function tw_wheel_*() of its name would have returned.
 */
int tw_batch_result(const struct tw_batch *batch, size_t index);

/**
 * tw_batch_op() - one operation of a batch, with all that it told
 * @batch: the batch
 * @index: which one, as it was returned when it was added
 *
 * It is there until tw_batch_clear() and tw_batch_free().
 *
 * Errors: %EDOM there is none at @index.
 *
 * Return: the operation, or NULL and errno.
 */
const struct timewheel_op *tw_batch_op(const struct tw_batch *batch,
				       size_t index);

/* Listing */

/**
 * tw_cursor_open() - begin a walk through a wheel's tokens
 * @wheel: the wheel, which has to stay open until tw_cursor_close()
 * @from: only tokens due at this time or later, in ns of the wheel's clock; 0
 *	for all
 * @to: only tokens due at this time or earlier; %TIMEWHEEL_NEVER for all
 *
 * Looks at nothing yet.
 *
 * Errors: %ENOMEM.
 *
 * Return: the cursor, to be closed by tw_cursor_close(), or NULL and errno.
 */
struct tw_cursor *tw_cursor_open(const struct tw_wheel *wheel, uint64_t from,
				 uint64_t to);

/**
 * tw_cursor_close() - have done with a walk, at its end or before
 * @cursor: the cursor, or NULL
 */
void tw_cursor_close(struct tw_cursor *cursor);

/**
 * tw_cursor_next() - the next token
 * @cursor: the cursor
 * @token: where its address goes; it is there until the next call on @cursor
 *
 * In no order of time. A token that is there throughout comes exactly once,
 * whatever is registered, touched, moved, cancelled, read and answered meanwhile;
 * one that comes or goes meanwhile at most once. @state tells whether it is
 * pending, held or buried, @lease and @attempts of its deliveries. A wheel opened
 * for reading only will do. Does not block.
 *
 * Errors: those common to all.
 *
 * Return: 1, or 0 when there are no more (then *@token stays as it was), or -1
 * and errno.
 */
int tw_cursor_next(struct tw_cursor *cursor,
		   const struct timewheel_token **token);

/*
 * Mapped touches
 *
 * Tokens of a wheel that was set up with %TIMEWHEEL_SETUP_TOUCH_WORDS can be touched by
 * a store to memory. It takes a few instructions and no system call, and says
 * less: with which tick, and what becomes of a touch that comes too late.
 *
 *	uint32_t tick = tw_tick(words);		// once per turn of a loop
 *
 *	for (i = 0; i < packets; i++)
 *		tw_touch(words, handle_of(packet[i]), tick);
 *
 * Any number of threads and processes may touch the same tokens at once. They
 * may in a signal handler too.
 */

/**
 * tw_words_map() - map a wheel's touch words
 * @wheel: the wheel, which has to stay open until tw_words_unmap()
 *
 * The wheel has to be open for reading and writing. A child by fork(2) has them
 * too; in another time namespace it maps its own. May sleep for memory.
 *
 * Errors: %EACCES the wheel was not opened for both; %EINVAL it was set up
 * without %TIMEWHEEL_SETUP_TOUCH_WORDS; %ENODEV the named wheel has been destroyed;
 * %ENOMEM also when the address space, or what of it may be used, is too small;
 * %EAGAIN memory is to be locked, by mlockall(2), and this would be too much.
 *
 * Return: the words, to be unmapped by tw_words_unmap(), or NULL and errno.
 */
struct tw_words *tw_words_map(struct tw_wheel *wheel);

/**
 * tw_words_unmap() - have done with touch words
 * @words: the words, or NULL
 */
void tw_words_unmap(struct tw_words *words);

/**
 * tw_tick() - the tick of now, to touch with
 * @words: the touch words of the wheel
 *
 * Reads the clock without a system call, where the kernel's vDSO can: 20 to 50 ns.
 * On a MANUAL wheel it is the hand, by a system call; 0 if the wheel has been
 * destroyed. For a loop it is enough to ask once per turn: a touch says that the
 * token lived on this tick, and an old tick makes it due as much earlier.
 *
 * Return: the low 32 bits of the tick. Cannot fail.
 */
uint32_t tw_tick(const struct tw_words *words);

/**
 * tw_touch_word() - what a touch stores in a token's word
 * @handle: the token's handle
 * @tick: as from tw_tick()
 *
 * For programs that store for themselves.
 *
 * Return: that. Cannot fail.
 */
static inline uint64_t tw_touch_word(uint64_t handle, uint32_t tick)
{
	/* A 0 there says "not touched". */
	return (handle & 0xffffffff00000000ULL) | (tick ? tick : 1);
}

/**
 * tw_touch() - it lives: due its whole timeout after the end of a tick
 * @words: the touch words of the wheel
 * @handle: the handle of a token of this wheel, which may have ended; none
 *	else, not even 0: there may be no memory where its word would be
 * @tick: as from tw_tick()
 *
 * One store. Never brings a deadline nearer. A touch of a token that has no
 * timeout does nothing. Nothing tells whether the token was still there: when it
 * was not, the touch is lost; when another token has its place by then, that one
 * is touched instead, and is late by one timeout at most. Of two plain touches at
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
 * As tw_touch(), by a compare-and-swap. It tells the truth while all who touch the
 * wheel's tokens by words do it so. A plain touch may undo a checked one of the
 * same moment. One by the handle of a token that has ended lets a checked one by
 * that handle succeed, and one of the token that has its place now fail, until a
 * reader or an operation comes by.
 *
 * Return: true when the token was there and is touched, false when it has ended.
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

/* Statistics */

/**
 * tw_wheel_stats() - how late a wheel's events have been
 * @wheel: the wheel
 * @lateness: array of %TIMEWHEEL_BUCKETS, or NULL: histogram of the events read
 *	so far: ns from the deadline until a reader took the token
 * @wake: array of %TIMEWHEEL_BUCKETS, or NULL: histogram of the times that the
 *	wheel's timer went off: ns from when it should have until somebody looked
 *
 * Both are of one moment. A wheel opened for reading only will do. May sleep for
 * memory.
 *
 * Errors: %EFAULT an array is no such address; %ENOMEM; those common to all.
 *
 * Return: 0, or -1 and errno.
 */
int tw_wheel_stats(const struct tw_wheel *wheel, uint64_t *lateness,
		   uint64_t *wake);

/**
 * tw_histogram_bounds() - which values a bucket of a histogram counts
 * @bucket: which one, less than %TIMEWHEEL_BUCKETS
 * @low: where the least of them goes, or NULL
 * @high: where the greatest of them goes, or NULL
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
 * @value: where the value goes: the greatest of the first bucket with which at
 *	least @percent of all that was counted, and at least one, is reached:
 *	at most a quarter too high
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
