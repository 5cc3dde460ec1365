package report

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Bench is what a bench measured. Its JSON names are part of the interface.
type Bench struct {
	Model         string  `json:"model"`
	Machine       string  `json:"machine"`
	Device        string  `json:"device"`
	Cache         string  `json:"cache"`               // type of K and V
	NoRepack      bool    `json:"no_repack,omitempty"` // weights are read as the file has them
	Commit        string  `json:"commit,omitempty"`    // or version; empty: not known
	Threads       int     `json:"threads"`
	Seqs          int     `json:"seqs"`
	LoadSeconds   float64 `json:"load_seconds"`
	WeightBytes   int64   `json:"weight_bytes"`
	PeakBytes     int64   `json:"peak_bytes"`     // of the process, after loading; 0: not known
	ReadBandwidth float64 `json:"read_bandwidth"` // bytes per second, with as many threads: median of passes between runs
	ReadBest      float64 `json:"read_best"`      // of the passes
	MultiplyOps   float64 `json:"multiply_ops"`   // per second, likewise; 0: not known
	MultiplyBest  float64 `json:"multiply_best"`
	ActorsShare   float64 `json:"actors_share"` // of a step
	Points        []Point `json:"points"`
}

// Point is one length of prompt on a cache of Depth positions.
type Point struct {
	Depth    int   `json:"depth"`
	Prompt   int   `json:"prompt"`
	Generate int   `json:"generate"`
	Prefill  Phase `json:"prefill"`
	Decode   Phase `json:"decode"`
	Step     Phase `json:"step"` // decoding by the median of a run's steps: a stall of a busy machine hits few of them
}

// Speeds are a run's tokens per second, of all sequences together; Step is 0 where a peer does not say.
type Speeds struct{ Prefill, Decode, Step float64 }

// Compare fills in the rates of runs; those of peers were made in turns with ours.
func (p *Point) Compare(ours []Speeds, names []string, theirs [][]Speeds) {
	for _, r := range []struct {
		phase *Phase
		of    func(Speeds) float64
	}{
		{&p.Prefill, func(s Speeds) float64 { return s.Prefill }},
		{&p.Decode, func(s Speeds) float64 { return s.Decode }},
		{&p.Step, func(s Speeds) float64 { return s.Step }},
	} {
		mine := each(ours, r.of)
		r.phase.Rate = SpreadOf(mine)
		for i, name := range names {
			if rates := each(theirs[i], r.of); !slices.Contains(rates, 0) {
				r.phase.Peers = append(r.phase.Peers, Peer{name, SpreadOf(rates), Ratio(mine, rates)})
			}
		}
	}
}

func each(runs []Speeds, of func(Speeds) float64) []float64 {
	out := make([]float64, len(runs))
	for i, s := range runs {
		out[i] = of(s)
	}
	return out
}

// Phase is one half of a point.
type Phase struct {
	Rate     Spread    `json:"rate"` // tokens per second, of all sequences together
	Segments []Segment `json:"segments,omitempty"`
	Peers    []Peer    `json:"peers,omitempty"`
}

// Segment is where the time of a step goes, for one kind.
type Segment struct {
	Name        string  `json:"name"`
	Seconds     float64 `json:"seconds"`       // of a step, in all layers
	Share       float64 `json:"share"`         // of the time of all segments
	BytesRate   float64 `json:"bytes_per_sec"` // that must be read
	OpsRate     float64 `json:"ops_per_sec"`
	OfBandwidth float64 `json:"of_bandwidth"` // above 1 where a cache helps
	OfMultiply  float64 `json:"of_multiply"`
}

// Peer is another engine that was measured in turns with ours.
type Peer struct {
	Name  string `json:"name"`
	Rate  Spread `json:"rate"`
	Ratio Spread `json:"ratio"` // ours to theirs, run by run
}

// Work is what steps of one kind did: for how long, and what it must have taken.
type Work struct {
	Steps float64
	Time  [ir.SegHead + 1]time.Duration // by kind of segment
	Cost  [ir.SegHead + 1]Traffic
}

// Segments says where the time went, and how fast it was read and multiplied.
func (w *Work) Segments() (out []Segment) {
	var all float64
	for _, t := range w.Time {
		all += t.Seconds()
	}
	for i, name := range kinds() {
		took, cost := w.Time[int(ir.SegEmbed)+i].Seconds(), w.Cost[int(ir.SegEmbed)+i]
		if took > 0 && w.Steps > 0 {
			out = append(out, Segment{Name: name, Seconds: took / w.Steps, Share: took / all,
				BytesRate: cost.Bytes / took, OpsRate: cost.Ops / took})
		}
	}
	return out
}

// Relate takes what the passes between the runs reached, sets the ceilings, their medians, and what share of them all
// segments reach. Without multiply it is not known.
func (b *Bench) Relate(read, multiply []float64) {
	r := SpreadOf(read)
	b.ReadBandwidth, b.ReadBest = r.Median, r.Max
	if len(multiply) > 0 {
		m := SpreadOf(multiply)
		b.MultiplyOps, b.MultiplyBest = m.Median, m.Max
	}
	for i := range b.Points {
		for _, h := range b.Points[i].halves() {
			for j := range h.Segments {
				s := &h.Segments[j]
				s.OfBandwidth = s.BytesRate / b.ReadBandwidth
				if b.MultiplyOps > 0 {
					s.OfMultiply = s.OpsRate / b.MultiplyOps
				}
			}
		}
	}
}

// kinds are the names of segments, in the order of their numbers.
func kinds() []string { return []string{"embed", "mix", "ffn", "head"} }
