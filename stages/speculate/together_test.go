package speculate_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/speculate"
)

// card has several sequences answer on a device that draws tokens and has two steps in flight, as the scheduler does,
// in a time of its own, whose unit is a step of one row.
type card struct {
	texts   [][]int32 // of prompts and whole answers
	each    float64   // what a row costs beside the first
	host    float64   // from a step's end to the next one that waits for it
	guesses bool

	state  *batch.State
	clock  *speculate.Clock
	all    []*batch.Seq
	owners map[*batch.Seq]*speculate.Adaptive
	flying []*flight
	spare  []*flight
	now    float64 // when the host is free
	busy   float64 // until when the device is
	ended  float64 // when the newest step ended that is back
}

type flight struct {
	step            backend.Step
	parts           []batch.Part
	planned, end    float64
	rows, proposals int
}

// run answers prompts of so many tokens until the first answer is whole, and returns how many tokens came since all
// prompts were read, and in what time.
func (c *card) run(prompt int) (tokens int, took float64) {
	c.state = batch.New(batch.Limits{Seqs: 8, Rows: 4096, Beside: 4096, Wanted: 128, Draws: true,
		Proposed: speculate.MostGuesses})
	c.clock = speculate.NewClock(speculate.Shape{Fixed: 1, Row: 0.1})
	c.spare, c.owners = []*flight{{}, {}}, map[*batch.Seq]*speculate.Adaptive{}
	for i := range c.texts {
		c.submit(i, prompt)
	}
	from, before := 0.0, 0
	for end := false; !end; {
		c.grant()
		for len(c.spare) > 0 && c.plan() {
		}
		f := c.flying[0]
		c.flying, c.spare = c.flying[1:], append(c.spare, f)
		c.now = max(c.now, f.end) + c.host
		end = c.settle(f)
		if before == 0 { // all prompts are read in the first step
			from, before = c.now, c.tokens()
		}
	}
	return c.tokens() - before, c.now - from
}

func (c *card) submit(i, prompt int) {
	text := c.texts[i]
	q := &batch.Seq{ID: batch.ID(i + 1), Owner: i, Tokens: append(make([]int32, 0, len(text)), text[:prompt]...),
		Terms: &batch.Terms{Prompt: prompt, MaxLen: len(text)}}
	if c.guesses {
		c.owners[q] = speculate.NewAdaptive(speculate.NewNGram(text[:prompt], len(text)), c.clock, nil)
		q.Proposer = c.owners[q]
	}
	c.state.Submit(q)
	c.all = append(c.all, q)
}

func (c *card) tokens() (n int) {
	for _, q := range c.all {
		n += len(q.Tokens)
	}
	return n
}

// grant gives every sequence the memory that it wants, and has its client read.
func (c *card) grant() {
	for _, q := range c.all {
		c.state.Consumed(q, q.Sent())
		for r := c.state.NextKV(q); r.Op != batch.KVNone; r = c.state.NextKV(q) {
			c.state.KVDone(q, r, nil, 0)
		}
	}
}

func (c *card) plan() bool {
	f := c.spare[0]
	f.parts, _ = c.state.Plan(&f.step, f.parts, batch.Budget{Rows: 4096, Alone: 4096, Fixed: 8})
	if len(f.parts) == 0 {
		return false
	}
	c.spare, c.flying = c.spare[1:], append(c.flying, f)
	f.rows, f.proposals = len(f.step.Tokens), 0
	for _, p := range f.parts {
		f.proposals += p.Proposed
	}
	f.planned, f.end = c.now, max(c.busy, c.now)+1+c.each*float64(f.rows-1)
	c.busy = f.end
	return true
}

// settle takes a step back, and says whether an answer is whole.
func (c *card) settle(f *flight) (end bool) {
	from := c.ended
	if f.proposals == 0 {
		from = max(from, f.planned)
	}
	c.ended = f.end
	if f.parts[0].Answers() {
		c.clock.Observe(f.rows, f.proposals, time.Duration((f.end-from)*float64(time.Millisecond)))
	}
	row := 0
	for _, p := range f.parts {
		row += p.Rows
		q, text, right := p.Seq, c.texts[p.Seq.Owner.(int)], 0
		for _, token := range f.step.Tokens[row-p.Proposed : row] {
			if token != text[len(q.Tokens)+right] {
				break
			}
			right++
		}
		c.state.Advance(p, right)
		if a := c.owners[q]; a != nil && p.Proposed > 0 {
			a.Settle(p.Proposed, right)
		}
		for range min(p.Wanted, right+1) {
			end = c.state.Append(q, text[len(q.Tokens)]) != batch.NotEnded || end
		}
	}
	return end
}

// story is a text of n tokens. Where its last two tokens were there before it goes on as it did then, with the
// probability again; else by any of so many words.
func story(r *rand.Rand, n, words int, again float64) []int32 {
	text, last := make([]int32, 0, n), map[[2]int32]int{}
	for len(text) < n {
		next := r.Int32N(int32(words))
		if i := len(text); i > 1 {
			key := [2]int32{text[i-2], text[i-1]}
			if at, ok := last[key]; ok && r.Float64() < again {
				next = text[at]
			}
			last[key] = i
		}
		text = append(text, next)
	}
	return text
}

// Guesses lose next to nothing on a device that has two steps in flight, whatever rows and the host cost and however
// often the text goes on as before; and where it often does, several sequences gain as much as one.
func TestNothingIsLostInFlight(t *testing.T) {
	gain := func(n int, again, each, host float64) float64 {
		var texts [][]int32
		for i := range n {
			texts = append(texts, story(rand.New(rand.NewPCG(uint64(i), 7)), 1200, 12, again))
		}
		speed := map[bool]float64{}
		for _, guesses := range []bool{false, true} {
			c := &card{each: each, host: host, guesses: guesses, texts: texts}
			tokens, took := c.run(300)
			speed[guesses] = float64(tokens) / took
		}
		return speed[true] / speed[false]
	}
	for _, n := range []int{1, 2, 4, 8} {
		for _, again := range []float64{0.1, 0.3, 0.5, 0.7, 0.9} {
			for _, each := range []float64{0.01, 0.1, 0.4} {
				require.Greater(t, gain(n, again, each, 0.1), 0.98, "%d sequences, %.1f again, %.2f a row", n, again, each)
			}
		}
		require.Greater(t, gain(n, 0.98, 0.01, 0.03), 4.0, "%d sequences", n)
	}
}
