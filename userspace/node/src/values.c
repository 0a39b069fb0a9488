// SPDX-License-Identifier: LGPL-2.1-or-later
/* Values: turns JavaScript's numbers, times and names into C's, and back; also errors. */
#include <stdio.h>

#include "addon.h"

/* Up to this number each integer has a number of its own in a double. */
#define SAFE		9007199254740991.0

#define TWO_TO_64	18446744073709551616.0

#define NS_IN_MS	1e6

const char *const clock_names[] = {
	[TIMEWHEEL_CLOCK_MONOTONIC]	= "monotonic",
	[TIMEWHEEL_CLOCK_BOOTTIME]	= "boottime",
	[TIMEWHEEL_CLOCK_REALTIME]	= "realtime",
	[TIMEWHEEL_CLOCK_MANUAL]	= "manual",
	NULL
};

const char *const state_names[] = {
	[TIMEWHEEL_STATE_NONE]		= "none",
	[TIMEWHEEL_STATE_PENDING]	= "pending",
	[TIMEWHEEL_STATE_TAKEN]		= "taken",
	[TIMEWHEEL_STATE_HELD]		= "held",
	NULL
};

napi_value throw_type(napi_env env, const char *message)
{
	napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", message);
	return NULL;
}

napi_value throw_range(napi_env env, const char *message)
{
	napi_throw_range_error(env, "ERR_OUT_OF_RANGE", message);
	return NULL;
}

static napi_value string(napi_env env, const char *text)
{
	napi_value value = NULL;

	napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
	return value;
}

/* Makes an Error as Node's own: @call is the call that failed, @name the name of its wheel. */
napi_value error_of(napi_env env, int err, const char *call, const char *name)
{
	const char *code = strerrorname_np(err) ?: "UNKNOWN";
	napi_value error = NULL;
	char message[512];

	snprintf(message, sizeof(message), "%s: %s, %s%s%.100s%s", code,
		 tw_strerror(err), call, name ? " '" : "", name ?: "",
		 name ? "'" : "");
	napi_create_error(env, string(env, code), string(env, message), &error);
	napi_set_named_property(env, error, "errno", number(env, -err));
	napi_set_named_property(env, error, "syscall", string(env, call));
	return error;
}

napi_value throw_errno(napi_env env, const char *call, const char *name)
{
	napi_throw(env, error_of(env, errno, call, name));
	return NULL;
}

static napi_valuetype type_of(napi_env env, napi_value value)
{
	napi_valuetype type = napi_undefined;

	napi_typeof(env, value, &type);
	return type;
}

bool is_given(napi_env env, napi_value value)
{
	return type_of(env, value) != napi_undefined;
}

/* Returns the flag if the value is true, else 0. */
uint32_t flag_of(napi_env env, napi_value given, uint32_t flag)
{
	bool is = false;

	napi_get_value_bool(env, given, &is);
	return is ? flag : 0;
}

static bool big_of(napi_env env, napi_value value, uint64_t *number)
{
	bool lossless = false;

	napi_get_value_bigint_uint64(env, value, number, &lossless);
	if (!lossless)
		throw_range(env, "a BigInt has to be from 0 to 2**64-1");
	return lossless;
}

static bool whole_of(napi_env env, napi_value value, double most, uint64_t *number)
{
	double given = -1;

	napi_get_value_double(env, value, &given);
	if (!(given >= 0 && given <= most) || (double)(uint64_t)given != given) {
		throw_range(env, most == SAFE ?
			    "a number has to be an integer from 0 to 2**53-1, or a BigInt" :
			    "the number has to be an integer from 0 to 2**32-1");
		return false;
	}
	*number = given;
	return true;
}

bool u64_of(napi_env env, napi_value value, uint64_t *number)
{
	switch (type_of(env, value)) {
	case napi_bigint:
		return big_of(env, value, number);
	case napi_number:
		return whole_of(env, value, SAFE, number);
	default:
		throw_type(env, "a number or a BigInt is needed");
		return false;
	}
}

bool u32_of(napi_env env, napi_value value, uint32_t *number)
{
	uint64_t whole;

	if (type_of(env, value) != napi_number) {
		throw_type(env, "a number is needed");
		return false;
	}
	if (!whole_of(env, value, UINT32_MAX, &whole))
		return false;
	*number = whole;
	return true;
}

/* Rounds to the nearest ns: 1.1 ms means 1,100,000 ns. */
static bool ns_of_ms(napi_env env, double ms, uint64_t *ns)
{
	const double exact = ms * NS_IN_MS;

	if (!(exact >= 0 && exact < TWO_TO_64)) {
		throw_range(env, "a time has to be from 0 to 2**64-1 ns");
		return false;
	}
	*ns = exact + 0.5;
	return true;
}

/* Reads a duration: a number of ms, or a BigInt of ns. */
bool duration_of(napi_env env, napi_value value, uint64_t *ns)
{
	double ms = 0;

	switch (type_of(env, value)) {
	case napi_bigint:
		return big_of(env, value, ns);
	case napi_number:
		napi_get_value_double(env, value, &ms);
		return ns_of_ms(env, ms, ns);
	default:
		throw_type(env, "a duration is a number of ms or a BigInt of ns");
		return false;
	}
}

/* Reads a point of time: a Date of the wall clock, or a BigInt of ns. */
bool point_of(napi_env env, napi_value value, bool realtime, uint64_t *ns)
{
	bool is_date = false;
	double ms = -1;

	if (type_of(env, value) == napi_bigint)
		return big_of(env, value, ns);
	napi_is_date(env, value, &is_date);
	if (!is_date) {
		throw_type(env, "a point of time is a Date or a BigInt of ns");
		return false;
	}
	if (!realtime) {
		throw_type(env, "a Date is for wheels of the clock realtime");
		return false;
	}
	napi_get_date_value(env, value, &ms);
	return ns_of_ms(env, ms, ns);
}

/* Reads a name. A name that does not fit is too long for any wheel, and is cut off. */
bool name_of(napi_env env, napi_value value, char *name, size_t size)
{
	size_t length = 0;

	if (napi_get_value_string_utf8(env, value, name, size, &length) != napi_ok) {
		throw_type(env, "a string is needed");
		return false;
	}
	if (strlen(name) != length) {
		throw_type(env, "NUL byte in a string");
		return false;
	}
	return true;
}

/* Finds the index of a string in @names, which ends with NULL. */
bool index_of(napi_env env, napi_value value, const char *const *names,
	      uint32_t *index)
{
	char name[32], message[128];
	uint32_t i;
	int length;

	if (!name_of(env, value, name, sizeof(name)))
		return false;
	for (i = 0; names[i]; i++) {
		if (!strcmp(name, names[i])) {
			*index = i;
			return true;
		}
	}
	length = snprintf(message, sizeof(message), "'%s' is none of:", name);
	for (i = 0; names[i]; i++)
		length += snprintf(message + length, sizeof(message) - length, " %s",
				   names[i]);
	napi_throw_type_error(env, "ERR_INVALID_ARG_VALUE", message);
	return false;
}

napi_value big(napi_env env, uint64_t number)
{
	napi_value value = NULL;

	napi_create_bigint_uint64(env, number, &value);
	return value;
}

napi_value number(napi_env env, double number)
{
	napi_value value = NULL;

	napi_create_double(env, number, &value);
	return value;
}

/* Returns a Date, or null for a time that is none, and for a time of another clock. */
napi_value date(napi_env env, uint64_t ns, bool realtime)
{
	napi_value value = NULL;

	if (realtime && ns && ns != TIMEWHEEL_NEVER)
		napi_create_date(env, ns / NS_IN_MS, &value);
	else
		napi_get_null(env, &value);
	return value;
}
