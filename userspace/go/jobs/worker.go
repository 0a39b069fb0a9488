// SPDX-License-Identifier: LGPL-2.1-or-later

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"sync"
	"time"

	"example.org/timewheel.git/userspace/go/internal/resp"
)

const (
	// block is the time that a take waits. An idle connection shows so often that it is there.
	block = time.Minute
	// first is the time until the lease of a job is looked at: most jobs have ended before.
	first = 100 * time.Millisecond
	// stops is the time until a take that waits is told once more to end.
	stops = 50 * time.Millisecond
	// longestReason is the length of a reason that twjobd keeps.
	longestReason = 1024
)

// Job is a job that a worker has.
type Job struct {
	// Queue is its queue's name.
	Queue string
	// ID is its number.
	ID int64
	// Attempt is the number of the try, from 1 on.
	Attempt int
	// Due is when it was due.
	Due time.Time
	// Key is its key, or "".
	Key string
	// Body is the body that was put.
	Body []byte

	receipt string
}

func newJob(answer any) *Job {
	words, _ := answer.([]any)
	if len(words) < 7 {
		words = make([]any, 7)
	}
	body, _ := words[6].([]byte)
	return &Job{text(words[0]), number(words[1]), int(number(words[3])),
		time.UnixMilli(number(words[4])), text(words[5]), body, text(words[2])}
}

type bury struct{ error }

// Unwrap returns the handler's error.
func (b bury) Unwrap() error { return b.error }

// Bury makes an error by which a handler has its job buried, whatever tries are left.
func Bury(err error) error { return bury{err} }

// Worker takes jobs that are due, and has a handler work on them.
type Worker struct {
	// Queue is the queue's name.
	Queue string
	// Handler works on a job, which is done when it returns nil. After an error or a panic
	// the job comes again as its BACKOFF tells, with the error as the reason. The context has
	// the values of Run's, and ends when the lease is over all the same, so that another worker
	// may have the job.
	Handler func(ctx context.Context, job *Job) error
	// Concurrency is on how many jobs the handler works at a time, at most 1000; 0 stands
	// for 1.
	Concurrency int
	// Lease is for how long extensions are, of which none makes a lease shorter; 0 stands for the
	// lease of the job.
	Lease time.Duration
	// Server is where twjobd is; "" stands for Server.
	Server string
	// Told gets what twjobd refuses, and the errors of handlers; the worker goes on. Nil
	// stands for log.Print.
	Told func(error)
}

// run is a worker that runs.
type run struct {
	*Worker
	client client
	slots  chan struct{}
	jobs   sync.WaitGroup
	takes  *resp.Conn
	number int64 // the number of this connection
	said   string
}

// Run works until the context ends, and returns when the jobs that have begun have ended. An
// error means that it has not begun.
func (w *Worker) Run(ctx context.Context) error {
	concurrency, server := w.Concurrency, w.Server
	if concurrency == 0 {
		concurrency = 1
	}
	if concurrency < 0 || concurrency > 1000 {
		return errors.New("jobs: Concurrency has to be from 1 to 1000")
	}
	if server == "" {
		server = Server
	}
	r := &run{Worker: w, client: client{server: server},
		slots: make(chan struct{}, concurrency)}
	defer r.client.close()
	for ctx.Err() == nil {
		count := r.room(ctx)
		jobs := r.take(ctx, count)
		for i := len(jobs); i < count; i++ {
			<-r.slots
		}
		for _, words := range jobs {
			r.jobs.Add(1)
			go r.work(ctx, newJob(words))
		}
	}
	r.forget()
	r.jobs.Wait()
	return nil
}

func (r *run) tell(err error) {
	if r.Told != nil {
		r.Told(err)
	} else {
		log.Print(err)
	}
}

// room waits until there is room for a job, and returns for how many there is, which it
// takes.
func (r *run) room(ctx context.Context) int {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for count := 1; ; count++ {
		select {
		case r.slots <- struct{}{}:
		default:
			return count
		}
	}
}

func (r *run) forget() {
	if r.takes != nil {
		r.takes.Close()
		r.takes = nil
	}
}

func (r *run) connect(ctx context.Context) error {
	if r.takes != nil {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	conn, err := resp.Dial(ctx, r.client.server)
	if err != nil {
		return err
	}
	answer, err := conn.Do(ctx, "CLIENT", "ID")
	if err != nil {
		conn.Close()
		return err
	}
	r.takes, r.number = conn, number(answer)
	return nil
}

// take returns no jobs when there are none: then the queue may be made, its jobs loaded, or
// twjobd started, later.
func (r *run) take(ctx context.Context, count int) []any {
	if ctx.Err() != nil {
		return nil
	}
	err := r.connect(ctx)
	if err == nil {
		var answer any
		if answer, err = r.waitForJobs(ctx, count); err == nil {
			r.said = ""
			jobs, _ := answer.([]any)
			return jobs
		}
		var refused resp.Error
		if !errors.As(err, &refused) {
			r.forget()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	told := explained(err, r.client.server)
	if told.Error() != r.said {
		r.tell(fmt.Errorf("%w: no jobs of %s are taken for now", told, r.Queue))
		r.said = told.Error()
	}
	select {
	case <-time.After(again):
	case <-ctx.Done():
	}
	return nil
}

func (r *run) waitForJobs(ctx context.Context, count int) (any, error) {
	done := make(chan struct{})
	defer close(done)
	go r.endTake(ctx, r.takes, r.number, done)
	wait, end := context.WithTimeout(context.Background(), block+patience)
	defer end()
	return r.takes.Do(wait, "TW.TAKE", r.Queue, "COUNT", count, "BLOCK", block.Milliseconds())
}

// endTake has twjobd answer a take that waits when the context ends. A take that is only just
// being sent needs a second word.
func (r *run) endTake(ctx context.Context, conn *resp.Conn, number int64, done chan struct{}) {
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	for {
		_, err := r.client.try(context.Background(), "CLIENT", "UNBLOCK", number)
		if err != nil && err.Code == "UNAVAILABLE" {
			conn.Close()
		}
		select {
		case <-done:
			return
		case <-time.After(stops):
		}
	}
}

// values is a context that never ends, with the values of another one.
type values struct {
	context.Context
	of context.Context
}

// Value returns the value of the other context.
func (v values) Value(key any) any { return v.of.Value(key) }

func (r *run) work(ctx context.Context, job *Job) {
	defer r.jobs.Done()
	defer func() { <-r.slots }()
	// twjobd handed out the job before it was told that no more are wanted.
	if ctx.Err() != nil {
		r.answer(job, "TW.NACK", "UNTRIED")
		return
	}
	of, lose := context.WithCancel(values{context.Background(), ctx})
	defer lose()
	ended := make(chan struct{})
	defer close(ended)
	go r.keep(job, ended, lose)
	err := r.handle(of, job)
	if err == nil {
		r.answer(job, "TW.ACK")
		return
	}
	r.tell(fmt.Errorf("jobs: job %d of %s has failed: %w", job.ID, job.Queue, err))
	verb := "TW.NACK"
	if errors.As(err, &bury{}) {
		verb = "TW.BURY"
	}
	reason := err.Error()
	if len(reason) > longestReason {
		reason = reason[:longestReason]
	}
	r.answer(job, verb, "REASON", reason)
}

func (r *run) handle(ctx context.Context, job *Job) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("panic: %v\n%s", why, debug.Stack())
		}
	}()
	return r.Handler(ctx, job)
}

// answer sends an answer until twjobd has taken it, or says that it comes too late.
func (r *run) answer(job *Job, verb string, words ...any) {
	for {
		_, err := r.client.try(context.Background(),
			append([]any{verb, job.Queue, job.receipt}, words...)...)
		if err == nil {
			return
		}
		if !err.passing() {
			r.tell(fmt.Errorf("%w: %s of job %d of %s", err, verb, job.ID, job.Queue))
			return
		}
		time.Sleep(again)
	}
}

// keep extends the lease of a job until it has ended.
func (r *run) keep(job *Job, ended chan struct{}, lose func()) {
	span := r.Lease / 3
	for timer := time.NewTimer(first); ; {
		select {
		case <-ended:
			timer.Stop()
			return
		case <-timer.C:
		}
		var err *Error
		if span == 0 {
			span, err = r.third(job)
		} else {
			err = r.extend(job)
		}
		switch {
		case err == nil:
			timer.Reset(span)
		case err.Code == "STALE":
			lose()
			return
		default:
			timer.Reset(again)
		}
	}
}

func (r *run) extend(job *Job) *Error {
	words := []any{"TW.EXTEND", job.Queue, job.receipt}
	if r.Lease != 0 {
		words = append(words, seconds(r.Lease))
	}
	_, err := r.client.try(context.Background(), words...)
	return err
}

// third returns a third of what is left of a lease that was not extended yet; next to nothing
// if the job is not with this worker any more.
func (r *run) third(job *Job) (time.Duration, *Error) {
	answer, err := r.client.try(context.Background(), "TW.GET", job.Queue, job.ID)
	if err != nil {
		return 0, err
	}
	told, _ := answer.([]any)
	for i := 0; i+1 < len(told); i += 2 {
		if left := number(told[i+1]); text(told[i]) == "lease_left_ms" && left > 0 {
			return time.Duration(left) * time.Millisecond / 3, nil
		}
	}
	return time.Millisecond, nil
}
