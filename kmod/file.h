/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * File: an open file of a wheel, what it holds, and what can be done with it. Only the
 * functions declared here know files; the wheel gets the struct tw_holder.
 */
#ifndef TW_FILE_H
#define TW_FILE_H

#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/timewheel.h>
#include <linux/uio.h>

#include "wheel.h"

/**
 * struct tw_file - the private data of an open file
 * @wheel: its wheel; constant
 * @holder: the deliveries that were read by this file and are out
 */
struct tw_file {
	struct tw_wheel		*wheel;
	struct tw_holder	holder;
};

struct vm_area_struct;

ssize_t tw_events_read(struct kiocb *iocb, struct iov_iter *to);
__poll_t tw_events_poll(struct file *file, poll_table *wait);
long tw_ioctl(struct file *file, unsigned int cmd, unsigned long uarg);
void tw_info_fill(const struct file *file, struct timewheel_info *info);
int tw_map(struct file *file, struct vm_area_struct *vma);

static inline struct tw_wheel *tw_file_wheel(const struct file *file)
{
	const struct tw_file *opened = file->private_data;

	return opened->wheel;
}

static inline struct tw_holder *tw_file_holder(const struct file *file)
{
	struct tw_file *opened = file->private_data;

	return &opened->holder;
}

#endif /* TW_FILE_H */
