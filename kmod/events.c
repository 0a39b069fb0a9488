// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Events: expired tokens as read(2) and poll(2) show them.
 *
 * A token is its own event: a reader takes it from the ring, copies it with no lock
 * held, and only then the token ends. While a reader has taken tokens it does not
 * sleep, so that a reader whose memory comes late, or never, keeps nothing from the
 * others: it copies with page faults disabled. When the next event lies in a page
 * that is not there, the reader puts the rest of its tokens back, has the page
 * fetched, which may take any time, and takes again whatever is due by then.
 */
#include <linux/kernel.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "clock.h"
#include "file.h"

/* The number of tokens that are taken at a time. */
#define TW_BATCH	64

/* The number of events that are copied at a time. */
#define TW_COPY		16

/*
 * How often in a row a reader has a page fetched, and then still cannot copy an event. A page
 * may go again before the reader comes to it, but not for ever. This number is an end for
 * memory that can be fetched and still not be written.
 */
#define TW_FAULTS	16

/*
 * Writes every byte once. A compound literal would zero the event first, which costs
 * a quarter of the time. @taken: when the token was taken, as the reader sees it.
 */
static void tw_event_fill(struct timewheel_event *event,
			  const struct tw_ring *ring,
			  const struct tw_taken *from, u64 taken, s64 offset)
{
	const struct tw_token *token = from->token;
	u64 word = READ_ONCE(token->word);

	event->id = tw_token_id(ring, token);
	event->handle = tw_handle(token, word, from->index);
	event->cookie = tw_token_cookie(ring, token);
	event->deadline = tw_clock_to_user(tw_word_due(word) * ring->tick, offset);
	event->taken = taken;
	event->delivery = 0;
	event->attempts = 0;
	event->missed = 0;
	event->reserved = 0;
}

/* Tells what an event also has on a wheel with leases or periods. */
static void tw_event_fill_delivery(struct timewheel_event *event,
				   const struct tw_ring *ring,
				   const struct tw_token *token, u64 hand,
				   s64 offset)
{
	const struct tw_repeat *repeat = tw_repeat_of(ring, token);

	event->delivery = tw_delivery_of(ring, token)->number;
	event->attempts = tw_delivery_of(ring, token)->attempts;
	if (!repeat)
		return;
	event->missed = repeat->missed;
	event->deadline =
		tw_clock_to_user(min(roundup(repeat->base, ring->tick), hand),
				 offset);
}

/* The loop of wheels without deliveries has more registers if this is not inline. */
static noinline void tw_events_fill_deliveries(struct timewheel_event *events,
					       const struct tw_ring *ring,
					       const struct tw_taken *batch,
					       unsigned int n, u64 hand, s64 offset)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		tw_event_fill_delivery(&events[i], ring, batch[i].token, hand,
				       offset);
}

/* @now: when the tokens were taken. */
static void tw_events_fill(struct timewheel_event *events,
			   const struct tw_ring *ring,
			   const struct tw_taken *batch, unsigned int n,
			   const struct tw_now *now, s64 offset)
{
	u64 taken = tw_clock_to_user(now->ns, offset);
	unsigned int i;

	for (i = 0; i < n; i++)
		tw_event_fill(&events[i], ring, &batch[i], taken, offset);
	if (tw_ring_has_deliveries(ring))
		tw_events_fill_deliveries(events, ring, batch, n,
					  now->tick * ring->tick, offset);
}

/* Copies events out, all of them or none: then the iterator is where it was. */
static bool tw_events_out(const struct timewheel_event *events, unsigned int n,
			  struct iov_iter *to)
{
	size_t copied = copy_to_iter(events, n * sizeof(*events), to);

	if (copied == n * sizeof(*events))
		return true;
	iov_iter_revert(to, copied);

	return false;
}

/*
 * Copies events out. Returns how many were copied whole. If the copy of all of them
 * meets a fault, each is copied by itself, to copy as many as there is room for.
 */
static unsigned int tw_events_out_some(const struct timewheel_event *events,
				       unsigned int n, struct iov_iter *to)
{
	unsigned int i = 0;

	if (tw_events_out(events, n, to))
		return n;
	while (i < n && tw_events_out(&events[i], 1, to))
		i++;

	return i;
}

/*
 * Copies tokens that the caller has taken. Returns how many went out whole. Does not
 * sleep for a page that is not there: the copy ends at the first such page.
 */
static unsigned int tw_events_copy(const struct tw_wheel *wheel,
				   const struct tw_taken *batch, unsigned int n,
				   const struct tw_now *now, s64 offset,
				   struct iov_iter *to)
{
	struct timewheel_event events[TW_COPY];
	unsigned int done = 0;

	pagefault_disable();
	while (done < n) {
		unsigned int some = min_t(unsigned int, n - done, TW_COPY);
		unsigned int out;

		tw_events_fill(events, &wheel->ring, batch + done, some, now,
			       offset);
		out = tw_events_out_some(events, some, to);
		done += out;
		if (out < some)
			break;
	}
	pagefault_enable();

	return done;
}

/*
 * Has the memory of the next event fetched, with no lock held and no token taken. May
 * sleep for as long as the memory takes; only a signal that kills ends this sleep.
 */
static int tw_events_fault_in(const struct tw_wheel *wheel, struct iov_iter *to)
{
	if (fault_in_iov_iter_writeable(to, sizeof(struct timewheel_event)))
		return -EFAULT;

	/* The wheel may have been paused or destroyed meanwhile. */
	return tw_wheel_check_due(wheel);
}

/*
 * Takes a batch and copies it; what was not copied is put back. Returns how many
 * events were copied. *@fault: whether the next one was not, because of a fault.
 */
static unsigned int tw_events_read_batch(struct tw_wheel *wheel,
					 struct iov_iter *to,
					 struct tw_holder *holder,
					 unsigned int max,
					 bool *more, bool *fault)
{
	unsigned int n, done;
	struct tw_taken batch[TW_BATCH];
	struct tw_now now;

	n = tw_wheel_take(wheel, &now, batch, max, more);
	done = tw_events_copy(wheel, batch, n, &now,
			      tw_clock_offset(wheel->clock), to);
	if (n)
		tw_wheel_finish(wheel, &now, batch, n, done, holder);
	*fault = done < n;

	return done;
}

/*
 * Reads the due events that fit. Returns the bytes; 0 when nothing is due; or an error when
 * there were none.
 */
static ssize_t tw_events_read_due(struct tw_wheel *wheel, struct iov_iter *to,
				  struct tw_holder *holder)
{
	size_t room = iov_iter_count(to) / sizeof(struct timewheel_event);
	bool more = true;
	unsigned int faults = 0;
	size_t total = 0;
	int err = 0;
	bool fault;

	while (more && !err && total < room) {
		unsigned int done;

		done = tw_events_read_batch(wheel, to, holder,
					    min_t(size_t, room - total, TW_BATCH),
					    &more, &fault);
		total += done;
		if (fault) {
			faults = done ? 0 : faults + 1;
			err = faults > TW_FAULTS ? -EFAULT :
						   tw_events_fault_in(wheel, to);
			/*
			 * More to read are the tokens that were put back, unless another reader
			 * took them.
			 */
			more = true;
		}
		/* signal_pending() would also tell of io_uring's task work. */
		if (!err && more && task_sigpending(current)) {
			/* The alarm woke one reader: wake the next one. */
			tw_wheel_pass_on(wheel);
			err = -ERESTARTSYS;
		}
		cond_resched();
	}

	return total * sizeof(struct timewheel_event) ?: err;
}

/* read(2) of a wheel; its contract is with struct timewheel_event. */
ssize_t tw_events_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct tw_wheel *wheel = tw_file_wheel(iocb->ki_filp);
	bool nowait = iocb->ki_filp->f_flags & O_NONBLOCK ||
		      iocb->ki_flags & IOCB_NOWAIT;

	if (iov_iter_count(to) < sizeof(struct timewheel_event))
		return tw_wheel_check(wheel) ?: -EINVAL;

	for (;;) {
		ssize_t ret = tw_wheel_check_due(wheel);

		if (!ret)
			ret = tw_events_read_due(wheel, to,
						 tw_file_holder(iocb->ki_filp));
		/* While the wheel is paused there is nothing due. */
		if (ret && ret != -EAGAIN)
			return ret;
		if (nowait)
			return -EAGAIN;
		ret = tw_wheel_wait(wheel);
		if (ret)
			return ret;
	}
}

/* poll(2) of a wheel: readable when a token has expired. */
__poll_t tw_events_poll(struct file *file, poll_table *wait)
{
	struct tw_wheel *wheel = tw_file_wheel(file);

	poll_wait(file, &wheel->pollers, wait);
	switch (tw_wheel_check_due(wheel)) {
	case 0:
		return tw_wheel_is_due(wheel) ? EPOLLIN | EPOLLRDNORM : 0;
	case -ENODEV:
		return EPOLLHUP | EPOLLERR;
	default:
		return 0;
	}
}
