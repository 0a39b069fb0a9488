/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Another version of the module in the place of the one that is loaded. upgrade.c has
 * the verb and its steps, upgrade_units.c the units of systemd that use the module,
 * upgrade_wheels.c the wheels, upgrade_module.c the module and its files.
 */
#ifndef TWCTL_UPGRADE_H
#define TWCTL_UPGRADE_H

#include "twctl.h"

/* Names of units; each name is there once. */
struct units {
	char	**name;
	size_t	count;
};

enum status units_find(struct units *units);
bool units_stop(const struct units *units);
bool units_start(const struct units *units);

/* @manual: the time of its manual clock. @draining: it took no more tokens. */
struct kept {
	char	*name;
	char	*path;
	bool	manual;
	bool	draining;
};

struct wheels {
	struct kept	*wheel;
	size_t		count;
};

enum status wheels_begin(void);
bool wheels_save(struct wheels *wheels);
bool wheels_destroy(void);
bool wheels_restore(const struct wheels *wheels);
bool wheels_end(const struct wheels *wheels);

/* @file: the file to go back to. @note: tells this build of the module from others. */
struct module {
	char	*file;
	char	note[64];
	size_t	note_length;
	char	*settings;
};

/* Files of modules that packages have replaced: one of them may be loaded. */
#define KEPT_FILES	"/run/timewheel"

bool module_loaded(void);
enum status module_find(struct module *module);
enum status module_check(const struct module *module, const char *file, bool *same);
bool module_is_loaded(const struct module *module);
bool module_remove(void);
bool module_load(const struct module *module, const char *file);

#endif /* TWCTL_UPGRADE_H */
