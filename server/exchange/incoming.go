package exchange

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"
)

// Incoming returns the request's body as it arrives, for callers that store it outside memory. Up to patience may
// pass without a byte. A body that was read to its end has arrived. The caller must call done when it reads no more.
func (x *Exchange) Incoming(rc *fasthttp.RequestCtx, patience time.Duration) (body io.Reader, done func()) {
	if x.complete {
		return eof{}, func() {}
	}
	in := &incoming{x: x, from: rc.RequestBodyStream(), patience: patience}
	over := context.AfterFunc(x.Context, func() {
		x.conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // the read fails as well
	})
	return in, func() { over() }
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

type incoming struct {
	x        *Exchange
	from     io.Reader
	patience time.Duration
}

// Read implements io.Reader.
func (in *incoming) Read(p []byte) (int, error) {
	if in.x.complete {
		return 0, io.EOF
	}
	in.x.conn.SetReadDeadline(time.Now().Add(in.patience)) //nolint:errcheck // the read will fail as well
	if err := context.Cause(in.x.Context); err != nil {
		return 0, err
	}
	n, err := in.from.Read(p)
	if errors.Is(err, io.EOF) {
		in.x.arrive()
		in.x.Watch()
	}
	return n, err
}
