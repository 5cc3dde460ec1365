package exchange

import (
	"context"
	"io"
	"sync"

	"github.com/valyala/fasthttp"
)

// Sized answers with a body of so many bytes, which write sends after the handler has returned, on the goroutine of the
// connection: without the chunks of Stream, for bodies that are as fast as the network. If write fails, the connection
// is closed. ended is called in the end, also if write was not.
func (x *Exchange) Sized(rc *fasthttp.RequestCtx, media string, bytes int, write func(*Writer) error, ended func()) {
	x.streams = true
	rc.SetContentType(media)
	rc.SetBodyStream(&sized{x: x, write: write, ended: ended}, bytes)
}

// sized is a body that writes itself.
type sized struct {
	x     *Exchange
	write func(*Writer) error
	ended func()
	once  sync.Once
}

// Read implements io.Reader: nobody calls it.
func (*sized) Read([]byte) (int, error) { return 0, ErrBroken }

// WriteTo implements io.WriterTo.
func (s *sized) WriteTo(to io.Writer) (n int64, err error) {
	hasten := context.AfterFunc(s.x.Context, func() { s.x.allow(lastWords) })
	defer hasten()
	defer func() {
		if p := recover(); p != nil {
			s.x.Panicked(p)
			err = ErrBroken
		}
	}()
	count := &counted{to: to}
	w := &Writer{x: s.x, to: count}
	w.breakOff = func() { w.to = nowhere{} }
	err = s.write(w)
	return count.bytes, err
}

// Close implements io.Closer: the answer has ended.
func (s *sized) Close() error {
	s.once.Do(func() {
		s.ended()
		s.x.close(fasthttp.StatusOK)
	})
	return nil
}

// counted counts what is written.
type counted struct {
	to    io.Writer
	bytes int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.bytes += int64(n)
	return n, err
}
