// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tokens: looks at them by their keys, or one after the other. */
#include "addon.h"

/* The most tokens that one call of next() hands out. */
#define WALK_AT_ONCE	128

/**
 * struct walk - a walk, behind an external value of JavaScript
 * @wheel: the wheel, which stays open until the walk ends
 * @cursor: the library's cursor; NULL once the walk has ended
 */
struct walk {
	struct wheel		*wheel;
	struct tw_cursor	*cursor;
};

/* A key is an id, or an object with a handle. */
bool key_of(napi_env env, napi_value value, uint64_t *key, uint32_t *flags)
{
	napi_valuetype type = napi_undefined;
	napi_value handle;

	napi_typeof(env, value, &type);
	if (type != napi_object)
		return u64_of(env, value, key);
	*flags |= TIMEWHEEL_OPF_BY_HANDLE;
	return napi_get_named_property(env, value, "handle", &handle) == napi_ok &&
	       u64_of(env, handle, key);
}

/* Reads ids or handles: the numbers of index.js's class Keys, and whether they are handles. */
bool keys_of(napi_env env, const napi_value given[2], struct keys *keys)
{
	void *memory = NULL;

	*keys = (struct keys) {
		.flags = flag_of(env, given[1], TIMEWHEEL_OPF_BY_HANDLE),
	};
	if (napi_get_typedarray_info(env, given[0], NULL, &keys->count, &memory, NULL,
				     NULL) != napi_ok) {
		throw_type(env, "an array of keys is needed");
		return false;
	}
	keys->keys = memory;
	return true;
}

/* touch(wheel, key, by handle): returns the result of tw_wheel_touch() */
static napi_value token_touch(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	uint64_t key;
	int result;

	if (!wheel || !u64_of(env, argv[1], &key))
		return NULL;
	result = tw_wheel_touch(wheel->wheel, key,
				flag_of(env, argv[2], TIMEWHEEL_OPF_BY_HANDLE));
	return result < 0 ? throw_errno(env, "touch", NULL) : number(env, result);
}

/* touchMany(wheel, keys, by handle): returns the indexes of keys that name no pending token */
static napi_value token_touch_many(napi_env env, napi_callback_info info)
{
	napi_value argv[3], gone = NULL;
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	size_t done = 0, more;
	uint32_t number_gone = 0;
	struct keys keys;

	if (!wheel || !keys_of(env, argv + 1, &keys))
		return NULL;
	napi_create_array(env, &gone);
	while (done < keys.count) {
		const size_t left = keys.count - done;
		int err = tw_wheel_touch_many(wheel->wheel, keys.keys + done,
					      left < TIMEWHEEL_MAX_BATCH ? left :
					      TIMEWHEEL_MAX_BATCH, keys.flags, &more);

		done += more;
		if (!err || errno == EINTR)
			continue;
		if (errno != ENOENT && errno != ESTALE)
			return throw_errno(env, "touchMany", NULL);
		napi_set_element(env, gone, number_gone++, number(env, done++));
	}
	return gone;
}

/* refuse(key): throws what is wrong with a number that is no key */
static napi_value token_refuse(napi_env env, napi_callback_info info)
{
	size_t argc = 1;
	napi_value argv[1];
	uint64_t key;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	u64_of(env, argv[0], &key);
	return NULL;
}

/* get(wheel, key): returns a token */
static napi_value token_get(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	struct timewheel_token token;
	uint32_t flags = 0;
	struct shape shape;
	uint64_t key;

	if (!wheel || !key_of(env, argv[1], &key, &flags))
		return NULL;
	if (tw_wheel_get(wheel->wheel, key, flags, &token) < 0)
		return throw_errno(env, "get", NULL);
	shape_tokens(&shape, env, wheel->realtime);
	return object_of(&shape, &token);
}

/* Returns a token for each key; null for a key that names none. */
static napi_value tokens_found(napi_env env, struct wheel *wheel,
			       const struct timewheel_token *tokens, uint32_t count)
{
	napi_value array = NULL, none = NULL;
	struct shape shape;
	uint32_t i;

	shape_tokens(&shape, env, wheel->realtime);
	napi_get_null(env, &none);
	napi_create_array_with_length(env, count, &array);
	for (i = 0; i < count; i++)
		if (tokens[i].state == TIMEWHEEL_STATE_NONE)
			napi_set_element(env, array, i, none);
		else
			set_object(array, i, &shape, &tokens[i]);
	return array;
}

/* Gets all tokens, also if signals come. */
static int get_all(struct wheel *wheel, const struct keys *keys,
		   struct timewheel_token *tokens)
{
	size_t done = 0, more = 0;
	int err;

	do {
		err = tw_wheel_get_many(wheel->wheel, keys->keys + done,
					keys->count - done, keys->flags, tokens + done,
					&more);
		done += more;
	} while (err < 0 && errno == EINTR);
	return err;
}

/* getMany(wheel, keys, by handle): returns at most TIMEWHEEL_MAX_BATCH tokens */
static napi_value token_get_many(napi_env env, napi_callback_info info)
{
	napi_value argv[3], result = NULL;
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	struct timewheel_token *tokens;
	struct keys keys;

	if (!wheel || !keys_of(env, argv + 1, &keys))
		return NULL;
	/* One more byte or so keeps malloc() from returning NULL for no keys. */
	tokens = malloc((keys.count + 1) * sizeof(*tokens));
	if (!tokens || get_all(wheel, &keys, tokens) < 0)
		throw_errno(env, "getMany", NULL);
	else
		result = tokens_found(env, wheel, tokens, keys.count);
	free(tokens);
	return result;
}

static void walk_end(struct walk *walk)
{
	if (!walk->cursor)
		return;
	tw_cursor_close(walk->cursor);
	walk->cursor = NULL;
	walk->wheel->cursors--;
	wheel_settle(walk->wheel);
}

static void walk_collected(napi_env env, void *data, void *hint)
{
	walk_end(data);
	free(data);
}

/* Reads a point of time that may be left out. */
static bool bound_of(napi_env env, napi_value value, bool realtime, uint64_t *ns)
{
	return !is_given(env, value) || point_of(env, value, realtime, ns);
}

/* walk(wheel, from, to): begins a walk */
static napi_value token_walk(napi_env env, napi_callback_info info)
{
	napi_value argv[3], external = NULL;
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	uint64_t from = 0, to = TIMEWHEEL_NEVER;
	struct walk *walk;

	if (!wheel || !bound_of(env, argv[1], wheel->realtime, &from) ||
	    !bound_of(env, argv[2], wheel->realtime, &to))
		return NULL;
	walk = malloc(sizeof(*walk));
	if (!walk)
		return throw_errno(env, "tokens", NULL);
	walk->wheel = wheel;
	walk->cursor = tw_cursor_open(wheel->wheel, from, to);
	if (!walk->cursor) {
		free(walk);
		return throw_errno(env, "tokens", NULL);
	}
	wheel->cursors++;
	if (napi_create_external(env, walk, walk_collected, NULL, &external) != napi_ok)
		walk_collected(env, walk, NULL);
	return external;
}

/* next(walk): returns the next tokens; none at the end */
static napi_value token_next(napi_env env, napi_callback_info info)
{
	const struct timewheel_token *token;
	napi_value argv[1], array = NULL;
	size_t argc = ARRAY_SIZE(argv);
	struct walk *walk = NULL;
	struct shape shape;
	uint32_t i = 0;
	int more = 0;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (napi_get_value_external(env, argv[0], (void **)&walk) != napi_ok)
		return throw_type(env, "a walk is needed");
	napi_create_array(env, &array);
	if (!walk->cursor)
		return array;
	shape_tokens(&shape, env, walk->wheel->realtime);
	while (i < WALK_AT_ONCE && (more = tw_cursor_next(walk->cursor, &token)) > 0)
		set_object(array, i++, &shape, token);
	return more < 0 ? throw_errno(env, "tokens", NULL) : array;
}

/* end(walk): ends a walk */
static napi_value token_end(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	size_t argc = ARRAY_SIZE(argv);
	struct walk *walk = NULL;

	napi_get_cb_info(env, info, &argc, argv, NULL, NULL);
	if (napi_get_value_external(env, argv[0], (void **)&walk) == napi_ok)
		walk_end(walk);
	return NULL;
}

const struct call token_calls[] = {
	{ "touch",	token_touch },
	{ "touchMany",	token_touch_many },
	{ "refuse",	token_refuse },
	{ "get",	token_get },
	{ "getMany",	token_get_many },
	{ "walk",	token_walk },
	{ "next",	token_next },
	{ "end",	token_end },
	{ }
};
