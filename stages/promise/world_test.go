package promise

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/batch"
)

// arrival is a request of a trace: when it came after the last answer of its client, and what it asked for.
type arrival struct {
	pause          float64 // seconds
	prompt, cached int
	answer, most   int
}

// world is a machine in virtual time, with clients that ask again when they were answered. Its steps take what a
// processor's do: weights are read, or rows multiplied, whichever is longer; with some noise.
type world struct {
	rand    *rand.Rand
	load    Load
	state   *batch.State
	now     float64
	clients [][]arrival
	share   float64   // of requests that are promised what they were told
	due     []float64 // by client, when its next request comes
	live    map[batch.ID]*asked
	last    batch.ID
	step    backend.Step
	parts   []batch.Part

	first, each []float64 // errors, relative
}

type asked struct {
	client      int
	arrival     arrival
	at          float64
	forecast    Forecast
	told        bool
	promised    bool
	began, last float64
	got         int
	left        int // positions whose blocks it gave back with its place
}

func (w *world) cost(of Shape) float64 {
	s := max(2e-3, 80e-6*float64(of.Rows)) + 0.3e-3 + 20e-9*float64(of.Seen)
	return s * (1 + 0.03*w.rand.NormFloat64())
}

func newWorld(seed uint64, clients [][]arrival) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 7)), clients: clients, live: map[batch.ID]*asked{}}
	w.load.Limits = batch.Limits{Seqs: 16, Rows: 512, Wanted: 64, Beside: 128}
	w.load.Budget = batch.Budget{Rows: 512, Alone: 512, Fixed: 25}
	w.state = batch.New(w.load.Limits)
	for i := range 64 { // it was alone with some answers before
		of := Shape{Rows: 1 + i%4, Seen: 200 * (1 + i%4), Answer: true}
		w.load.Speed.Observe(of, seconds(w.cost(of)))
	}
	for _, c := range clients {
		w.due = append(w.due, c[0].pause)
	}
	return w
}

// run plays until all clients were answered.
func (w *world) run() {
	for {
		next, soonest := -1, math.Inf(1)
		for c := range w.clients {
			if len(w.clients[c]) > 0 && w.due[c] < soonest {
				next, soonest = c, w.due[c]
			}
		}
		switch {
		case soonest <= w.now:
			w.submit(next)
		case w.play(soonest):
		case next < 0:
			return
		default:
			w.now = soonest
		}
	}
}

func (w *world) submit(c int) {
	a := w.clients[c][0]
	w.clients[c] = w.clients[c][1:]
	w.due[c] = math.Inf(1)
	w.last++
	x := &asked{client: c, arrival: a, at: w.now, promised: w.rand.Float64() < w.share}
	l := w.load
	l.Seqs = w.state.Ahead(nil)
	f, ok := l.Predict([]Ask{{Client: strconv.Itoa(c), Prompt: a.prompt, Cached: a.cached, Most: a.most,
		Promised: x.promised}})
	if x.told = ok && w.last > 60 && (x.promised || w.share == 0); x.told {
		x.forecast = f[0]
	}
	w.live[w.last] = x
	q := &batch.Seq{ID: w.last, Tokens: make([]int32, a.prompt),
		Terms: &batch.Terms{Client: strconv.Itoa(c), Prompt: a.prompt, Cached: a.cached, MaxLen: a.prompt + a.most,
			Promised: x.promised}}
	w.state.Submit(q)
}

// play computes a step, if there is work. What comes during it waits.
func (w *world) play(float64) bool {
	for again := true; again; {
		again = false
		w.state.Share()
		for _, q := range w.state.Seqs() {
			r := w.state.NextKV(q)
			if r.Op == batch.KVNone {
				continue
			}
			cached := 0
			switch x := w.live[q.ID]; r.Op {
			case batch.KVOpen:
				cached = max(x.arrival.cached, x.left)
			case batch.KVClose: // its blocks stay in the prefix tree
				x.left = q.Done() / backend.BlockSize * backend.BlockSize
			}
			w.state.KVDone(q, r, nil, cached)
			again = true
			break
		}
	}
	w.parts, _ = w.state.Plan(&w.step, w.parts, w.load.Budget)
	if len(w.parts) == 0 {
		return false
	}
	of := Shape{Rows: len(w.step.Tokens)}
	for i, p := range w.parts {
		of.Seen += w.step.Spans[i].Seen()
		of.Prompt, of.Answer = of.Prompt || p.Rows > 1, of.Answer || p.Rows == 1
		of.Kept = of.Kept || p.Rows == 1 && p.Seq.Promised
	}
	took := w.cost(of)
	w.now += took
	w.state.Took(w.parts, seconds(took), 2300*time.Microsecond, w.load.Budget.Fixed)
	w.load.Speed.Observe(of, seconds(took))
	w.load.Newest = seconds(took)
	for _, p := range w.parts {
		w.state.Advance(p, 0)
		if p.Wanted > 0 {
			w.token(p.Seq)
		}
	}
	return true
}

func (w *world) token(q *batch.Seq) {
	x := w.live[q.ID]
	if x.got++; x.got == 1 {
		x.began = w.now
	}
	x.last = w.now
	end := w.state.Append(q, 0)
	w.state.Consumed(q, q.Sent())
	if end == batch.NotEnded && x.got < x.arrival.answer {
		return
	}
	w.state.Finish(q)
	w.load.Lengths.Observe(x.got, end == batch.NotEnded)
	if x.told {
		off := func(got, want float64) float64 { return math.Abs(got-want) / want }
		w.first = append(w.first, off(x.forecast.First.Seconds(), x.began-x.at))
		if x.got > 8 {
			w.each = append(w.each, off(x.forecast.Each.Seconds(), (x.last-x.began)/float64(x.got-1)))
		}
	}
	if left := w.clients[x.client]; len(left) > 0 {
		w.due[x.client] = w.now + left[0].pause
	}
}

// part is the least value that is not less than so great a part of all.
func part(all []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
