/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wheels of this process, as the rest of the library knows them: open files on which commands
 * are carried out. The results are the same as of system calls on a wheel of the kernel;
 * errors are negative errnos.
 */
#ifndef TW_PROCESS_H
#define TW_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tw_process_file;
struct timewheel_setup;

int tw_process_open(const struct timewheel_setup *setup, int access,
		    struct tw_process_file **file);
int tw_process_open_named(const char *name, int access, struct tw_process_file **file);
void tw_process_close(struct tw_process_file *file);
int tw_process_fd(const struct tw_process_file *file);

/* Carries out a command, and answers as ioctl(2) does. */
long tw_process_ioctl(struct tw_process_file *file, unsigned long cmd, void *arg);

/* Answers as ioctl(2) of the device does before a wheel is set up. Sets up no wheel. */
long tw_process_device(int access, unsigned long cmd, void *arg);

/* Reads as read(2) does. @nowait: does not wait, even if the file blocks. */
ssize_t tw_process_read(struct tw_process_file *file, void *to, size_t bytes, bool nowait);

/* Maps touch words as mmap(2) does. @hold keeps the words and the wheel until it is given back. */
int tw_process_map(struct tw_process_file *file, void **words, void **hold);
void tw_process_unmap(void *hold);

#endif /* TW_PROCESS_H */
