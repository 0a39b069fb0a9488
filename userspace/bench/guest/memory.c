// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes for each of @n pending timeouts, with slack and tables: charged, to the
 * memory cgroup; machine, the free memory that the machine lost, charged or not. The
 * program's own arrays are left out.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

#define GROUP	"/sys/fs/cgroup/bench/"

static u64 value_of(const char *path, const char *key)
{
	FILE *file = fopen(path, "r");
	size_t len = key ? strlen(key) : 0;
	char line[128];
	u64 value = 0;

	NEED(file);
	while (!value && fgets(line, sizeof(line), file))
		if (!key || (!strncmp(line, key, len) &&
			     strspn(line + len, ": \t")))
			value = strtoull(line + len + strspn(line + len, ": \t"),
					 NULL, 10);
	fclose(file);
	return value;
}

struct used {
	double charged, gone;
};

static struct used used_now(void)
{
	int fd = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC);

	/* Waits for memory that is being freed, also on the CPU's lists of pages. */
	sleep(2);
	NEED(fd >= 0 && write(fd, "1", 1) == 1);
	close(fd);
	sleep(2);
	return (struct used){
		.charged = value_of(GROUP "memory.current", NULL),
		.gone = -1024.0 * value_of("/proc/meminfo", "MemFree:"),
	};
}

static void memory_of(const struct kind *kind, unsigned int n)
{
	struct used before, after;

	/*
	 * The first timeouts, and the program, have allocated their memory before the measurement.
	 */
	kind->open(kind, n, 10 * MS);
	arm_all(kind, BATCH, FAR, false);
	before = used_now();
	for (unsigned int i = BATCH; i < n; i++) {
		kind->arm(i, FAR, false);
		if (kind->flush && (i % BATCH == BATCH - 1 || i == n - 1))
			kind->flush();
	}
	after = used_now();
	put("charged", kind->name, n,
	    (after.charged - before.charged) / (n - BATCH));
	put("machine", kind->name, n, (after.gone - before.gone) / (n - BATCH));
	kind->close();
}

/* Each kind runs in a guest of its own: no memory of another kind is left. */
void run_memory(unsigned int n)
{
	static const struct kind *const kinds[] = {
		&wheel_plain, &wheel_plain_word, &wheel_batch_handle,
		&wheel_batch_id,
		&timerfd, &uring,
	};

	const char *which = getenv("TW_KIND");
	unsigned int i = which ? strtoul(which, NULL, 10) : 0;
	int fd;

	NEED(i < ARRAY_SIZE(kinds));
	NEED(!mkdir(GROUP, 0755));
	fd = open(GROUP "cgroup.procs", O_WRONLY | O_CLOEXEC);
	NEED(fd >= 0 && write(fd, "0", 1) == 1);
	close(fd);
	memory_of(kinds[i], n < kinds[i]->most ? n : kinds[i]->most);
}
