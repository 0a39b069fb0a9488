// SPDX-License-Identifier: GPL-2.0-only

package jobs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestOptionsAreThoseOfAPut(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue()
	id := add(t, queue, "x", Options{Due: In(time.Hour), Key: "a", Lease: 5 * time.Second,
		Tries: 3, Backoff: time.Second, BackoffMost: time.Minute, Group: "customer-17"})
	job := d.get(queue, id)
	for name, value := range map[string]string{"state": "delayed", "lease_ms": "5000",
		"tries": "3", "backoff_ms": "1000", "backoff_most_ms": "60000",
		"group": "customer-17"} {
		equal(t, name+job[name], name+value)
	}
	added, err := queue.Add(background, []byte("y"), Options{Key: "a"})
	ok(t, err)
	equal(t, added, Added{id, "EXISTS"})
	added, err = queue.Add(background, []byte("y"), Options{Key: "a", Replace: true,
		Unique: 2 * time.Second, Due: In(time.Hour), Tries: -1})
	ok(t, err)
	equal(t, added, Added{id, "REPLACED"})
	equal(t, d.get(queue, id)["unique_ms"], "2000")
	equal(t, d.get(queue, id)["tries"], "0")
	at := time.Now().Add(2 * time.Hour)
	moved, err := queue.Move(background, "a", At(at))
	ok(t, err)
	equal(t, moved, true)
	due, _ := strconv.ParseInt(d.get(queue, id)["due"], 10, 64)
	if early := at.Sub(time.UnixMilli(due)); early > 0 || early < -time.Millisecond {
		t.Fatalf("the job is due %v before its time", early)
	}
	for _, should := range []bool{true, false} {
		is, err := queue.Cancel(background, "a")
		ok(t, err)
		equal(t, is, should)
	}
	moved, err = queue.Move(background, "a", When{})
	ok(t, err)
	equal(t, moved, false)
}

func TestAPutWhoseAnswerIsLostPutsOneJob(t *testing.T) {
	d := newDaemon(t)
	p, queue := d.proxy(), d.queue()
	p.cut["TW.PUT"] = true
	p.refusals["TW.PUT"] = []string{"BUSY", "UNAVAILABLE the disk", "LOADING"}
	cut := NewQueue(queue.name, p.path)
	defer cut.Close()
	added, err := cut.Add(background, []byte("x"), Options{})
	ok(t, err)
	equal(t, added.Outcome, "NEW")
	equal(t, p.count("TW.PUT"), 5)
	equal(t, d.stats(queue, "jobs"), "1")
}

// fails wants an error of this code, whose text has the advice.
func fails(t *testing.T, queue *Queue, code, advice, body string) {
	t.Helper()
	defer queue.Close()
	_, err := queue.Add(background, []byte(body), Options{})
	var told *Error
	if !errors.As(err, &told) || told.Code != code || !strings.Contains(err.Error(), advice) ||
		strings.Contains(err.Error(), "secret") {
		t.Fatalf("%v, and should be %s and tell %q", err, code, advice)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue("MAXJOBS", 1)
	add(t, queue, "x", Options{Due: In(time.Hour)})
	fails(t, queue, "FULL", `give the queue more room with "twjob create"`, "x")
	fails(t, queue, "TOOBIG", "raise max-body", strings.Repeat("x", 2<<20))
	fails(t, NewQueue("none", d.socket), "NOQUEUE", `make it with "twjob create"`, "x")
	for _, text := range []string{"unknown command 'TW.PUT'", "expected IN or AT"} {
		p := d.proxy()
		p.refusals["TW.PUT"] = []string{"ERR " + text}
		fails(t, NewQueue(queue.name, p.path), "ERR", "this twjobd is too old", "x")
	}
	for _, server := range []string{filepath.Join(d.folder, "nobody"),
		"unix://:secret@" + d.folder + "/nobody"} {
		nobody := NewQueue("q", server)
		nobody.Patience = 0
		fails(t, nobody, "UNAVAILABLE", "nobody: is it running?", "x")
	}
	fails(t, NewQueue("q", "http://:secret@localhost"), "ERR", "a server is /PATH", "x")
	equal(t, d.stats(queue, "jobs"), "1")
	ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
	defer cancel()
	_, err := NewQueue("q", d.folder+"/nobody").Add(ctx, nil, Options{})
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
}

func TestAPassword(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	address := listener.Addr().String()
	listener.Close()
	d := newDaemon(t, "listen = "+address, "password = secret")
	queue := d.queue()
	fails(t, NewQueue(queue.name, "redis://:wrong@"+address), "WRONGPASS", "give the password", "x")
	fails(t, NewQueue(queue.name, "redis://"+address), "NOAUTH", "give the password", "x")
	right := NewQueue(queue.name, "redis://:secret@"+address)
	defer right.Close()
	add(t, right, "x", Options{})
	equal(t, d.stats(queue, "jobs"), "1")
}

func TestWhatIsAddedComesToTheHandlerAndIsDoneThen(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue()
	id := add(t, queue, "one", Options{Key: "order-7"})
	add(t, queue, "\x00\xff", Options{Due: At(time.Now())})
	got := make(chan *Job, 2)
	d.works(&Worker{Queue: queue.name, Handler: func(_ context.Context, job *Job) error {
		got <- job
		return nil
	}})
	d.empty(queue)
	one, two := <-got, <-got
	if one.ID > two.ID {
		one, two = two, one
	}
	equal(t, []any{one.ID, one.Queue, one.Attempt, one.Key, string(one.Body)},
		[]any{id, queue.name, 1, "order-7", "one"})
	equal(t, two.Body, []byte{0, 255})
	if late := time.Since(two.Due); late < 0 || late > time.Hour {
		t.Fatalf("the job was due %v ago", late)
	}
}

func TestAJobWhoseHandlerFailsComesAgainOrIsBuried(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue()
	hour := Options{Backoff: time.Hour}
	one, bad, broken := add(t, queue, "x", hour), add(t, queue, "bad", hour),
		add(t, queue, "broken", hour)
	d.works(&Worker{Queue: queue.name, Handler: func(_ context.Context, job *Job) error {
		switch job.ID {
		case bad:
			return fmt.Errorf("order 7: %w", Bury(errors.New("no such order")))
		case broken:
			panic("no order")
		}
		return errors.New("no paper" + strings.Repeat("x", 2<<20))
	}})
	for id, should := range map[int64][2]string{one: {"delayed", "no paperx"},
		bad: {"buried", "order 7: no such order"}, broken: {"delayed", "panic: no order"}} {
		until(func() bool { return d.get(queue, id)["state"] == should[0] })
		if reason := d.get(queue, id)["reason"]; !strings.HasPrefix(reason, should[1]) {
			t.Fatalf("the reason is %q", reason)
		}
		equal(t, d.get(queue, id)["attempts"], "1")
	}
}

func TestNoMoreAreWorkedOnAtATimeThanWasSaid(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue()
	for i := 0; i < 20; i++ {
		add(t, queue, "x", Options{})
	}
	var mutex sync.Mutex
	now, most := 0, 0
	d.works(&Worker{Queue: queue.name, Concurrency: 4,
		Handler: func(context.Context, *Job) error {
			mutex.Lock()
			if now++; now > most {
				most = now
			}
			mutex.Unlock()
			time.Sleep(50 * time.Millisecond)
			mutex.Lock()
			now--
			mutex.Unlock()
			return nil
		}})
	d.empty(queue)
	equal(t, most, 4)
	for _, concurrency := range []int{-1, 1001} {
		worker := Worker{Concurrency: concurrency}
		equal(t, worker.Run(background), "jobs: Concurrency has to be from 1 to 1000")
	}
}

func TestAHandlerThatComputesForLongLosesNoLease(t *testing.T) {
	d := newDaemon(t)
	for _, lease := range []time.Duration{0, 1500 * time.Millisecond} {
		queue := d.queue("LEASE", 1.5)
		var tries atomic.Int32
		// The worker has room for the job once more if the lease ends.
		stop := d.works(&Worker{Queue: queue.name, Lease: lease, Concurrency: 2,
			Handler: func(context.Context, *Job) error {
				tries.Add(1)
				for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
				}
				return nil
			}})
		add(t, queue, "x", Options{})
		d.empty(queue)
		stop()
		equal(t, tries.Load(), 1)
		equal(t, d.stats(queue, "lapsed"), "0")
	}
}

func TestExtensionsAreForAsLongAsTheWorkerSays(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue("LEASE", 2)
	d.works(&Worker{Queue: queue.name, Lease: 10 * time.Minute,
		Handler: func(_ context.Context, job *Job) error {
			until(func() bool {
				left, _ := strconv.Atoi(d.get(queue, job.ID)["lease_left_ms"])
				return left > 100000
			})
			return nil
		}})
	add(t, queue, "x", Options{})
	d.empty(queue)
	equal(t, d.stats(queue, "lapsed"), "0")
}

func TestAHandlerIsToldThatItsJobIsLost(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue("LEASE", 0.3)
	told := make(chan error, 9)
	type key struct{}
	worker := Worker{Queue: queue.name, Server: d.socket,
		Told: func(err error) { told <- err },
		Handler: func(ctx context.Context, job *Job) error {
			if ctx.Value(key{}) != "value" {
				t.Error("a value of the context is lost")
			}
			d.ask("TW.DELETE", queue.name, job.ID)
			<-ctx.Done()
			return nil
		}}
	ctx, cancel := context.WithCancel(context.WithValue(background, key{}, "value"))
	add(t, queue, "x", Options{})
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	var stale *Error
	equal(t, errors.As(<-told, &stale), true)
	equal(t, stale.Code, "STALE")
	cancel()
	ok(t, <-ended)
}

func TestAnAnswerIsSentAgainUntilItIsTaken(t *testing.T) {
	d := newDaemon(t)
	queue, p := d.queue("LEASE", 0.5), d.proxy()
	p.refusals["TW.ACK"] = []string{"BUSY", "UNAVAILABLE", "LOADING"}
	p.cut["TW.EXTEND"] = true
	add(t, queue, "x", Options{})
	var tries atomic.Int32
	d.works(&Worker{Queue: queue.name, Server: p.path,
		Handler: func(context.Context, *Job) error {
			tries.Add(1)
			return nil
		}})
	d.empty(queue)
	equal(t, tries.Load(), 1)
	equal(t, p.count("TW.ACK"), 4)
}

func TestAWorkerThatIsStoppedFinishesWhatItHasAndTakesNoMore(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue()
	id := add(t, queue, "x", Options{})
	began, end := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(background)
	ended := make(chan error)
	worker := Worker{Queue: queue.name, Server: d.socket, Concurrency: 2,
		Handler: func(ctx context.Context, _ *Job) error {
			close(began)
			<-end
			return ctx.Err()
		}}
	go func() { ended <- worker.Run(ctx) }()
	<-began
	cancel()
	late := add(t, queue, "late", Options{})
	close(end)
	ok(t, <-ended)
	equal(t, len(d.get(queue, id)), 0)
	equal(t, d.get(queue, late)["state"], "ready")
	equal(t, d.get(queue, late)["attempts"], "0")
}

func TestWhatIsHandedOutTooLateIsGivenBackUntried(t *testing.T) {
	d := newDaemon(t)
	queue, p := d.queue("TRIES", 1), d.proxy()
	id := add(t, queue, "x", Options{})
	ctx, cancel := context.WithCancel(background)
	worker := Worker{Queue: queue.name, Server: p.path,
		Handler: func(context.Context, *Job) error {
			t.Error("the job was begun")
			return nil
		}}
	p.gate = make(chan struct{}, 1)
	p.gate <- struct{}{} // the gate opens for CLIENT ID
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	until(func() bool { return d.stats(queue, "held") == "1" })
	cancel()
	close(p.gate)
	ok(t, <-ended)
	equal(t, d.get(queue, id)["state"], "ready")
	equal(t, d.get(queue, id)["attempts"], "0")
}

func TestAWorkerGoesOnWhenTwjobdIsKilledAndComesAgain(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue("LEASE", 5)
	var seen sync.Map
	count := func() (n int) {
		seen.Range(func(any, any) bool { n++; return true })
		return n
	}
	d.works(&Worker{Queue: queue.name, Concurrency: 2,
		Handler: func(_ context.Context, job *Job) error {
			seen.Store(job.ID, true)
			time.Sleep(5 * time.Millisecond)
			return nil
		}})
	for i := 0; i < 40; i++ {
		add(t, queue, "x", Options{})
	}
	until(func() bool { return count() > 5 })
	d.stop(syscall.SIGKILL)
	d.start()
	for i := 0; i < 10; i++ {
		add(t, queue, "x", Options{})
	}
	d.empty(queue)
	equal(t, count(), 50)
}

func TestACallAfterARestartOfTwjobdNeedsNoPatience(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue()
	queue.Patience = 0
	var adding sync.WaitGroup
	for i := 0; i < 10; i++ {
		adding.Add(1)
		go func() {
			defer adding.Done()
			if _, err := queue.Add(background, nil, Options{}); err != nil {
				t.Error(err)
			}
		}()
	}
	adding.Wait()
	d.stop(syscall.SIGTERM)
	d.start()
	add(t, queue, "x", Options{})
}

func TestAWorkerCanBeStoppedWhileTwjobdIsAway(t *testing.T) {
	d := newDaemon(t)
	queue := d.queue()
	told := make(chan error, 9)
	stop := d.works(&Worker{Queue: queue.name, Told: func(err error) { told <- err }})
	until(func() bool { return strings.Contains(text(d.ask("CLIENT", "LIST")), "cmd=TW.TAKE") })
	d.stop(syscall.SIGKILL)
	if err := <-told; !strings.Contains(err.Error(), "is it running?") {
		t.Error(err)
	}
	stop()
}

func TestAWorkerMayBeginBeforeItsQueueIsMade(t *testing.T) {
	d := newDaemon(t)
	told, got := make(chan error, 9), make(chan struct{}, 1)
	d.works(&Worker{Queue: "later", Told: func(err error) { told <- err },
		Handler: func(context.Context, *Job) error {
			got <- struct{}{}
			return nil
		}})
	if err := <-told; !strings.Contains(err.Error(), `make it with "twjob create"`) {
		t.Fatal(err)
	}
	d.ask("TW.CREATE", "later")
	queue := NewQueue("later", d.socket)
	defer queue.Close()
	add(t, queue, "x", Options{})
	<-got
}

// ledger has the bodies of jobs that were done.
type ledger struct {
	t    *testing.T
	d    *daemon
	path string
}

func (l *ledger) lines() []string {
	all, err := os.ReadFile(l.path)
	ok(l.t, err)
	return strings.Fields(string(all))
}

func (l *ledger) start() *exec.Cmd {
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), "JOBS_WORKER="+l.d.socket+" "+l.path)
	ok(l.t, worker.Start())
	return worker
}

// kill returns the worker that goes on.
func (l *ledger) kill(worker *exec.Cmd, number int) *exec.Cmd {
	switch number % 5 {
	case 1:
		l.d.stop(syscall.SIGKILL)
		l.d.start()
		return worker
	case 3:
		worker.Process.Signal(syscall.SIGTERM)
		ok(l.t, worker.Wait())
	default:
		worker.Process.Kill()
		worker.Wait()
	}
	return l.start()
}

// send puts jobs until the channel is closed, and returns which were put.
func (l *ledger) send(end chan struct{}) map[string]bool {
	sent := map[string]bool{}
	queue := NewQueue("q", l.d.socket)
	defer queue.Close()
	for i := 0; ; i++ {
		select {
		case <-end:
			return sent
		case <-time.After(2 * time.Millisecond):
		}
		body := "j" + strconv.Itoa(i)
		due := In(time.Duration(i%3) * 100 * time.Millisecond)
		if _, err := queue.Add(background, []byte(body), Options{Due: due}); err == nil {
			sent[body] = true
		}
	}
}

// KILLS is over how many kills, 5 unless it is given.
func TestNoJobIsLostByKillsOfWorkersAndOfTwjobd(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("KILLS"))
	if err != nil {
		kills = 5
	}
	d := newDaemon(t)
	d.ask("TW.CREATE", "q", "LEASE", 0.5, "TRIES", 0)
	l := &ledger{t, d, filepath.Join(d.folder, "ledger")}
	ok(t, os.WriteFile(l.path, nil, 0o600))
	end, sent := make(chan struct{}), make(chan map[string]bool)
	go func() { sent <- l.send(end) }()
	worker := l.start()
	for i := 0; i < kills; i++ {
		before := len(l.lines())
		until(func() bool { return len(l.lines()) > before+10 })
		worker = l.kill(worker, i)
	}
	close(end)
	put := <-sent
	d.empty(&Queue{name: "q"})
	worker.Process.Signal(syscall.SIGTERM)
	ok(t, worker.Wait())
	count := len(put)
	for _, body := range l.lines() {
		delete(put, body)
	}
	t.Logf("%d kills, %d jobs put, %d runs", kills, count, len(l.lines()))
	if count == 0 || len(put) > 0 {
		t.Fatalf("lost: %v", put)
	}
}
