package exchange

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/bill"
)

// Causes for which a Context ends early.
var (
	ErrGone     = errors.New("the client has gone")
	ErrStopping = errors.New("the server is stopping")
	ErrUnread   = errors.New("the client does not read its answer, and others wait for its place")
	ErrTaken    = errors.New("another connection goes on with the answer")
	ErrBroken   = errors.New("the answer was broken off")
)

// StatusGone is logged for requests whose client did not wait for the answer. It is never sent to a client.
const StatusGone = wire.StatusGone

// Exchange is one request and its answer. It belongs to the handler, and from Stream on to the stream's writer.
// Wide: one lock guards what handler, writer and watcher of a request share.
type Exchange struct {
	ID      string
	Client  string          // name, by key or address, under which the request's share of resources is counted
	Salt    uint64          // only prompts of the same salt share the prefix cache
	Carried bool            // a stream's records go with its events: another member may go on with it
	Context context.Context // ends if the client goes (after Watch), for another of the causes above, or with the answer
	At      time.Time       // when it came; of a request that is served again, when that came first
	Text    string          // the body, from Receive to Release
	Log     zerolog.Logger  // names the request

	// For the access log.
	Prompt, Generated int    // tokens
	Failed            string // text of the fault that the client was told, or would have been

	end      context.CancelCauseFunc
	conn     net.Conn
	patience time.Duration // how long a client may keep one write waiting
	watch    *watch
	streams  bool
	complete bool // the request has arrived completely

	arrived, ended func()   // set by Hold
	kept           []func() // set by Keep

	pace pace // how fast the client reads

	mu     sync.Mutex
	spent  bill.Bill // what the time went to before the engine had the request
	intake *Intake
	paid   cost          // what the request is charged by intake
	body   int           // bytes of the request's body
	given  *string       // a body to be used in place of the one that comes
	making time.Time     // when the making of the prompt began
	waited time.Duration // time that was spent waiting for turns

	finished func(x *Exchange, status int)
	once     sync.Once
}

// Keyed begins the names of clients that sent a key.
const Keyed = "key "

// Owner is whose what the request leaves behind is: the client's name if it sent a key; "": anybody's who sends none.
func (x *Exchange) Owner() string {
	if strings.HasPrefix(x.Client, Keyed) {
		return x.Client
	}
	return ""
}

// Begin starts an exchange. Its Context ends with base. finished is called once, on any goroutine, when the answer
// has been handed over completely.
func Begin(base context.Context, rc *fasthttp.RequestCtx, id string, patience time.Duration, log zerolog.Logger,
	finished func(x *Exchange, status int),
) *Exchange {
	x := &Exchange{ID: id, At: time.Now(), Log: log, conn: rc.Conn(), patience: patience, finished: finished}
	x.spent = bill.Begin(x.At)
	x.complete = rc.Request.Header.ContentLength() == 0 || rc.RequestBodyStream() == nil
	x.Context, x.end = context.WithCancelCause(base)
	return x
}

// Hold sets functions to be called: arrived when the request has arrived completely, ended when it has been answered
// after that.
func (x *Exchange) Hold(arrived, ended func()) {
	x.arrived, x.ended = arrived, ended
	if x.complete {
		arrived()
	}
}

// Again replaces the exchange's id, body and time by those of an earlier request, which is served instead. The body
// that came is read, and then dropped.
func (x *Exchange) Again(id, body string, at time.Time) { x.ID, x.given, x.At = id, &body, at }

// Spend notes what the exchange's time went to up to now.
func (x *Exchange) Spend(c bill.Cause) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.spent.Until(time.Now(), c)
}

// Spent is what the exchange's time went to so far.
func (x *Exchange) Spent() bill.Bill {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.spent
}

// Keep has give called when the answer is complete and its resources are no longer needed.
func (x *Exchange) Keep(give func()) { x.kept = append(x.kept, give) }

// arrive records that the request has arrived completely.
func (x *Exchange) arrive() {
	if x.complete = true; x.arrived != nil {
		x.arrived()
	}
}

// Complete reports whether the request was read completely, so that the next bytes begin another request.
func (x *Exchange) Complete() bool { return x.complete }

// Await waits until ready closes, as long as the client stays. Bytes that have not been read stay in the connection.
func (x *Exchange) Await(ready <-chan struct{}) *wire.Fault {
	select {
	case <-ready:
		return nil
	default:
	}
	w := newWatch(x.conn, func() { x.end(ErrGone) })
	defer w.stop()
	select {
	case <-ready:
		return nil
	case <-x.Context.Done():
	}
	if errors.Is(context.Cause(x.Context), ErrStopping) {
		return wire.Stopping()
	}
	return wire.Gone()
}

// Watch ends the Context as soon as the client goes away.
func (x *Exchange) Watch() {
	if x.watch == nil {
		x.watch = newWatch(x.conn, func() { x.end(ErrGone) })
	}
}

// Unread reports whether the client reads its answer too slowly.
func (x *Exchange) Unread() bool { return x.pace.unread(time.Now()) }

// GiveUp ends the Context, because the answer is not read.
func (x *Exchange) GiveUp() { x.end(ErrUnread) }

// Take ends the Context, because another connection goes on with the answer.
func (x *Exchange) Take() { x.end(ErrTaken) }

// Answered ends an exchange whose answer is complete in the response. It does nothing for a stream.
func (x *Exchange) Answered(status int) {
	if !x.streams {
		x.close(status)
		x.allow(x.patience)
	}
}

// allow sets the deadline of writes to patience from now.
func (x *Exchange) allow(patience time.Duration) {
	x.conn.SetWriteDeadline(time.Now().Add(patience)) //nolint:errcheck // the write will fail as well
}

// close ends the exchange. It must be called before fasthttp goes on with the connection, since the watch reads from
// it.
func (x *Exchange) close(status int) {
	x.once.Do(func() {
		if x.watch != nil {
			x.watch.stop()
		}
		switch cause := context.Cause(x.Context); {
		case errors.Is(cause, ErrUnread):
			x.Log.Warn().Err(cause).Msg("an answer gave its place up")
			status = StatusGone
		case errors.Is(cause, ErrGone):
			status = StatusGone
		}
		x.end(context.Canceled)
		x.Release()
		for _, give := range x.kept {
			give()
		}
		if x.complete && x.ended != nil {
			x.ended()
		}
		x.finished(x, status)
	})
}

// Panicked logs a panic that was recovered while this request was served.
func (x *Exchange) Panicked(reason any) {
	x.Log.Error().Str("panic", fmt.Sprint(reason)).Str("stack", string(debug.Stack())).Msg("a request made us panic")
}
