// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"math"
	"syscall"
	"time"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// Histogram counts values by their size: how many are in each bucket.
type Histogram [uapi.Buckets]uint64

// Bounds returns the least and the greatest value, in nanoseconds, that a bucket counts. It
// panics if there is no such bucket.
func (h *Histogram) Bounds(bucket int) (low, high uint64) {
	_ = h[bucket]
	// The bucket after the last one begins at 2^64, which is 0, and the high end is right, too.
	return lowOf(bucket), lowOf(bucket+1) - 1
}

// lowOf is the formula of struct timewheel_stats.
func lowOf(bucket int) uint64 {
	if bucket < 4 {
		return uint64(bucket)
	}
	return uint64(4+bucket%4) << (bucket/4 - 1)
}

// Count returns how many values were counted.
func (h *Histogram) Count() uint64 {
	var count uint64
	for _, n := range h {
		count += n
	}
	return count
}

// Percentile returns the value that so many percent of all do not exceed: 50 for the
// median, 100 for the greatest. It is at most a quarter too high.
//
// Errors: EINVAL percent is not within 0 and 100; ENODATA nothing was counted.
func (h *Histogram) Percentile(percent float64) (time.Duration, error) {
	count := h.Count()
	// The condition is written in this way to be true also if percent is not a number.
	if !(percent >= 0 && percent <= 100) {
		return 0, &Error{"percentile", syscall.EINVAL}
	}
	if count == 0 {
		return 0, &Error{"percentile", syscall.ENODATA}
	}
	wanted := math.Max(1, math.Ceil(float64(count)*percent/100))
	bucket, seen := 0, h[0]
	for seen < count && float64(seen) < wanted {
		bucket++
		seen += h[bucket]
	}
	_, high := h.Bounds(bucket)
	if high > math.MaxInt64 {
		high = math.MaxInt64
	}
	return time.Duration(high), nil
}
