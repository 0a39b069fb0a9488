// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>

#include <timewheel.h>

int main(void)
{
	struct timewheel_setup setup = { .size = sizeof(setup) };
	struct tw_wheel *wheel = tw_wheel_open(&setup);

	/* This setup has no slots. */
	if (!wheel)
		printf("no wheel: %s\n", tw_strerror(errno));
	tw_wheel_close(wheel);
	return 0;
}
