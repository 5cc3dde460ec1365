package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// stalled is how long a member may send nothing of what it lends, until that is given up.
const stalled = 5 * time.Second

// watched is the body of an answer of which a byte has to come from time to time. It is asked for with ctx, and read
// once body is set.
type watched struct {
	body   io.ReadCloser // nil: the answer has not begun
	ctx    context.Context
	cancel context.CancelCauseFunc
	slow   *time.Timer
}

// watch begins to wait for an answer. Who does calls Close at the end, in any case.
func watch(ctx context.Context) *watched {
	w := &watched{}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.slow = time.AfterFunc(stalled, func() { w.cancel(fmt.Errorf("nothing came from it for %v", stalled)) })
	return w
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.body.Read(b)
	w.slow.Reset(stalled)
	if err != nil && !errors.Is(err, io.EOF) {
		err = cause(w.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (w *watched) Close() error {
	w.slow.Stop()
	w.cancel(io.ErrClosedPipe)
	if w.body != nil {
		return w.body.Close()
	}
	return nil
}

// cause prefers why a context ended to the error that followed from it.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}
