/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The native half of the Node package: libtimewheel's calls as functions of N-API. index.js is
 * their only caller, and never passes a closed wheel.
 *
 * A function here that returns napi_value returns NULL after it has thrown; one that
 * returns bool returns false then.
 */
#ifndef TIMEWHEEL_NODE_ADDON_H
#define TIMEWHEEL_NODE_ADDON_H

#define NAPI_VERSION 8

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <node_api.h>
#include <timewheel.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

struct watch;

/**
 * struct addon - what one environment, the main thread's or a worker's, has
 * @watches: the watches that are open
 * @handles: handles of libuv that it has to free, also those that are being closed
 * @cleanup: libnode waits until this hook is removed before the environment ends
 * @ending: the environment ends
 */
struct addon {
	struct watch			*watches;
	unsigned int			handles;
	napi_async_cleanup_hook_handle	cleanup;
	bool				ending;
};

/**
 * struct wheel - an open wheel, behind an external value of JavaScript
 * @wheel: the library's wheel; NULL once it has been closed
 * @addon: the addon of the environment that opened it
 * @watch: tells when the wheel is readable; NULL if nobody has asked so far
 * @cursors: walks under way, which keep @wheel open
 * @realtime: its clock is the wall clock
 * @unref: the wheel does not keep its event loop alive
 * @closed: the program has closed it
 * @collected: the external value is gone
 */
struct wheel {
	struct tw_wheel	*wheel;
	struct addon	*addon;
	struct watch	*watch;
	unsigned int	cursors;
	bool		realtime;
	bool		unref;
	bool		closed;
	bool		collected;
};

/* values.c: numbers, times, names and errors */

extern const char *const clock_names[];
extern const char *const state_names[];

napi_value throw_type(napi_env env, const char *message);
napi_value throw_range(napi_env env, const char *message);
napi_value error_of(napi_env env, int err, const char *call, const char *name);
napi_value throw_errno(napi_env env, const char *call, const char *name);

bool is_given(napi_env env, napi_value value);
uint32_t flag_of(napi_env env, napi_value given, uint32_t flag);
bool u64_of(napi_env env, napi_value value, uint64_t *number);
bool u32_of(napi_env env, napi_value value, uint32_t *number);
bool duration_of(napi_env env, napi_value value, uint64_t *ns);
bool point_of(napi_env env, napi_value value, bool realtime, uint64_t *ns);
bool name_of(napi_env env, napi_value value, char *name, size_t size);
bool index_of(napi_env env, napi_value value, const char *const *names,
	      uint32_t *index);

napi_value big(napi_env env, uint64_t number);
napi_value number(napi_env env, double number);
napi_value date(napi_env env, uint64_t ns, bool realtime);

/* objects.c: structures as objects */

/**
 * enum kind - what a field of a structure becomes
 * @BIG: a BigInt
 * @SIGNED_NS: a BigInt, which may be negative
 * @NUMBER: a number
 * @NUMBER32: a number, of 32 bits
 * @MS: a duration, a number of milliseconds
 * @POINT: a point of time: a BigInt of ns, and a Date if the clock is the wall clock
 * @CLOCK: the name of a clock
 * @STATE: the name of a token's state
 * @BIT: whether a bit of the field is set
 * @NO_BIT: whether it is not
 */
enum kind {
	BIG, SIGNED_NS, NUMBER, NUMBER32, MS, POINT, CLOCK, STATE, BIT, NO_BIT,
};

/**
 * struct field - a field of a structure, and the property that it becomes
 * @name: the property's name; the BigInt of a POINT has "Ns" behind it
 * @kind: the kind of the property
 * @offset: the place of the field
 * @bit: the bit of the field, for a BIT or NO_BIT
 */
struct field {
	const char	*name;
	enum kind	kind;
	size_t		offset;
	uint32_t	bit;
};

#define MOST_FIELDS	48

/**
 * struct shape - what structures of one kind become, prepared to make many of them
 * @env: the environment
 * @fields: the fields
 * @count: how many
 * @realtime: points of time are of the wall clock
 * @keys: the properties' names
 * @ns_keys: the names of the BigInts of POINTs
 */
struct shape {
	napi_env		env;
	const struct field	*fields;
	size_t			count;
	bool			realtime;
	napi_value		keys[MOST_FIELDS];
	napi_value		ns_keys[MOST_FIELDS];
};

void shape_events(struct shape *shape, napi_env env, bool realtime);
void shape_tokens(struct shape *shape, napi_env env, bool realtime);
napi_value object_of(const struct shape *shape, const void *structure);
void set_object(napi_value array, uint32_t index, const struct shape *shape,
		const void *structure);
napi_value object_of_info(napi_env env, const struct timewheel_info *info);
napi_value object_of_caps(napi_env env, const struct timewheel_caps *caps);

/* Each file has a table of the functions that index.js calls. */

struct call {
	const char	*name;
	napi_callback	function;
	void		*data;
};

extern const struct call wheel_calls[];
extern const struct call token_calls[];
extern const struct call op_calls[];
extern const struct call event_calls[];

/* wheel.c */
struct wheel *arguments(napi_env env, napi_callback_info info, napi_value *argv,
			size_t argc);
void wheel_settle(struct wheel *wheel);

/* tokens.c */

/**
 * struct keys - many keys
 * @keys: ids or handles, in memory that belongs to JavaScript
 * @count: how many
 * @flags: TIMEWHEEL_OPF_BY_HANDLE, or 0
 */
struct keys {
	const uint64_t	*keys;
	size_t		count;
	uint32_t	flags;
};

bool keys_of(napi_env env, const napi_value given[2], struct keys *keys);
bool key_of(napi_env env, napi_value value, uint64_t *key, uint32_t *flags);

/* ops.c */
napi_value op_codes(napi_env env);
napi_value op_results(napi_env env);

/* events.c */
void watch_close(struct wheel *wheel);
void addon_end(napi_async_cleanup_hook_handle handle, void *data);

#endif /* TIMEWHEEL_NODE_ADDON_H */
