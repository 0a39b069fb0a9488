// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The module, which each environment loads for itself.
 */
#include "addon.h"

static void addon_free(napi_env env, void *data, void *hint)
{
	free(data);
}

static bool add_calls(napi_env env, napi_value exports, const struct call *calls)
{
	napi_value function;

	for (; calls->name; calls++)
		if (napi_create_function(env, calls->name, NAPI_AUTO_LENGTH,
					 calls->function, calls->data,
					 &function) != napi_ok ||
		    napi_set_named_property(env, exports, calls->name,
					    function) != napi_ok)
			return false;
	return true;
}

static bool add_constants(napi_env env, napi_value exports)
{
	return napi_set_named_property(env, exports, "codes",
				       op_codes(env)) == napi_ok &&
	       napi_set_named_property(env, exports, "results",
				       op_results(env)) == napi_ok;
}

NAPI_MODULE_INIT()
{
	struct addon *addon = calloc(1, sizeof(*addon));

	if (!addon)
		return throw_errno(env, "load", NULL);
	if (napi_set_instance_data(env, addon, addon_free, NULL) != napi_ok) {
		free(addon);
		return NULL;
	}
	if (napi_add_async_cleanup_hook(env, addon_end, addon,
					&addon->cleanup) != napi_ok ||
	    !add_calls(env, exports, wheel_calls) ||
	    !add_calls(env, exports, token_calls) ||
	    !add_calls(env, exports, op_calls) ||
	    !add_calls(env, exports, event_calls) ||
	    !add_constants(env, exports))
		return NULL;
	return exports;
}
