/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Tracepoints, system "timewheel". Wheels are named by the number that fdinfo
 * shows. Ids are decimal, handles hexadecimal, times are in ticks. An operation that
 * names its token by one of id and handle has 0 for the other; no handle is 0.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM timewheel

#if !defined(TW_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TW_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(create,
	TP_PROTO(u32 wheel, u32 clock, u32 slots, u64 tick, u32 max_tokens),
	TP_ARGS(wheel, clock, slots, tick, max_tokens),
	TP_STRUCT__entry(
		__field(u32, wheel)
		__field(u32, clock)
		__field(u32, slots)
		__field(u64, tick)
		__field(u32, max_tokens)
	),
	TP_fast_assign(
		__entry->wheel = wheel;
		__entry->clock = clock;
		__entry->slots = slots;
		__entry->tick = tick;
		__entry->max_tokens = max_tokens;
	),
	TP_printk("wheel=%u clock=%u slots=%u tick_ns=%llu max_tokens=%u",
		  __entry->wheel, __entry->clock, __entry->slots,
		  __entry->tick, __entry->max_tokens)
);

TRACE_EVENT(register,
	TP_PROTO(u32 wheel, u64 id, u64 handle, u64 due),
	TP_ARGS(wheel, id, handle, due),
	TP_STRUCT__entry(
		__field(u32, wheel)
		__field(u64, id)
		__field(u64, handle)
		__field(u64, due)
	),
	TP_fast_assign(
		__entry->wheel = wheel;
		__entry->id = id;
		__entry->handle = handle;
		__entry->due = due;
	),
	TP_printk("wheel=%u id=%llu handle=%#llx due=%llu",
		  __entry->wheel, __entry->id, __entry->handle, __entry->due)
);

/* An operation on a token that was named by its id or by its handle. */
DECLARE_EVENT_CLASS(tw_key,
	TP_PROTO(u32 wheel, bool by_handle, u64 key, u64 due),
	TP_ARGS(wheel, by_handle, key, due),
	TP_STRUCT__entry(
		__field(u32, wheel)
		__field(u64, id)
		__field(u64, handle)
		__field(u64, due)
	),
	TP_fast_assign(
		__entry->wheel = wheel;
		__entry->id = by_handle ? 0 : key;
		__entry->handle = by_handle ? key : 0;
		__entry->due = due;
	),
	TP_printk("wheel=%u id=%llu handle=%#llx due=%llu",
		  __entry->wheel, __entry->id, __entry->handle, __entry->due)
);

DEFINE_EVENT(tw_key, touch,
	TP_PROTO(u32 wheel, bool by_handle, u64 key, u64 due),
	TP_ARGS(wheel, by_handle, key, due)
);

DEFINE_EVENT(tw_key, move,
	TP_PROTO(u32 wheel, bool by_handle, u64 key, u64 due),
	TP_ARGS(wheel, by_handle, key, due)
);

DEFINE_EVENT(tw_key, cancel,
	TP_PROTO(u32 wheel, bool by_handle, u64 key, u64 due),
	TP_ARGS(wheel, by_handle, key, due)
);

/* An operation, by its number, on a token that has been delivered, or may be. */
TRACE_EVENT(answer,
	TP_PROTO(u32 wheel, u32 code, bool by_handle, u64 key, u32 delivery),
	TP_ARGS(wheel, code, by_handle, key, delivery),
	TP_STRUCT__entry(
		__field(u32, wheel)
		__field(u32, code)
		__field(u64, id)
		__field(u64, handle)
		__field(u32, delivery)
	),
	TP_fast_assign(
		__entry->wheel = wheel;
		__entry->code = code;
		__entry->id = by_handle ? 0 : key;
		__entry->handle = by_handle ? key : 0;
		__entry->delivery = delivery;
	),
	TP_printk("wheel=%u code=%u id=%llu handle=%#llx delivery=%u",
		  __entry->wheel, __entry->code, __entry->id, __entry->handle,
		  __entry->delivery)
);

/* A reader has got a token. */
TRACE_EVENT(deliver,
	TP_PROTO(u32 wheel, u64 id, u64 handle, u64 due, u32 delivery),
	TP_ARGS(wheel, id, handle, due, delivery),
	TP_STRUCT__entry(
		__field(u32, wheel)
		__field(u64, id)
		__field(u64, handle)
		__field(u64, due)
		__field(u32, delivery)
	),
	TP_fast_assign(
		__entry->wheel = wheel;
		__entry->id = id;
		__entry->handle = handle;
		__entry->due = due;
		__entry->delivery = delivery;
	),
	TP_printk("wheel=%u id=%llu handle=%#llx due=%llu delivery=%u",
		  __entry->wheel, __entry->id, __entry->handle, __entry->due,
		  __entry->delivery)
);

/* Something happened to a number of a wheel's tokens. */
DECLARE_EVENT_CLASS(tw_tokens,
	TP_PROTO(u32 wheel, u64 tokens),
	TP_ARGS(wheel, tokens),
	TP_STRUCT__entry(
		__field(u32, wheel)
		__field(u64, tokens)
	),
	TP_fast_assign(
		__entry->wheel = wheel;
		__entry->tokens = tokens;
	),
	TP_printk("wheel=%u tokens=%llu", __entry->wheel, __entry->tokens)
);

DEFINE_EVENT(tw_tokens, sort,
	TP_PROTO(u32 wheel, u64 tokens), TP_ARGS(wheel, tokens));

DEFINE_EVENT(tw_tokens, take,
	TP_PROTO(u32 wheel, u64 tokens), TP_ARGS(wheel, tokens));

DEFINE_EVENT(tw_tokens, put_back,
	TP_PROTO(u32 wheel, u64 tokens), TP_ARGS(wheel, tokens));

DEFINE_EVENT(tw_tokens, destroy,
	TP_PROTO(u32 wheel, u64 tokens), TP_ARGS(wheel, tokens));

TRACE_EVENT(alarm,
	TP_PROTO(u32 wheel),
	TP_ARGS(wheel),
	TP_STRUCT__entry(
		__field(u32, wheel)
	),
	TP_fast_assign(
		__entry->wheel = wheel;
	),
	TP_printk("wheel=%u", __entry->wheel)
);

#endif /* TW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
