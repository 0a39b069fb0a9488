// SPDX-License-Identifier: LGPL-2.1-or-later
/* Wheels: makes, opens and closes them, and tells about them. */
#include <fcntl.h>

#include "addon.h"

/* The room is enough for a name that is too long. */
#define NAME_ROOM	(2 * TIMEWHEEL_NAME_SIZE)

static const char *const access_names[] = { "r", "w", "rw", NULL };
static const int accesses[] = { O_RDONLY, O_WRONLY, O_RDWR };

/* Returns the wheel that is the first argument of a function. */
struct wheel *arguments(napi_env env, napi_callback_info info, napi_value *argv,
			size_t argc)
{
	void *wheel = NULL;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (napi_get_value_external(env, argv[0], &wheel) != napi_ok)
		throw_type(env, "a wheel is needed");
	return wheel;
}

/* Closes and frees a wheel that nobody needs any more. */
void wheel_settle(struct wheel *wheel)
{
	if (wheel->closed && !wheel->cursors) {
		tw_wheel_close(wheel->wheel);
		wheel->wheel = NULL;
	}
	if (wheel->collected && !wheel->cursors)
		free(wheel);
}

static void wheel_collected(napi_env env, void *data, void *hint)
{
	struct wheel *wheel = data;

	watch_close(wheel);
	wheel->closed = true;
	wheel->collected = true;
	wheel_settle(wheel);
}

static napi_value wheel_close(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));

	if (wheel) {
		watch_close(wheel);
		wheel->closed = true;
		wheel_settle(wheel);
	}
	return NULL;
}

/* Makes an object of the wheel @opened, which is NULL, with errno, if it could not be opened. */
static napi_value wheel_of(napi_env env, struct tw_wheel *opened, const char *name)
{
	struct timewheel_info info = { .size = sizeof(info) };
	napi_value external = NULL;
	struct wheel *wheel;

	if (!opened)
		return throw_errno(env, "open", name);
	wheel = calloc(1, sizeof(*wheel));
	if (!wheel) {
		tw_wheel_close(opened);
		return throw_errno(env, "open", name);
	}
	wheel->wheel = opened;
	/* A wheel that has been destroyed meanwhile will say so at its first use. */
	wheel->realtime = !tw_wheel_info(opened, &info) &&
			  info.clock == TIMEWHEEL_CLOCK_REALTIME;
	napi_get_instance_data(env, (void **)&wheel->addon);
	if (napi_create_external(env, wheel, wheel_collected, NULL,
				 &external) != napi_ok)
		wheel_collected(env, wheel, NULL);
	return external;
}

/* Setups */

static bool setup_clock(napi_env env, napi_value value, void *field)
{
	return index_of(env, value, clock_names, field);
}

static bool setup_duration(napi_env env, napi_value value, void *field)
{
	uint64_t ns = 0;
	bool ok = duration_of(env, value, &ns);

	*(__u64 *)field = ns;
	return ok;
}

static bool setup_u64(napi_env env, napi_value value, void *field)
{
	uint64_t number = 0;
	bool ok = u64_of(env, value, &number);

	*(__u64 *)field = number;
	return ok;
}

static bool setup_u32(napi_env env, napi_value value, void *field)
{
	return u32_of(env, value, field);
}

/* The most deliveries, unless a setup has maxHeld. */
#define MOST_HELD	65536

#define SETUP(member)	offsetof(struct timewheel_setup, member)

static const struct setup_field {
	const char	*name;
	bool		needed;
	bool		(*read)(napi_env env, napi_value value, void *to);
	size_t		offset;
} setup_fields[] = {
	{ "slots",	true,	setup_u32,	SETUP(slots) },
	{ "tick",	true,	setup_duration,	SETUP(tick) },
	{ "maxTokens",	true,	setup_u64,	SETUP(max_tokens) },
	{ "clock",	false,	setup_clock,	SETUP(clock) },
	{ "start",	false,	setup_u64,	SETUP(start) },
	{ "lease",	false,	setup_duration,	SETUP(lease) },
	{ "maxHeld",	false,	setup_u32,	SETUP(max_held) },
	{ "slack",	false,	setup_duration,	SETUP(slack) },
};

/* The flags, and the value that a property has to have for them. */
static const struct setup_flag {
	const char	*name;
	uint32_t	flag;
	bool		when;
} setup_flags[] = {
	{ "ids",	TIMEWHEEL_SETUP_NO_IDS,		false },
	{ "cookies",	TIMEWHEEL_SETUP_NO_COOKIES,	false },
	{ "periods",	TIMEWHEEL_SETUP_PERIODS,	true },
};

static bool property(napi_env env, napi_value object, const char *name,
		     napi_value *value)
{
	return napi_get_named_property(env, object, name, value) == napi_ok;
}

static bool add_flag(napi_env env, napi_value object, const struct setup_flag *flag,
		     uint32_t *flags)
{
	napi_value value;
	bool is = !flag->when;

	if (!property(env, object, flag->name, &value))
		return false;
	if (is_given(env, value) && napi_get_value_bool(env, value, &is) != napi_ok) {
		throw_type(env, "what a wheel has or not is true or false");
		return false;
	}
	if (is == flag->when)
		*flags |= flag->flag;
	return true;
}

/* Refuses the option "process" in the wrong place, where it would give a wheel of the kernel. */
static bool has_no_process(napi_env env, napi_value object)
{
	napi_value value;

	if (!property(env, object, "process", &value))
		return false;
	if (!is_given(env, value))
		return true;
	throw_type(env, "process is no part of a setup: Wheel.open(setup, { process })");
	return false;
}

static bool setup_of(napi_env env, napi_value object, struct timewheel_setup *setup)
{
	const struct setup_field *field;
	napi_value value;
	size_t i;

	*setup = (struct timewheel_setup) { .size = sizeof(*setup) };
	if (!is_given(env, object)) {
		throw_type(env, "a setup is needed");
		return false;
	}
	if (!has_no_process(env, object))
		return false;
	for (i = 0; i < ARRAY_SIZE(setup_fields); i++) {
		field = &setup_fields[i];
		if (!property(env, object, field->name, &value))
			return false;
		if ((field->needed || is_given(env, value)) &&
		    !field->read(env, value, (char *)setup + field->offset))
			return false;
	}
	for (i = 0; i < ARRAY_SIZE(setup_flags); i++)
		if (!add_flag(env, object, &setup_flags[i], &setup->flags))
			return false;
	if (setup->lease && !setup->max_held)
		setup->max_held = setup->max_tokens < MOST_HELD ?
				  setup->max_tokens : MOST_HELD;
	return true;
}

/* Opening */

/* open(setup, process): opens a private wheel */
static napi_value wheel_open(napi_env env, napi_callback_info info)
{
	struct timewheel_setup setup;
	napi_value argv[2];
	size_t argc = ARRAY_SIZE(argv);
	bool process;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (!setup_of(env, argv[0], &setup))
		return NULL;
	if (napi_get_value_bool(env, argv[1], &process) != napi_ok)
		return throw_type(env, "process is true or false");
	return wheel_of(env, process ? tw_wheel_open_process(&setup) :
			tw_wheel_open(&setup), NULL);
}

/* openNamed(name, access): opens a named wheel */
static napi_value wheel_open_named(napi_env env, napi_callback_info info)
{
	char name[NAME_ROOM];
	napi_value argv[2];
	size_t argc = ARRAY_SIZE(argv);
	uint32_t access;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (!name_of(env, argv[0], name, sizeof(name)) ||
	    !index_of(env, argv[1], access_names, &access))
		return NULL;
	return wheel_of(env, tw_wheel_open_named(name, accesses[access]), name);
}

/* openOrCreate(name, setup, access): opens a named wheel, or makes it */
static napi_value wheel_open_or_create(napi_env env, napi_callback_info info)
{
	struct timewheel_setup setup;
	char name[NAME_ROOM];
	napi_value argv[3];
	size_t argc = ARRAY_SIZE(argv);
	uint32_t access;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (!name_of(env, argv[0], name, sizeof(name)) ||
	    !setup_of(env, argv[1], &setup) ||
	    !index_of(env, argv[2], access_names, &access))
		return NULL;
	return wheel_of(env, tw_wheel_open_or_create(name, &setup, accesses[access]),
			name);
}

/* openFd(fd): makes a wheel of an fd */
static napi_value wheel_open_fd(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	size_t argc = ARRAY_SIZE(argv);
	uint32_t fd;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (!u32_of(env, argv[0], &fd))
		return NULL;
	return wheel_of(env, tw_wheel_open_fd(fd), NULL);
}

/* Named wheels, without opening them */

/* create(name, setup, exclusive): returns whether the call made the wheel */
static napi_value wheel_create(napi_env env, napi_callback_info info)
{
	struct timewheel_setup setup;
	napi_value argv[3], result = NULL;
	size_t argc = ARRAY_SIZE(argv);
	char name[NAME_ROOM];
	bool exclusive = false;
	int made;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (!name_of(env, argv[0], name, sizeof(name)) ||
	    !setup_of(env, argv[1], &setup))
		return NULL;
	napi_get_value_bool(env, argv[2], &exclusive);
	made = tw_wheel_create(name, &setup,
			       exclusive ? TIMEWHEEL_CREATE_EXCLUSIVE : 0);
	if (made < 0)
		return throw_errno(env, "create", name);
	napi_get_boolean(env, made != TIMEWHEEL_RES_EXISTED, &result);
	return result;
}

/* destroy(name): ends a named wheel */
static napi_value wheel_destroy(napi_env env, napi_callback_info info)
{
	char name[NAME_ROOM];
	napi_value argv[1];
	size_t argc = ARRAY_SIZE(argv);

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (name_of(env, argv[0], name, sizeof(name)) && tw_wheel_destroy(name) < 0)
		throw_errno(env, "destroy", name);
	return NULL;
}

/* This part tells about the device and about a wheel. */

static napi_value device_caps(napi_env env, napi_callback_info info)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };

	if (tw_device_caps(&caps) < 0)
		return throw_errno(env, "caps", NULL);
	return object_of_caps(env, &caps);
}

static napi_value wheel_fd(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));

	return wheel ? number(env, tw_wheel_fd(wheel->wheel)) : NULL;
}

static napi_value wheel_in_process(napi_env env, napi_callback_info info)
{
	napi_value argv[1], result = NULL;
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));

	if (wheel)
		napi_get_boolean(env, tw_wheel_is_process(wheel->wheel), &result);
	return result;
}

static napi_value wheel_info(napi_env env, napi_callback_info cb_info)
{
	struct timewheel_info info = { .size = sizeof(info) };
	napi_value argv[1];
	struct wheel *wheel = arguments(env, cb_info, argv, ARRAY_SIZE(argv));

	if (!wheel)
		return NULL;
	if (tw_wheel_info(wheel->wheel, &info) < 0)
		return throw_errno(env, "info", NULL);
	return object_of_info(env, &info);
}

/* advance(wheel, tick): puts the hand of a MANUAL wheel */
static napi_value wheel_advance(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	uint64_t tick;

	if (wheel && u64_of(env, argv[1], &tick) &&
	    tw_wheel_advance(wheel->wheel, tick) < 0)
		throw_errno(env, "advance", NULL);
	return NULL;
}

/* The orders that a wheel may get, and their names. */
struct order {
	int		(*call)(struct tw_wheel *wheel);
	const char	*name;
};

static const struct order pause = { tw_wheel_pause, "pause" };
static const struct order resume = { tw_wheel_resume, "resume" };
static const struct order drain = { tw_wheel_drain, "drain" };
static const struct order undrain = { tw_wheel_undrain, "undrain" };

static napi_value wheel_told(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	void *data = NULL;
	const struct order *order;

	napi_get_cb_info(env, info, NULL, NULL, NULL, &data);
	order = data;
	if (wheel && order->call(wheel->wheel) < 0)
		throw_errno(env, order->name, NULL);
	return NULL;
}

/* Statistics */

/* stats(wheel): returns a BigUint64Array of the buckets */
static napi_value wheel_stats(napi_env env, napi_callback_info info)
{
	const size_t size = TIMEWHEEL_BUCKETS * sizeof(uint64_t);
	napi_value argv[1], memory = NULL, lateness = NULL;
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	void *buckets = NULL;

	if (!wheel)
		return NULL;
	napi_create_arraybuffer(env, size, &buckets, &memory);
	napi_create_typedarray(env, napi_biguint64_array, TIMEWHEEL_BUCKETS, memory, 0,
			       &lateness);
	if (tw_wheel_stats(wheel->wheel, buckets) < 0)
		return throw_errno(env, "stats", NULL);
	return lateness;
}

/* bounds(bucket): returns the least and the greatest value, in ms */
static napi_value histogram_bounds(napi_env env, napi_callback_info info)
{
	napi_value argv[1], result = NULL;
	size_t argc = ARRAY_SIZE(argv);
	uint64_t low, high;
	uint32_t bucket;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (!u32_of(env, argv[0], &bucket))
		return NULL;
	if (tw_histogram_bounds(bucket, &low, &high) < 0)
		return throw_range(env, "there is no such bucket");
	napi_create_array_with_length(env, 2, &result);
	napi_set_element(env, result, 0, number(env, low / 1e6));
	napi_set_element(env, result, 1, number(env, high / 1e6));
	return result;
}

/* percentile(buckets, percent): returns a value in ms */
static napi_value histogram_percentile(napi_env env, napi_callback_info info)
{
	napi_typedarray_type type = napi_int8_array;
	size_t length = 0, argc = 2;
	double percent = -1;
	napi_value argv[2];
	void *buckets;
	uint64_t ns;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	napi_get_typedarray_info(env, argv[0], &type, &length, &buckets, NULL, NULL);
	if (type != napi_biguint64_array || length != TIMEWHEEL_BUCKETS)
		return throw_type(env, "a histogram's buckets are needed");
	if (napi_get_value_double(env, argv[1], &percent) != napi_ok)
		return throw_type(env, "a number is needed");
	if (tw_histogram_percentile(buckets, percent, &ns) < 0)
		return throw_errno(env, "percentile", NULL);
	return number(env, ns / 1e6);
}

/* tcpIdle(fd): returns ms */
static napi_value tcp_idle(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	size_t argc = 1;
	int64_t idle;
	uint32_t fd;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (!u32_of(env, argv[0], &fd))
		return NULL;
	idle = tw_tcp_idle(fd);
	return idle < 0 ? throw_errno(env, "tcpIdle", NULL) : number(env, idle / 1e6);
}

const struct call wheel_calls[] = {
	{ "tcpIdle",		tcp_idle },
	{ "caps",		device_caps },
	{ "create",		wheel_create },
	{ "destroy",		wheel_destroy },
	{ "open",		wheel_open },
	{ "openNamed",		wheel_open_named },
	{ "openOrCreate",	wheel_open_or_create },
	{ "openFd",		wheel_open_fd },
	{ "close",		wheel_close },
	{ "fd",			wheel_fd },
	{ "inProcess",		wheel_in_process },
	{ "info",		wheel_info },
	{ "advance",		wheel_advance },
	{ "pause",		wheel_told,	(void *)&pause },
	{ "resume",		wheel_told,	(void *)&resume },
	{ "drain",		wheel_told,	(void *)&drain },
	{ "undrain",		wheel_told,	(void *)&undrain },
	{ "stats",		wheel_stats },
	{ "bounds",		histogram_bounds },
	{ "percentile",		histogram_percentile },
	{ }
};
