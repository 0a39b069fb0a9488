/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Ioctls of a wheel's files: see struct tw_file.
 */
#ifndef TW_IOCTL_H
#define TW_IOCTL_H

#include <linux/fs.h>
#include <linux/timewheel.h>

long tw_ioctl(struct file *file, unsigned int cmd, unsigned long uarg);
void tw_info_fill(const struct file *file, struct timewheel_info *info);

#endif /* TW_IOCTL_H */
