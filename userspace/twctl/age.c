// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells how old a save is. A save tells when it was made, and when it was restored. A stamp
 * tells when all declared wheels were saved last, which is what a shutdown does.
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <time.h>

#include "twctl.h"

#define STAMP_FILE	"/var/lib/timewheel/all-saved"

static void read_boot(char *boot)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file || !fgets(boot, BOOT_TEXT, file))
		*boot = '\0';
	boot[strcspn(boot, "\n")] = '\0';
	if (file)
		fclose(file);
}

struct moment moment_now(void)
{
	struct moment now = { .wall = real_now() };
	struct timespec uptime;

	read_boot(now.boot);
	clock_gettime(CLOCK_BOOTTIME, &uptime);
	now.uptime = uptime.tv_sec * NSEC_PER_SEC + uptime.tv_nsec;
	return now;
}

/* Within a boot the time since boot counts, because the wall clock may be set. */
static bool is_before(const struct moment *one, const struct moment *other,
		      const struct moment *now)
{
	if (!strcmp(one->boot, other->boot))
		return one->uptime < other->uptime;
	return strcmp(one->boot, now->boot) && one->wall < other->wall;
}

/* Tells that all declared wheels were saved, or were gone, at this moment. */
enum status stamp_write(const struct moment *moment)
{
	struct replacement new;

	if (!replace_begin(&new, STAMP_FILE))
		return trouble(STATUS_FAILED, STAMP_FILE ": %s", strerror(errno));
	fprintf(new.file, "{\"boot\":\"%s\",\"uptime\":%" PRIu64 ",\"wall\":%" PRIu64 "}\n",
		moment->boot, moment->uptime, moment->wall);
	if (!replace_end(&new, 0600))
		return trouble(STATUS_FAILED, STAMP_FILE ": %s", strerror(errno));
	return STATUS_OK;
}

static bool stamp_read(struct moment *stamp)
{
	struct json_object *all = json_object_from_file(STAMP_FILE);
	struct json_object *boot, *uptime, *wall;
	bool good = json_object_object_get_ex(all, "boot", &boot) &&
		    json_object_object_get_ex(all, "uptime", &uptime) &&
		    json_object_object_get_ex(all, "wall", &wall);

	if (good) {
		snprintf(stamp->boot, BOOT_TEXT, "%s", json_object_get_string(boot));
		stamp->uptime = json_object_get_uint64(uptime);
		stamp->wall = json_object_get_uint64(wall);
	}
	json_object_put(all);
	return good;
}

/* Tells how long before @now the wall time @wall was. */
static const char *ago(uint64_t wall, const struct moment *now)
{
	static char text[TIME_TEXT];

	span_text(text, sizeof(text), now->wall - wall);
	return text;
}

#define FORCE	"--force restores it all the same"

/* Refuses a save whose tokens may have ended since. */
enum status age_check(struct saved *saved, const char *path)
{
	struct moment now = moment_now(), stamp;

	saved->stale = true;
	if (saved->restored)
		return trouble(STATUS_NOT_NOW,
			       "%s: the save was restored %s ago, and tokens that have ended since would come again: "
			       FORCE,
			       path, ago(saved->restored * NSEC_PER_SEC, &now));
	if (stamp_read(&stamp) && is_before(&saved->made, &stamp, &now))
		return trouble(STATUS_NOT_NOW,
			       "%s: the save is older than the last time that all wheels were saved, and tokens that have ended since would come again: "
			       FORCE,
			       path);
	saved->stale = false;
	if (access(path, W_OK) < 0)
		return trouble(STATUS_FAILED,
			       "%s: %s, and a save that is restored is marked: "
			       FORCE,
			       path, strerror(errno));
	return STATUS_OK;
}

/*
 * Marks the save as restored, in its place in the file, so that the save is marked or
 * as it was, whenever the machine stops.
 */
void age_mark(const struct saved *saved, const char *path)
{
	char text[SAVED_MARK + 1];
	int fd;

	snprintf(text, sizeof(text), "%*" PRIu64, SAVED_MARK,
		 (uint64_t)(real_now() / NSEC_PER_SEC));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || pwrite(fd, text, SAVED_MARK, saved->mark) != SAVED_MARK || fsync(fd))
		complain("%s: %s: the save is not marked as restored", path,
			 strerror(errno));
	if (fd >= 0)
		close(fd);
}

/*
 * Gives another name to a save that could not be restored, so that the next save of this wheel
 * does not replace it.
 */
void age_keep(const char *name, const char *path)
{
	unsigned int number;
	char *other;
	int failed;

	for (number = 0, failed = 1; failed; number++) {
		if (asprintf(&other, "%s.unrestored%.0u", path,
			     number ? number + 1 : 0) < 0)
			die(STATUS_FAILED, "no memory for a name");
		failed = renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_NOREPLACE);
		if (failed && errno != EEXIST) {
			complain("%s: %s: the next save replaces it", path,
				 strerror(errno));
			break;
		}
		if (!failed)
			complain("the save is kept and the wheel is saved: twctl restore %s %s",
				 name, other);
		free(other);
	}
}
