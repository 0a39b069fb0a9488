// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module, which tools of kmod(8) load from its file. A note in the file, which the
 * kernel shows when the module is loaded, tells one build from another.
 */
#include <glob.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "upgrade.h"

#define LOADED		"/sys/module/timewheel"
#define NOTE		LOADED "/notes/.note.gnu.build-id"
#define SETTINGS	LOADED "/parameters"

/* The time that the last file of a wheel may take to let the module go. */
#define LEAVING_TIME	(5 * NSEC_PER_SEC)

bool module_loaded(void)
{
	return !access(LOADED, F_OK);
}

static size_t read_note(char *note, size_t size)
{
	FILE *file = fopen(NOTE, "re");
	size_t length = file ? fread(note, 1, size, file) : 0;

	if (file)
		fclose(file);
	return length;
}

/* Reads all of a file, which may be packed; NULL if it cannot be read. */
static char *contents(const char *path, size_t *length)
{
	static const struct {
		const char	*end;
		const char	*tool;
	} packed[] = {
		{ ".xz", "xz" }, { ".zst", "zstd" }, { ".gz", "gzip" }, { "", "cat" },
	};
	const char *end = strrchr(path, '.');
	size_t i = 0;

	while (*packed[i].end && (!end || strcmp(end, packed[i].end)))
		i++;
	return command_read((char *[]) { (char *)packed[i].tool,
					 *packed[i].end ? "-dc" : "--", (char *)path,
					 NULL }, length);
}

static bool has_note(const struct module *module, const char *path)
{
	size_t length;
	char *text = contents(path, &length);
	bool found = text && module->note_length &&
		     memmem(text, length, module->note, module->note_length);

	free(text);
	return found;
}

/* Finds the file that modprobe loads, in memory of its own; NULL if modprobe knows none. */
static char *modprobe_file(void)
{
	char *path = command_output((char *[]) { "modinfo", "-n", "timewheel", NULL });

	if (path)
		path[strcspn(path, "\n")] = '\0';
	return path;
}

/* Reads the parameters that are set now, as a line NAME VALUE for each parameter. */
static char *module_settings(void)
{
	char *text = NULL, value[64];
	glob_t found = { };
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		die(STATUS_FAILED, "no memory for parameters");
	glob(SETTINGS "/*", 0, NULL, &found);
	for (i = 0; i < found.gl_pathc; i++) {
		FILE *file = fopen(found.gl_pathv[i], "re");

		if (file && fgets(value, sizeof(value), file))
			fprintf(out, "%s %s", strrchr(found.gl_pathv[i], '/') + 1, value);
		if (file)
			fclose(file);
	}
	globfree(&found);
	if (fclose(out))
		die(STATUS_FAILED, "no memory for parameters");
	return text;
}

/* Sets the parameters again. A parameter that the module no longer has is left out. */
static void apply_settings(const char *lines)
{
	char *copy = strdup(lines), *next = copy, *line, path[128];

	while ((line = strsep(&next, "\n"))) {
		char *value = strchr(line, ' ');
		FILE *file;

		if (!value)
			continue;
		*value++ = '\0';
		snprintf(path, sizeof(path), SETTINGS "/%s", line);
		file = access(path, W_OK) ? NULL : fopen(path, "we");
		if (!file)
			continue;
		fputs(value, file);
		if (fclose(file))
			complain("%s: %s: it is not set to %s again", path,
				 strerror(errno), value);
	}
	free(copy);
}

/* Finds out which module is loaded, and from which file. */
enum status module_find(struct module *module)
{
	char *usual = modprobe_file();
	glob_t kept = { };
	size_t i;

	module->note_length = read_note(module->note, sizeof(module->note));
	module->settings = module_settings();
	if (usual && has_note(module, usual)) {
		module->file = usual;
		return STATUS_OK;
	}
	free(usual);
	glob(KEPT_FILES "/*.ko*", 0, NULL, &kept);
	for (i = 0; i < kept.gl_pathc && !module->file; i++)
		if (has_note(module, kept.gl_pathv[i]))
			module->file = strdup(kept.gl_pathv[i]);
	globfree(&kept);
	if (module->file)
		return STATUS_OK;
	return trouble(STATUS_NOT_THERE,
		       "the file of the module that is loaded is not known, and without it there is no way back: copy it into the folder "
		       KEPT_FILES);
}

/* Whether the file may be a module for this kernel, and whether it is the loaded one. */
enum status module_check(const struct module *module, const char *file, bool *same)
{
	char *known = file ? NULL : modprobe_file(), *magic;
	struct utsname kernel;

	uname(&kernel);
	if (!file && !known)
		return trouble(STATUS_NOT_THERE,
			       "modprobe knows no module timewheel for this kernel: name the file of the new one");
	if (!file)
		file = known;
	magic = command_output((char *[]) { "modinfo", "-F", "vermagic",
			       (char *)file, NULL });
	if (!magic || !*magic)
		return trouble(STATUS_USAGE, "FILE '%s': not the file of a module", file);
	magic[strcspn(magic, "\n ")] = '\0';
	if (strcmp(magic, kernel.release))
		return trouble(STATUS_USAGE, "FILE '%s': for the kernel %s, and this one is %s",
			       file, magic, kernel.release);
	free(magic);
	*same = has_note(module, file);
	free(known);
	return STATUS_OK;
}

/* Whether the loaded module is the one that was loaded at first. */
bool module_is_loaded(const struct module *module)
{
	char note[sizeof(module->note)];

	return read_note(note, sizeof(note)) == module->note_length &&
	       !memcmp(note, module->note, module->note_length);
}

bool module_remove(void)
{
	uint64_t end = end_after(LEAVING_TIME);
	long failed;

	do
		failed = syscall(SYS_delete_module, "timewheel", O_NONBLOCK);
	while (failed && (errno == EAGAIN || errno == EBUSY) && end_after(0) < end &&
	       !usleep(50000));
	if (failed)
		complain("the module is not removed: %s", strerror(errno));
	return !failed;
}

/* @file: the module's file, NULL for the file that modprobe loads. */
bool module_load(const struct module *module, const char *file)
{
	if (command_run(file ? (char *[]) { "insmod", (char *)file, NULL } :
			       (char *[]) { "modprobe", "timewheel", NULL }))
		return false;
	apply_settings(module->settings);
	return true;
}
