/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * File: an open file of a wheel, and what it holds. Only the device knows files; the
 * wheel is told of the struct tw_holder.
 */
#ifndef TW_FILE_H
#define TW_FILE_H

#include <linux/fs.h>

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
