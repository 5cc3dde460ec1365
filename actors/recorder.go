package actors

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/chrome"
	"github.com/sluice-ai/sluice/internal/trace/stall"
)

// drainEvery is how often spans are taken from their ring, which has room for a tenth of a second's spans at the
// worst.
const drainEvery = 10 * time.Millisecond

// watch sums up what the device's time went to, for Perfetto traces and statistics.
type watch struct {
	spans *trace.Ring
	idle  *trace.Wait // the device's waits

	mu     sync.Mutex
	models []*stats // of models whose schedulers note what they lack

	told struct { // what time returned last
		sync.Mutex
		stall.Time
	}
}

func (w *watch) add(s *stats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.models = append(w.models, s)
}

func (w *watch) drop(s *stats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.models = slices.DeleteFunc(w.models, func(o *stats) bool { return o == s })
}

// recording is a trace that has begun: it has the spans that end from then on.
type recording struct {
	watch *watch
	tap   *trace.Tap
	from  time.Duration // when it began, by the clock of the ring
}

// record begins a trace.
func (w *watch) record() recording {
	return recording{w, w.spans.Tap(), now().Sub(w.spans.Origin())}
}

// write writes the spans as a trace for Perfetto, until ctx ends or the trace has most bytes. The device's wait at the
// beginning, and at the end, is cut to the time of the recording.
func (r recording) write(ctx context.Context, out io.Writer, most int64) error {
	file, from := chrome.NewWriter(out), r.from
	defer r.tap.Close()
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	if err := file.Flush(); err != nil { // who waits for it sees that it has begun
		return err
	}
	var spans []trace.Span
	for done := false; !done && file.Size() < most; {
		select {
		case <-ctx.Done():
			done = true
		case <-tick.C:
		}
		spans = r.tap.Drain(spans[:0])
		spans = slices.DeleteFunc(spans, func(s trace.Span) bool { // told late
			return s.Kind == trace.Idle && s.End() < from
		})
		for i := range spans {
			if s := &spans[i]; s.Kind == trace.Idle && s.At < from {
				s.At, s.Work = from, s.End()-from
			}
		}
		if err := file.Write(spans); err != nil {
			return err
		}
	}
	if err := file.Write(r.watch.waiting(from)); err != nil {
		return err
	}
	return file.Close(r.watch.spans.Origin(), r.tap.Missed())
}

// waiting returns the span of the device's open wait, if there is one, from a time on or later.
func (w *watch) waiting(from time.Duration) []trace.Span {
	_, since, cause := w.idle.Total()
	if since < 0 {
		return nil
	}
	from = max(from, since)
	at := now().Sub(w.spans.Origin())
	return []trace.Span{{Track: w.idle.Name(), Kind: trace.Idle, Cause: w.why(cause), Of: trace.Nothing(),
		At: from, Work: max(0, at-from)}}
}

// time says what the device's time went to so far: waits, by cause, and computing, which is the rest. The open wait is
// counted.
func (w *watch) time() stall.Time {
	totals, since, cause := w.idle.Total()
	at := now().Sub(w.spans.Origin())
	t := stall.Time{Idle: totals}
	if since >= 0 {
		t.Idle[w.why(cause)] += max(at-since, 0)
	}
	t.Computing = max(at-t.Waited(), 0)
	w.told.Lock()
	defer w.told.Unlock()
	last := &w.told.Time
	for c := range t.Idle { // what an open wait was for is settled only at its end, and sums never sink
		last.Idle[c] = max(last.Idle[c], t.Idle[c])
	}
	last.Computing = max(last.Computing, t.Computing)
	return *last
}

// why refines the cause of an open wait, if that is unknown, by what the schedulers lack: the cause of the scheduler
// that comes closest to having a step.
func (w *watch) why(cause trace.Cause) trace.Cause {
	if cause != trace.Unknown {
		return cause
	}
	lacking := trace.NoWork
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.models {
		switch c := trace.Cause(s.lacking.Load()); c {
		case trace.Unknown: // a step is on its way through sampler and scheduler
			return trace.Scheduler
		case trace.NoWork:
		default:
			lacking = c
		}
	}
	return lacking
}

// recorder writes a trace on a goroutine of its own while the house runs.
type recorder struct {
	stop context.CancelFunc
	done chan error
}

// MostTraced is the largest size in bytes of a trace of a whole run: some minutes of a small model, an hour of a large
// one.
const MostTraced = 1 << 30

// startRecorder starts a recorder. The recording has begun when it returns: nothing that happens afterwards is
// missing.
func startRecorder(w *watch, out io.Writer) *recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r, begun := &recorder{cancel, make(chan error, 1)}, w.record()
	go func() { r.done <- begun.write(ctx, out, MostTraced) }()
	return r
}

// end stops the recorder, if there is one, and returns the error for which the trace is not whole.
func (r *recorder) end() error {
	if r == nil {
		return nil
	}
	r.stop()
	return <-r.done
}
