// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel among threads: several of them register, touch, cancel, list and
 * read on one wheel, without a lock of their own. Every registration comes to
 * exactly one end, which one thread is told.
 */
#include "lib_test.h"

#define WORKERS	3
#define READERS	2
#define IDS	500
#define ROUNDS	5000

static struct tw_wheel *wheel;
static atomic_bool over;
/* The results of all threads of a kind. */
static unsigned long registered, cancelled, delivered, surprises;

static void tell(unsigned long *sum, unsigned long count)
{
	__atomic_fetch_add(sum, count, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
	unsigned long came = 0, went = 0, odd = 0;
	unsigned int seed = (uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t id = rand_r(&seed) % IDS;
		int ret;

		if (rand_r(&seed) % 4) {
			ret = RUN(wheel, touch_or_register, id, 2 * MS, id, 0);
			came += ret == TIMEWHEEL_RES_REGISTERED;
			odd += ret < 0;
		} else {
			ret = RUN(wheel, cancel, id, 0);
			went += ret >= 0;
			odd += ret < 0 && errno != ENOENT;
		}
	}
	tell(&registered, came);
	tell(&cancelled, went);
	tell(&surprises, odd);
	return NULL;
}

/* Batches run beside the other threads: they register and cancel ids of their own. */
static void *work_in_batches(void *arg)
{
	struct tw_batch *batch = tw_batch_new(128);
	unsigned long odd = !batch;

	(void)arg;
	for (int i = 0; batch && i < ROUNDS / 100; i++) {
		tw_batch_clear(batch);
		for (uint64_t id = IDS; id < IDS + 64; id++) {
			tw_op_register(tw_batch_next(batch), id, TW_HOUR(1), id,
				       0);
			tw_op_cancel(tw_batch_next(batch), id, 0);
		}
		odd += tw_batch_run(batch, wheel) != 0;
		tell(&registered, 64);
		tell(&cancelled, 64);
	}
	tw_batch_free(batch);
	tell(&surprises, odd);
	return NULL;
}

static void *look(void *arg)
{
	const struct timewheel_token *token;
	unsigned long odd = 0;

	(void)arg;
	while (!over) {
		struct tw_cursor *cursor = tw_cursor_open(wheel, 0,
							  TIMEWHEEL_NEVER);
		int ret;

		while ((ret = tw_cursor_next(cursor, &token)) == 1)
			odd += token->cookie != token->id;
		odd += ret != 0;
		tw_cursor_close(cursor);
	}
	tell(&surprises, odd);
	return NULL;
}

/* Reads until all is quiet: nobody registers any more, and nothing is pending. */
static void *read_all(void *arg)
{
	struct tw_events *events = tw_events_new(16);
	unsigned long count = 0, odd = 0;

	(void)arg;
	while (!over || info_of(wheel).pending) {
		ssize_t n = tw_events_read(events, wheel, 10 * MS);

		odd += n < 0;
		for (ssize_t i = 0; i < n; i++) {
			const struct timewheel_event *e = tw_events_at(events, i);

			odd += e->cookie != e->id || e->taken < e->deadline;
			count++;
		}
	}
	tw_events_free(events);
	tell(&delivered, count);
	tell(&surprises, odd);
	return NULL;
}

TEST(every_registration_has_one_end)
{
	pthread_t workers[WORKERS + 1], others[READERS + 1];

	wheel = open_wheel(&monotonic);
	for (int i = 0; i < READERS; i++)
		ASSERT_EQ(0, pthread_create(&others[i], NULL, read_all, NULL));
	ASSERT_EQ(0, pthread_create(&others[READERS], NULL, look, NULL));
	for (uintptr_t i = 0; i < WORKERS; i++)
		ASSERT_EQ(0, pthread_create(&workers[i], NULL, work, (void *)i));
	ASSERT_EQ(0, pthread_create(&workers[WORKERS], NULL, work_in_batches, NULL));
	for (int i = 0; i <= WORKERS; i++)
		pthread_join(workers[i], NULL);
	over = true;
	for (int i = 0; i <= READERS; i++)
		pthread_join(others[i], NULL);

	EXPECT_EQ(0, surprises);
	EXPECT_NE(0, delivered);
	EXPECT_EQ(registered, cancelled + delivered);
	EXPECT_EQ(registered, info_of(wheel).registered);
	EXPECT_EQ(cancelled, info_of(wheel).cancelled);
	EXPECT_EQ(delivered, info_of(wheel).delivered);
	tw_wheel_close(wheel);
}

TEST_HARNESS_MAIN
