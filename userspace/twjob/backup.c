// SPDX-License-Identifier: GPL-2.0-only
/*
 * backup: copies twjobd's store while it is used, by SQLite's own means. The file
 * has all that was answered before, and is there as a whole or not at all.
 */
#include <sqlite3.h>

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
 * Copies without a journal and syncs, because an incomplete copy is thrown away.
 * sqlite3_backup_finish() reports no failure if a step could not begin because the store was
 * locked.
 */
static void copy(sqlite3 *store, struct replacement *new)
{
	sqlite3_backup *backup = NULL;
	sqlite3 *to;
	int error, end;

	error = sqlite3_open_v2(new->temporary, &to, SQLITE_OPEN_READWRITE, NULL);
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
	replace_cancel(new);
	die(STATUS_FAILED, "FILE '%s': %s", new->path, sqlite3_errstr(error));
}

static __noreturn void is_there(const char *path)
{
	die(STATUS_EXISTS, "FILE '%s' exists: choose another name, or --force",
	    path);
}

/* The copy is for its owner only, because bodies may be secret. */
enum status verb_backup(const struct args *args)
{
	const char *store_path = args->option[OPT_STORE];
	const char *path = args->arg[0];
	bool force = args->option[OPT_FORCE];
	struct replacement new;
	sqlite3 *store;

	if (!force && !access(path, F_OK))
		is_there(path);
	store = open_store(store_path ? store_path : STORE);
	if (!replace_begin(&new, path))
		die(STATUS_USAGE, "FILE '%s': %s", path, strerror(errno));
	new.only_new = !force;
	copy(store, &new);
	sqlite3_close(store);
	if (replace_end(&new, 0600))
		return STATUS_OK;
	if (errno == EEXIST)
		is_there(path);
	die(STATUS_FAILED, "FILE '%s': %s", path, strerror(errno));
}
