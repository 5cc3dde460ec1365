package actors

import (
	"context"
	"io"
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/chrome"
)

// drainEvery is how often spans are taken from their ring, which holds them for a tenth of a second at the worst.
const drainEvery = 10 * time.Millisecond

// Record writes spans as a trace for Perfetto, from now on until ctx ends or the trace has so many bytes. What the
// device is at when it begins, or ends, is cut there.
func (h *House) Record(ctx context.Context, out io.Writer, most int64) error {
	w, tap := chrome.NewWriter(out), h.system.Spans().Tap()
	origin := h.system.Spans().Origin()
	from := now().Sub(origin)
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	if err := w.Flush(); err != nil { // who waits for it sees that it has begun
		return err
	}
	var spans []trace.Span
	for done := false; !done && w.Size() < most; {
		select {
		case <-ctx.Done():
			done = true
		case <-tick.C:
		}
		spans = tap.Drain(spans[:0])
		for i := range spans {
			if s := &spans[i]; s.Kind == trace.Idle && s.At < from {
				s.At, s.Work = min(from, s.End()), max(0, s.End()-from)
			}
		}
		if err := w.Write(spans); err != nil {
			return err
		}
	}
	if err := w.Write(h.waiting(from)); err != nil {
		return err
	}
	return w.Close(origin, tap.Missed())
}

// waiting is what the device waits for now, since a time or later.
func (h *House) waiting(from time.Duration) []trace.Span {
	_, since, cause := h.idle.Total()
	if since < 0 {
		return nil
	}
	from = max(from, since)
	at := now().Sub(h.system.Spans().Origin())
	return []trace.Span{{Track: h.idle.Name(), Kind: trace.Idle, Cause: h.why(cause), Of: trace.Nothing(),
		At: from, Work: max(0, at-from)}}
}

// recorder writes a trace beside all that the house does.
type recorder struct {
	stop context.CancelFunc
	done chan error
}

// MostTraced is how large a trace of a whole run gets: some minutes of a small model, an hour of a large one.
const MostTraced = 1 << 30

func (h *House) startRecorder(out io.Writer) {
	ctx, cancel := context.WithCancel(context.Background())
	h.recorder = &recorder{cancel, make(chan error, 1)}
	go func() { h.recorder.done <- h.Record(ctx, out, MostTraced) }()
}

// end stops the recorder, if there is one, and returns why the trace is not whole.
func (r *recorder) end() error {
	if r == nil {
		return nil
	}
	r.stop()
	return <-r.done
}
