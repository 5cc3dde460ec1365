package chrome

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
)

// version is that of what we put into args and otherData.
const version = 1

// Writer writes a trace as its spans come. A file that breaks off is still shown by viewers.
type Writer struct {
	out    io.Writer
	buf    []byte
	tracks map[string]int
	size   int64
	err    error
}

// flushAt is how many bytes are written at a time.
const flushAt = 64 << 10

// NewWriter begins a trace.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{out: out, tracks: map[string]int{}}
	w.buf = append(w.buf, `{"displayTimeUnit":"ns","traceEvents":[
{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"sluice"}}`...)
	return w
}

// Write adds spans. They are put in the order of their begins; those of an earlier call come first all the same. Spans
// of one track follow one another or lie within one another, if they are what one actor or device did.
func (w *Writer) Write(spans []trace.Span) error {
	slices.SortStableFunc(spans, func(a, b trace.Span) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return int(b.Work - a.Work) // what lies around others first
	})
	for i := range spans {
		w.event(&spans[i])
		if len(w.buf) >= flushAt {
			w.Flush() // its error is kept, and returned below
		}
	}
	return w.err
}

// Flush hands on what was written so far.
func (w *Writer) Flush() error {
	if w.err == nil {
		_, w.err = w.out.Write(w.buf)
	}
	w.size += int64(len(w.buf))
	w.buf = w.buf[:0]
	return w.err
}

// Size is how many bytes were written.
func (w *Writer) Size() int64 { return w.size + int64(len(w.buf)) }

// Close ends the trace: it began at a time, and so many spans are not in it because they came too fast.
func (w *Writer) Close(began time.Time, missed uint64) error {
	w.buf = fmt.Appendf(w.buf, "\n],\"otherData\":{\"version\":\"%d\",\"began\":%q,\"missed\":\"%d\"}}\n",
		version, began.UTC().Format(time.RFC3339Nano), missed)
	return w.Flush()
}

// thread is a track's number.
func (w *Writer) thread(track string) int {
	tid, ok := w.tracks[track]
	if !ok {
		tid = len(w.tracks) + 1
		w.tracks[track] = tid
		w.buf = fmt.Appendf(w.buf, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":%s}}",
			tid, quote(track))
	}
	return tid
}

// quote is a string as JSON has it. Paths of actors are escaped as URLs are: they have no control characters.
func quote(text string) string {
	q := make([]byte, 0, len(text)+2)
	q = append(q, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			q = append(q, '\\', byte(r))
		case r < ' ':
			q = fmt.Appendf(q, `\u%04x`, r)
		default:
			q = append(q, string(r)...)
		}
	}
	return string(append(q, '"'))
}

// event writes one span. Times are microseconds, with the nanoseconds behind the point.
func (w *Writer) event(s *trace.Span) {
	tid := w.thread(s.Track)
	b := append(w.buf, ",\n{\"name\":\""...)
	b = append(b, s.Kind.String()...)
	switch {
	case s.Kind == trace.Idle:
		b = append(b, ": "...)
		b = append(b, s.Cause.String()...)
	case s.Layer >= 0:
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(s.Layer), 10)
	}
	b = append(b, "\",\"cat\":\""...)
	b = append(b, s.Kind.String()...)
	b = append(b, "\",\"ph\":\"X\",\"pid\":1,\"tid\":"...)
	b = strconv.AppendInt(b, int64(tid), 10)
	b = micros(append(b, ",\"ts\":"...), s.At)
	b = micros(append(b, ",\"dur\":"...), s.Work)
	b = micros(append(b, ",\"args\":{\"wait_us\":"...), s.Wait)
	if s.Step > 0 {
		b = strconv.AppendUint(append(b, ",\"step\":"...), s.Step, 10)
	}
	for _, of := range [...]struct {
		name string
		at   int
	}{{",\"segment\":", s.Segment}, {",\"layer\":", s.Layer}, {",\"group\":", s.Group}} {
		if of.at >= 0 {
			b = strconv.AppendInt(append(b, of.name...), int64(of.at), 10)
		}
	}
	if s.Kind == trace.Idle {
		b = append(b, ",\"cause\":\""...)
		b = append(append(b, s.Cause.String()...), '"')
	}
	w.buf = append(b, "}}"...)
}

// micros writes nanoseconds as microseconds, all of them.
func micros(b []byte, d time.Duration) []byte {
	if d < 0 {
		b, d = append(b, '-'), -d
	}
	b = strconv.AppendInt(b, int64(d/time.Microsecond), 10)
	n := int(d % time.Microsecond)
	return append(b, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
}
