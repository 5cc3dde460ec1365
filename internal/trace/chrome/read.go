package chrome

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
)

// maxSpans bounds what is read of a file: an hour of a large model's.
const maxSpans = 1 << 23

// event is what we read of one.
type event struct {
	Name     string
	Category string  `json:"cat"`
	Phase    string  `json:"ph"`
	Thread   int     `json:"tid"`
	At       float64 `json:"ts"`
	Took     float64 `json:"dur"`
	Args     struct {
		Name                  string
		Step                  uint64
		Segment, Layer, Group *int
		Cause                 string
		Wait                  float64 `json:"wait_us"`
	}
}

// Read reads the spans of a trace that we wrote. One that breaks off is read up to there, and that is no error; its
// text says what is wrong with any other.
func Read(in io.Reader) ([]trace.Span, error) {
	d := json.NewDecoder(in)
	if err := events(d); err != nil {
		return nil, fmt.Errorf("this is no trace: %w: want a file of sluice trace or --trace", err)
	}
	var spans []trace.Span
	tracks := map[int]string{}
	for d.More() {
		var e event
		if err := d.Decode(&e); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				return spans, nil
			}
			return nil, fmt.Errorf("event %d of the trace: %w", len(spans)+len(tracks)+1, err)
		}
		switch {
		case e.Phase == "M" && e.Name == "thread_name":
			tracks[e.Thread] = e.Args.Name
		case e.Phase == "X":
			s, err := e.span(tracks)
			if err != nil {
				return nil, err
			}
			if spans = append(spans, s); len(spans) > maxSpans {
				return nil, fmt.Errorf("the trace has more than %d events: record for a shorter time", maxSpans)
			}
		}
	}
	return spans, nil
}

// events goes to the first element of traceEvents.
func events(d *json.Decoder) error {
	if err := expect(d, json.Delim('{')); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if key == "traceEvents" {
			return expect(d, json.Delim('['))
		}
		var other json.RawMessage
		if err := d.Decode(&other); err != nil {
			return err
		}
	}
	return errors.New("traceEvents is missing")
}

func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("%v stands where %v should", t, want)
	}
	return err
}

// span turns an event back.
func (e *event) span(tracks map[int]string) (trace.Span, error) {
	kind, known := trace.ParseKind(e.Category)
	cause := trace.Unknown
	if kind == trace.Idle {
		var named bool
		cause, named = trace.ParseCause(e.Args.Cause)
		known = known && named
	}
	if !known || !finite(e.At, e.Took, e.Args.Wait) || e.Took < 0 {
		return trace.Span{}, fmt.Errorf("the event %.40q (%.20q, cause %.20q) at %v µs is none of this version's: "+
			"read the trace with the program that wrote it", e.Name, e.Category, e.Args.Cause, e.At)
	}
	index := func(at *int) int {
		if at == nil {
			return -1
		}
		return *at
	}
	return trace.Span{
		Track: tracks[e.Thread], Kind: kind, Cause: cause,
		Of: trace.Of{Step: e.Args.Step, Segment: index(e.Args.Segment), Layer: index(e.Args.Layer), Group: index(e.Args.Group)},
		At: nanos(e.At), Wait: nanos(e.Args.Wait), Work: nanos(e.Took),
	}, nil
}

func nanos(micros float64) time.Duration { return time.Duration(math.Round(micros * 1000)) }

// finite says that times are of this world: less than a century.
func finite(micros ...float64) bool {
	for _, m := range micros {
		if !(math.Abs(m) < 3.2e15) {
			return false
		}
	}
	return true
}
