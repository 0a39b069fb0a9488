// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replaces a file at one moment: a reader sees all that is new, or the file as it was
 * before. The new file is written beside the old one, then renamed.
 */
#include <libgen.h>
#include <sys/stat.h>

#include "tool.h"

/* Begins to replace a file. Returns false and sets errno when there can be no such file. */
bool replace_begin(struct replacement *new, const char *path)
{
	int fd;

	*new = (struct replacement) { .path = path };
	if (asprintf(&new->temporary, "%s.XXXXXX", path) < 0)
		die(STATUS_FAILED, "no memory for a name");
	fd = mkostemp(new->temporary, O_CLOEXEC);
	new->file = fd < 0 ? NULL : fdopen(fd, "w");
	return new->file;
}

/* Brings the new name to the disk, too, where the file system can promise this. */
static void sync_folder(const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	free(copy);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* Removes what has been written; leaves errno as it is. */
void replace_cancel(struct replacement *new)
{
	int err = errno;

	if (new->file)
		fclose(new->file);
	unlink(new->temporary);
	free(new->temporary);
	errno = err;
}

/* Puts the new file in place. Returns false and sets errno if the old file is still there. */
bool replace_end(struct replacement *new, mode_t mode)
{
	int fd = fileno(new->file);

	if (fflush(new->file) || ferror(new->file) || fchmod(fd, mode) || fsync(fd) ||
	    renameat2(AT_FDCWD, new->temporary, AT_FDCWD, new->path,
		      new->only_new ? RENAME_NOREPLACE : 0)) {
		replace_cancel(new);
		return false;
	}
	fclose(new->file);
	free(new->temporary);
	sync_folder(new->path);
	return true;
}
