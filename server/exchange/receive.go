package exchange

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/quota"
	"github.com/sluice-ai/sluice/server/wire"
)

// Intake bounds the memory of all requests together, in bytes, until their prompts are made.
type Intake struct {
	receiving, making *quota.Pool
	turns             *quota.Pool   // see Turn
	pictures          *quota.Pool   // see Decode
	received, made    int64         // sizes of the pools
	most              int           // bytes of a body
	wait              time.Duration // how long a request may wait for its share

	tidying atomic.Bool // a check is scheduled, which alone uses the next two fields
	tidied  uint64      // bytes of the heap after memory was last given back
	rests   time.Time   // no memory is given back before this time
}

// costs is the number of bytes that a request is charged for each byte of its body until its prompt is made: for the
// body itself, its texts, the prompt as text and as tokens, and garbage.
const costs = 8

const (
	handful  = 256 << 10       // bytes of a body that are read before there is room for all of it
	smallest = 64 << 10        // bytes that any request is charged at least
	stalls   = 2 * time.Second // how long nothing may arrive while others wait to be received
)

// NewIntake bounds the memory of all requests to size bytes and a body to body bytes; a request waits at most wait
// for its share. A part of size is reserved for bodies that arrive, so that a body that has arrived can always become
// a prompt.
func NewIntake(size int64, body int, wait time.Duration) *Intake {
	received := size * 3 / 8
	return &Intake{
		receiving: quota.NewPool(received, math.MaxInt), making: quota.NewPool(size-received, math.MaxInt),
		turns:    quota.NewPool(turns()*turnBytes, math.MaxInt),
		pictures: quota.NewPool(pictureBytes, math.MaxInt),
		received: received, made: size - received, most: body, wait: wait,
	}
}

// Used returns the bytes that requests are charged at the moment.
func (in *Intake) Used() int64 {
	return in.receiving.Used() + in.making.Used() + in.turns.Used() + in.pictures.Used()
}

// Turns returns the number of requests that have a turn at the moment.
func (in *Intake) Turns() int64 { return in.turns.Used() / turnBytes }

// Waiting returns the number of requests that wait for a turn.
func (in *Intake) Waiting() int { return in.turns.Waiting() }

// cost is the memory that a request was charged, in bytes.
type cost struct{ receiving, making int64 }

// Arrive reads the body, unless that is done. The exchange is charged for it until Release.
func (x *Exchange) Arrive(rc *fasthttp.RequestCtx, in *Intake, patience time.Duration) (string, *wire.Fault) {
	length := rc.Request.Header.ContentLength()
	x.intake = in
	if length > in.most {
		return "", in.tooLarge()
	}
	if !x.complete {
		body, fault := x.read(rc.RequestBodyStream(), length, patience)
		if fault != nil {
			return "", fault
		}
		x.arrive()
		if x.given == nil {
			x.given = &body
		}
	}
	if x.given == nil {
		return "", nil
	}
	return *x.given, nil
}

// Receive reads the body, and waits until its prompt may be made. The exchange is charged for it until Release.
func (x *Exchange) Receive(rc *fasthttp.RequestCtx, in *Intake, patience time.Duration) (string, *wire.Fault) {
	body, fault := x.Arrive(rc, in, patience)
	if fault != nil || x.given == nil {
		return "", fault
	}
	x.body, x.Text = len(body), body
	x.Watch()
	making, most := max(smallest, (costs-1)*int64(len(body))), in.made
	if making > in.made/64 {
		most = in.made * 7 / 8 // the rest is reserved for small requests
	}
	fault = x.pay(cost{making: making}, most)
	x.making = time.Now()
	return body, fault
}

// read reads a body of length bytes, or up to its end if length is negative. The first 256 KiB are read at once;
// before the rest is read there must be memory for all of it, so that no request waits in the middle.
func (x *Exchange) read(from io.Reader, length int, patience time.Duration) (string, *wire.Fault) {
	in := x.intake
	first, all, most := int64(handful), int64(in.most), in.received/3
	if length >= 0 {
		if all = int64(length); all <= handful {
			first, most = all, in.received
		}
	}
	if fault := x.pay(cost{receiving: first}, most); fault != nil {
		return "", fault
	}
	var body strings.Builder
	body.Grow(min(max(length, 0), int(first))) // and no more: what is claimed and never sent delays the garbage collector
	deadline := time.Now().Add(patience)
	for buffer := make([]byte, 32<<10); ; {
		n, err := x.arriving(from, buffer, deadline)
		if body.Len()+n > in.most {
			return "", in.tooLarge()
		}
		if int64(body.Len()+n) > x.paid.receiving {
			began := time.Now()
			if fault := x.pay(cost{receiving: all - first}, in.received*2/3); fault != nil {
				return "", fault
			}
			deadline = deadline.Add(time.Since(began))
			body.Grow(max(length-body.Len(), 0))
		}
		body.Write(buffer[:n])
		switch {
		case err == io.EOF: //nolint:errorlint // fasthttp returns it as it is
			return body.String(), nil
		case err != nil:
			return "", x.unreadable(err, patience)
		}
	}
}

// arriving reads from the client until the deadline. A client that sends nothing has less time while others wait.
func (x *Exchange) arriving(from io.Reader, buffer []byte, deadline time.Time) (n int, err error) {
	for {
		until := time.Now().Add(stalls)
		last := !until.Before(deadline)
		if last {
			until = deadline
		}
		x.conn.SetReadDeadline(until) //nolint:errcheck // the read will fail as well
		n, err = from.Read(buffer)
		var network net.Error
		if last || !errors.As(err, &network) || !network.Timeout() || x.intake.receiving.Wanted() {
			return n, err
		}
	}
}

// pay waits until the exchange may be charged c. At most `most` units of the pool are in use then, by all exchanges.
func (x *Exchange) pay(c cost, most int64) *wire.Fault {
	pool, units := x.intake.receiving, c.receiving
	if c.making > 0 {
		pool, units = x.intake.making, c.making
	}
	ctx, cancel := context.WithTimeoutCause(x.Context, x.intake.wait, ErrCrowded)
	defer cancel()
	if err := pool.Take(ctx, x.Client, units, most); err != nil {
		switch {
		case errors.Is(err, ErrCrowded):
			return wire.Unavailable("overloaded", "%v", err)
		case errors.Is(err, ErrStopping):
			return wire.Stopping()
		}
		return wire.Gone()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.paid.receiving += c.receiving
	x.paid.making += c.making
	return nil
}

// Release ends the charge for the request: its prompt is made.
func (x *Exchange) Release() {
	x.mu.Lock()
	paid, took := x.paid, time.Since(x.making)-x.waited
	x.paid, x.Text, x.given = cost{}, "", nil
	x.mu.Unlock()
	if paid.receiving > 0 {
		x.intake.receiving.Give(x.Client, paid.receiving)
	}
	give := func() { x.intake.making.Give(x.Client, paid.making) }
	switch {
	case paid.making >= large && x.Context.Err() == nil:
		time.AfterFunc(rests*took, give)
	case paid.making > 0:
		give()
	}
	if x.intake != nil {
		x.intake.tidy()
	}
}

// large is the charge above which a request is followed by a rest, in bytes.
const large = 8 << 20

// rests is the length of that rest as a multiple of the time that the prompt took. It leaves the processors to
// answers.
const rests = 2

func (in *Intake) tooLarge() *wire.Fault {
	return wire.Refused(fasthttp.StatusRequestEntityTooLarge, "body_too_large",
		"the body has more than %d bytes, which is the most that is read: send less", in.most)
}

// unreadable returns the fault of a body that did not arrive.
func (x *Exchange) unreadable(err error, patience time.Duration) *wire.Fault {
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return wire.Refused(fasthttp.StatusRequestTimeout, "timeout",
			"the request was not complete after %v: send it faster", patience.Round(time.Millisecond))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.As(err, &network):
		return wire.Gone()
	}
	return wire.Invalid("", "invalid_http", "the body is not framed as HTTP has it: %v", err)
}
