// SPDX-License-Identifier: GPL-2.0-only

// Bench [ROUNDS RUNS] measures what a touch costs in Go: a touch of a wheel, and of Go's own
// timers. A run has so many rounds of 512 touches.
package main

import (
	"fmt"
	"log"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

const (
	tokens  = 10_000
	batch   = 512
	timeout = 30 * time.Second
)

var (
	rounds = 20
	// Only the last run is told. Earlier runs are for work that is done once.
	runs = 2
)

func told(kind string, run func()) {
	var start time.Time

	for i := 0; i < runs; i++ {
		// Garbage of earlier kinds must not be collected during this kind.
		runtime.GC()
		start = time.Now()
		run()
	}
	ns := float64(time.Since(start).Nanoseconds())
	fmt.Printf("= Go\t%s\t%d\t%.1f\n", kind, tokens, ns/float64(rounds*batch))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func singly(wheel *timewheel.Wheel, keys []timewheel.Key) func() {
	return func() {
		for _, key := range keys {
			_, err := wheel.Touch(key)
			check(err)
		}
	}
}

func inBatches(wheel *timewheel.Wheel, keys []timewheel.Key) func() {
	var b timewheel.Batch

	return func() {
		for start := 0; start < len(keys); start += batch {
			for _, key := range keys[start : start+batch] {
				b.Touch(key)
			}
			failed, err := b.Run(wheel)
			check(err)
			if failed != 0 {
				log.Fatal("a touch has failed")
			}
			b.Reset()
		}
	}
}

// together touches by TouchIDs or TouchHandles.
func together[K any](touch func([]K) (int, error), keys []K) func() {
	return func() {
		for start := 0; start < len(keys); start += batch {
			_, err := touch(keys[start : start+batch])
			check(err)
		}
	}
}

func touches(wheel *timewheel.Wheel, ids []uint64) {
	handles := make([]timewheel.Handle, len(ids))
	byID := make([]timewheel.Key, len(ids))
	byHandle := make([]timewheel.Key, len(ids))

	known, err := wheel.GetIDs(ids)
	check(err)
	for i, token := range known {
		handles[i] = token.Handle
		byID[i] = timewheel.ByID(token.ID)
		byHandle[i] = timewheel.ByHandle(token.Handle)
	}
	told("wheel, singly", singly(wheel, byID))
	told("wheel, singly, by handle", singly(wheel, byHandle))
	told("wheel, batch of 512", inBatches(wheel, byID))
	told("wheel, batch of 512, by handle", inBatches(wheel, byHandle))
	told("wheel, TouchIDs of 512", together(wheel.TouchIDs, ids))
	told("wheel, TouchHandles of 512", together(wheel.TouchHandles, handles))
}

// given are the arguments of the program.
func given(arguments []string) {
	if len(arguments) == 0 {
		return
	}
	for i, number := range []*int{&rounds, &runs} {
		var err error
		*number, err = strconv.Atoi(arguments[i])
		check(err)
	}
}

func main() {
	given(os.Args[1:])
	wheel, err := timewheel.Open(timewheel.Setup{Slots: 31, Tick: time.Second, MaxTokens: tokens})
	check(err)
	timers := make([]*time.Timer, tokens)
	var b timewheel.Batch
	for id := range timers {
		b.Register(timewheel.Registration{ID: uint64(id), Timeout: timeout})
		timers[id] = time.NewTimer(timeout)
	}
	_, err = b.Run(wheel)
	check(err)
	random := rand.New(rand.NewSource(1))
	ids := make([]uint64, batch*rounds)
	for i := range ids {
		ids[i] = uint64(random.Intn(tokens))
	}
	touches(wheel, ids)
	told("time.Timer: Reset", func() {
		for _, id := range ids {
			timers[id].Reset(timeout)
		}
	})
}
