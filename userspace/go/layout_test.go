// SPDX-License-Identifier: GPL-2.0-only

package timewheel

import (
	"reflect"
	"testing"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// The kernel writes struct timewheel_event at the places where Go reads Event.
func TestEventHasTheLayoutOfTheHeader(t *testing.T) {
	ours, header := reflect.TypeOf(Event{}), reflect.TypeOf(uapi.Event{})
	if ours.Size() != header.Size() || ours.NumField() != header.NumField() {
		t.Fatal(ours.Size(), header.Size(), ours.NumField(), header.NumField())
	}
	for i := 0; i < ours.NumField(); i++ {
		a, b := ours.Field(i), header.Field(i)
		if a.Offset != b.Offset || a.Type.Kind() != b.Type.Kind() {
			t.Error(a, b)
		}
	}
}

// Buckets follow each other from 0 to the greatest number.
func TestBuckets(t *testing.T) {
	var h Histogram
	next := uint64(0)
	for bucket := range h {
		low, high := h.Bounds(bucket)
		if low != next || high < low {
			t.Fatal(bucket, low, high)
		}
		next = high + 1
	}
	if next != 0 {
		t.Fatal(next)
	}
}

func TestPercentiles(t *testing.T) {
	var h Histogram
	h[1], h[3], h[uapi.Buckets-1] = 98, 1, 1
	for percent, want := range map[float64]int64{0: 1, 50: 1, 98: 1, 98.1: 3, 99: 3,
		100: 1<<63 - 1} {
		if got, err := h.Percentile(percent); err != nil || int64(got) != want {
			t.Error(percent, got, err)
		}
	}
}
