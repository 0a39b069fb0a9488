// SPDX-License-Identifier: GPL-2.0-only

// What the package makes of the structures and numbers of kernel and TCP; needs no device.
package timewheel

import (
	"math"
	"net"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// The kernel writes struct timewheel_event at the places where Go reads Event.
func TestEventHasTheLayoutOfTheHeader(t *testing.T) {
	ours, header := reflect.TypeOf(Event{}), reflect.TypeOf(uapi.Event{})
	same(t, [2]int{int(ours.Size()), ours.NumField()}, [2]int{int(header.Size()), header.NumField()})
	for i := 0; i < ours.NumField(); i++ {
		a, b := ours.Field(i), header.Field(i)
		if a.Offset != b.Offset || a.Type.Kind() != b.Type.Kind() ||
			a.Name != "_" && !strings.EqualFold(a.Name, b.Name) {
			t.Error(a, b)
		}
	}
}

// kept checks that each number of a structure of the kernel's becomes the field of the same
// name. Other fields of the result are returned.
func kept[From, To any](t *testing.T, convert func(*From) To) (others string) {
	t.Helper()
	var from From
	numbers := reflect.ValueOf(&from).Elem()
	for i := 0; i < numbers.NumField(); i++ {
		field := numbers.Field(i)
		field.Set(reflect.ValueOf(1000 + i).Convert(field.Type()))
	}
	told := reflect.ValueOf(convert(&from))
	for i := 0; i < told.NumField(); i++ {
		name := told.Type().Field(i).Name
		number := numbers.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
		if !number.IsValid() {
			others += name + " "
		} else if number.Convert(told.Field(i).Type()).Interface() != told.Field(i).Interface() {
			t.Errorf("%s is %v", name, told.Field(i))
		}
	}
	return others
}

func TestEachNumberBecomesTheFieldOfItsName(t *testing.T) {
	same(t, kept(t, tokenOf), "")
	same(t, kept(t, infoOf), "Setup Paused Draining ")
	same(t, kept(t, setupOf), "NoIDs NoCookies TouchWords Periods Start ")
}

// The words for an error are those of tw_strerror(3), if it has some.
func TestNamesAndTexts(t *testing.T) {
	var names []string
	for i := 0; i < 5; i++ {
		names = append(names, Clock(i).String(), State(i).String())
	}
	same(t, strings.Join(names, " "), "monotonic none boottime pending realtime taken "+
		"manual held clock 4 state 4")
	same(t, (&Error{"read", syscall.ENOMEM}).Error(), "timewheel: read: there is not enough memory")
	same(t, (&Error{"read", syscall.EPIPE}).Error(), "timewheel: read: broken pipe")
}

func TestTimes(t *testing.T) {
	when := time.Date(2026, 12, 24, 15, 22, 35, 7, time.UTC)
	same(t, Wall(when).Wall().UTC(), when)
	same(t, []Time{Wall(time.Unix(1, 2)), Time(5).Add(-2)}, []Time{sec + 2, 3})
	same(t, Time(3).Sub(5), -2)
}

// Buckets follow each other from 0 to the greatest number.
func TestHistogram(t *testing.T) {
	var h Histogram
	refused(h.Percentile(50))(t, syscall.ENODATA)
	next := uint64(0)
	for bucket := range h {
		low, high := h.Bounds(bucket)
		if low != next || high < low {
			t.Fatal(bucket, low, high)
		}
		next = high + 1
	}
	same(t, next, 0)
	h[1], h[3], h[8], h[uapi.Buckets-1] = 97, 1, 1, 1
	for percent, want := range map[float64]time.Duration{0: 1, 50: 1, 97: 1, 97.1: 3, 98: 3,
		99: 9, 100: math.MaxInt64} {
		same(t, must(h.Percentile(percent))(t), want)
	}
	for _, percent := range []float64{-1, 101, math.NaN()} {
		refused(h.Percentile(percent))(t, syscall.EINVAL)
	}
}

func TestTCPIdle(t *testing.T) {
	const mptcp = 262
	listener := must(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer listener.Close()
	client := must(net.Dial("tcp4", listener.Addr().String()))(t)
	defer client.Close()
	server := must(listener.Accept())(t).(*net.TCPConn)
	room, idle, from := make([]byte, 1), time.Duration(0), time.Now()
	must(client.Write(room))(t)
	must(server.Read(room))(t)
	for idle < 50*time.Millisecond && time.Since(from) < 10*time.Second {
		time.Sleep(10 * time.Millisecond)
		idle = must(TCPIdle(server))(t)
	}
	// What the server sends, and what confirms it, does not count.
	must(server.Write(room))(t)
	must(client.Read(room))(t)
	now := must(TCPIdle(server))(t)
	if idle < 50*time.Millisecond || now < idle || now > time.Since(from)+time.Second {
		t.Fatal(idle, now, time.Since(from))
	}
	server.Close()
	refused(TCPIdle(server))(t, net.ErrClosed)
	refused(TCPIdle(listener.(*net.TCPListener)))(t, syscall.ENOTCONN)
	packets := must(net.ListenPacket("udp4", "127.0.0.1:0"))(t)
	defer packets.Close()
	refused(TCPIdle(packets.(*net.UDPConn)))(t, syscall.EPROTONOSUPPORT)
	for protocol, want := range map[int]error{syscall.IPPROTO_TCP: syscall.ENOTCONN,
		mptcp: syscall.EPROTONOSUPPORT} {
		// A kernel may have no MPTCP.
		if fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, protocol); err == nil {
			refused(TCPIdle(os.NewFile(uintptr(fd), "socket")))(t, want)
		}
	}
}
