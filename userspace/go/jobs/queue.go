// SPDX-License-Identifier: LGPL-2.1-or-later

package jobs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"time"
)

// When is when a job is due: now, unless In or At tells otherwise.
type When struct {
	word, value string
}

// In is so much later than now, by the clock of twjobd's machine.
func In(delay time.Duration) When { return When{"IN", seconds(delay)} }

// At is a point of time, which is rounded up to a millisecond.
func At(point time.Time) When {
	return When{"AT", strconv.FormatInt(point.Add(time.Millisecond-1).UnixMilli(), 10)}
}

// Options of a job. What is zero is as the queue's settings tell.
type Options struct {
	// Due is when the job is handed out.
	Due When
	// Key names the job: there is one of a key in a queue. A job without a key gets one of
	// its own.
	Key string
	// Replace gives a job of the key that is there this body, time and options.
	Replace bool
	// Unique is for how long after the job is done no other of its key is put.
	Unique time.Duration
	// Group is one for which the queue's GROUPLIMIT and GROUPRATE hold.
	Group string
	// Lease is for how long a worker has the job.
	Lease time.Duration
	// Tries is after how many the job is buried; a negative number stands for no limit.
	Tries int
	// Backoff is how long after a failed try the job comes again, at first.
	Backoff time.Duration
	// BackoffMost is how long after a failed try the job comes again, at most.
	BackoffMost time.Duration
}

// Added is what became of a put.
type Added struct {
	// ID is the number of the job.
	ID int64
	// Outcome is NEW if the job has been put. EXISTS, BURIED, REPLACED and DONE tell of the
	// job of the key that is there.
	Outcome string
}

// Queue puts jobs.
type Queue struct {
	// Patience is for how long a call waits while twjobd is restarted; 10 s unless it is set
	// before the first call.
	Patience time.Duration

	name   string
	client client
}

// NewQueue returns the queue of this name. The first call connects to the server.
func NewQueue(name, server string) *Queue {
	return &Queue{Patience: 10 * time.Second, name: name, client: client{server: server}}
}

// Close ends the connections.
func (q *Queue) Close() { q.client.close() }

func seconds(span time.Duration) string {
	return strconv.FormatFloat(span.Seconds(), 'f', 6, 64)
}

func (w When) words() []any {
	if w.word == "" {
		return nil
	}
	return []any{w.word, w.value}
}

// words returns the words of TW.PUT behind the body.
func (o *Options) words(key string) []any {
	words := append(o.Due.words(), "KEY", key)
	if o.Replace {
		words = append(words, "REPLACE")
	}
	if o.Unique != 0 {
		words = append(words, "UNIQUE", seconds(o.Unique))
	}
	if o.Group != "" {
		words = append(words, "GROUP", o.Group)
	}
	if o.Lease != 0 {
		words = append(words, "LEASE", seconds(o.Lease))
	}
	if o.Tries > 0 {
		words = append(words, "TRIES", o.Tries)
	} else if o.Tries < 0 {
		words = append(words, "TRIES", 0)
	}
	if o.Backoff != 0 {
		most := o.BackoffMost
		if most == 0 {
			most = o.Backoff
		}
		words = append(words, "BACKOFF", seconds(o.Backoff), seconds(most))
	}
	return words
}

// Add puts a job. A put whose answer was lost is sent again, and puts one job.
func (q *Queue) Add(ctx context.Context, body []byte, options Options) (Added, error) {
	key := options.Key
	if key == "" {
		var random [16]byte
		if _, err := rand.Read(random[:]); err != nil {
			return Added{}, err
		}
		key = hex.EncodeToString(random[:])
	}
	words := append([]any{"TW.PUT", q.name, body}, options.words(key)...)
	answer, err := q.client.ask(ctx, q.Patience, words...)
	if err != nil {
		return Added{}, err
	}
	var added Added
	if told, is := answer.([]any); is && len(told) == 2 {
		added = Added{number(told[0]), text(told[1])}
	}
	if options.Key == "" && added.Outcome == "EXISTS" {
		added.Outcome = "NEW"
	}
	return added, nil
}

// Cancel ends the job of a key. It returns false if there is none.
func (q *Queue) Cancel(ctx context.Context, key string) (bool, error) {
	answer, err := q.client.ask(ctx, q.Patience, "TW.CANCELKEY", q.name, key)
	return number(answer) == 1, err
}

// Move makes the job of a key due at another time. It returns false if there is none.
func (q *Queue) Move(ctx context.Context, key string, due When) (bool, error) {
	if due.word == "" {
		due = In(0)
	}
	answer, err := q.client.ask(ctx, q.Patience, "TW.MOVEKEY", q.name, key, due.word, due.value)
	return number(answer) == 1, err
}
