package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
)

// Stalls is an account of a device's time for JSON, whose names are part of the interface.
type Stalls struct {
	Device    string  `json:"device"`
	From      float64 `json:"from_seconds"`
	To        float64 `json:"to_seconds"`
	Explained float64 `json:"explained"` // share of the idle time that has a cause
	Spent
	Kinds  []StallKind  `json:"kinds"`
	Layers []StallLayer `json:"layers"`
	Worst  []StallStep  `json:"worst"`
}

// Spent is time of computing, and idle time by cause.
type Spent struct {
	Computing float64            `json:"computing_seconds"`
	Idle      map[string]float64 `json:"idle_seconds"` // by cause, without those that there were not
}

// StallKind is the time of steps of a kind, with the waits before them.
type StallKind struct {
	Kind  string `json:"kind"` // none: no step followed
	Steps int    `json:"steps"`
	Spent
}

// StallLayer is the computing time of a layer and the idle time before it; layer -1 has the time that belongs to none.
type StallLayer struct {
	Layer int `json:"layer"`
	Spent
}

// StallStep is one of the steps with the longest waits.
type StallStep struct {
	Step uint64  `json:"step"`
	Kind string  `json:"kind"`
	From float64 `json:"from_seconds"` // since the step before it
	To   float64 `json:"to_seconds"`
	Spent
	Pieces []StallPiece `json:"pieces"`
}

// StallPiece is a stretch of a step in which one thing happened.
type StallPiece struct {
	From  float64 `json:"from_seconds"`
	To    float64 `json:"to_seconds"`
	What  string  `json:"what"` // a kind of segment, or idle
	Cause string  `json:"cause,omitempty"`
	Layer int     `json:"layer"` // -1: none
}

// StallsOf converts an account for JSON.
func StallsOf(a *stall.Account) Stalls {
	s := Stalls{Device: a.Track, From: a.From.Seconds(), To: a.To.Seconds(), Explained: a.Explained(),
		Spent: spent(&a.Time)}
	for k := range a.Kinds {
		s.Kinds = append(s.Kinds, StallKind{stall.Kind(k).String(), a.Kinds[k].Steps, spent(&a.Kinds[k].Time)})
	}
	for i := range a.Layers {
		s.Layers = append(s.Layers, StallLayer{a.Layers[i].Layer, spent(&a.Layers[i].Time)})
	}
	for i := range a.Worst {
		w := &a.Worst[i]
		step := StallStep{Step: w.Number, Kind: w.Kind.String(), From: w.From.Seconds(), To: w.To.Seconds(),
			Spent: spent(&w.Time)}
		for _, p := range w.Pieces {
			piece := StallPiece{From: p.From.Seconds(), To: p.To.Seconds(), What: p.Kind.String(), Layer: p.Layer}
			if p.Kind == trace.Idle {
				piece.Cause = p.Cause.String()
			}
			step.Pieces = append(step.Pieces, piece)
		}
		s.Worst = append(s.Worst, step)
	}
	return s
}

func spent(t *stall.Time) Spent {
	s := Spent{t.Computing.Seconds(), map[string]float64{}}
	for _, c := range t.Causes() {
		s.Idle[c.String()] = t.Idle[c].Seconds()
	}
	return s
}

// StallText formats an account for a terminal of that many columns.
func StallText(a *stall.Account, columns int) string {
	var b strings.Builder
	steps := a.Kinds[stall.Prefill].Steps + a.Kinds[stall.Decode].Steps
	fmt.Fprintf(&b, "%s: %s, %d steps, idle time explained to %.2f %%\n\n", a.Track, short(a.To-a.From), steps,
		100*a.Explained())
	row := func(name string, d time.Duration) {
		share := float64(d) / float64(max(1, a.To-a.From))
		bar := strings.Repeat("█", int(share*float64(max(0, columns-36))+0.5))
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("  %-14s %10s %6.2f %%  %s", name, short(d), 100*share, bar), " "))
	}
	row("computing", a.Computing)
	for _, c := range a.Causes() {
		row(spoken(c), a.Idle[c])
	}
	stallKinds(&b, a)
	stallLayers(&b, a)
	for i := range a.Worst {
		if a.Worst[i].Held() > 0 {
			worstStep(&b, &a.Worst[i], columns)
		}
	}
	return b.String()
}

// spoken returns a cause with blanks for underscores.
func spoken(c trace.Cause) string { return strings.ReplaceAll(c.String(), "_", " ") }

// short formats a duration with about three digits.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
}

// most formats the longest waits.
func most(t *stall.Time) string {
	var names []string
	for _, c := range t.Causes() {
		if len(names) < 3 {
			names = append(names, spoken(c)+" "+short(t.Idle[c]))
		}
	}
	return strings.Join(names, ", ")
}

func stallKinds(b *strings.Builder, a *stall.Account) {
	fmt.Fprintf(b, "\n  %-10s %7s %11s %11s  %s\n", "kind", "steps", "computing", "idle", "waited for, before and in them")
	for k := range a.Kinds {
		of := &a.Kinds[k]
		if of.Wall() == 0 {
			continue
		}
		name := stall.Kind(k).String()
		if stall.Kind(k) == stall.None {
			name = "no step"
		}
		fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("  %-10s %7d %11s %11s  %s", name, of.Steps, short(of.Computing),
			short(of.Waited()), most(&of.Time)), " "))
	}
}

// shownLayers bounds the layers that are listed.
const shownLayers = 8

// stallLayers lists the layers with the longest waits.
func stallLayers(b *strings.Builder, a *stall.Account) {
	var waited []stall.Layer
	computing, n := time.Duration(0), 0
	for _, l := range a.Layers {
		if l.Layer < 0 {
			continue
		}
		if n, computing = n+1, computing+l.Computing; l.Waited() > 0 {
			waited = append(waited, l)
		}
	}
	if n == 0 {
		return
	}
	if len(waited) == 0 {
		fmt.Fprintf(b, "\n  none of %d layers waited; each computed for %s on average\n", n, short(computing/time.Duration(n)))
		return
	}
	slices.SortStableFunc(waited, func(x, y stall.Layer) int { return int(y.Waited() - x.Waited()) })
	fmt.Fprintf(b, "\n  %-10s %7s %11s %11s  %s\n", "layer", "", "computing", "idle", "waited for")
	for i := range waited[:min(shownLayers, len(waited))] {
		l := &waited[i]
		fmt.Fprintf(b, "  %-10d %7s %11s %11s  %s\n", l.Layer, "", short(l.Computing), short(l.Waited()), most(&l.Time))
	}
	if rest := len(waited) - shownLayers; rest > 0 {
		fmt.Fprintf(b, "  and %d more that waited for less\n", rest)
	}
}

// letters are the signs of causes on a timeline, in the causes' order; computing is a block.
const letters = "?.lrpuxksgcCwmh>"

// worstStep draws a step as a timeline: each column shows what took most of its time.
func worstStep(b *strings.Builder, s *stall.Step, columns int) {
	wall := s.To - s.From
	fmt.Fprintf(b, "\n  step %d, %s, at %s: %s, held up for %s\n  ", s.Number, s.Kind, short(s.From), short(wall), short(s.Held()))
	width := max(10, columns-4)
	seen := stall.Time{}
	at := 0
	for col := range width {
		from := s.From + wall*time.Duration(col)/time.Duration(width)
		to := s.From + wall*time.Duration(col+1)/time.Duration(width)
		for s.Pieces[at].To <= from && at < len(s.Pieces)-1 {
			at++
		}
		var in stall.Time
		for i := at; i < len(s.Pieces) && s.Pieces[i].From < to; i++ {
			p := &s.Pieces[i]
			d := min(p.To, to) - max(p.From, from)
			if p.Kind == trace.Idle {
				in.Idle[p.Cause] += d
			} else {
				in.Computing += d
			}
		}
		cell := "█"
		if causes := in.Causes(); len(causes) > 0 && in.Idle[causes[0]] > in.Computing {
			cell = letters[causes[0] : causes[0]+1]
			seen.Idle[causes[0]]++
		}
		b.WriteString(cell)
	}
	b.WriteString("\n  █ computing")
	for c, n := range seen.Idle {
		if n > 0 {
			fmt.Fprintf(b, "  %c %s", letters[c], spoken(trace.Cause(c)))
		}
	}
	fmt.Fprintf(b, "\n  waited for %s\n", longest(s))
}

// longest formats the longest waits of a step with their places.
func longest(s *stall.Step) string {
	var waits []stall.Piece
	for _, p := range s.Pieces {
		if p.Kind == trace.Idle {
			waits = append(waits, p)
		}
	}
	slices.SortStableFunc(waits, func(x, y stall.Piece) int { return int((y.To - y.From) - (x.To - x.From)) })
	var texts []string
	for _, p := range waits[:min(3, len(waits))] {
		text := spoken(p.Cause) + " " + short(p.To-p.From)
		if p.Layer >= 0 {
			text += fmt.Sprintf(" in layer %d", p.Layer)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
