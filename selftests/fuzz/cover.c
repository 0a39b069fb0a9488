// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcov.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "cover.h"

#define WORDS	(16 * 1024)	/* words that the kernel writes in one call */
#define PLACES	16384		/* size of a hash table */

/* The kernel's number has 64 bits for all callers. */
#define INIT_TRACE	_IOR('c', 1, uint64_t)

/* All processes share these tables. A place that is lost in a race comes again. */
static struct {
	uint8_t		hit[COVER_EDGES];
	uint32_t	hits[COVER_EDGES];
	uint32_t	nr_hits;
	uint64_t	place[PLACES];
	uint32_t	nr_places;
	uint64_t	calls[COVER_TYPES];
} *shared;

/* The second element is for the thread or process that runs beside the first thread. */
static struct {
	int		fd;
	uint64_t	*words;
} kcov[2] = { { .fd = -1 }, { .fd = -1 } };

static __thread uint64_t *my_words;

/* Returns whether the kernel has KCOV. */
bool cover_open(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++) {
		kcov[i].fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
		if (kcov[i].fd < 0 || ioctl(kcov[i].fd, INIT_TRACE, WORDS))
			return false;
		kcov[i].words = mmap(NULL, WORDS * sizeof(uint64_t),
				     PROT_READ | PROT_WRITE, MAP_SHARED,
				     kcov[i].fd, 0);
		if (kcov[i].words == MAP_FAILED)
			return false;
	}
	return true;
}

void cover_begin(bool second)
{
	my_words = NULL;
	if (kcov[1].fd < 0 || ioctl(kcov[second].fd, KCOV_ENABLE, KCOV_TRACE_PC))
		return;
	my_words = kcov[second].words;
	my_words[0] = 0;
}

static void add_place(uint64_t place)
{
	for (uint32_t at = place * 0x9e3779b1 >> 16;; at++) {
		uint64_t *slot = &shared->place[at % PLACES];

		if (*slot == place || shared->nr_places > PLACES / 2)
			return;
		if (*slot)
			continue;
		*slot = place;
		shared->nr_places++;
		return;
	}
}

/* Notes an edge. Returns whether it is new. */
static bool add_edge(uint64_t from, uint64_t to)
{
	uint32_t edge = ((from * 31 ^ to) * 0x9e3779b97f4a7c15) >> 48;

	if (__atomic_exchange_n(&shared->hit[edge], 1, __ATOMIC_RELAXED))
		return false;
	shared->hits[__atomic_fetch_add(&shared->nr_hits, 1, __ATOMIC_RELAXED)] =
		edge;
	return true;
}

/* Notes the code that the last call has run. */
void cover_called(unsigned int type, int outcome)
{
	uint64_t n, last = 0;

	shared->calls[type]++;
	if (outcome)
		add_edge(type, outcome);
	if (!my_words)
		return;
	n = my_words[0];
	for (uint64_t i = 1; i <= n; i++) {
		if (add_edge(last, my_words[i]))
			add_place(my_words[i]);
		last = my_words[i];
	}
	my_words[0] = 0;
}

/* Forgets the last program, before the next program is run. */
void cover_clear(void)
{
	for (uint32_t i = 0; i < shared->nr_hits; i++)
		shared->hit[shared->hits[i]] = 0;
	shared->nr_hits = 0;
}

/* Returns the edges of the program that was run. */
unsigned int cover_hits(const uint32_t **edges)
{
	*edges = shared->hits;
	return shared->nr_hits;
}

bool cover_has(uint32_t edge)
{
	return shared->hit[edge];
}

unsigned int cover_places(void)
{
	return shared->nr_places;
}

uint64_t cover_calls(unsigned int type)
{
	return shared->calls[type];
}

/* The following functions find the names of places. */

struct symbol {
	uint64_t	at;
	char		name[56];
};

static int symbol_compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Reads the symbols of the module. Returns their number. */
static size_t symbols_read(struct symbol *symbols, size_t most)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[256], module[32];
	size_t n = 0;

	while (file && n < most && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " %*c %55s %31s", &symbols[n].at,
			   symbols[n].name, module) == 3 &&
		    !strcmp(module, "[timewheel]"))
			n++;
	if (file)
		fclose(file);
	qsort(symbols, n, sizeof(*symbols), symbol_compare);
	return n;
}

/* Prints a line for each place that any call has reached. */
void cover_print(FILE *file)
{
	struct symbol *symbols = calloc(4096, sizeof(*symbols));
	size_t n = symbols_read(symbols, 4096);

	for (size_t i = 0; n && i < PLACES; i++) {
		uint64_t place = shared->place[i];
		size_t at = n;

		while (at && place && symbols[at - 1].at > place)
			at--;
		if (at && place)
			fprintf(file, "place %s %" PRIu64 "\n", symbols[at - 1].name,
				place - symbols[at - 1].at);
	}
	free(symbols);
}
