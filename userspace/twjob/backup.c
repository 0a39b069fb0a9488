// SPDX-License-Identifier: GPL-2.0-only
/*
 * backup: copies twjobd's store while it is used, by SQLite's own means. The file
 * has all that was answered before, and is there as a whole or not at all.
 */
#include <libgen.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "twjob.h"

#define APPLICATION	0x74776a62	/* "twjb", as twjobd has it */

static sqlite3 *open_store(const char *path)
{
	sqlite3_stmt *statement = NULL;
	sqlite3 *store;
	int id = 0;

	if (access(path, R_OK) < 0)
		die(STATUS_USAGE, "--store '%s': %s; it is 'store' in /etc/twjobd.conf",
		    path, strerror(errno));
	if (sqlite3_open_v2(path, &store, SQLITE_OPEN_READONLY, NULL) ||
	    sqlite3_busy_timeout(store, 10000) ||
	    sqlite3_prepare_v2(store, "pragma application_id", -1, &statement,
			       NULL) ||
	    sqlite3_step(statement) != SQLITE_ROW)
		die(STATUS_FAILED, "--store '%s': %s", path,
		    sqlite3_errmsg(store));
	id = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	if (id != APPLICATION)
		die(STATUS_USAGE, "--store '%s': not a store of twjobd", path);
	return store;
}

/*
 * Without a journal and syncs: what is not complete is thrown away. A step that could
 * not begin, because the store was locked, is no failure to sqlite3_backup_finish().
 */
static void copy(sqlite3 *store, const char *path)
{
	sqlite3_backup *backup = NULL;
	sqlite3 *to;
	int error, end;

	error = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL);
	if (!error)
		error = sqlite3_exec(to, "pragma journal_mode = off; pragma synchronous = off",
				     NULL, NULL, NULL);
	if (!error) {
		backup = sqlite3_backup_init(to, "main", store, "main");
		error = backup ? sqlite3_backup_step(backup, -1) :
				 sqlite3_errcode(to);
	}
	end = sqlite3_backup_finish(backup);
	if (error == SQLITE_DONE)
		error = end ? end : sqlite3_close(to);
	if (!error)
		return;
	unlink(path);
	die(STATUS_FAILED, "FILE '%s': %s", path, sqlite3_errstr(error));
}

static bool sync_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool done = fd >= 0 && !fsync(fd);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Bodies may be secret. A file that an earlier backup did not end is replaced. */
static void make_file(const char *path)
{
	int fd;

	unlink(path);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		die(STATUS_USAGE, "FILE '%s': %s", path, strerror(errno));
	close(fd);
}

static __noreturn void is_there(const char *path)
{
	die(STATUS_EXISTS, "FILE '%s' exists: choose another name, or --force",
	    path);
}

enum status verb_backup(const struct args *args)
{
	const char *store_path = args->option[OPT_STORE];
	const char *path = args->arg[0];
	bool force = args->option[OPT_FORCE];
	char *temporary, *folder = strdup(path);
	sqlite3 *store;

	if (!folder || asprintf(&temporary, "%s.tmp", path) < 0)
		die(STATUS_FAILED, "no memory for a name");
	if (!force && !access(path, F_OK))
		is_there(path);
	store = open_store(store_path ? store_path : STORE);
	make_file(temporary);
	copy(store, temporary);
	sqlite3_close(store);
	if (!sync_file(temporary) ||
	    renameat2(AT_FDCWD, temporary, AT_FDCWD, path,
		      force ? 0 : RENAME_NOREPLACE) < 0) {
		int error = errno;

		unlink(temporary);
		if (error == EEXIST)
			is_there(path);
		die(STATUS_FAILED, "FILE '%s': %s", path, strerror(error));
	}
	if (!sync_file(dirname(folder)))
		die(STATUS_FAILED, "FILE '%s': the folder: %s", path,
		    strerror(errno));
	free(folder);
	free(temporary);
	return STATUS_OK;
}
