package report

import (
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
)

// Look is one measurement of the ceilings, in several passes: bytes and operations per second. Multiply may be empty,
// if it is not known.
type Look struct{ Read, Multiply []float64 }

// run is the work of a run, and the index of the look before it.
type run struct {
	work Work
	look int
}

// Ran adds the work of a run between a look, given by its index, and the next.
func (p *Phase) Ran(w Work, look int) { p.runs = append(p.runs, run{w, look}) }

// Relate sets the ceilings (medians of all passes), the segments of all phases, and their shares of the ceilings: for
// each run relative to the looks before and after it, then the median over runs. A disturbance of the machine then
// slows both a run and its looks.
func (b *Bench) Relate(looks []Look) {
	var all Look
	for _, l := range looks {
		all.Read, all.Multiply = append(all.Read, l.Read...), append(all.Multiply, l.Multiply...)
	}
	r := SpreadOf(all.Read)
	b.ReadBandwidth, b.ReadBest = r.Median, r.Max
	if len(all.Multiply) > 0 {
		m := SpreadOf(all.Multiply)
		b.MultiplyOps, b.MultiplyBest = m.Median, m.Max
	}
	for i := range b.Points {
		for _, h := range b.Points[i].halves() {
			h.relate(looks)
		}
	}
}

// relate sets the segments of a phase.
func (p *Phase) relate(looks []Look) {
	var all Work
	for i := range p.runs {
		all.add(&p.runs[i].work)
	}
	p.Segments, p.Gaps = all.segments(), all.gaps()
	for i := range p.Segments {
		s := &p.Segments[i]
		var read, multiply []float64
		for _, r := range p.runs {
			took, cost := r.work.Time[s.kind].Seconds(), r.work.Cost[s.kind]
			if took == 0 {
				continue
			}
			around := looks[r.look:min(r.look+2, len(looks))]
			read = append(read, cost.Bytes/took/ceiling(around, func(l Look) []float64 { return l.Read }))
			if m := ceiling(around, func(l Look) []float64 { return l.Multiply }); m > 0 {
				multiply = append(multiply, cost.Ops/took/m)
			}
		}
		s.OfBandwidth = SpreadOf(read).Median
		if len(multiply) > 0 {
			s.OfMultiply = SpreadOf(multiply).Median
		}
	}
}

// ceiling returns the mean of the looks' medians, 0 if there is none.
func ceiling(looks []Look, of func(Look) []float64) float64 {
	var sum, n float64
	for _, l := range looks {
		if passes := of(l); len(passes) > 0 {
			sum, n = sum+SpreadOf(passes).Median, n+1
		}
	}
	return sum / max(n, 1)
}

func (w *Work) add(more *Work) {
	w.Steps += more.Steps
	for kind := range w.Time {
		w.Time[kind] += more.Time[kind]
		w.Cost[kind].Bytes += more.Cost[kind].Bytes
		w.Cost[kind].Ops += more.Cost[kind].Ops
	}
	for cause := range w.Gaps {
		w.Gaps[cause] += more.Gaps[cause]
	}
}

// held returns the time that a device waited although there was work.
func (w *Work) held() stall.Time {
	t := stall.Time{Idle: w.Gaps}
	for _, c := range []trace.Cause{trace.NoWork, trace.Loading, trace.Credit} {
		t.Idle[c] = 0
	}
	return t
}

// all returns the time of segments and gaps.
func (w *Work) all() (seconds float64) {
	for _, t := range w.Time {
		seconds += t.Seconds()
	}
	held := w.held()
	return seconds + held.Waited().Seconds()
}

// gaps returns the gaps, the longest first.
func (w *Work) gaps() (out []Gap) {
	held := w.held()
	for _, c := range held.Causes() {
		took := held.Idle[c].Seconds()
		out = append(out, Gap{Cause: c.String(), Seconds: took / max(w.Steps, 1), Share: took / w.all()})
	}
	return out
}

// segments returns the time of each kind of segments, and its rates of reading and multiplying.
func (w *Work) segments() (out []Segment) {
	all := w.all()
	for i, name := range kinds() {
		kind := ir.SegEmbed + ir.SegmentKind(i)
		took, cost := w.Time[kind].Seconds(), w.Cost[kind]
		if took > 0 && w.Steps > 0 {
			out = append(out, Segment{Name: name, Seconds: took / w.Steps, Share: took / all,
				BytesRate: cost.Bytes / took, OpsRate: cost.Ops / took, kind: kind})
		}
	}
	return out
}
