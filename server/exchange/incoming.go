package exchange

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"
)

// leastIncoming is how many bytes of a body must arrive in the time of patience: who sends a byte from time to time
// would hold what is kept for the body for ever.
const leastIncoming = 256 << 10

// Incoming returns the request's body as it arrives, for callers that store it outside memory. leastIncoming must
// arrive within patience, again and again. A body that was read to its end has arrived. The caller must call done when
// it reads no more.
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
	until    time.Time // when leastIncoming must have come
	come     int       // bytes of these
}

// Read implements io.Reader.
func (in *incoming) Read(p []byte) (int, error) {
	if in.x.complete {
		return 0, io.EOF
	}
	if in.until.IsZero() || in.come >= leastIncoming {
		in.until, in.come = time.Now().Add(in.patience), 0
	}
	in.x.conn.SetReadDeadline(in.until) //nolint:errcheck // the read will fail as well
	if err := context.Cause(in.x.Context); err != nil {
		return 0, err
	}
	n, err := in.from.Read(p)
	in.come += n
	if errors.Is(err, io.EOF) {
		in.x.arrive()
		in.x.Watch()
	}
	return n, err
}
