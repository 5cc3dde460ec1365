package stall

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
)

// Account says where a device's time went: each nanosecond is in Computing or in one cause of Idle, and in one of
// Layers, and in one of Kinds.
type Account struct {
	Track    string // the device's
	From, To time.Duration
	Time
	Layers []Layer // from -1: what belongs to no layer
	Kinds  [Kinds]OfKind
	Worst  []Step // those held up most, the worst first
}

// Time is computing and waiting.
type Time struct {
	Computing time.Duration
	Idle      [trace.Causes]time.Duration // Unknown: no span says why
}

// Layer is the time of one layer.
type Layer struct {
	Layer int
	Time
}

// Kind is a kind of step.
type Kind uint8

// Kinds of steps, and what no step followed.
const (
	Prefill Kind = iota
	Decode
	None
	Kinds
)

// String implements fmt.Stringer.
func (k Kind) String() string { return [Kinds]string{"prefill", "decode", "none"}[k] }

// OfKind is the time of steps of one kind, with what they were waited for before them.
type OfKind struct {
	Steps int
	Time
}

// Step is one step, and the device's wait for it.
type Step struct {
	Number   uint64
	Kind     Kind
	From, To time.Duration // since the step before it
	Time
	Pieces []Piece // one after the other
}

// Piece is a stretch of a step of one kind.
type Piece struct {
	From, To time.Duration
	Cause    trace.Cause // of Kind Idle
	Kind     trace.Kind  // a segment's; Message: between segments
	Layer    int         // -1: none
}

// worst is how many steps are kept in full.
const worst = 3

// Waited is the sum of all idle time.
func (t *Time) Waited() (sum time.Duration) {
	for _, d := range t.Idle {
		sum += d
	}
	return sum
}

// Wall is all the time.
func (t *Time) Wall() time.Duration { return t.Computing + t.Waited() }

// Explained is the share of idle time that has a cause; 1 if there was none.
func (t *Time) Explained() float64 {
	waited := t.Waited()
	if waited == 0 {
		return 1
	}
	return 1 - float64(t.Idle[trace.Unknown])/float64(waited)
}

// Held is how long the device waited though there was work for it that its clients wanted.
func (t *Time) Held() time.Duration {
	return t.Waited() - t.Idle[trace.NoWork] - t.Idle[trace.Loading] - t.Idle[trace.Credit]
}

// Causes lists the causes that there were, the one first that took longest.
func (t *Time) Causes() (causes []trace.Cause) {
	for c, d := range t.Idle {
		if d > 0 {
			causes = append(causes, trace.Cause(c))
		}
	}
	slices.SortStableFunc(causes, func(a, b trace.Cause) int { return int(t.Idle[b] - t.Idle[a]) })
	return causes
}

// First is the cause that held the device up longest while there was work for it; false if nothing did.
func (t *Time) First() (trace.Cause, bool) {
	for _, c := range t.Causes() {
		if c != trace.NoWork && c != trace.Loading {
			return c, true
		}
	}
	return trace.Unknown, false
}

func (t *Time) add(p *Piece) {
	if p.Kind == trace.Idle {
		t.Idle[p.Cause] += p.To - p.From
	} else {
		t.Computing += p.To - p.From
	}
}

// Devices lists the tracks of devices, in the order in which they come first.
func Devices(spans []trace.Span) (tracks []string) {
	for i := range spans {
		if s := &spans[i]; row(s.Kind) != other && !slices.Contains(tracks, s.Track) {
			tracks = append(tracks, s.Track)
		}
	}
	return tracks
}

// Of makes the account of a device from its spans, in any order: from the begin of its first to the end of its last.
func Of(track string, spans []trace.Span) Account {
	a := Account{Track: track}
	t := newTimeline(track, spans)
	if len(t.borders) < 2 {
		return a
	}
	a.From, a.To = t.borders[0], t.borders[len(t.borders)-1]
	layers := map[int]*Layer{}
	held := Step{From: a.From}
	for p, step := range t.pieces {
		a.add(&p)
		if layers[p.Layer] == nil {
			layers[p.Layer] = &Layer{Layer: p.Layer}
		}
		layers[p.Layer].add(&p)
		held.take(&p)
		if step != nil && p.To == step.End() {
			held.Number, held.Kind, held.To = step.Step, kindOf(step.Kind), p.To
			a.settle(held)
			held = Step{From: p.To}
		}
	}
	held.Kind = None
	a.Kinds[None].Time = held.Time
	for _, l := range layers {
		a.Layers = append(a.Layers, *l)
	}
	slices.SortFunc(a.Layers, func(x, y Layer) int { return x.Layer - y.Layer })
	return a
}

func kindOf(k trace.Kind) Kind {
	if k == trace.Prefill {
		return Prefill
	}
	return Decode
}

// take adds a piece, to the last one if it is of the same kind.
func (s *Step) take(p *Piece) {
	s.add(p)
	if n := len(s.Pieces); n > 0 {
		last := &s.Pieces[n-1]
		if last.To == p.From && last.Kind == p.Kind && last.Cause == p.Cause && last.Layer == p.Layer {
			last.To = p.To
			return
		}
	}
	s.Pieces = append(s.Pieces, *p)
}

// settle books a step that is complete.
func (a *Account) settle(s Step) {
	k := &a.Kinds[s.Kind]
	k.Steps++
	k.Computing += s.Computing
	for c, d := range s.Idle {
		k.Idle[c] += d
	}
	at, _ := slices.BinarySearchFunc(a.Worst, s.Held(), func(w Step, held time.Duration) int {
		if w.Held() >= held {
			return -1
		}
		return 1
	})
	if at < worst {
		a.Worst = slices.Insert(a.Worst, at, s)
		a.Worst = a.Worst[:min(worst, len(a.Worst))]
	}
}
