// SPDX-License-Identifier: LGPL-2.1-or-later

package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.org/timewheel.git/userspace/go/internal/resp"
)

// Server is where twjobd listens unless it is told otherwise.
const Server = "/run/twjobd/socket"

const (
	// again is the time until a command that twjobd could not accept is sent again.
	again = 500 * time.Millisecond
	// patience is the time after which a connection without an answer is given up.
	patience = 30 * time.Second
	// maxIdle is how many connections are kept.
	maxIdle = 16
)

// advice is what an error of twjobd means to the program, by its code.
var advice = map[string]string{
	"NOQUEUE":   `make it with "twjob create"`,
	"FULL":      `give the queue more room with "twjob create", or work faster`,
	"TOOBIG":    "raise max-body in twjobd.conf, or put less into a body",
	"NOAUTH":    "give the password in the server's URL, redis://:PASSWORD@HOST:PORT",
	"WRONGPASS": "give the password that twjobd.conf(5) tells",
	"NOPERM":    "twjobd.conf(5) tells how it is allowed",
	"DRAINING":  `the queue takes jobs again after "twjob resume"`,
	"HELD":      "a worker has the job now",
}

// Error is an error of twjobd, with what to do. Nothing was changed, unless the code is
// UNAVAILABLE.
type Error struct {
	// Code is the first word of twjobd's error, as FULL; UNAVAILABLE also if there is no
	// answer.
	Code string
	// Text is the rest, and what to do.
	Text string
	// Err is the reason, such as that of a connection that cannot be made.
	Err error
}

// Error returns code and text.
func (e *Error) Error() string { return "jobs: " + e.Code + " " + e.Text }

// Unwrap returns the reason, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// passing tells whether a command that is sent again after this error may be carried out.
func (e *Error) passing() bool {
	return e.Code == "BUSY" || e.Code == "UNAVAILABLE" || e.Code == "LOADING"
}

func explained(err error, server string) *Error {
	var refused resp.Error
	if !errors.As(err, &refused) {
		_, where, _, wrong := resp.Where(server)
		if wrong != nil {
			return &Error{"ERR", wrong.Error(), err}
		}
		return &Error{"UNAVAILABLE", fmt.Sprintf("twjobd does not answer at %s: is it running? (%v)",
			where, err), err}
	}
	code, text, _ := strings.Cut(string(refused), " ")
	hint := advice[code]
	switch {
	case code == "ERR" && (strings.HasPrefix(text, "unknown command") ||
		strings.HasPrefix(text, "expected ")):
		hint = "this twjobd is too old; upgrade timewheel-jobs"
	case strings.Contains(text, "too many connections"):
		hint = "close some, or raise max-connections in twjobd.conf"
	}
	if hint != "" {
		text += ": " + hint
	}
	return &Error{code, text, err}
}

// client has connections for commands, each of which can be sent again.
type client struct {
	server string
	mutex  sync.Mutex
	idle   []*resp.Conn
}

func (c *client) take() *resp.Conn {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return nil
	}
	conn := c.idle[last]
	c.idle = c.idle[:last]
	return conn
}

func (c *client) give(conn *resp.Conn) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.idle) == maxIdle {
		conn.Close()
		return
	}
	c.idle = append(c.idle, conn)
}

func (c *client) close() {
	for conn := c.take(); conn != nil; conn = c.take() {
		conn.Close()
	}
}

// try sends a command once, or again if the connection has ended since its last one.
func (c *client) try(ctx context.Context, words ...any) (any, *Error) {
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	for {
		conn, err := c.take(), error(nil)
		fresh := conn == nil
		if fresh {
			if conn, err = resp.Dial(ctx, c.server); err != nil {
				return nil, explained(err, c.server)
			}
		}
		answer, err := conn.Do(ctx, words...)
		var refused resp.Error
		if err == nil || errors.As(err, &refused) {
			c.give(conn)
		} else {
			conn.Close()
			if !fresh && ctx.Err() == nil {
				continue
			}
		}
		if err != nil {
			return nil, explained(err, c.server)
		}
		return answer, nil
	}
}

// ask sends a command until twjobd can accept it, or so much time has passed.
func (c *client) ask(ctx context.Context, most time.Duration, words ...any) (any, error) {
	for end := time.Now().Add(most); ; {
		answer, err := c.try(ctx, words...)
		if err == nil {
			return answer, nil
		}
		if !err.passing() || time.Now().Add(again).After(end) {
			return nil, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			err.Err = ctx.Err()
			return nil, err
		}
	}
}

func text(answer any) string {
	switch answer := answer.(type) {
	case []byte:
		return string(answer)
	case string:
		return answer
	}
	return ""
}

func number(answer any) int64 {
	n, _ := answer.(int64)
	return n
}
