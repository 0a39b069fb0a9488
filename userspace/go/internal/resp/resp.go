// SPDX-License-Identifier: LGPL-2.1-or-later

// Package resp speaks the protocol of Redis over one connection. It knows no verb of twjobd.
package resp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultPort = "7076"
	longest     = 512 << 20
)

// Error is an answer that is an error, such as "FULL the queue has its 100000 jobs".
type Error string

func (e Error) Error() string { return string(e) }

// Conn is a connection for one goroutine at a time. Any goroutine may call Close.
type Conn struct {
	conn   net.Conn
	reader *bufio.Reader
}

// Where tells network and address of a server, which is the path of a socket, or a URL:
// redis://:PASSWORD@HOST:PORT, unix://:PASSWORD@/PATH.
func Where(server string) (network, address string, user *url.Userinfo, err error) {
	if strings.HasPrefix(server, "/") {
		return "unix", server, nil, nil
	}
	parsed, err := url.Parse(server)
	switch {
	case err != nil:
		// The text of the error itself would have the password.
		return "", "", nil, errors.New("the server's URL cannot be parsed")
	case parsed.Scheme == "unix" && parsed.Path != "":
		return "unix", parsed.Path, parsed.User, nil
	case parsed.Scheme == "redis" && parsed.Hostname() != "":
		port := parsed.Port()
		if port == "" {
			port = defaultPort
		}
		return "tcp", net.JoinHostPort(parsed.Hostname(), port), parsed.User, nil
	}
	return "", "", nil, errors.New("a server is /PATH, redis://:PASSWORD@HOST:PORT or " +
		"unix://:PASSWORD@/PATH")
}

// Dial connects, and gives the password if the server has one.
func Dial(ctx context.Context, server string) (*Conn, error) {
	network, address, user, err := Where(server)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn, bufio.NewReader(conn)}
	if password, is := user.Password(); is {
		words := []any{"AUTH", password}
		if user.Username() != "" {
			words = []any{"AUTH", user.Username(), password}
		}
		if _, err := c.Do(ctx, words...); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Close may be called while another goroutine is in Do. Do fails then.
func (c *Conn) Close() { c.conn.Close() }

// Do sends a command and returns its answer: a string, an int64, bytes, an array of answers,
// or nil. After an error that is no Error the connection is of no use.
func (c *Conn) Do(ctx context.Context, words ...any) (any, error) {
	defer c.until(ctx)()
	var command []byte
	command = fmt.Appendf(command, "*%d\r\n", len(words))
	for _, word := range words {
		text, is := word.([]byte)
		if !is {
			text = []byte(fmt.Sprint(word))
		}
		command = fmt.Appendf(command, "$%d\r\n", len(text))
		command = append(append(command, text...), "\r\n"...)
	}
	if _, err := c.conn.Write(command); err != nil {
		return nil, err
	}
	answer, err := c.answer()
	if refused, is := answer.(Error); is {
		return nil, refused
	}
	return answer, err
}

// until ends reads and writes when the context ends. The function that it returns undoes this.
func (c *Conn) until(ctx context.Context) func() {
	deadline, _ := ctx.Deadline()
	c.conn.SetDeadline(deadline)
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			c.conn.SetDeadline(time.Unix(1, 0))
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func (c *Conn) answer() (any, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("an answer is empty")
	}
	switch line[0] {
	case '+':
		return line[1:], nil
	case '-':
		return Error(line[1:]), nil
	}
	number, err := strconv.ParseInt(line[1:], 10, 64)
	switch {
	case err != nil || line[0] != ':' && number > longest:
	case line[0] == ':':
		return number, nil
	case number < 0:
		return nil, nil
	case line[0] == '$':
		return c.bytes(int(number))
	case line[0] == '*':
		return c.array(int(number))
	}
	return nil, fmt.Errorf("an answer cannot be understood: %q", line)
}

func (c *Conn) bytes(length int) (any, error) {
	text := make([]byte, length+2)
	if _, err := io.ReadFull(c.reader, text); err != nil {
		return nil, err
	}
	return text[:length], nil
}

func (c *Conn) array(length int) (any, error) {
	var answers []any
	for i := 0; i < length; i++ {
		answer, err := c.answer()
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}
