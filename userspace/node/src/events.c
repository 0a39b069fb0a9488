// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events: read without a wait; and a watch, by which libuv's loop tells that there are
 * some. Nothing polls, and no thread waits.
 */
#include <uv.h>

#include "addon.h"

/**
 * struct watch - tells index.js that a wheel is readable
 * @poll: libuv's handle, which outlives @wheel until libuv has closed it
 * @env: the environment whose loop has @poll
 * @addon: the addon of @env
 * @wheel: the wheel
 * @next: the next one in the list of @addon
 * @prev: the pointer to this one in the list
 * @callback: index.js's function. The reference keeps the function, and with that the
 *	Wheel, alive while @poll is active
 * @wanted: index.js wants to be told
 * @strong: @callback is a strong reference
 * @calling: @callback is running
 */
struct watch {
	uv_poll_t	poll;
	napi_env	env;
	struct addon	*addon;
	struct wheel	*wheel;
	struct watch	*next;
	struct watch	**prev;
	napi_ref	callback;
	bool		wanted;
	bool		strong;
	bool		calling;
};

/* read(wheel, maximum): returns an array of events, empty if nothing is due */
static napi_value event_read(napi_env env, napi_callback_info info)
{
	napi_value argv[2], array = NULL;
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	struct tw_events *events;
	uint32_t maximum, i;
	struct shape shape;
	ssize_t count;

	if (!wheel || !u32_of(env, argv[1], &maximum))
		return NULL;
	events = tw_events_new(maximum);
	if (!events)
		return throw_errno(env, "read", NULL);
	count = tw_events_read(events, wheel->wheel, 0);
	if (count >= 0) {
		shape_events(&shape, env, wheel->realtime);
		napi_create_array_with_length(env, count, &array);
	} else {
		throw_errno(env, "read", NULL);
	}
	for (i = 0; i < count; i++)
		set_object(array, i, &shape, tw_events_at(events, i));
	tw_events_free(events);
	return array;
}

static void readable(uv_poll_t *poll, int status, int events);

/*
 * Makes libuv do what index.js wants. It waits while the callback runs: index.js often wants
 * no more events, and wants them again before the callback is done.
 */
static void watch_settle(struct watch *watch)
{
	const bool active = uv_is_active((uv_handle_t *)&watch->poll);
	uint32_t references;

	/* libuv stops by itself when a wheel has been destroyed. */
	if (watch->wanted && !active)
		uv_poll_start(&watch->poll, UV_READABLE, readable);
	else if (!watch->wanted && active)
		uv_poll_stop(&watch->poll);
	if (watch->wanted && !watch->strong)
		napi_reference_ref(watch->env, watch->callback, &references);
	else if (!watch->wanted && watch->strong)
		napi_reference_unref(watch->env, watch->callback, &references);
	watch->strong = watch->wanted;
}

/* index.js reads the wheel itself, and learns from the read what @status is about. */
static void readable(uv_poll_t *poll, int status, int events)
{
	struct watch *watch = poll->data;
	napi_value callback = NULL, error = NULL;
	napi_env env = watch->env;
	napi_handle_scope scope;

	if (napi_open_handle_scope(env, &scope) != napi_ok)
		return;
	napi_get_reference_value(env, watch->callback, &callback);
	watch->calling = true;
	if (napi_make_callback(env, NULL, callback, callback, 0, NULL,
			       NULL) == napi_pending_exception &&
	    napi_get_and_clear_last_exception(env, &error) == napi_ok)
		napi_fatal_exception(env, error);
	watch->calling = false;
	/* The callback may have closed the wheel; libuv frees @watch later. */
	if (!uv_is_closing((uv_handle_t *)poll))
		watch_settle(watch);
	napi_close_handle_scope(env, scope);
}

static bool watch_new(napi_env env, struct wheel *wheel, napi_value callback)
{
	struct addon *addon = wheel->addon;
	uv_loop_t *loop = NULL;
	struct watch *watch;
	int err;

	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return false;
	if (napi_get_uv_event_loop(env, &loop) != napi_ok ||
	    napi_create_reference(env, callback, 0, &watch->callback) != napi_ok) {
		free(watch);
		errno = ENOTSUP;
		return false;
	}
	err = uv_poll_init(loop, &watch->poll, tw_wheel_fd(wheel->wheel));
	if (err < 0) {
		napi_delete_reference(env, watch->callback);
		free(watch);
		errno = -err;
		return false;
	}
	watch->poll.data = watch;
	watch->env = env;
	watch->addon = addon;
	watch->wheel = wheel;
	watch->next = addon->watches;
	watch->prev = &addon->watches;
	if (watch->next)
		watch->next->prev = &watch->next;
	addon->watches = watch;
	addon->handles++;
	wheel->watch = watch;
	if (wheel->unref)
		uv_unref((uv_handle_t *)&watch->poll);
	return true;
}

/* Lets the environment end when libuv has closed the last handle. */
static void addon_settle(struct addon *addon)
{
	if (addon->ending && !addon->handles)
		napi_remove_async_cleanup_hook(addon->cleanup);
}

static void watch_closed(uv_handle_t *handle)
{
	struct watch *watch = handle->data;
	struct addon *addon = watch->addon;

	free(watch);
	addon->handles--;
	addon_settle(addon);
}

/* Ends the watch of a wheel. From now on libuv does not look at the wheel's fd. */
void watch_close(struct wheel *wheel)
{
	struct watch *watch = wheel->watch;

	if (!watch)
		return;
	wheel->watch = NULL;
	*watch->prev = watch->next;
	if (watch->next)
		watch->next->prev = watch->prev;
	napi_delete_reference(watch->env, watch->callback);
	uv_close((uv_handle_t *)&watch->poll, watch_closed);
}

/* The environment ends, and then its loop must have no handles. */
void addon_end(napi_async_cleanup_hook_handle handle, void *data)
{
	struct addon *addon = data;

	while (addon->watches)
		watch_close(addon->watches->wheel);
	addon->ending = true;
	addon_settle(addon);
}

/* start(wheel, callback): calls @callback whenever the wheel is readable, until stop() */
static napi_value event_start(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));

	if (!wheel)
		return NULL;
	if (!wheel->watch && !watch_new(env, wheel, argv[1]))
		return throw_errno(env, "poll", NULL);
	wheel->watch->wanted = true;
	if (!wheel->watch->calling)
		watch_settle(wheel->watch);
	return NULL;
}

/* stop(wheel): ends start() */
static napi_value event_stop(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));

	if (!wheel || !wheel->watch)
		return NULL;
	wheel->watch->wanted = false;
	if (!wheel->watch->calling)
		watch_settle(wheel->watch);
	return NULL;
}

/* ref(wheel, on): whether the wheel keeps the loop alive while somebody waits for events */
static napi_value event_ref(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));
	bool ref = true;

	if (!wheel)
		return NULL;
	napi_get_value_bool(env, argv[1], &ref);
	wheel->unref = !ref;
	if (wheel->watch && ref)
		uv_ref((uv_handle_t *)&wheel->watch->poll);
	else if (wheel->watch)
		uv_unref((uv_handle_t *)&wheel->watch->poll);
	return NULL;
}

/* hasRef(wheel): whether the wheel keeps the loop alive */
static napi_value event_has_ref(napi_env env, napi_callback_info info)
{
	napi_value argv[1], result = NULL;
	struct wheel *wheel = arguments(env, info, argv, ARRAY_SIZE(argv));

	if (wheel)
		napi_get_boolean(env, !wheel->unref, &result);
	return result;
}

const struct call event_calls[] = {
	{ "read",	event_read },
	{ "start",	event_start },
	{ "stop",	event_stop },
	{ "ref",	event_ref },
	{ "hasRef",	event_has_ref },
	{ }
};
