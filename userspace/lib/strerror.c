// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Texts that tell users of programs what errors mean here.
 */
#include "internal.h"

/* Returns NULL for an error that has no meaning of its own here. */
static const char *meaning(int errnum)
{
	switch (errnum) {
	case E2BIG:
		return "the kernel's timewheel module is too old for this";
	case EBADF:
		return "the wheel was not opened for reading or writing, or the fd is not open";
	case EBADFD:
		return "the file is no wheel yet: it has not been set up";
	case EBUSY:
		return "the file is a wheel already";
	case EDOM:
		return "there is none with this index";
	case EDQUOT:
		return "the user may not have more wheels or tokens";
	case EEXIST:
		return "there is a token of this id, or another wheel of this name";
	case EINPROGRESS:
		return "the operation has not been carried out yet";
	case EINVAL:
		return "a value, flag or size is not valid, or not for this wheel";
	case ENAMETOOLONG:
		return "the wheel's name is longer than 63 bytes";
	case ENODATA:
		return "nothing was counted";
	case ENODEV:
		return "the wheel was destroyed, or the module is not loaded";
	case ENOENT:
		return "there is no such token, or no such wheel or device";
	case ENOMEM:
		return "there is not enough memory";
	case ENOSPC:
		return "the wheel or batch is full, or the machine has too many wheels or tokens";
	case ENOTCONN:
		return "the socket is not connected, or its connection has ended";
	case ENOTSOCK:
		return "the fd is not that of a socket";
	case ENOTTY:
		return "this is no wheel, or the timewheel module is too old for the call";
	case ENXIO:
		return "there is no device: the timewheel module is not loaded";
	case EPERM:
		return "another open file holds the delivery, or the wheel is another user's";
	case EPROTONOSUPPORT:
		return "the socket's protocol is not TCP, or the kernel lacks tcp_diag";
	case ERANGE:
		return "the time is too far ahead for this wheel";
	case ESHUTDOWN:
		return "the wheel is draining: it takes no new tokens";
	case ESTALE:
		return "the token of this handle has ended, or the delivery is over";
	default:
		return NULL;
	}
}

const char *tw_strerror(int errnum)
{
	const char *text = meaning(errnum);

	if (!text)
		text = strerrordesc_np(errnum);
	return text ? text : "unknown error";
}
