// SPDX-License-Identifier: GPL-2.0-only
/*
 * Touch words: a u64 for each token, which its users may map and write.
 */
#include <linux/gfp.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "arena.h"
#include "words.h"

#define TW_WORDS_PER_PAGE	((u32)(PAGE_SIZE / sizeof(u64)))

int tw_words_init(struct tw_words *words, u32 max)
{
	words->nr = (max - 1) / TW_WORDS_PER_PAGE + 1;
	words->page = kvcalloc(words->nr, sizeof(*words->page), TW_GFP);

	return words->page ? 0 : -ENOMEM;
}

/* Lets go of the pages: each goes when nobody has it mapped. May sleep. */
void tw_words_destroy(struct tw_words *words)
{
	u32 i;

	for (i = 0; i < words->allocated; i++) {
		free_pages_exact(words->page[i], PAGE_SIZE);
		cond_resched();
	}
	kvfree(words->page);
}

/**
 * tw_words_grow() - add a page, unless somebody else was faster
 * @words: the words
 * @lock: their owner's lock, not held by the caller
 *
 * Return: 0 or -ENOMEM.
 */
int tw_words_grow(struct tw_words *words, spinlock_t *lock)
{
	u32 before = READ_ONCE(words->allocated);
	void *page = alloc_pages_exact(PAGE_SIZE, TW_GFP);

	if (!page)
		return -ENOMEM;

	spin_lock(lock);
	if (words->allocated == before && before < words->nr) {
		/* Pairs with the acquire in tw_words_page(). */
		smp_store_release(&words->page[before], page);
		WRITE_ONCE(words->allocated, before + 1);
		page = NULL;
	}
	spin_unlock(lock);
	if (page)
		free_pages_exact(page, PAGE_SIZE);

	return 0;
}

/* How many tokens there are words for. Under the owner's lock. */
u32 tw_words_capacity(const struct tw_words *words)
{
	return words->allocated * TW_WORDS_PER_PAGE;
}

size_t tw_words_bytes(const struct tw_words *words)
{
	return words->nr * sizeof(*words->page) + words->allocated * PAGE_SIZE;
}

/* The word of a token. */
u64 *tw_words_at(const struct tw_words *words, u32 index)
{
	return words->page[index / TW_WORDS_PER_PAGE] +
	       index % TW_WORDS_PER_PAGE;
}

/* A page by its number, which is less than @words->nr; NULL if not there yet. */
void *tw_words_page(const struct tw_words *words, unsigned long nr)
{
	/* Pairs with the release in tw_words_grow(): the page is zeroed. */
	return smp_load_acquire(&words->page[nr]);
}

/**
 * tw_stamp_due() - to which tick a word raises a token
 * @word: the word, which makes sense
 * @now: the tick that the hand is on
 * @timeout: the token's timeout in ticks, less than TW_MAX_STAMPED
 *
 * Return: the tick, 0 if it was not touched.
 */
u64 tw_stamp_due(u64 word, u64 now, u64 timeout)
{
	u32 stamp = word;
	u32 age = (u32)now - stamp;

	if (!stamp)
		return 0;
	if (age > S32_MAX)
		age = 0;

	return now + 1 + timeout > age ? now + 1 + timeout - age : 0;
}
