// SPDX-License-Identifier: GPL-2.0-only
/*
 * doctor: tells why there is no device, or why it cannot be used, and the command
 * that mends it. With --root it looks at another system's files, and opens nothing.
 */
#include <dirent.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "twctl.h"

#define DEVICE	"/dev/timewheel"

#define PASS_DEVICE \
	"start the container with: --device " DEVICE "; see CONTAINERS in timewheel(7)"

enum {
	CHECK, RESULT, DETAIL, MEND,
};

const struct column check_columns[] = {
	[CHECK] = { "CHECK", 0, "kernel, module, device, permission or version" },
	[RESULT] = { "RESULT", 0, "ok or bad; no check follows the first bad one" },
	[DETAIL] = { "DETAIL", 0, "what was found" },
	[MEND] = { "MEND", 0, "the command that mends it" },
	{ }
};

struct system {
	const char	*root;
	char		release[128];
	struct out	*out;
	bool		bad;
};

static __printf(2, 3)
char *path_of(const struct system *system, const char *format, ...)
{
	static char path[PATH_MAX];
	size_t length;
	va_list args;

	length = snprintf(path, sizeof(path), "%s", system->root);
	va_start(args, format);
	if (length < sizeof(path))
		vsnprintf(path + length, sizeof(path) - length, format, args);
	va_end(args);
	return path;
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

/* The first line of a small file, "" when there is no such file. */
static void read_text(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(text, 1, size - 1, file) : 0;

	text[length] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Prints a row of the table, or lines for people. @mend: NULL when all is well. */
static void report(struct system *system, const char *check, const char *detail,
		   const char *mend)
{
	const char *result = mend ? "bad" : "ok";
	const char *color = mend ? "\033[31m" : "\033[32m";
	bool colors = colors_wanted();

	if (!system->out) {
		printf("%s%-3s%s  %-10s  %s\n", colors ? color : "", result,
		       colors ? "\033[0m" : "", check, detail);
		if (mend)
			printf("\nThis mends it:\n  %s\n", mend);
		return;
	}
	out_row(system->out);
	out_text(system->out, CHECK, "%s", check);
	out_text(system->out, RESULT, "%s", result);
	out_text(system->out, DETAIL, "%s", detail);
	if (mend)
		out_text(system->out, MEND, "%s", mend);
}

static void good(struct system *system, const char *check, const char *detail)
{
	report(system, check, detail, NULL);
}

static __printf(4, 5)
void bad(struct system *system, const char *check, const char *detail,
	 const char *mend, ...)
{
	va_list args;
	char text[1024];

	va_start(args, mend);
	vsnprintf(text, sizeof(text), mend, args);
	va_end(args);
	report(system, check, detail, text);
	system->bad = true;
}

/* Finds the module's file for a kernel: each way to install the module has its folder. */
static bool find_module(const struct system *system, const char *release,
			char *path, size_t size)
{
	static const char * const dirs[] = {
		"updates/dkms", "updates", "extra", "kernel/drivers/misc",
		"kernel/extra", "."
	};
	glob_t found;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirs); i++) {
		bool yes = !glob(path_of(system, "/lib/modules/%s/%s/timewheel.ko*",
					 release, dirs[i]), 0, NULL, &found);

		if (yes)
			snprintf(path, size, "%s", found.gl_pathv[0]);
		globfree(&found);
		if (yes)
			return true;
	}
	return false;
}

/* Returns 1 for signed, 0 for not signed, -1 for unknown, as the module is compressed. */
static int is_signed(const char *path)
{
	static const char mark[] = "~Module signature appended~\n";
	char end[sizeof(mark)] = "";
	FILE *file;

	if (strcmp(path + strlen(path) - 3, ".ko"))
		return -1;
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (!fseek(file, -(long)strlen(mark), SEEK_END) &&
	    fread(end, 1, strlen(mark), file) < strlen(mark))
		*end = '\0';
	fclose(file);
	return !strcmp(end, mark);
}

/* Tells why this kernel takes only signed modules; NULL if it takes all modules. */
static const char *signatures_needed(const struct system *system)
{
	static char text[256];

	read_text(path_of(system, "/sys/kernel/security/lockdown"), text,
		  sizeof(text));
	if (strstr(text, "[integrity]") || strstr(text, "[confidentiality]"))
		return "lockdown, as with Secure Boot";
	read_text(path_of(system, "/sys/module/module/parameters/sig_enforce"),
		  text, sizeof(text));
	return *text == 'Y' ? "module.sig_enforce" : NULL;
}

/* The kernels for which the module is there. */
static void other_kernels(const struct system *system, char *text, size_t size)
{
	DIR *dir = opendir(path_of(system, "/lib/modules"));
	struct dirent *entry;
	char path[PATH_MAX];
	size_t length = 0;

	*text = '\0';
	while (dir && (entry = readdir(dir)) && length < size) {
		if (*entry->d_name != '.' &&
		    find_module(system, entry->d_name, path, sizeof(path)))
			length += snprintf(text + length, size - length, "%s%s",
					   length ? " " : "", entry->d_name);
	}
	if (dir)
		closedir(dir);
}

/* A container's manager leaves one of these files. */
static bool in_container(const struct system *system)
{
	static const char * const marks[] = {
		"/run/.containerenv", "/.dockerenv", "/run/systemd/container",
		"/var/run/secrets/kubernetes.io"
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(marks); i++) {
		if (exists(path_of(system, "%s", marks[i])))
			return true;
	}
	return false;
}

/* Debian's package timewheel-dkms, or a person, has given the source to DKMS. */
static bool has_dkms(const struct system *system)
{
	return exists(path_of(system, "/var/lib/dkms/timewheel"));
}

/* Debian's package timewheel-tools is installed. */
static bool has_package(const struct system *system)
{
	return exists(path_of(system, "/usr/share/doc/timewheel-tools"));
}

static void module_not_built(struct system *system)
{
	bool headers = exists(path_of(system, "/lib/modules/%s/build", system->release));
	const char *release = system->release;
	char others[256], detail[512];

	other_kernels(system, others, sizeof(others));
	snprintf(detail, sizeof(detail), "not built for this kernel, %s%s%s",
		 release, *others ? "; there for " : "", others);
	if (has_dkms(system) && headers)
		bad(system, "module", detail, "sudo dkms autoinstall -k %s", release);
	else if (has_dkms(system))
		bad(system, "module", detail,
		    "sudo apt-get install linux-headers-%s; sudo dkms autoinstall -k %s",
		    release, release);
	else if (has_package(system))
		bad(system, "module", detail,
		    "sudo apt-get install linux-headers-%s ./timewheel-dkms_%s_all.deb",
		    release, VERSION);
	else if (headers)
		bad(system, "module", detail,
		    "in timewheel's source: make && sudo make install");
	else
		bad(system, "module", detail,
		    "sudo apt-get install linux-headers-%s; then in timewheel's source: make && sudo make install",
		    release);
}

static void module_not_loaded(struct system *system, const char *path)
{
	const char *why = signatures_needed(system);
	char detail[512];

	if (why && !is_signed(path)) {
		snprintf(detail, sizeof(detail), "not signed, and refused by %s",
			 why);
		bad(system, "module", detail,
		    "sudo /lib/modules/%s/build/scripts/sign-file sha256 MOK.priv MOK.der %s, with a key enrolled by: sudo mokutil --import MOK.der",
		    system->release, path);
		return;
	}
	if (why) {
		snprintf(detail, sizeof(detail),
			 "not loaded; the kernel takes it only with a key it knows (%s)",
			 why);
		bad(system, "module", detail,
		    "sudo modprobe timewheel; if that is refused: sudo mokutil --import %s; then restart and choose \"Enroll MOK\"",
		    has_dkms(system) ? "/var/lib/dkms/mok.pub" :
		    "the certificate of the key that signed it");
		return;
	}
	bad(system, "module", "not loaded", "sudo modprobe timewheel");
}

static bool check_module(struct system *system)
{
	char path[PATH_MAX];

	if (exists(path_of(system, "/sys/module/timewheel"))) {
		good(system, "module", "loaded");
		return true;
	}
	if (in_container(system))
		bad(system, "module",
		    "not loaded, and a container uses the module of its host",
		    "on the host: twctl doctor");
	else if (find_module(system, system->release, path, sizeof(path)))
		module_not_loaded(system, path);
	else
		module_not_built(system);
	return false;
}

/* Tells of the other way, for users who cannot load the module. */
static void tell_of_others(struct system *system)
{
	good(system, "without it",
	     "programs have wheels of their own process with TIMEWHEEL=process, twjobd and twidled with \"wheels = process\"; see timewheel(7)");
}

static bool check_device(struct system *system)
{
	struct stat stat_of;
	char number[32];

	read_text(path_of(system, "/sys/class/misc/timewheel/dev"), number,
		  sizeof(number));
	if (stat(path_of(system, DEVICE), &stat_of) < 0 && in_container(system)) {
		bad(system, "device",
		    "the host has the module, " DEVICE " was not passed into this container",
		    PASS_DEVICE);
		return false;
	}
	if (stat(path_of(system, DEVICE), &stat_of) < 0) {
		number[strcspn(number, ":")] = ' ';
		bad(system, "device", "the module is loaded, " DEVICE " is missing",
		    "sudo mknod -m 660 " DEVICE " c %s", number);
		return false;
	}
	/* A copy of a system has names of nodes, and no nodes. */
	if (!*system->root && !S_ISCHR(stat_of.st_mode)) {
		bad(system, "device", DEVICE " is no device",
		    "sudo rm " DEVICE "; sudo modprobe -r timewheel; sudo modprobe timewheel");
		return false;
	}
	good(system, "device", DEVICE);
	return true;
}

/* Whether the user is in the group by now, although this process may not be. */
static bool user_in_group(const struct group *group)
{
	const struct passwd *user = getpwuid(geteuid());
	char **member;

	for (member = group->gr_mem; user && *member; member++) {
		if (!strcmp(*member, user->pw_name))
			return true;
	}
	return false;
}

static void no_permission(struct system *system, const struct stat *stat_of)
{
	const struct group *group = getgrgid(stat_of->st_gid);
	const struct passwd *user = getpwuid(geteuid());
	const char *name = user ? user->pw_name : "$USER";

	if (!stat_of->st_gid || !group || (stat_of->st_mode & 0060) != 0060)
		bad(system, "permission", DEVICE " is open to no group",
		    "sudo groupadd -rf timewheel; sudo chgrp timewheel /dev/timewheel; sudo chmod 660 /dev/timewheel; sudo usermod -aG timewheel %s; log in anew",
		    name);
	else if (user_in_group(group))
		bad(system, "permission",
		    "you are in the group, but you have not logged in since you joined it",
		    "newgrp %s, or log in anew", group->gr_name);
	else
		bad(system, "permission", DEVICE " is not open to you",
		    "sudo usermod -aG %s %s; log in anew", group->gr_name, name);
}

/* A node may exist and still be closed: the container's control group may forbid its device. */
static bool is_refused(const struct system *system)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };

	return !*system->root && tw_device_caps(&caps) < 0 && errno == EPERM;
}

/* A user namespace shows this group in the place of each group that it does not map. */
#define UNMAPPED_GROUP	65534

/* Groups of the host have no name in a container. */
static bool names_group(gid_t gid)
{
	return gid != 0 && gid != UNMAPPED_GROUP && getgrgid(gid);
}

static bool check_permission(struct system *system)
{
	struct stat stat_of;
	const char *path = path_of(system, DEVICE);

	if (!access(path, R_OK | W_OK) && is_refused(system)) {
		bad(system, "permission",
		    "the control group of this process may not use " DEVICE,
		    in_container(system) ? PASS_DEVICE :
		    "in the unit of the service: DeviceAllow=" DEVICE " rw");
		return false;
	}
	if (!access(path, R_OK | W_OK)) {
		good(system, "permission", "you may open " DEVICE);
		return true;
	}
	if (stat(path, &stat_of) < 0)
		return false;
	if (!in_container(system) || names_group(stat_of.st_gid))
		no_permission(system, &stat_of);
	else if (stat_of.st_gid == UNMAPPED_GROUP)
		bad(system, "permission", DEVICE " is not open to you in this container",
		    "a user without root starts it by podman with: --group-add keep-groups");
	else
		bad(system, "permission", DEVICE " is not open to you in this container",
		    "start the container with: --group-add %u", stat_of.st_gid);
	return false;
}

/* Tells what this twctl needs and the module lacks; NULL if nothing. */
static const char *skew_of(const struct timewheel_caps *caps)
{
	const uint32_t codes = (2U << TIMEWHEEL_OP_DELETE) - 1;
	const uint32_t setup_flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES |
		TIMEWHEEL_SETUP_TOUCH_WORDS | TIMEWHEEL_SETUP_PERIODS;

	if (caps->event_size != sizeof(struct timewheel_event))
		return "its events have another size";
	if (caps->op_size < sizeof(struct timewheel_op))
		return "it is older: its operations are smaller";
	if (caps->token_size < sizeof(struct timewheel_token))
		return "it is older: its tokens are smaller";
	if (~caps->codes & codes)
		return "it is older: it lacks operations";
	if (~caps->setup_flags & setup_flags)
		return "it is older: it lacks settings";
	if (!(caps->clocks & 1U << TIMEWHEEL_CLOCK_MANUAL))
		return "it is older: it lacks clocks";
	return NULL;
}

/*
 * Named wheels came later than the other commands. The attempt to create one with
 * an invalid setup shows whether the module knows them.
 */
static bool knows_names(void)
{
	const struct timewheel_setup none = { .size = sizeof(none) };

	return !tw_wheel_create("none", &none, 0) || errno != ENOTTY;
}

static void check_version(struct system *system)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	const char *why;
	char detail[256];

	if (tw_device_caps(&caps) < 0)
		why = tw_strerror(errno);
	else
		why = skew_of(&caps);
	if (!why && !knows_names())
		why = "it is older: it lacks named wheels";
	if (!why) {
		good(system, "version", "twctl and the module go together");
		return;
	}
	snprintf(detail, sizeof(detail),
		 "the module does not go with twctl " VERSION ": %s", why);
	bad(system, "version", detail,
	    "install %s; then: sudo modprobe -r timewheel; sudo modprobe timewheel",
	    has_package(system) ? "the packages timewheel-dkms and timewheel-tools of one version" :
	    "both from one source (make && sudo make install)");
}

static void examine(struct system *system)
{
	read_text(path_of(system, "/proc/sys/kernel/osrelease"), system->release,
		  sizeof(system->release));
	good(system, "kernel", system->release);
	/* In a container the module is the host's, and a node that works is enough. */
	if (!check_module(system)) {
		tell_of_others(system);
		return;
	}
	if (!check_device(system) || !check_permission(system))
		return;
	if (!*system->root)
		check_version(system);
}

enum status verb_doctor(const struct args *args)
{
	const char *root = args->option[OPT_ROOT];
	struct system system = { .root = root ? root : "" };

	if (root && !exists(root))
		die_usage("--root", root, "a folder that is there");
	if (args->option[OPT_JSON] || args->option[OPT_OUTPUT])
		system.out = out_begin(args, check_columns, "checks");
	examine(&system);
	if (system.out)
		out_end(system.out);
	return system.bad ? STATUS_FAILED : STATUS_OK;
}
