// SPDX-License-Identifier: GPL-2.0-only

// Redigo, and the go-redis that Debian has: go CLIENT ADDRESS. See check.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/gomodule/redigo/redis"
	goredis "gopkg.in/redis.v5"
)

type words []interface{}

type client interface {
	send(command words) (interface{}, error)
	transaction(commands []words) (interface{}, error)
}

type redigo struct{ redis.Conn }

func (c redigo) send(command words) (interface{}, error) {
	return c.Do(command[0].(string), command[1:]...)
}

func (c redigo) transaction(commands []words) (interface{}, error) {
	c.Send("MULTI")
	for _, command := range commands {
		c.Send(command[0].(string), command[1:]...)
	}
	return c.Do("EXEC")
}

type goRedis struct{ *goredis.Client }

func result(cmd goredis.Cmder) (interface{}, error) {
	answer, err := cmd.(*goredis.Cmd).Result()
	if err == goredis.Nil {
		return nil, nil
	}
	return answer, err
}

func (c goRedis) send(command words) (interface{}, error) {
	cmd := goredis.NewCmd(command...)
	c.Process(cmd)
	return result(cmd)
}

func (c goRedis) transaction(commands []words) (interface{}, error) {
	cmds, err := c.TxPipelined(func(pipe *goredis.Pipeline) error {
		for _, command := range commands {
			pipe.Process(goredis.NewCmd(command...))
		}
		return nil
	})
	if err != nil && err != goredis.Nil {
		return nil, err
	}
	answers := []interface{}{}
	for _, cmd := range cmds {
		answer, err := result(cmd)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

func text(answer interface{}) string {
	switch a := answer.(type) {
	case nil:
		return "nil"
	case []byte:
		return string(a)
	case []interface{}:
		parts := []string{}
		for _, one := range a {
			parts = append(parts, text(one))
		}
		return "[" + strings.Join(parts, "|") + "]"
	}
	return fmt.Sprint(answer)
}

func connect(name, where string) client {
	network, password := "unix", ""
	if where[0] != '/' {
		network, where, password = "tcp", "127.0.0.1:"+where, "secret"
	}
	if name == "go-redis" {
		return goRedis{goredis.NewClient(&goredis.Options{
			Network: network, Addr: where, Password: password})}
	}
	conn, err := redis.Dial(network, where, redis.DialPassword(password))
	if err != nil {
		panic(err)
	}
	return redigo{conn}
}

func main() {
	client := connect(os.Args[1], os.Args[2])
	var gathered []words

	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var answer interface{}
		var err error
		var command words

		for _, word := range strings.Fields(lines.Text()) {
			command = append(command, word)
		}
		switch {
		case lines.Text() == "MULTI":
			gathered = []words{}
			continue
		case lines.Text() == "EXEC":
			answer, err = client.transaction(gathered)
			gathered = nil
		case gathered != nil:
			gathered = append(gathered, command)
			continue
		default:
			answer, err = client.send(command)
		}
		said := text(answer)
		if err != nil {
			said = "!" + err.Error()
		}
		fmt.Println(strings.ReplaceAll(said, "\n", " "))
	}
}
