// SPDX-License-Identifier: GPL-2.0-only
/*
 * destroy NAME destroys a named wheel, for tests that are scripts.
 */
#include <err.h>

#include <timewheel.h>

int main(int argc, char **argv)
{
	if (argc != 2 || tw_wheel_destroy(argv[1]) < 0)
		err(1, "destroy");
	return 0;
}
