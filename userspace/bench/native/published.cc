// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two designs as their authors describe them, for "who has sent nothing for 30
 * seconds", with the standard library's hash tables and random u64 ids.
 *
 * Map and scan: a map from an id to the time of its last touch. Each second the
 * program scans the whole map.
 *
 * Map and ring: a ring of 31 slots, in each a set of ids; a map from id to the
 * slot that it is in. A touch takes the id out of its set and puts it into the
 * one before the hand. Each second the hand moves on to the next set, and all ids in
 * that set have timed out.
 */
#include <unordered_map>
#include <unordered_set>

#include "bench.h"

#define SLOTS	(TIMEOUT + 1)

static __u32 now;		/* seconds */

/*
 * Map and scan.
 */

static std::unordered_map<__u64, __u32> last_seen;

static void scan_touch(const __u32 *which, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		last_seen[bench_id(which[i])] = now;
}

static void scan_cancel(const __u32 *which, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		MUST(last_seen.erase(bench_id(which[i])));
}

static int scan_slot(__u32 i)
{
	auto found = last_seen.find(bench_id(i));

	return found == last_seen.end() ? -1 : (int)found->second + TIMEOUT;
}

static __u32 scan(void)
{
	__u32 gone = 0;

	for (auto at = last_seen.begin(); at != last_seen.end(); ) {
		if (now - at->second < TIMEOUT) {
			++at;
			continue;
		}
		bench_fired(at->first);
		at = last_seen.erase(at);
		gone++;
	}

	return gone;
}

static void scan_extra(__u32 n)
{
	double start = bench_cpu_ns();

	(void)n;
	MUST(!scan());
	bench_report("scan", (bench_cpu_ns() - start) / 1e6);
}

static void scan_soon(const __u32 *which, __u32 n)
{
	(void)which;
	(void)n;
	now += TIMEOUT;
}

static void scan_run(void)
{
	scan();
}

static void scan_setup(__u32 n)
{
	(void)n;
}

/*
 * Map and ring.
 */

static std::unordered_set<__u64> ring[SLOTS];
static std::unordered_map<__u64, __u32> slot_of;

static void ring_put(__u64 id, __u32 slot)
{
	ring[slot].insert(id);
	slot_of[id] = slot;
}

static void ring_arm(const __u32 *which, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		ring_put(bench_id(which[i]),
			 (now + bench_after(which[i])) % SLOTS);
}

static void ring_touch(const __u32 *which, __u32 n)
{
	for (__u32 i = 0; i < n; i++) {
		__u64 id = bench_id(which[i]);

		MUST(ring[slot_of[id]].erase(id));
		ring_put(id, (now + TIMEOUT) % SLOTS);
	}
}

static void ring_cancel(const __u32 *which, __u32 n)
{
	for (__u32 i = 0; i < n; i++) {
		__u64 id = bench_id(which[i]);
		auto found = slot_of.find(id);

		MUST(ring[found->second].erase(id));
		slot_of.erase(found);
	}
}

static int ring_slot(__u32 i)
{
	__u64 id = bench_id(i);
	auto found = slot_of.find(id);

	if (found == slot_of.end())
		return -1;
	MUST(ring[found->second].count(id));

	return found->second;
}

static void ring_soon(const __u32 *which, __u32 n)
{
	ring_cancel(which, n);
	for (__u32 i = 0; i < n; i++)
		ring_put(bench_id(which[i]), 1);
}

static void ring_run(void)
{
	now = 1;
	for (__u64 id : ring[now]) {
		slot_of.erase(id);
		bench_fired(id);
	}
	ring[now].clear();
}

extern const struct contender map_scan = {
	.name = "map-scan", .what = "published: map, scanned each second",
	.ours = false, .one_timeout = true, .most = 0, .setup = scan_setup,
	.prepare = nullptr, .arm = scan_touch, .finish = nullptr,
	.touch = scan_touch, .cancel = scan_cancel, .slot = scan_slot,
	.check = nullptr, .soon = scan_soon, .run = scan_run,
	.extra = scan_extra,
};

extern const struct contender map_ring = {
	.name = "map-ring", .what = "published: map and ring of sets",
	.ours = false, .one_timeout = false, .most = 0, .setup = scan_setup,
	.prepare = nullptr, .arm = ring_arm, .finish = nullptr,
	.touch = ring_touch, .cancel = ring_cancel, .slot = ring_slot,
	.check = nullptr, .soon = ring_soon, .run = ring_run,
	.extra = nullptr,
};
