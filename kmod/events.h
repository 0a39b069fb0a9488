/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Events: expired tokens as read(2) and poll(2) show them.
 */
#ifndef TW_EVENTS_H
#define TW_EVENTS_H

#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/uio.h>

ssize_t tw_events_read(struct kiocb *iocb, struct iov_iter *to);
__poll_t tw_events_poll(struct file *file, poll_table *wait);

#endif /* TW_EVENTS_H */
