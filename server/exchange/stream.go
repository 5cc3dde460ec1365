package exchange

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// sendBuffer bounds how many bytes of an answer the kernel buffers for a client that does not read; its default is
// megabytes.
const sendBuffer = 64 << 10

// Stream answers with events of a Content-Type, which write sends on another goroutine after the handler has
// returned. If write panics, the event broken is sent last; if broken is empty, the connection is closed.
func (x *Exchange) Stream(rc *fasthttp.RequestCtx, media string, broken []byte, write func(*Writer)) {
	x.streams = true
	if c, ok := x.conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		c.SetWriteBuffer(sendBuffer) //nolint:errcheck // the answer is sent with any buffer
	}
	rc.SetContentType(media)
	rc.Response.Header.Set("Cache-Control", "no-cache")
	rc.Response.Header.Set("X-Accel-Buffering", "no") // proxies hand each event on at once
	// When the Context ends, a write that is waiting already gets a short deadline too.
	hasten := context.AfterFunc(x.Context, func() { x.allow(lastWords) })
	send := func(w *Writer) {
		defer x.close(fasthttp.StatusOK)
		defer hasten()
		defer func() {
			if p := recover(); p != nil {
				x.Panicked(p)
				if broken == nil {
					w.BreakOff()
					return
				}
				w.Send(broken) //nolint:errcheck // there is nobody left to tell
			}
		}()
		write(w)
	}
	if rc.Request.Header.IsHTTP11() {
		from, to := io.Pipe()
		rc.SetBodyStream(from, -1)
		go func() {
			send(&Writer{x: x, to: to, breakOff: func() { _ = to.CloseWithError(ErrBroken) }}) // never fails
			_ = to.Close()                                                                     // never fails
		}()
		return
	}
	// HTTP/1.0 knows no chunks, and fasthttp no other streams: the connection ends with the answer.
	rc.Response.Header.SetContentLength(-2)
	rc.Response.Header.SetConnectionClose()
	head := bytes.Clone(rc.Response.Header.Header())
	rc.HijackSetNoResponse(true)
	rc.Hijack(func(c net.Conn) {
		w := &Writer{x: x, to: c}
		w.breakOff = func() { w.to = nowhere{} }
		_ = w.Send(head) // a later write returns the same error
		send(w)
	})
}

// nowhere is the connection of an answer that was broken off.
type nowhere struct{}

func (nowhere) Write([]byte) (int, error) { return 0, ErrBroken }

// Writer sends events to the client. It is safe for concurrent use.
type Writer struct {
	x        *Exchange
	mu       sync.Mutex
	to       io.Writer
	breakOff func()
}

// BreakOff closes the connection after what was sent: nobody takes the answer for complete.
func (w *Writer) BreakOff() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breakOff()
}

// lastWords bounds the time a client may take for what is sent after its Context has ended.
const lastWords = time.Second

// Send writes one or more whole events. A client that accepts nothing for too long, or has gone,
// ends the Context; its cause is returned.
func (w *Writer) Send(events []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	patience := w.x.patience
	if w.x.Context.Err() != nil {
		patience = min(patience, lastWords)
	}
	w.x.allow(patience)
	w.x.pace.begin(time.Now())
	_, err := w.to.Write(events)
	w.x.pace.end(time.Now(), len(events))
	if err != nil {
		w.x.end(ErrGone)
		return ErrGone
	}
	return nil
}
