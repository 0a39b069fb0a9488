// SPDX-License-Identifier: GPL-2.0-only
/*
 * save: writes a wheel's settings and tokens to a file, a line of JSON for each, so
 * that restore can make them again. saved.c reads the file.
 */
#include <inttypes.h>
#include <time.h>

#include "twctl.h"

static void put(FILE *file, const char *name, uint64_t number)
{
	char text[NUMBER_TEXT];

	fprintf(file, ",\"%s\":%s", name, json_number(text, number, false));
}

static void put_signed(FILE *file, const char *name, int64_t number)
{
	char text[NUMBER_TEXT];

	fprintf(file, ",\"%s\":%s", name,
		json_number(text, number < 0 ? -(uint64_t)number : (uint64_t)number,
			    number < 0));
}

static void put_bool(FILE *file, const char *name, bool is_so)
{
	fprintf(file, ",\"%s\":%s", name, is_so ? "true" : "false");
}

static void put_settings(FILE *file, const struct timewheel_info *info)
{
	size_t i;

	for (i = 0; i < settings_count; i++) {
		uint64_t value = setting_of_info(&settings[i], info);
		const char *name = setting_name(&settings[i]);

		if (settings[i].kind == SETTING_CLOCK)
			fprintf(file, ",\"%s\":\"%s\"", name, clock_name(value));
		else if (settings[i].kind == SETTING_FLAG)
			put_bool(file, name, value);
		else
			put(file, name, value);
	}
}

static void put_head(FILE *file, const struct wheel *wheel, const struct stat *node)
{
	const struct timewheel_info *info = &wheel->info;
	struct moment moment = moment_now();

	fprintf(file, "{\"timewheel-save\":%d,\"restored\":%*d", SAVED_VERSION, SAVED_MARK, 0);
	fprintf(file, ",\"wheel\":\"%s\",\"boot\":\"%s\"", wheel->name, moment.boot);
	put(file, "uptime", moment.uptime);
	put(file, "wall", wheel->real);
	put(file, "now", info->now);
	put(file, "owner", node->st_uid);
	put(file, "group", node->st_gid);
	put(file, "mode", node->st_mode & 0777);
	put_bool(file, "paused", info->state & TIMEWHEEL_CONTROL_PAUSED);
	put_settings(file, info);
	fputs("}\n", file);
}

/* Writes a token as list tells it, with the time left until the deadline or the lease's end. */
static void put_token(FILE *file, const struct wheel *wheel,
		      const struct timewheel_token *token)
{
	int64_t left = token_time(token) - wheel->info.now;

	fprintf(file, "{\"state\":\"%s\"",
		token->state == TIMEWHEEL_STATE_HELD ? "held" : "pending");
	put(file, "id", token->id);
	put(file, "cookie", token->cookie);
	put_signed(file, "left", left);
	if (wheel->info.clock != TIMEWHEEL_CLOCK_MANUAL)
		put_signed(file, "wall", (int64_t)wheel->real + left);
	put(file, "timeout", token->timeout);
	put(file, "period", token->period);
	put(file, "base", token->base);
	fputs("}\n", file);
}

/* Returns false and sets errno if the wheel does not answer. */
static bool put_tokens(FILE *file, const struct wheel *wheel, uint64_t *count)
{
	struct tw_cursor *cursor = tw_cursor_open(wheel->wheel, 0, TIMEWHEEL_NEVER);
	const struct timewheel_token *token;
	int more = -1;

	*count = 0;
	while (cursor && (more = tw_cursor_next(cursor, &token)) > 0) {
		/* This token is on its way to a reader, and ends with the delivery. */
		if (token->state == TIMEWHEEL_STATE_TAKEN)
			continue;
		put_token(file, wheel, token);
		++*count;
	}
	tw_cursor_close(cursor);
	return !more;
}

/*
 * A read that began before a pause may still put tokens back that it cannot copy:
 * such tokens are waited for, a second at most. Reads the wheel's clock, then the
 * wall clock, so that no point of wall time is too early.
 */
static bool look(struct wheel *wheel)
{
	const struct timespec pause = { .tv_nsec = NSEC_PER_SEC / 1000 };
	int tries = 1000;

	do {
		if (tw_wheel_info(wheel->wheel, &wheel->info) < 0)
			return false;
	} while (wheel->info.state & TIMEWHEEL_CONTROL_PAUSED && wheel->info.taken &&
		 --tries && !nanosleep(&pause, NULL));
	wheel->real = wheel->info.clock == TIMEWHEEL_CLOCK_REALTIME ?
		      wheel->info.now : real_now();
	return true;
}

static enum status save_open(struct wheel *wheel, const char *path)
{
	struct replacement new;
	struct stat node;
	uint64_t count;

	if (!node_stat(wheel->name, &node) || !look(wheel))
		return wheel_trouble(wheel->name);
	if (!replace_begin(&new, path))
		return trouble(STATUS_FAILED, "%s: %s", path, strerror(errno));
	put_head(new.file, wheel, &node);
	if (!put_tokens(new.file, wheel, &count)) {
		replace_cancel(&new);
		return wheel_trouble(wheel->name);
	}
	fprintf(new.file, "{\"end\":true,\"tokens\":%" PRIu64 "}\n", count);
	if (!replace_end(&new, 0600))
		return trouble(STATUS_FAILED, "%s: %s", path, strerror(errno));
	printf("wheel '%s': %" PRIu64 " tokens saved to %s\n", wheel->name, count,
	       path);
	return STATUS_OK;
}

enum status save(const char *name, const char *path)
{
	struct wheel wheel;
	enum status status = wheel_try_open(&wheel, name, O_RDONLY);

	if (status)
		return status;
	status = save_open(&wheel, path);
	wheel_close(&wheel);
	return status;
}

/* A declared wheel that was destroyed by hand is no error. */
static enum status save_declared(const char *name)
{
	struct stat node;

	if (node_stat(name, &node) || errno != ENOENT)
		return save(name, saved_path(name));
	printf("wheel '%s' is gone: nothing to save\n", name);
	return STATUS_OK;
}

/* Saves all wheels that are declared as saved. */
enum status save_all(void)
{
	struct moment began = moment_now();
	enum status status, each;
	char **names, **name;

	names = declared_saved(&status);
	if (*names && access("/dev/timewheel", F_OK) < 0)
		return device_trouble();
	for (name = names; *name; name++) {
		each = save_declared(*name);
		if (!status)
			status = each;
	}
	each = *names ? stamp_write(&began) : STATUS_OK;
	return status ? status : each;
}

enum status verb_save(const struct args *args)
{
	if (!args->count)
		return save_all();
	return save(args->arg[0],
		    args->count > 1 ? args->arg[1] : saved_path(args->arg[0]));
}
