/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A disk whose power can be cut, and whose writes can fail, for tests of twjobd: ext4
 * at DIR, on a device of the device mapper that takes some time for a flush, or lets
 * all writes fail, on dm-log-writes, on a file.
 *
 * The log tells in which order writes have become durable: a write that lay in the disk's cache
 * comes just before the flush that it waited for. So each position in the log is a state that a
 * power cut may leave behind, without any write that was not flushed.
 */
#ifndef JOBS_DISK_H
#define JOBS_DISK_H

#include <endian.h>
#include <libdevmapper.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "jobs.h"

#define DISK		"/tmp/twjobd-disk"
#define DISK_DATA	DISK "/data"
#define DISK_LOG	DISK "/log"
/*
 * DISK_STATE has the content of the disk at a position in the log. DISK_COPY is a copy that is
 * mounted.
 */
#define DISK_STATE	DISK "/state"
#define DISK_COPY	DISK "/copy"
#define DISK_SIZE	(48LL << 20)
#define DISK_LOG_SIZE	(400LL << 20)
#define DISK_SECTORS	(DISK_SIZE / 512)
#define LOG_DEVICE	"twjobd-log"
#define DISK_DEVICE	"twjobd-disk"
#define LOG_NODE	"/dev/mapper/" LOG_DEVICE
/* A flush takes 4 ms. During this time an answer that does not wait for the flush gets its mark. */
#define WELL		LOG_NODE " 0 0 " LOG_NODE " 0 0 " LOG_NODE " 0 4"
#define FAILING		LOG_NODE " 0 0 3600 1 error_writes"

static inline void need(bool ok, const char *what)
{
	if (ok)
		return;
	printf("# %s: %s\n", what, strerror(errno));
	abort();
}

static inline void make_file(const char *name, long long size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	need(fd >= 0 && !ftruncate(fd, size), name);
	close(fd);
}

static inline void copy_bytes(int from, off_t offset, int to, off_t at, size_t n)
{
	static char bytes[1 << 20];

	while (n) {
		size_t part = n < sizeof(bytes) ? n : sizeof(bytes);

		need(pread(from, bytes, part, offset) == (ssize_t)part &&
		     pwrite(to, bytes, part, at) == (ssize_t)part, "a copy");
		offset += part;
		at += part;
		n -= part;
	}
}

/* Copies a disk with its holes. */
static inline void copy_disk(const char *name, const char *to_name)
{
	int from = open(name, O_RDONLY), to;
	off_t data = 0, hole;

	make_file(to_name, DISK_SIZE);
	to = open(to_name, O_WRONLY);
	need(from >= 0 && to >= 0, name);
	while ((data = lseek(from, data, SEEK_DATA)) >= 0) {
		hole = lseek(from, data, SEEK_HOLE);
		copy_bytes(from, data, to, data, hole - data);
		data = hole;
	}
	close(from);
	close(to);
}

/* Makes a file a block device, until this descriptor and all users of the device are closed. */
static inline int attach(const char *file, char device[32])
{
	int control = open("/dev/loop-control", O_RDWR);
	struct loop_config config = {
		.fd = open(file, O_RDWR),
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	int number = ioctl(control, LOOP_CTL_GET_FREE), fd;

	snprintf(device, 32, "/dev/loop%d", number);
	fd = open(device, O_RDWR);
	need(!ioctl(fd, LOOP_CONFIGURE, &config), device);
	close(config.fd);
	close(control);
	return fd;
}

static inline struct dm_task *mapper_task(int type, const char *name)
{
	struct dm_task *task = dm_task_create(type);

	need(task && dm_task_set_name(task, name), name);
	return task;
}

static inline void mapper_run(struct dm_task *task)
{
	need(dm_task_run(task), "device mapper");
	dm_task_destroy(task);
	dm_task_update_nodes();
}

static inline void mapper_table(int type, const char *name, const char *target,
				const char *arguments)
{
	struct dm_task *task = mapper_task(type, name);

	need(dm_task_add_target(task, 0, DISK_SECTORS, target, arguments), target);
	mapper_run(task);
}

/* From now on the disk does not answer. */
static inline void disk_suspend(void)
{
	struct dm_task *task = mapper_task(DM_DEVICE_SUSPEND, DISK_DEVICE);

	/* Data that the file system has not written yet stays unwritten. */
	need(dm_task_skip_lockfs(task), DISK_DEVICE);
	mapper_run(task);
}

static inline void disk_resume(void)
{
	mapper_run(mapper_task(DM_DEVICE_RESUME, DISK_DEVICE));
}

/* Lets DISK_DEVICE use the table that it was given last. */
static inline void disk_switch(void)
{
	disk_suspend();
	disk_resume();
}

/* Lets all writes and flushes fail from now on, or lets none of them fail. */
static inline void disk_fails(bool fails)
{
	mapper_table(DM_DEVICE_RELOAD, DISK_DEVICE, fails ? "flakey" : "delay",
		     fails ? FAILING : WELL);
	disk_switch();
}

/* Lets only the first block of a file fail. The memory has a copy of this block. */
static inline void disk_fails_at(const char *file)
{
	struct dm_task *task = mapper_task(DM_DEVICE_RELOAD, DISK_DEVICE);
	int fd = open(file, O_RDONLY), block = 0;
	char rest[64];
	long long at;

	need(fd >= 0 && !ioctl(fd, FIBMAP, &block) && block, file);
	close(fd);
	at = block * 8LL;
	snprintf(rest, sizeof(rest), LOG_NODE " %lld", at + 8);
	need(dm_task_add_target(task, 0, at, "linear", LOG_NODE " 0") &&
	     dm_task_add_target(task, at, 8, "error", "") &&
	     dm_task_add_target(task, at + 8, DISK_SECTORS - at - 8, "linear",
				rest), file);
	mapper_run(task);
	disk_switch();
}

static inline void disk_mount(void)
{
	need(!mount("/dev/mapper/" DISK_DEVICE, DIR, "ext4", 0, "commit=300"), DIR);
}

static inline void disk_make(void)
{
	char data[32], log[32], arguments[80];
	int data_fd, log_fd;

	dm_udev_set_sync_support(0);
	mkdir(DISK, 0700);
	make_file(DISK_DATA, DISK_SIZE);
	make_file(DISK_LOG, DISK_LOG_SIZE);
	need(!system("./mkfs.ext4 -q -F -b 4096 -N 64 -m 0 -J size=4 " DISK_DATA),
	     "mkfs.ext4");
	copy_disk(DISK_DATA, DISK_STATE);
	data_fd = attach(DISK_DATA, data);
	log_fd = attach(DISK_LOG, log);
	snprintf(arguments, sizeof(arguments), "%s %s", data, log);
	mapper_table(DM_DEVICE_CREATE, LOG_DEVICE, "log-writes", arguments);
	mapper_table(DM_DEVICE_CREATE, DISK_DEVICE, "delay", WELL);
	close(data_fd);
	close(log_fd);
	disk_mount();
}

/* Removes the disk. The end of the disk is in the log, too, but is no power cut. */
static inline void disk_remove(void)
{
	need(!umount(DIR), DIR);
	mapper_run(mapper_task(DM_DEVICE_REMOVE, DISK_DEVICE));
	mapper_run(mapper_task(DM_DEVICE_REMOVE, LOG_DEVICE));
}

/* Puts a number into the log, after all earlier writes. */
static inline void disk_mark(int number)
{
	struct dm_task *task = mapper_task(DM_DEVICE_TARGET_MSG, LOG_DEVICE);
	char message[32];

	snprintf(message, sizeof(message), "mark %d", number);
	need(dm_task_set_sector(task, 0) && dm_task_set_message(task, message),
	     message);
	mapper_run(task);
}

/* The log has these entries, see drivers/md/dm-log-writes.c. */
#define LOG_MAGIC	0x6a736677736872ULL
#define LOG_DISCARD	0x4
#define LOG_MARK	0x8

struct disk_write {
	off_t data;		/* the place of the data in the log */
	off_t to;
	size_t size;
	int mark;		/* the last mark up to here, or -1 */
};

/* Reads the log. Returns the number of writes. The caller frees *@writes. */
static inline int disk_log(struct disk_write **writes)
{
	struct {
		uint64_t magic, version, entries;
		uint32_t sector_size;
	} super;
	struct {
		uint64_t sector, sectors, flags, length;
		char text[32];
	} entry;
	int log = open(DISK_LOG, O_RDONLY), count = 0, mark = -1;
	uint32_t sector_size;
	off_t at;

	need(pread(log, &super, sizeof(super), 0) == sizeof(super) &&
	     le64toh(super.magic) == LOG_MAGIC, DISK_LOG);
	sector_size = le32toh(super.sector_size);
	*writes = calloc(le64toh(super.entries), sizeof(**writes));
	at = sector_size;
	for (uint64_t i = 0; i < le64toh(super.entries); i++) {
		need(pread(log, &entry, sizeof(entry), at) == sizeof(entry), DISK_LOG);
		/* No discard is expected, because no program asks for one. */
		need(!(le64toh(entry.flags) & LOG_DISCARD), "no discard");
		at += sector_size;
		if (le64toh(entry.flags) & LOG_MARK)
			sscanf(entry.text, "%d", &mark);
		(*writes)[count++] = (struct disk_write) {
			.data = at,
			.to = le64toh(entry.sector) * sector_size,
			.size = le64toh(entry.sectors) * sector_size,
			.mark = mark,
		};
		at += (*writes)[count - 1].size;
	}
	close(log);
	return count;
}

/* Repeats some writes of the log on DISK_STATE. */
static inline void disk_replay(const struct disk_write *writes, int count)
{
	int log = open(DISK_LOG, O_RDONLY), state = open(DISK_STATE, O_WRONLY);

	need(log >= 0 && state >= 0, DISK_STATE);
	for (int i = 0; i < count; i++)
		copy_bytes(log, writes[i].data, state, writes[i].to, writes[i].size);
	close(log);
	close(state);
}

/* Mounts a copy of DISK_STATE at DIR; umount() ends it. */
static inline void disk_show(void)
{
	char device[32];
	int fd;

	copy_disk(DISK_STATE, DISK_COPY);
	fd = attach(DISK_COPY, device);
	need(!mount(device, DIR, "ext4", 0, NULL), device);
	close(fd);
}

/* Returns the place where the log has this mark. */
static inline int find_mark(const struct disk_write *writes, int mark)
{
	int i = 0;

	while (writes[i].mark != mark)
		i++;
	return i;
}

/* Returns the mark that comes after a write, if this mark is not after @last. */
static inline int next_mark(const struct disk_write *writes, int i, int last)
{
	int mark = writes[i].mark;

	while (writes[i].mark == mark && mark != last)
		i++;
	return writes[i].mark;
}

#endif /* JOBS_DISK_H */
