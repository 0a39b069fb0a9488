// SPDX-License-Identifier: LGPL-2.1-or-later
/* Objects: turns the library's structures into objects of JavaScript. */
#include <stdio.h>

#include "addon.h"

#define FIELD(name, kind, structure, member, ...) \
	{ name, kind, offsetof(struct timewheel_##structure, member), ##__VA_ARGS__ }

static const struct field event_fields[] = {
	FIELD("id",		BIG,		event, id),
	FIELD("handle",		BIG,		event, handle),
	FIELD("cookie",		BIG,		event, cookie),
	FIELD("deadline",	POINT,		event, deadline),
	FIELD("taken",		POINT,		event, taken),
	FIELD("delivery",	NUMBER32,	event, delivery),
	FIELD("attempts",	NUMBER32,	event, attempts),
	FIELD("missed",		NUMBER32,	event, missed),
};

static const struct field token_fields[] = {
	FIELD("id",		BIG,		token, id),
	FIELD("handle",		BIG,		token, handle),
	FIELD("cookie",		BIG,		token, cookie),
	FIELD("deadline",	POINT,		token, deadline),
	FIELD("leaseEnd",	POINT,		token, lease_end),
	FIELD("left",		MS,		token, left),
	FIELD("timeout",	MS,		token, timeout),
	FIELD("period",		MS,		token, period),
	FIELD("base",		POINT,		token, base),
	FIELD("cycle",		NUMBER,		token, cycle),
	FIELD("slot",		NUMBER32,	token, slot),
	FIELD("state",		STATE,		token, state),
	FIELD("delivery",	NUMBER32,	token, delivery),
	FIELD("attempts",	NUMBER32,	token, attempts),
};

static const struct field info_fields[] = {
	FIELD("clock",		CLOCK,		info, clock),
	FIELD("slots",		NUMBER32,	info, slots),
	FIELD("tick",		MS,		info, tick),
	FIELD("maxTokens",	NUMBER,		info, max_tokens),
	FIELD("ids",		NO_BIT,		info, setup_flags,
	      TIMEWHEEL_SETUP_NO_IDS),
	FIELD("cookies",	NO_BIT,		info, setup_flags,
	      TIMEWHEEL_SETUP_NO_COOKIES),
	FIELD("touchWords",	BIT,		info, setup_flags,
	      TIMEWHEEL_SETUP_TOUCH_WORDS),
	FIELD("periods",	BIT,		info, setup_flags,
	      TIMEWHEEL_SETUP_PERIODS),
	FIELD("lease",		MS,		info, lease),
	FIELD("maxHeld",	NUMBER32,	info, max_held),
	FIELD("slack",		MS,		info, slack),
	FIELD("number",		NUMBER32,	info, number),
	FIELD("now",		POINT,		info, now),
	FIELD("hand",		NUMBER,		info, hand),
	FIELD("next",		POINT,		info, next),
	FIELD("offsetNs",	SIGNED_NS,	info, offset),
	FIELD("paused",		BIT,		info, state,
	      TIMEWHEEL_CONTROL_PAUSED),
	FIELD("draining",	BIT,		info, state,
	      TIMEWHEEL_CONTROL_DRAINING),
	FIELD("pending",	NUMBER,		info, pending),
	FIELD("taken",		NUMBER,		info, taken),
	FIELD("held",		NUMBER,		info, held),
	FIELD("bytes",		NUMBER,		info, bytes),
	FIELD("registered",	NUMBER,		info, registered),
	FIELD("cancelled",	NUMBER,		info, cancelled),
	FIELD("moved",		NUMBER,		info, moved),
	FIELD("delivered",	NUMBER,		info, delivered),
	FIELD("putBack",	NUMBER,		info, put_back),
	FIELD("refiled",	NUMBER,		info, refiled),
	FIELD("callbacks",	NUMBER,		info, callbacks),
	FIELD("quiet",		NUMBER,		info, quiet),
	FIELD("touched",	NUMBER,		info, touched),
	FIELD("acked",		NUMBER,		info, acked),
	FIELD("nacked",		NUMBER,		info, nacked),
	FIELD("lapsed",		NUMBER,		info, lapsed),
	FIELD("returned",	NUMBER,		info, returned),
	FIELD("deleted",	NUMBER,		info, deleted),
	FIELD("missed",		NUMBER,		info, missed),
};

static const struct field caps_fields[] = {
	FIELD("idsOptional",	BIT,		caps, setup_flags,
	      TIMEWHEEL_SETUP_NO_IDS),
	FIELD("cookiesOptional", BIT,		caps, setup_flags,
	      TIMEWHEEL_SETUP_NO_COOKIES),
	FIELD("leases",		BIT,		caps, codes, 1 << TIMEWHEEL_OP_ACK),
	FIELD("periods",	BIT,		caps, setup_flags,
	      TIMEWHEEL_SETUP_PERIODS),
	FIELD("maxSlots",	NUMBER32,	caps, max_slots),
	FIELD("minTick",	MS,		caps, min_tick),
	FIELD("maxTick",	MS,		caps, max_tick),
	FIELD("maxTokens",	NUMBER,		caps, max_tokens),
	FIELD("maxWordTicks",	NUMBER,		caps, max_word_ticks),
	FIELD("maxBatch",	NUMBER32,	caps, max_batch),
};

static napi_value latin1(napi_env env, const char *text)
{
	napi_value value = NULL;

	napi_create_string_latin1(env, text, NAPI_AUTO_LENGTH, &value);
	return value;
}

static napi_value boolean(napi_env env, bool is)
{
	napi_value value = NULL;

	napi_get_boolean(env, is, &value);
	return value;
}

static void shape_of(struct shape *shape, napi_env env, bool realtime,
		     const struct field *fields, size_t count)
{
	char name[32];
	size_t i;

	shape->env = env;
	shape->fields = fields;
	shape->count = count;
	shape->realtime = realtime;
	for (i = 0; i < count; i++) {
		shape->keys[i] = latin1(env, fields[i].name);
		snprintf(name, sizeof(name), "%sNs", fields[i].name);
		if (fields[i].kind == POINT)
			shape->ns_keys[i] = latin1(env, name);
	}
}

_Static_assert(ARRAY_SIZE(info_fields) <= MOST_FIELDS, "too many fields");

void shape_events(struct shape *shape, napi_env env, bool realtime)
{
	shape_of(shape, env, realtime, event_fields, ARRAY_SIZE(event_fields));
}

void shape_tokens(struct shape *shape, napi_env env, bool realtime)
{
	shape_of(shape, env, realtime, token_fields, ARRAY_SIZE(token_fields));
}

static napi_value signed_big(napi_env env, int64_t number)
{
	napi_value value = NULL;

	napi_create_bigint_int64(env, number, &value);
	return value;
}

static napi_value point(napi_env env, uint64_t ns)
{
	napi_value value = NULL;

	if (ns != TIMEWHEEL_NEVER)
		return big(env, ns);
	napi_get_null(env, &value);
	return value;
}

/* Returns a name, "unknown" for a number that only a newer kernel knows. */
static napi_value named(napi_env env, const char *const *names, uint32_t index)
{
	while (*names && index--)
		names++;
	return latin1(env, *names ?: "unknown");
}

static napi_value value_of(const struct shape *shape, const struct field *field,
			   const void *at)
{
	const __u64 *wide = at;
	const __u32 *narrow = at;

	switch (field->kind) {
	case BIG:
		return big(shape->env, *wide);
	case SIGNED_NS:
		return signed_big(shape->env, *wide);
	case NUMBER:
		return number(shape->env, *wide);
	case NUMBER32:
		return number(shape->env, *narrow);
	case MS:
		return number(shape->env, *wide / 1e6);
	case POINT:
		return date(shape->env, *wide, shape->realtime);
	case CLOCK:
		return named(shape->env, clock_names, *narrow);
	case STATE:
		return named(shape->env, state_names, *narrow);
	case BIT:
		return boolean(shape->env, *narrow & field->bit);
	default:
		return boolean(shape->env, !(*narrow & field->bit));
	}
}

napi_value object_of(const struct shape *shape, const void *structure)
{
	napi_env env = shape->env;
	napi_value object = NULL;
	size_t i;

	napi_create_object(env, &object);
	for (i = 0; i < shape->count; i++) {
		const struct field *field = &shape->fields[i];
		const void *at = (const char *)structure + field->offset;

		napi_set_property(env, object, shape->keys[i],
				  value_of(shape, field, at));
		if (field->kind == POINT)
			napi_set_property(env, object, shape->ns_keys[i],
					  point(env, *(const __u64 *)at));
	}
	return object;
}

/* The scope frees all values but the object at once: there may be many objects. */
void set_object(napi_value array, uint32_t index, const struct shape *shape,
		const void *structure)
{
	napi_handle_scope scope;

	if (napi_open_handle_scope(shape->env, &scope) != napi_ok)
		return;
	napi_set_element(shape->env, array, index, object_of(shape, structure));
	napi_close_handle_scope(shape->env, scope);
}

napi_value object_of_info(napi_env env, const struct timewheel_info *info)
{
	struct shape shape;

	shape_of(&shape, env, info->clock == TIMEWHEEL_CLOCK_REALTIME, info_fields,
		 ARRAY_SIZE(info_fields));
	return object_of(&shape, info);
}

napi_value object_of_caps(napi_env env, const struct timewheel_caps *caps)
{
	napi_value object, clocks = NULL;
	struct shape shape;
	uint32_t i, n = 0;

	shape_of(&shape, env, false, caps_fields, ARRAY_SIZE(caps_fields));
	object = object_of(&shape, caps);
	napi_create_array(env, &clocks);
	for (i = 0; clock_names[i]; i++)
		if (caps->clocks & 1 << i)
			napi_set_element(env, clocks, n++,
					 latin1(env, clock_names[i]));
	napi_set_named_property(env, object, "clocks", clocks);
	return object;
}
