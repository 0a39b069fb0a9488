// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations on tokens, carried out at once or in batches.
 */
#include "addon.h"

/* The names that index.js has for the codes of operations, and the names of its methods. */
static const struct code {
	const char	*name;
	const char	*method;
} codes[] = {
	[TIMEWHEEL_OP_REGISTER]		= { "REGISTER", "register" },
	[TIMEWHEEL_OP_TOUCH]		= { "TOUCH", "touch" },
	[TIMEWHEEL_OP_TOUCH_OR_REGISTER] = { "TOUCH_OR_REGISTER", "touchOrRegister" },
	[TIMEWHEEL_OP_MOVE]		= { "MOVE", "move" },
	[TIMEWHEEL_OP_CANCEL]		= { "CANCEL", "cancel" },
	[TIMEWHEEL_OP_ACK]		= { "ACK", "ack" },
	[TIMEWHEEL_OP_NACK]		= { "NACK", "nack" },
	[TIMEWHEEL_OP_EXTEND]		= { "EXTEND", "extend" },
	[TIMEWHEEL_OP_DELETE]		= { "DELETE", "delete" },
};

static const struct result {
	const char	*name;
	uint32_t	bit;
} results[] = {
	{ "WAS_DUE",	TIMEWHEEL_RES_WAS_DUE },
	{ "REGISTERED",	TIMEWHEEL_RES_REGISTERED },
};

napi_value op_codes(napi_env env)
{
	napi_value object = NULL;
	size_t i;

	napi_create_object(env, &object);
	for (i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].name)
			napi_set_named_property(env, object, codes[i].name,
						number(env, i));
	return object;
}

napi_value op_results(napi_env env)
{
	napi_value object = NULL;
	size_t i;

	napi_create_object(env, &object);
	for (i = 0; i < ARRAY_SIZE(results); i++)
		napi_set_named_property(env, object, results[i].name,
					number(env, results[i].bit));
	return object;
}

/* Reads a delay, a point of time, or { at: a point of time }. */
static bool due_of(napi_env env, napi_value value, bool realtime,
		   struct timewheel_op *op)
{
	napi_valuetype type = napi_undefined;
	bool is_date = false, ok;
	uint64_t ns = 0;

	napi_typeof(env, value, &type);
	if (type != napi_object) {
		ok = duration_of(env, value, &ns);
	} else {
		op->flags |= TIMEWHEEL_OPF_ABSOLUTE;
		napi_is_date(env, value, &is_date);
		ok = (is_date || napi_get_named_property(env, value, "at",
							 &value) == napi_ok) &&
		     point_of(env, value, realtime, &ns);
	}
	op->time = ns;
	return ok;
}

/* Refuses 0: the kernel would take it for a timeout or a period that was left out. */
static bool interval_of(napi_env env, napi_value value, __u64 *field)
{
	uint64_t ns = 0;

	if (!is_given(env, value))
		return true;
	if (!duration_of(env, value, &ns))
		return false;
	if (!ns)
		throw_range(env, "a timeout or a period may not be 0");
	*field = ns;
	return ns;
}

/* The parts of an operation: arguments of run() and add(), from the third on. */
enum op_argument { CODE, KEY, DUE, TIMEOUT, PERIOD, COOKIE, DELIVERY, OP_ARGUMENTS };

static bool numbers_of(napi_env env, const napi_value *given, struct timewheel_op *op)
{
	uint64_t cookie = 0;

	if ((is_given(env, given[COOKIE]) && !u64_of(env, given[COOKIE], &cookie)) ||
	    (is_given(env, given[DELIVERY]) &&
	     !u32_of(env, given[DELIVERY], &op->delivery)))
		return false;
	op->cookie = cookie;
	return true;
}

static bool op_of(napi_env env, bool realtime, const napi_value *given,
		  struct timewheel_op *op)
{
	uint32_t code, flags = 0;
	uint64_t key;

	if (!u32_of(env, given[CODE], &code) ||
	    !key_of(env, given[KEY], &key, &flags))
		return false;
	tw_op_prepare(op, code, key, flags);
	if (is_given(env, given[DUE]) && !due_of(env, given[DUE], realtime, op))
		return false;
	return interval_of(env, given[TIMEOUT], &op->timeout) &&
	       interval_of(env, given[PERIOD], &op->period) &&
	       numbers_of(env, given, op);
}

static bool is_registration(uint32_t code)
{
	return code == TIMEWHEEL_OP_REGISTER;
}

/* run(wheel, operation...): returns a handle, or bits of results */
static napi_value op_run(napi_env env, napi_callback_info info)
{
	napi_value argv[1 + OP_ARGUMENTS];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	struct timewheel_op op;
	int result;

	if (!wheel || !op_of(env, wheel->realtime, argv + 1, &op))
		return NULL;
	result = tw_wheel_run(wheel->wheel, &op);
	if (result < 0)
		return throw_errno(env, codes[op.code].method, NULL);
	return is_registration(op.code) ? big(env, op.handle) : number(env, result);
}

/* Batches */

static void batch_collected(napi_env env, void *data, void *hint)
{
	tw_batch_free(data);
}

/* batch(capacity): makes a batch */
static napi_value batch_new(napi_env env, napi_callback_info info)
{
	napi_value argv[1], external = NULL;
	size_t argc = ARRAY_SIZE(argv);
	struct tw_batch *batch;
	uint32_t capacity;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (!u32_of(env, argv[0], &capacity))
		return NULL;
	batch = tw_batch_new(capacity);
	if (!batch)
		return throw_errno(env, "batch", NULL);
	if (napi_create_external(env, batch, batch_collected, NULL,
				 &external) != napi_ok)
		tw_batch_free(batch);
	return external;
}

static struct tw_batch *batch_of(napi_env env, napi_value value)
{
	void *batch = NULL;

	if (napi_get_value_external(env, value, &batch) != napi_ok)
		throw_type(env, "a batch is needed");
	return batch;
}

/* Returns the batch that is the first argument of a function. */
static struct tw_batch *batch_argument(napi_env env, napi_callback_info info,
				       napi_value *argv, size_t argc)
{
	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	return batch_of(env, argv[0]);
}

/* add(wheel, batch, operation...): adds an operation */
static napi_value batch_add(napi_env env, napi_callback_info info)
{
	napi_value argv[2 + OP_ARGUMENTS];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	struct tw_batch *batch = wheel ? batch_of(env, argv[1]) : NULL;
	struct timewheel_op op, *next;

	if (!batch || !op_of(env, wheel->realtime, argv + 2, &op))
		return NULL;
	next = tw_batch_next(batch);
	if (!next)
		return throw_errno(env, codes[op.code].method, NULL);
	*next = op;
	return NULL;
}

/* addTouches(batch, keys, by handle): adds touches of many tokens */
static napi_value batch_add_touches(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct tw_batch *batch = batch_argument(env, info, argv, ARRAY_SIZE(argv));
	struct keys keys;

	if (batch && keys_of(env, argv + 1, &keys) &&
	    tw_batch_touch_many(batch, keys.keys, keys.count, keys.flags) < 0)
		throw_errno(env, "touch", NULL);
	return NULL;
}

/* runBatch(wheel, batch): returns how many operations have failed */
static napi_value batch_run(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	struct tw_batch *batch = wheel ? batch_of(env, argv[1]) : NULL;
	int failed;

	if (!batch)
		return NULL;
	do
		failed = tw_batch_run(batch, wheel->wheel);
	while (failed < 0 && errno == EINTR);
	return failed < 0 ? throw_errno(env, "run", NULL) : number(env, failed);
}

static napi_value batch_clear(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct tw_batch *batch = batch_argument(env, info, argv, ARRAY_SIZE(argv));

	if (batch)
		tw_batch_clear(batch);
	return NULL;
}

/* outcome(batch, index): returns [error, result, handle, deadline in ns] */
static napi_value batch_outcome(napi_env env, napi_callback_info info)
{
	napi_value argv[2], none = NULL, outcome = NULL;
	struct tw_batch *batch = batch_argument(env, info, argv, ARRAY_SIZE(argv));
	const struct timewheel_op *op;
	bool registered;
	uint32_t index;
	int result;

	if (!batch || !u32_of(env, argv[1], &index))
		return NULL;
	op = tw_batch_op(batch, index);
	if (!op)
		return throw_range(env, "the batch has no such operation");
	result = tw_batch_result(batch, index);
	napi_get_null(env, &none);
	napi_create_array_with_length(env, 4, &outcome);
	napi_set_element(env, outcome, 0, result >= 0 ? none :
			 error_of(env, errno, codes[op->code].method, NULL));
	registered = result >= 0 && (is_registration(op->code) ||
				     result & TIMEWHEEL_RES_REGISTERED);
	napi_set_element(env, outcome, 1, number(env, result < 0 ? 0 : result));
	napi_set_element(env, outcome, 2, registered ? big(env, op->handle) : none);
	napi_set_element(env, outcome, 3, result >= 0 ? big(env, op->deadline) : none);
	return outcome;
}

const struct call op_calls[] = {
	{ "run",	op_run },
	{ "batch",	batch_new },
	{ "add",	batch_add },
	{ "addTouches",	batch_add_touches },
	{ "runBatch",	batch_run },
	{ "clear",	batch_clear },
	{ "outcome",	batch_outcome },
	{ }
};
