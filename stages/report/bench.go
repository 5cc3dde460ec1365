package report

import (
	"time"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Bench is what a bench measured. Its JSON names are part of the interface.
type Bench struct {
	Model         string  `json:"model"`
	Machine       string  `json:"machine"`
	Device        string  `json:"device"`
	Commit        string  `json:"commit"`
	Threads       int     `json:"threads"`
	Seqs          int     `json:"seqs"`
	LoadSeconds   float64 `json:"load_seconds"`
	WeightBytes   int64   `json:"weight_bytes"`
	PeakBytes     int64   `json:"peak_bytes"`     // of the process, after loading; 0: not known
	ReadBandwidth float64 `json:"read_bandwidth"` // bytes per second, with as many threads
	MultiplyOps   float64 `json:"multiply_ops"`   // per second, likewise; 0: not known
	ActorsShare   float64 `json:"actors_share"`   // of a step
	Points        []Point `json:"points"`
}

// Point is one length of prompt on a cache of Depth positions.
type Point struct {
	Depth    int   `json:"depth"`
	Prompt   int   `json:"prompt"`
	Generate int   `json:"generate"`
	Prefill  Phase `json:"prefill"`
	Decode   Phase `json:"decode"`
}

// Phase is one half of a point.
type Phase struct {
	Rate     Spread    `json:"rate"` // tokens per second, of all sequences together
	Segments []Segment `json:"segments"`
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

// Against is a peer whose runs were made in turns with ours.
func Against(name string, ours, theirs []float64) Peer {
	return Peer{Name: name, Rate: SpreadOf(theirs), Ratio: Ratio(ours, theirs)}
}

// Work is what steps of one kind did: for how long, and what it must have taken.
type Work struct {
	Steps float64
	Time  [ir.SegHead + 1]time.Duration // by kind of segment
	Cost  [ir.SegHead + 1]Traffic
}

// Segments relates times to traffic and ceilings.
func (b *Bench) Segments(w *Work) (out []Segment) {
	var all float64
	for _, t := range w.Time {
		all += t.Seconds()
	}
	for i, name := range kinds() {
		took, cost := w.Time[int(ir.SegEmbed)+i].Seconds(), w.Cost[int(ir.SegEmbed)+i]
		if took == 0 || w.Steps == 0 {
			continue
		}
		s := Segment{Name: name, Seconds: took / w.Steps, Share: took / all,
			BytesRate: cost.Bytes / took, OpsRate: cost.Ops / took}
		if b.ReadBandwidth > 0 {
			s.OfBandwidth = s.BytesRate / b.ReadBandwidth
		}
		if b.MultiplyOps > 0 {
			s.OfMultiply = s.OpsRate / b.MultiplyOps
		}
		out = append(out, s)
	}
	return out
}

// kinds are the names of segments, in the order of their numbers.
func kinds() []string { return []string{"embed", "mix", "ffn", "head"} }
