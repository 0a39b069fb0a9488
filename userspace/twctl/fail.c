// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells what went wrong with a wheel or a token, and finds the exit status for it.
 */
#include "twctl.h"

static bool no_device(void)
{
	return access("/dev/timewheel", F_OK) < 0;
}

bool can_be_name(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t length = strlen(name);

	return length && length < TIMEWHEEL_NAME_SIZE &&
	       strspn(name, letters) == length;
}

#define PARAMETERS	"/sys/module/timewheel/parameters"

/* A limit of the module, 0 if it cannot be read. */
static unsigned long long limit(const char *name)
{
	unsigned long long value = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), PARAMETERS "/%s", name);
	file = fopen(path, "re");
	if (file && fscanf(file, "%llu", &value) != 1)
		value = 0;
	if (file)
		fclose(file);
	return value;
}

/* Tells by errno why /dev/timewheel or a command on it has failed. */
enum status device_trouble(void)
{
	switch (errno) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return trouble(STATUS_NO_DEVICE,
			       "no device /dev/timewheel: the module is not loaded; see 'twctl doctor', also for programs without it");
	case EACCES:
	case EPERM:
		return trouble(STATUS_NOT_ALLOWED,
			       "no permission for /dev/timewheel; see 'twctl doctor'");
	case ENOTTY:
	case EINVAL:
	case E2BIG:
		return trouble(STATUS_FAILED,
			       "the module is of another version than this twctl; see 'twctl doctor'");
	case EDQUOT:
		return trouble(STATUS_FULL,
			       "you would have more than a user may: max_user_wheels is %llu, max_user_tokens %llu, the --max-tokens of all your wheels together; see "
			       PARAMETERS, limit("max_user_wheels"), limit("max_user_tokens"));
	case ENOSPC:
		return trouble(STATUS_FULL,
			       "all users, or those of this user namespace, would have more than they may: max_all_wheels is %llu, max_all_tokens %llu, of which a namespace has what it leaves to others; see "
			       PARAMETERS, limit("max_all_wheels"), limit("max_all_tokens"));
	default:
		return trouble(STATUS_FAILED,
			       "/dev/timewheel: %s",
			       tw_strerror(errno));
	}
}

/* Tells by errno why a wheel cannot be opened, or no longer answers. */
enum status wheel_trouble(const char *wheel)
{
	if (!can_be_name(wheel))
		return trouble(STATUS_USAGE,
			       "WHEEL '%s': not 1 to 63 letters, digits, '-' and '_'",
			       wheel);
	switch (errno) {
	case ENOENT:
	case ENXIO:
		if (no_device())
			return device_trouble();
		return trouble(STATUS_NOT_THERE,
			       "no wheel '%s'",
			       wheel);
	case ENODEV:
		return trouble(STATUS_DESTROYED,
			       "wheel '%s' has been destroyed",
			       wheel);
	case EACCES:
	case EPERM:
	case EBADF:
		return trouble(STATUS_NOT_ALLOWED,
			       "wheel '%s': no permission: chown(1) or chmod(1) /dev/timewheels/%s",
			       wheel, wheel);
	case ENOTTY:
	case EINVAL:
	case E2BIG:
		return trouble(STATUS_FAILED,
			       "wheel '%s': the module is of another version than this twctl; see 'twctl doctor'",
			       wheel);
	default:
		return trouble(STATUS_FAILED,
			       "wheel '%s': %s",
			       wheel, tw_strerror(errno));
	}
}

/* Tells how far ahead a deadline may be. */
#define REACH	"2^46 ticks and 292 years; with touch words, if the token has a timeout, 2^30 ticks"

/* Tells by errno why an operation on a token failed. */
enum status key_trouble(const char *wheel, const char *key, bool handle)
{
	const char *kind = handle ? "handle" : "id";

	switch (errno) {
	case ENOENT:
	case ESTALE:
		return trouble(STATUS_NOT_THERE,
			       "wheel '%s': no token of %s %s is pending",
			       wheel, kind, key);
	case EEXIST:
		return trouble(STATUS_EXISTS,
			       "wheel '%s': a token of id %s is pending or held; see 'twctl get %s %s'",
			       wheel, key, wheel, key);
	case ENOSPC:
		return trouble(STATUS_FULL,
			       "wheel '%s' is full: it has its max-tokens tokens",
			       wheel);
	case ENOMEM:
		return trouble(STATUS_FULL,
			       "wheel '%s': %s",
			       wheel, tw_strerror(errno));
	case ERANGE:
		return trouble(STATUS_USAGE,
			       "TIME of %s %s: not one that wheel '%s' can reach: " REACH,
			       kind, key, wheel);
	case EINVAL:
		return trouble(STATUS_FAILED,
			       "wheel '%s': the token of %s %s has no timeout to touch: it was registered for a point of time",
			       wheel, kind, key);
	case ESHUTDOWN:
		return trouble(STATUS_NOT_NOW,
			       "wheel '%s' is draining and takes no more tokens; to end that: twctl drain --undo %s",
			       wheel, wheel);
	default:
		return wheel_trouble(wheel);
	}
}

/* Tells by errno why an answer to a delivery, or a delete, failed. */
enum status delivery_trouble(const char *wheel, const char *key,
			     const struct timewheel_op *op)
{
	const char *kind = op->flags & TIMEWHEEL_OPF_BY_HANDLE ? "handle" : "id";

	switch (errno) {
	case ENOENT:
		return trouble(STATUS_NOT_THERE,
			       "wheel '%s': there is no token of %s %s; see 'twctl list %s'",
			       wheel, kind, key, wheel);
	case ESTALE:
		if (op->delivery)
			return trouble(STATUS_NOT_THERE,
				       "wheel '%s': delivery %u of %s %s is not out any more: it was answered, or its lease was over; see 'twctl list %s --state held'",
				       wheel, op->delivery, kind, key, wheel);
		return trouble(STATUS_NOT_THERE,
			       "wheel '%s': the token of %s %s has ended, or a reader is taking it; see 'twctl list %s'",
			       wheel, kind, key, wheel);
	case EINVAL:
		return trouble(STATUS_USAGE,
			       "wheel '%s' has no leases: end tokens by 'twctl cancel'",
			       wheel);
	case ERANGE:
		if (op->code == TIMEWHEEL_OP_EXTEND)
			return trouble(STATUS_USAGE,
				       "--lease of %s %s: not one that wheel '%s' can reach: "
				       REACH,
				       kind, key, wheel);
		return trouble(STATUS_USAGE,
			       "--delay of %s %s: not one that wheel '%s' can reach: " REACH,
			       kind, key, wheel);
	default:
		return wheel_trouble(wheel);
	}
}
