// SPDX-License-Identifier: GPL-2.0-only

// Touch tells what a touch costs in Go: of a wheel, and of Go's own timers.
package main

import (
	"fmt"
	"log"
	"math/rand"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

const (
	tokens = 10_000
	batch  = 512
	rounds = 20
)

// told runs it a second time: the first is for what is prepared once.
func told(kind string, touches int, run func()) {
	run()
	start := time.Now()
	run()
	ns := float64(time.Since(start).Nanoseconds())
	fmt.Printf("= Go\t%s\t%d\t%.1f\n", kind, tokens, ns/float64(touches))
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
	return func() {
		var b timewheel.Batch
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

func main() {
	wheel, err := timewheel.Open(timewheel.Setup{Slots: 31, Tick: time.Second, MaxTokens: tokens})
	check(err)
	handles := make([]timewheel.Handle, tokens)
	timers := make([]*time.Timer, tokens)
	for id := range handles {
		outcome, err := wheel.Register(timewheel.Registration{ID: uint64(id),
			Timeout: 30 * time.Second})
		check(err)
		handles[id] = outcome.Handle
		timers[id] = time.NewTimer(30 * time.Second)
	}
	random := rand.New(rand.NewSource(1))
	ids := make([]int, batch*rounds)
	byID := make([]timewheel.Key, len(ids))
	byHandle := make([]timewheel.Key, len(ids))
	for i := range ids {
		ids[i] = random.Intn(tokens)
		byID[i] = timewheel.ByID(uint64(ids[i]))
		byHandle[i] = timewheel.ByHandle(handles[ids[i]])
	}
	told("wheel, singly", len(ids), singly(wheel, byID))
	told("wheel, singly, by handle", len(ids), singly(wheel, byHandle))
	told("wheel, batch of 512", len(ids), inBatches(wheel, byID))
	told("wheel, batch of 512, by handle", len(ids), inBatches(wheel, byHandle))
	told("time.Timer: Reset", len(ids), func() {
		for _, id := range ids {
			timers[id].Reset(30 * time.Second)
		}
	})
}
