package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"
)

// Why a Context ended early.
var (
	ErrGone     = errors.New("the client has gone")
	ErrStopping = errors.New("the server is stopping")
)

// StatusGone is logged for requests whose client did not wait for the answer. It is never sent.
const StatusGone = 499

// sendBuffer bounds what the kernel holds for a client that does not read; by itself it takes megabytes.
const sendBuffer = 64 << 10

// Exchange is one request and its answer. It belongs to the handler, and from Stream on to the stream's writer.
type Exchange struct {
	ID      string
	Context context.Context // ends with ErrGone after Watch, with ErrStopping, or when the answer is complete
	Log     zerolog.Logger  // names the request

	// For the access log.
	Prompt, Generated int    // tokens
	Failed            string // what the client was told, or would have been

	end      context.CancelCauseFunc
	conn     net.Conn
	patience time.Duration // how long a client may keep one write waiting
	watch    *watch
	streams  bool
	finished func(x *Exchange, status int)
	once     sync.Once
}

// Begin takes a request up. The Context ends with base; finished is called once, when the answer has been handed over
// completely, from whichever goroutine did so.
func Begin(base context.Context, rc *fasthttp.RequestCtx, id string, patience time.Duration, log zerolog.Logger,
	finished func(x *Exchange, status int),
) *Exchange {
	x := &Exchange{ID: id, Log: log, conn: rc.Conn(), patience: patience, finished: finished}
	x.Context, x.end = context.WithCancelCause(base)
	return x
}

// Watch ends the Context as soon as the client goes away.
func (x *Exchange) Watch() {
	if x.watch == nil {
		x.watch = newWatch(x.conn, func() { x.end(ErrGone) })
	}
}

// Stream answers with events of a Content-Type, which write sends from another goroutine after the handler has
// returned. If write panics, the event broken is sent last.
func (x *Exchange) Stream(rc *fasthttp.RequestCtx, media string, broken []byte, write func(*Writer)) {
	x.streams = true
	if c, ok := x.conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		c.SetWriteBuffer(sendBuffer) //nolint:errcheck // a wish
	}
	rc.SetContentType(media)
	rc.Response.Header.Set("Cache-Control", "no-cache")
	rc.Response.Header.Set("X-Accel-Buffering", "no") // proxies hand each event on at once
	// A write that waits already, when the Context ends, must not wait for long.
	hasten := context.AfterFunc(x.Context, func() {
		x.conn.SetWriteDeadline(time.Now().Add(lastWords)) //nolint:errcheck // the write will fail as well
	})
	rc.SetBodyStreamWriter(func(buffer *bufio.Writer) {
		w := &Writer{x: x, buffer: buffer}
		defer x.close(fasthttp.StatusOK)
		defer hasten()
		defer func() {
			if p := recover(); p != nil {
				x.Panicked(p)
				w.Send(broken) //nolint:errcheck // there is nobody left to tell
			}
		}()
		write(w)
	})
}

// Answered ends an exchange whose answer is complete in the response; with a stream it does nothing.
func (x *Exchange) Answered(status int) {
	if !x.streams {
		x.close(status)
		x.conn.SetWriteDeadline(time.Now().Add(x.patience)) //nolint:errcheck // the write will fail as well
	}
}

// close must happen before fasthttp goes on with the connection: the watch reads from it.
func (x *Exchange) close(status int) {
	x.once.Do(func() {
		if x.watch != nil {
			x.watch.stop()
		}
		if errors.Is(context.Cause(x.Context), ErrGone) {
			status = StatusGone
		}
		x.end(context.Canceled)
		x.finished(x, status)
	})
}

// Panicked logs a panic that was recovered while this request was served.
func (x *Exchange) Panicked(reason any) {
	x.Log.Error().Str("panic", fmt.Sprint(reason)).Str("stack", string(debug.Stack())).Msg("a request made us panic")
}

// Writer sends events. Several goroutines may use it at once.
type Writer struct {
	x      *Exchange
	mu     sync.Mutex
	buffer *bufio.Writer
}

// lastWords is how long a client may take for what is sent after its Context has ended.
const lastWords = time.Second

// Send writes one or more whole events and hands them to the network. A client that accepts nothing for too long,
// or has gone, ends the Context.
func (w *Writer) Send(events []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	patience := w.x.patience
	if w.x.Context.Err() != nil {
		patience = min(patience, lastWords)
	}
	w.x.conn.SetWriteDeadline(time.Now().Add(patience)) //nolint:errcheck // the write will fail as well
	w.buffer.Write(events)                              //nolint:errcheck // Flush returns the same error
	if err := w.buffer.Flush(); err != nil {
		w.x.end(ErrGone)
		return ErrGone
	}
	return nil
}
