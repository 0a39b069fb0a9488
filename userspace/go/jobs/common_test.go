// SPDX-License-Identifier: GPL-2.0-only

package jobs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var background = context.Background()

// The program of the test is also the worker, which is killed.
func TestMain(m *testing.M) {
	if words := strings.Split(os.Getenv("JOBS_WORKER"), " "); len(words) == 2 {
		work(words[0], words[1])
		return
	}
	os.Exit(m.Run())
}

func work(server, ledger string) {
	ctx, stop := signal.NotifyContext(background, syscall.SIGTERM)
	defer stop()
	worker := Worker{Queue: "q", Server: server, Concurrency: 3,
		Handler: func(_ context.Context, job *Job) error {
			time.Sleep(time.Duration(rand.Intn(10)) * time.Millisecond)
			file, err := os.OpenFile(ledger, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = fmt.Fprintln(file, string(job.Body))
			return err
		}}
	if err := worker.Run(ctx); err != nil {
		panic(err)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, is, should any) {
	t.Helper()
	if fmt.Sprint(is) != fmt.Sprint(should) {
		t.Fatalf("%v, and should be %v", is, should)
	}
}

// until asks often, until the check is true, however slow the machine is.
func until(check func() bool) {
	for !check() {
		time.Sleep(20 * time.Millisecond)
	}
}

// daemon is a twjobd whose wheels are those of its process.
type daemon struct {
	t       *testing.T
	folder  string
	socket  string
	process *exec.Cmd
	client  client
}

func newDaemon(t *testing.T, lines ...string) *daemon {
	if os.Getenv("TWJOBD") == "" {
		t.Skip("TWJOBD does not tell where twjobd is")
	}
	folder, err := os.MkdirTemp("", "jobs")
	ok(t, err)
	d := &daemon{t: t, folder: folder, socket: filepath.Join(folder, "socket")}
	lines = append(lines, "listen = "+d.socket, "wheels = process",
		"store = "+filepath.Join(folder, "store"), "")
	ok(t, os.WriteFile(filepath.Join(folder, "conf"), []byte(strings.Join(lines, "\n")), 0o600))
	d.client.server = d.socket
	d.start()
	t.Cleanup(func() {
		d.stop(syscall.SIGTERM)
		os.RemoveAll(folder)
	})
	return d
}

func (d *daemon) start() {
	d.process = exec.Command(os.Getenv("TWJOBD"), "-c", filepath.Join(d.folder, "conf"))
	ok(d.t, d.process.Start())
	until(func() bool {
		_, err := d.client.try(background, "PING")
		return err == nil
	})
}

func (d *daemon) stop(number syscall.Signal) {
	d.process.Process.Signal(number)
	d.process.Wait()
}

func (d *daemon) ask(words ...any) any {
	d.t.Helper()
	answer, err := d.client.ask(background, time.Minute, words...)
	ok(d.t, err)
	return answer
}

// queue makes a queue.
func (d *daemon) queue(settings ...any) *Queue {
	name := "q" + strconv.Itoa(rand.Int())
	d.ask(append([]any{"TW.CREATE", name}, settings...)...)
	queue := NewQueue(name, d.socket)
	d.t.Cleanup(queue.Close)
	return queue
}

func (d *daemon) figures(words ...any) map[string]string {
	told, _ := d.ask(words...).([]any)
	figures := map[string]string{}
	for i := 0; i+1 < len(told); i += 2 {
		figures[text(told[i])] = fmt.Sprint(told[i+1])
		if value := text(told[i+1]); value != "" {
			figures[text(told[i])] = value
		}
	}
	return figures
}

func (d *daemon) get(queue *Queue, id int64) map[string]string {
	return d.figures("TW.GET", queue.name, id)
}

func (d *daemon) stats(queue *Queue, name string) string {
	return d.figures("TW.STATS", queue.name)[name]
}

func (d *daemon) empty(queue *Queue) {
	until(func() bool { return d.stats(queue, "jobs") == "0" })
}

// works lets a worker run until the returned function is called, or the test has ended.
func (d *daemon) works(worker *Worker) func() {
	ctx, cancel := context.WithCancel(background)
	var running sync.WaitGroup
	if worker.Server == "" {
		worker.Server = d.socket
	}
	if worker.Told == nil {
		worker.Told = func(error) {}
	}
	running.Add(1)
	go func() {
		defer running.Done()
		if err := worker.Run(ctx); err != nil {
			d.t.Error(err)
		}
	}()
	stop := func() {
		cancel()
		running.Wait()
	}
	d.t.Cleanup(stop)
	return stop
}

func add(t *testing.T, queue *Queue, body string, options Options) int64 {
	t.Helper()
	added, err := queue.Add(background, []byte(body), options)
	ok(t, err)
	return added.ID
}

// proxy stands before a daemon. Commands get the refusals of their verb first, one each; the
// answer to a verb in cut is lost with its connection; answers to takes wait for the gate.
type proxy struct {
	*daemon
	path     string
	mutex    sync.Mutex
	seen     map[string]int
	refusals map[string][]string
	cut      map[string]bool
	gate     chan struct{}
}

func (d *daemon) proxy() *proxy {
	p := &proxy{daemon: d, path: filepath.Join(d.folder, strconv.Itoa(rand.Int())),
		seen: map[string]int{}, refusals: map[string][]string{}, cut: map[string]bool{}}
	listener, err := net.Listen("unix", p.path)
	ok(d.t, err)
	d.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.talk(conn)
		}
	}()
	return p
}

func (p *proxy) count(verb string) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.seen[verb]
}

// next tells what is said in place of the daemon's answer, or whether the answer is lost.
func (p *proxy) next(verb string) (refusal string, cut bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.seen[verb]++
	if waits := p.refusals[verb]; len(waits) > 0 {
		p.refusals[verb] = waits[1:]
		return waits[0], false
	}
	cut = p.cut[verb]
	p.cut[verb] = false
	return "", cut
}

func (p *proxy) talk(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.socket)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if p.gate != nil {
				<-p.gate
			}
			if _, failed := client.Write(buffer[:n]); err != nil || failed != nil {
				client.Close()
				return
			}
		}
	}()
	for reader := bufio.NewReader(client); ; {
		verb, command, err := command(reader)
		if err != nil {
			return
		}
		refusal, cut := p.next(verb)
		switch {
		case refusal != "":
			fmt.Fprintf(client, "-%s\r\n", refusal)
		case cut:
			client.Close()
			server.Write(command)
			until(func() bool { _, err := p.client.try(background, "PING"); return err == nil })
			return
		default:
			server.Write(command)
		}
	}
}

// command reads one: its verb, and the bytes of it.
func command(reader *bufio.Reader) (verb string, all []byte, err error) {
	line, err := reader.ReadBytes('\n')
	if err != nil || line[0] != '*' {
		return "", nil, errors.New("no command")
	}
	all = line
	count, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	for i := 0; i < count; i++ {
		if line, err = reader.ReadBytes('\n'); err != nil {
			return "", nil, err
		}
		length, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
		word := make([]byte, length+2)
		if _, err = io.ReadFull(reader, word); err != nil {
			return "", nil, err
		}
		if i == 0 {
			verb = string(word[:length])
		}
		all = append(append(all, line...), word...)
	}
	return verb, all, nil
}
