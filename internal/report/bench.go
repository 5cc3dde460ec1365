package report

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
)

// Bench is the result of a bench. Its JSON names are part of the interface.
// Wide: they are the fields of the JSON that is printed.
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
	// Beside reports a device that computed beside the program and does not tell times: how its time divides is not
	// known.
	Beside bool `json:"beside,omitempty"`
	// Copied is the plan's number of bytes copied to the device for each token; Bus is the speed of copies in bytes
	// per second.
	Copied float64 `json:"copied_bytes_per_token,omitempty"`
	Bus    float64 `json:"bus_bytes_per_second,omitempty"`
	// Expected is the plan's prediction for decoding at the first point, in tokens per second, if weights stream: in
	// the long run, as the counted runs are.
	Expected float64 `json:"expected_decode,omitempty"`
	// ExpectedCold is the same for the first tokens after loading, with hardly anything before them; 0 if there is no
	// difference.
	ExpectedCold float64 `json:"expected_cold_decode,omitempty"`
	Points       []Point `json:"points"`
}

// Point is a prompt length on a cache of Depth positions.
type Point struct {
	Depth    int   `json:"depth"`
	Prompt   int   `json:"prompt"`
	Generate int   `json:"generate"` // 0: the model makes vectors of texts, and has no other phase than reading them
	Prefill  Phase `json:"prefill"`
	Decode   Phase `json:"decode"`
	Step     Phase `json:"step"` // decoding by the median of a run's steps: a stall of a busy machine hits few of them
	// Cold is the run before those that count, if weights stream; it fills the shared slots.
	Cold *Speeds `json:"cold,omitempty"`
}

// Speeds are tokens per second of a run, of all sequences together. Step is 0 if a peer does not report it.
type Speeds struct {
	Prefill float64 `json:"prefill"`
	Decode  float64 `json:"decode"`
	Step    float64 `json:"step"`
}

// Compare fills in the rates of runs. Runs of peers must have been made in turns with ours.
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

// Phase is the prefill or the decoding of a point.
type Phase struct {
	Rate     Spread    `json:"rate"` // tokens per second, of all sequences together
	Segments []Segment `json:"segments,omitempty"`
	Gaps     []Gap     `json:"gaps,omitempty"` // of a device that computed beside the program
	Peers    []Peer    `json:"peers,omitempty"`

	runs []run
}

// Segment is the part of a step's time that one kind of segments took.
type Segment struct {
	Name        string  `json:"name"`
	Seconds     float64 `json:"seconds"`       // of a step, in all layers
	Share       float64 `json:"share"`         // of the time of all segments, and gaps
	BytesRate   float64 `json:"bytes_per_sec"` // that must be read
	OpsRate     float64 `json:"ops_per_sec"`
	OfBandwidth float64 `json:"of_bandwidth"` // above 1 where a cache helps; median of runs, see Relate
	OfMultiply  float64 `json:"of_multiply"`

	kind ir.SegmentKind
}

// Gap is time that a device waited, by cause, before or during a step although there was work.
type Gap struct {
	Cause   string  `json:"cause"`
	Seconds float64 `json:"seconds"` // of a step
	Share   float64 `json:"share"`   // likewise
}

// Peer is the result of another engine, measured in turns with ours.
type Peer struct {
	Name  string `json:"name"`
	Rate  Spread `json:"rate"`
	Ratio Spread `json:"ratio"` // ours to theirs, run by run
}

// Work is the time of steps of one kind, and their least traffic.
type Work struct {
	Steps float64
	Time  [ir.SegmentKinds]time.Duration // by kind of segment
	Cost  [ir.SegmentKinds]Traffic
	Gaps  [trace.Causes]time.Duration
}

// kinds returns the names of the kinds of segments, in the order of their numbers.
func kinds() (names []string) {
	for kind := ir.SegEmbed; int(kind) < ir.SegmentKinds; kind++ {
		names = append(names, kind.String())
	}
	return names
}
