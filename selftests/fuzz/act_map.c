// SPDX-License-Identifier: GPL-2.0-only
/*
 * Acts: mappings, and other users of their pages.
 */
#include "act.h"

/* Returns the size of a wheel's touch words, or a page if the wheel is unknown. */
static size_t act_map_size(const struct timewheel_setup *setup)
{
	size_t size = setup->max_tokens * sizeof(__u64);

	return size ? (size + ACT_PAGE - 1) & -ACT_PAGE : ACT_PAGE;
}

/* @v[3]: number of pages beyond the words. */
long act_mmap(const __u64 *v)
{
	size_t size = act_map_size(&act_at_file(v[0])->setup) +
		      v[3] * ACT_PAGE;
	char *at = mmap(NULL, size, v[4], v[5], act_fd(v[0]), v[2]);

	if (at == MAP_FAILED)
		return -1;
	act_map[v[1] % ACT_MAPS] = (struct act_map){ at, size };
	return 0;
}

long act_munmap(const __u64 *v)
{
	struct act_map part = act_part(v);
	long ret = munmap(part.at, part.size);

	if (!ret && !v[1] && !v[2])
		act_map[v[0] % ACT_MAPS] = (struct act_map){ 0 };
	return ret;
}

long act_mremap(const __u64 *v)
{
	struct act_map part = act_part(v);
	char *at = mremap(part.at, v[5] ? 0 : part.size,
			  part.size + v[3] * ACT_PAGE, v[4]);

	if (at == MAP_FAILED)
		return -1;
	act_map[v[0] % ACT_MAPS] =
		(struct act_map){ at, part.size + v[3] * ACT_PAGE };
	return 0;
}

long act_mprotect(const __u64 *v)
{
	struct act_map part = act_part(v);

	return mprotect(part.at, part.size, v[3]);
}

long act_madvise(const __u64 *v)
{
	struct act_map part = act_part(v);

	return madvise(part.at, part.size, v[3]);
}

/* Lets other parts of the kernel use the pages of a mapping. */
long act_reach(const __u64 *v)
{
	struct act_map part = act_part(v);
	struct iovec remote = { part.at, part.size };
	struct iovec local = { ACT_MEMORY + ACT_ARRAY, 4 * ACT_PAGE };
	long ret;
	int fd;

	switch (v[3] % 6) {
	case 0:
		return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	case 1:
		return process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
	case 2:
		return mlock(part.at, part.size);
	case 3:
		return msync(part.at, part.size, MS_SYNC);
	case 4:
		return mincore(part.at, part.size, (void *)ACT_MEMORY);
	default:
		fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		ret = pwrite(fd, ACT_MEMORY, 64, (uintptr_t)part.at);
		close(fd);
		return ret;
	}
}

long act_store(const __u64 *v)
{
	__u64 *words = (__u64 *)act_map[v[1] % ACT_MAPS].at;

	return act_copy(words + v[2], &v[3], sizeof(__u64)) ? 0 : -1;
}

long act_load(const __u64 *v)
{
	__u64 *words = (__u64 *)act_map[v[1] % ACT_MAPS].at;
	__u64 word;

	return act_copy(&word, words + v[2], sizeof(word)) ? 0 : -1;
}

/* Stores nonsense to all words of a page. */
long act_scribble(const __u64 *v)
{
	__u64 *words = (__u64 *)act_map[v[0] % ACT_MAPS].at;
	__u64 random = v[1] * 0x9e3779b97f4a7c15 + 1;

	for (size_t i = 0; i < ACT_PAGE / sizeof(*words); i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (!act_copy(&words[i], &random, sizeof(random)))
			return -1;
	}
	return 0;
}
