// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// State is the state of a token.
type State uint32

// The states.
const (
	// None: the wheel has no such token.
	None State = uapi.StateNone
	// Pending: it waits for its deadline, or for a reader.
	Pending State = uapi.StatePending
	// Taken: a reader is copying it; only in a listing, for a moment.
	Taken State = uapi.StateTaken
	// Held: a delivery of it is out.
	Held State = uapi.StateHeld
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case None:
		return "none"
	case Pending:
		return "pending"
	case Taken:
		return "taken"
	case Held:
		return "held"
	}
	return "state " + strconv.Itoa(int(s))
}

// Token has all that a wheel tells of a token.
type Token struct {
	// ID of the token, 0 on a wheel without ids.
	ID uint64
	// Handle of the token.
	Handle Handle
	// Cookie as registered, 0 on a wheel without cookies.
	Cookie uint64
	// Deadline of a pending token, a whole tick; else 0.
	Deadline Time
	// LeaseEnd is when the lease of a held token ends; else 0.
	LeaseEnd Time
	// Left is the time until Deadline or LeaseEnd, 0 if that has passed.
	Left time.Duration
	// Timeout is the time from a touch to the deadline, 0 if there is no touch.
	Timeout time.Duration
	// Period is the time between the deadlines of a periodic token; else 0.
	Period time.Duration
	// Base is the deadline, to the nanosecond, of a periodic token's next event, or of
	// its delivery that is out; else 0.
	Base Time
	// Cycle is the Cycle-Num: the laps that the hand makes before the lap in which the
	// token is due.
	Cycle uint64
	// Slot of the ring on which the token will be due.
	Slot uint32
	// State is pending, taken or held.
	State State
	// Delivery is the number of the last delivery, 0 if there was none.
	Delivery uint32
	// Attempts are the deliveries since the token was registered, or since its period
	// began.
	Attempts uint32
}

// Receipt names the delivery of a held token, to answer it.
func (t *Token) Receipt() Receipt {
	return Receipt{Handle: t.Handle, Delivery: t.Delivery}
}

const tokenSize = uint32(unsafe.Sizeof(uapi.Token{}))

func tokenOf(t *uapi.Token) Token {
	return Token{
		ID:       t.Id,
		Handle:   Handle(t.Handle),
		Cookie:   t.Cookie,
		Deadline: Time(t.Deadline),
		LeaseEnd: Time(t.LeaseEnd),
		Left:     time.Duration(t.Left),
		Timeout:  time.Duration(t.Timeout),
		Period:   time.Duration(t.Period),
		Base:     Time(t.Base),
		Cycle:    t.Cycle,
		Slot:     t.Slot,
		State:    State(t.State),
		Delivery: t.Delivery,
		Attempts: t.Attempts,
	}
}

// Get tells about a token, whether it is pending or held.
//
// Errors: ENOENT no token has this id; ESTALE none has this handle; EINVAL the wheel has
// no ids.
func (w *Wheel) Get(key Key) (Token, error) {
	which, missing := key.id, syscall.ENOENT
	if key.flags != 0 {
		which, missing = uint64(key.handle), syscall.ESTALE
	}
	tokens, err := w.get(unsafe.Pointer(&which), 1, key.flags)
	if err != nil {
		return Token{}, err
	}
	if tokens[0].State == None {
		return Token{}, &Error{"get", missing}
	}
	return tokens[0], nil
}

// GetIDs tells about many tokens, in the order of the ids. For an id that names no token the
// State is None and all else 0.
//
// Errors: EINVAL the wheel has no ids.
func (w *Wheel) GetIDs(ids []uint64) ([]Token, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return w.get(unsafe.Pointer(&ids[0]), len(ids), 0)
}

// GetHandles tells about many tokens by handles, as GetIDs does by ids.
func (w *Wheel) GetHandles(handles []Handle) ([]Token, error) {
	if len(handles) == 0 {
		return nil, nil
	}
	return w.get(unsafe.Pointer(&handles[0]), len(handles), uapi.OpfByHandle)
}

// get takes keys of 8 bytes each.
func (w *Wheel) get(keys unsafe.Pointer, count int, flags uint32) ([]Token, error) {
	found := make([]Token, 0, count)
	told := make([]uapi.Token, atMost(count))
	for len(found) < count {
		get := uapi.Get{
			Size:      uint32(unsafe.Sizeof(uapi.Get{})),
			Flags:     flags,
			Keys:      address(unsafe.Add(keys, 8*len(found))),
			Tokens:    address(unsafe.Pointer(&told[0])),
			Count:     atMost(count - len(found)),
			TokenSize: tokenSize,
		}
		_, err := w.ioctl("get", uapi.IocGet, unsafe.Pointer(&get))
		runtime.KeepAlive(keys)
		if err != nil {
			return nil, err
		}
		for i := range told[:get.Done] {
			found = append(found, tokenOf(&told[i]))
		}
	}
	return found, nil
}

// Cursor walks through the tokens of a wheel:
//
//	cursor := wheel.Tokens(0, timewheel.Never)
//	for cursor.Next() {
//		token := cursor.Token()
//		...
//	}
//	err := cursor.Err()
//
// A token that is there throughout comes exactly once, whatever is done to the wheel
// meanwhile; one that comes or goes meanwhile at most once. One goroutine at a time may
// use a cursor.
type Cursor struct {
	wheel *Wheel
	list  uapi.List
	told  []uapi.Token
	token Token
	err   error
}

// Tokens begins a walk, in no order of time, through the tokens whose deadline or lease's
// end is from or later, and to or earlier.
func (w *Wheel) Tokens(from, to Time) *Cursor {
	return &Cursor{wheel: w, list: uapi.List{
		Size:      uint32(unsafe.Sizeof(uapi.List{})),
		From:      uint64(from),
		To:        uint64(to),
		TokenSize: tokenSize,
	}}
}

// Next goes on to the next token. It returns false at the end, and when a call fails,
// which Err tells.
func (c *Cursor) Next() bool {
	for len(c.told) == 0 {
		if c.err != nil || c.list.Cursor == uapi.Never {
			return false
		}
		c.read()
	}
	c.token = tokenOf(&c.told[0])
	c.told = c.told[1:]
	return true
}

// read gets the next tokens. It may get none although the walk is not at its end.
func (c *Cursor) read() {
	tokens := make([]uapi.Token, 256)
	c.list.Tokens = address(unsafe.Pointer(&tokens[0]))
	c.list.Count = uint32(len(tokens))
	_, c.err = c.wheel.ioctl("list", uapi.IocList, unsafe.Pointer(&c.list))
	if c.err == nil {
		c.told = tokens[:c.list.Listed]
	}
	runtime.KeepAlive(tokens)
}

// Token returns the token to which Next has gone.
func (c *Cursor) Token() Token {
	return c.token
}

// Err returns the error that has ended the walk, or nil.
//
// Errors: EBADF; ENODEV; os.ErrClosed.
func (c *Cursor) Err() error {
	return c.err
}
