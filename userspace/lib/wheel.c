// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Wheels: functions that open, close, describe, advance, pause and drain them. named.c
 * has the functions for names.
 */
#include "internal.h"

int tw_device_caps(struct timewheel_caps *caps)
{
	return tw_device_ioctl(O_RDONLY, TIMEWHEEL_IOC_CAPS, caps);
}

struct tw_wheel *tw_wheel_open_fd(int fd)
{
	struct timewheel_info info = { .size = sizeof(info) };
	struct tw_wheel *wheel;

	/* The call fails if the fd is no wheel that has been set up. */
	if (ioctl(fd, TIMEWHEEL_IOC_INFO, &info) < 0)
		return NULL;
	wheel = malloc(sizeof(*wheel));
	if (wheel)
		*wheel = (struct tw_wheel) { .fd = fd };
	return wheel;
}

struct tw_wheel *tw_process_wheel(struct tw_process_file *file)
{
	struct tw_wheel *wheel = malloc(sizeof(*wheel));

	if (wheel)
		*wheel = (struct tw_wheel) { tw_process_fd(file), file };
	else
		tw_process_close(file);
	return wheel;
}

struct tw_wheel *tw_wheel_open_process(const struct timewheel_setup *setup)
{
	struct tw_process_file *file;

	if (tw_result(tw_process_open(setup, O_RDWR, &file)) < 0)
		return NULL;
	return tw_process_wheel(file);
}

int tw_wheel_is_process(const struct tw_wheel *wheel)
{
	return !!wheel->process;
}

struct tw_wheel *tw_wheel_open(const struct timewheel_setup *setup)
{
	struct tw_wheel *wheel = NULL;
	int fd;

	if (tw_wants_process())
		return tw_wheel_open_process(setup);
	fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!ioctl(fd, TIMEWHEEL_IOC_SETUP, setup))
		wheel = tw_wheel_open_fd(fd);
	if (!wheel)
		tw_close_keep_errno(fd);
	return wheel;
}

void tw_wheel_close(struct tw_wheel *wheel)
{
	int err = errno;

	if (!wheel)
		return;
	if (wheel->process)
		tw_process_close(wheel->process);
	else
		close(wheel->fd);
	free(wheel);
	errno = err;
}

int tw_wheel_fd(const struct tw_wheel *wheel)
{
	return wheel->fd;
}

int tw_wheel_info(const struct tw_wheel *wheel, struct timewheel_info *info)
{
	return tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_INFO, info);
}

int tw_wheel_advance(struct tw_wheel *wheel, uint64_t tick)
{
	struct timewheel_advance advance = {
		.size = sizeof(advance),
		.tick = tick,
	};

	return tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_ADVANCE, &advance);
}

static int control(struct tw_wheel *wheel, uint32_t state, uint32_t mask)
{
	struct timewheel_control control = {
		.size = sizeof(control),
		.state = state,
		.mask = mask,
	};

	return tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_CONTROL, &control);
}

int tw_wheel_pause(struct tw_wheel *wheel)
{
	return control(wheel, TIMEWHEEL_CONTROL_PAUSED, TIMEWHEEL_CONTROL_PAUSED);
}

int tw_wheel_resume(struct tw_wheel *wheel)
{
	return control(wheel, 0, TIMEWHEEL_CONTROL_PAUSED);
}

int tw_wheel_drain(struct tw_wheel *wheel)
{
	return control(wheel, TIMEWHEEL_CONTROL_DRAINING, TIMEWHEEL_CONTROL_DRAINING);
}

int tw_wheel_undrain(struct tw_wheel *wheel)
{
	return control(wheel, 0, TIMEWHEEL_CONTROL_DRAINING);
}
