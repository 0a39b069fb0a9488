// SPDX-License-Identifier: LGPL-2.1-or-later
/* Takes the place of process.c on machines where a process cannot keep wheels. */
#include <errno.h>

#include "process.h"

int tw_process_open(const struct timewheel_setup *setup, int access,
		    struct tw_process_file **file)
{
	return -ENOSYS;
}

int tw_process_open_named(const char *name, int access, struct tw_process_file **file)
{
	return -ENOSYS;
}

void tw_process_close(struct tw_process_file *file)
{
}

int tw_process_fd(const struct tw_process_file *file)
{
	return -ENOSYS;
}

long tw_process_ioctl(struct tw_process_file *file, unsigned long cmd, void *arg)
{
	return -ENOSYS;
}

long tw_process_device(int access, unsigned long cmd, void *arg)
{
	return -ENOSYS;
}

ssize_t tw_process_read(struct tw_process_file *file, void *to, size_t bytes, bool nowait)
{
	return -ENOSYS;
}

int tw_process_map(struct tw_process_file *file, void **words, void **hold)
{
	return -ENOSYS;
}

void tw_process_unmap(void *hold)
{
}
