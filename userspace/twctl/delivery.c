// SPDX-License-Identifier: GPL-2.0-only
/*
 * ack, nack and extend: answers to deliveries. A command line is never the reader that
 * holds a delivery, so it answers in the name of that reader.
 */
#include "twctl.h"

/* Parses KEY[:DELIVERY]. @number: 0 when DELIVERY is left out. */
struct delivery {
	char		key[24];
	uint32_t	number;
};

static struct delivery delivery_of(const char *text)
{
	const char *colon = strchrnul(text, ':');
	struct delivery delivery = { };
	size_t length = colon - text;

	if (length >= sizeof(delivery.key))
		die_usage("KEY", text, "a number, of 64 bits");
	memcpy(delivery.key, text, length);
	number_of("KEY", delivery.key, 0, UINT64_MAX);
	if (*colon)
		delivery.number = number_of("DELIVERY", colon + 1, 1, UINT32_MAX);
	return delivery;
}

static void need_leases(const struct wheel *wheel)
{
	if (!wheel->info.lease)
		die(STATUS_USAGE,
		    "wheel '%s' has no leases, a read ends its tokens: make one with 'twctl create --lease'",
		    wheel->name);
}

/* Finds the delivery of the token that a reader holds now. */
static enum status find_delivery(const struct wheel *wheel,
				 struct timewheel_op *op, const char *key)
{
	bool handle = op->flags & TIMEWHEEL_OPF_BY_HANDLE;
	struct timewheel_token token;

	if (tw_wheel_get(wheel->wheel, number_of("KEY", key, 0, UINT64_MAX),
			 op->flags & TIMEWHEEL_OPF_BY_HANDLE, &token) < 0)
		return delivery_trouble(wheel->name, key, op);
	if (token.state != TIMEWHEEL_STATE_HELD)
		return trouble(STATUS_NOT_THERE,
			       "wheel '%s': no delivery of %s %s is out: it is pending; see 'twctl list %s --state held'",
			       wheel->name, handle ? "handle" : "id", key, wheel->name);
	op->delivery = token.delivery;
	return STATUS_OK;
}

static enum status answer(struct out *out, const struct wheel *wheel,
			  const struct timewheel_op *model, const char *text)
{
	struct delivery delivery = delivery_of(text);
	struct timewheel_op op = *model;
	enum status status = STATUS_OK;

	op.delivery = delivery.number;
	if (!op.delivery)
		status = find_delivery(wheel, &op, delivery.key);
	return status ? status : op_run(out, wheel, &op, delivery.key);
}

static enum status answer_each(const struct args *args, uint32_t code,
			       uint64_t time)
{
	struct timewheel_op op = { .code = code, .time = time };
	struct out *out = out_begin(args, op_columns, "tokens");
	enum status status = STATUS_OK, each;
	struct wheel wheel;
	int i;

	for (i = 1; i < args->count; i++)
		delivery_of(args->arg[i]);
	if (args->option[OPT_HANDLE])
		op.flags |= TIMEWHEEL_OPF_BY_HANDLE;
	wheel_open(&wheel, args->arg[0], O_RDWR);
	need_leases(&wheel);
	need_ids(&wheel, args->option[OPT_HANDLE]);
	for (i = 1; i < args->count; i++) {
		each = answer(out, &wheel, &op, args->arg[i]);
		if (!status)
			status = each;
	}
	wheel_close(&wheel);
	out_end(out);
	return status;
}

enum status verb_ack(const struct args *args)
{
	return answer_each(args, TIMEWHEEL_OP_ACK, 0);
}

enum status verb_nack(const struct args *args)
{
	return answer_each(args, TIMEWHEEL_OP_NACK,
			   option_span(args, OPT_NACK_DELAY, 0));
}

enum status verb_extend(const struct args *args)
{
	return answer_each(args, TIMEWHEEL_OP_EXTEND,
			   option_span(args, OPT_EXTENSION, 0));
}
