// SPDX-License-Identifier: GPL-2.0-only
/*
 * upgrade: puts another version of the module in the place of the one that is loaded.
 * The wheels are saved, and made again, and the services that use the module are stopped
 * meanwhile. When a step fails, all steps before it are undone.
 */
#include "upgrade.h"

/* @file: the file of the new module, NULL for the file that modprobe loads. */
struct upgrade {
	const char	*file;
	struct module	module;
	struct units	units;
	struct wheels	wheels;
};

/* Checks each thing before the swap, and changes nothing. */
static enum status check(struct upgrade *upgrade, bool *same)
{
	enum status status;

	if (geteuid())
		return trouble(STATUS_NOT_ALLOWED,
			       "only root may load a module: sudo twctl upgrade");
	if (!module_loaded())
		return trouble(STATUS_NO_DEVICE,
			       "the module is not loaded: modprobe timewheel, or insmod FILE");
	status = module_find(&upgrade->module);
	if (!status)
		status = module_check(&upgrade->module, upgrade->file, same);
	return status;
}

/*
 * Does the steps one by one. Returns the step that failed, NULL if none did. The wheels have
 * been saved.
 */
static const char *swap(struct upgrade *upgrade, const char *file)
{
	if (!wheels_destroy())
		return "end the wheels";
	if (!module_remove())
		return "remove the module";
	if (!module_load(&upgrade->module, file))
		return "load the new module";
	if (!wheels_restore(&upgrade->wheels))
		return "restore the wheels";
	return NULL;
}

/* Goes back to the old module and the saved wheels, at whatever step the swap has stopped. */
static bool swap_back(struct upgrade *upgrade)
{
	if (!module_is_loaded(&upgrade->module)) {
		if (module_loaded() && (!wheels_destroy() || !module_remove()))
			return false;
		if (!module_load(&upgrade->module, upgrade->module.file))
			return false;
	}
	return wheels_restore(&upgrade->wheels);
}

static enum status failed(const struct upgrade *upgrade, const char *step, bool back)
{
	if (back && wheels_end(&upgrade->wheels))
		return trouble(STATUS_FAILED, "could not %s; everything is as before", step);
	return trouble(STATUS_FAILED,
		       "could not %s, and could not go back: see 'twctl doctor'; saves of wheels are in /var/lib/timewheel and /var/lib/timewheel/upgrade",
		       step);
}

/*
 * The new module is loaded, but not all units start with it. Units that did start may have
 * changed the wheels.
 */
static bool undo_all(struct upgrade *upgrade)
{
	return units_stop(&upgrade->units) && wheels_save(&upgrade->wheels) &&
	       (!swap(upgrade, upgrade->module.file) || swap_back(upgrade)) &&
	       units_start(&upgrade->units);
}

static enum status carry_out(struct upgrade *upgrade)
{
	const char *step;

	if (!units_stop(&upgrade->units))
		return failed(upgrade, "stop what uses the module",
			      units_start(&upgrade->units));
	step = wheels_save(&upgrade->wheels) ? swap(upgrade, upgrade->file) :
					       "save the wheels";
	if (step)
		return failed(upgrade, step, swap_back(upgrade) &&
			      units_start(&upgrade->units));
	if (!units_start(&upgrade->units))
		return failed(upgrade, "start the units with the new module",
			      undo_all(upgrade));
	wheels_end(&upgrade->wheels);
	printf("the new module is loaded, with %zu wheels\n", upgrade->wheels.count);
	return STATUS_OK;
}

enum status verb_upgrade(const struct args *args)
{
	struct upgrade upgrade = { .file = args->count ? args->arg[0] : NULL };
	enum status status;
	bool same = false;

	status = check(&upgrade, &same);
	if (status)
		return status;
	if (same) {
		printf("this module is loaded already: nothing to do\n");
		return STATUS_OK;
	}
	status = units_find(&upgrade.units);
	if (!status)
		status = wheels_begin();
	if (status)
		return status;
	signals_begin();
	return carry_out(&upgrade);
}
