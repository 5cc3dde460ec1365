package promise

import (
	"math"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/batch"
)

// Load is what a scheduler has to do, and how.
type Load struct {
	Limits batch.Limits
	Budget batch.Budget // of the next step
	Speed  Speed
	Seqs   []batch.Ahead // by arrival
	Flying Shape         // of the oldest step in flight; no rows: there is none
	Since  time.Duration // for which that has run
	Newest time.Duration // of the newest step that is back
	Lengths
}

// Ask is a request that has yet to be accepted.
type Ask struct {
	Client         string
	Prompt, Cached int  // tokens, and those of them that are in the cache
	Most           int  // tokens of the answer, at most
	Promised       bool // others will not hold it up
}

// Forecast is what is expected of an answer, from now on.
type Forecast struct {
	First time.Duration // until its first token
	Each  time.Duration // from one token to the next
}

// Whole is the time until an answer of so many tokens is there.
func (f *Forecast) Whole(tokens int) time.Duration {
	return f.First + time.Duration(max(tokens-1, 0))*f.Each
}

// Within is how many tokens are there after a time.
func (f *Forecast) Within(d time.Duration) int {
	if d < f.First || f.Each <= 0 {
		return 0
	}
	return 1 + int((d-f.First)/f.Each)
}

const (
	mostSteps = 2048 // that are played; what comes later is taken to be like them
	sampled   = 32   // tokens of an answer by which its rate is told
)

// Predict plays what comes, with these requests at the end of the queue, until the last of them has some tokens. It
// returns false if nothing is known of the speed.
func (l *Load) Predict(asks []Ask) ([]Forecast, bool) {
	if !l.Speed.Known() {
		return nil, false
	}
	p := player{load: l, costs: l.Speed.settle(), state: batch.New(limited(l.Limits))}
	p.begin()
	mine := len(p.all)
	for i := range asks {
		p.add(asks[i].Client, asks[i].Cached, asks[i].Prompt-asks[i].Cached, max(min(asks[i].Most, sampled), 1), true,
			asks[i].Promised)
	}
	if l.Flying.Rows > 0 {
		p.now = max(p.costs.step(l.Flying)-l.Since.Seconds(), 0)
	}
	all := p.all[mine:]
	for n := 0; n < mostSteps && p.step(); n++ {
		if done(all) {
			break
		}
	}
	out := make([]Forecast, len(all))
	for i := range all {
		if out[i] = p.forecast(&all[i]); mine > 0 { // others will come as others came
			out[i].Each = max(out[i].Each, l.Speed.paced(asks[i].Promised))
		}
	}
	return out, true
}

// limited is the limits of a player, who has no device and guesses nothing.
func limited(l batch.Limits) batch.Limits {
	l.Draws, l.Redo, l.Proposed = false, 0, 0
	return l
}

// player has the sequences and plays steps with them.
type player struct {
	load  *Load
	costs settled
	state *batch.State
	all   []played
	now   float64 // seconds from the prediction
	play  backend.Step
	parts []batch.Part
}

// played is a sequence. Its tokens are those that are still to be computed: their values do not matter.
type played struct {
	seq         *batch.Seq
	at          int // positions before them
	left        int // tokens to be read
	first, last float64
	got         int
}

// golden is the share by which ends are spread: multiples of it lie evenly between 0 and 1, however many there are.
const golden = 0.6180339887498949

// begin has the sequences of the load stand as they do: who runs has its place before others come. Of their answers
// some end soon and some late, as those that ended did.
func (p *player) begin() {
	l := p.load
	lengths := l.Lengths
	for i := range l.Seqs {
		lengths.came(l.Seqs[i].Sent)
	}
	p.state.Took(nil, l.Newest, 0, 0)
	for _, runs := range []bool{true, false} {
		for i := range l.Seqs {
			a := &l.Seqs[i]
			if a.Runs != runs {
				continue
			}
			_, share := math.Modf(float64(i+1) * golden)
			p.add(a.Client, a.At, a.Left, lengths.ends(a.Sent, max(a.Answer, 1), share), a.Reading, a.Promised)
			p.state.Resume(p.all[len(p.all)-1].seq, a)
		}
		p.serve()
	}
}

func (p *player) add(client string, at, left, answer int, reading, promised bool) {
	left = max(left, 1)
	t := &batch.Terms{Client: client, MaxLen: left + answer, Promised: promised}
	if reading {
		t.Prompt = left
	}
	q := &batch.Seq{Terms: t, ID: batch.ID(len(p.all) + 1), Tokens: make([]int32, left, left+min(answer, sampled))}
	p.all = append(p.all, played{seq: q, at: at, left: left})
	q.Owner = len(p.all) - 1
	p.state.Submit(q)
}

// done says whether all have as many tokens as tell their rates.
func done(all []played) bool {
	for i := range all {
		if q := &all[i]; q.got < sampled && q.left+q.got < q.seq.MaxLen {
			return false
		}
	}
	return true
}

// step plays one step; false: there is none.
func (p *player) step() bool {
	p.serve()
	p.parts, _ = p.state.Plan(&p.play, p.parts, p.load.Budget)
	if len(p.parts) == 0 {
		return false
	}
	of := Shape{Rows: len(p.play.Tokens)}
	for i := range p.parts {
		part, span := &p.parts[i], &p.play.Spans[i]
		of.Seen += span.Seen() + part.Rows*p.all[part.Seq.Owner.(int)].at // whose positions begin there
		of.Prompt = of.Prompt || part.Rows > 1
	}
	took := p.costs.step(of)
	p.now += took
	alone := p.costs.step(Shape{Rows: batch.Answers(p.parts)})
	p.state.Took(p.parts, seconds(took), seconds(alone), p.load.Budget.Fixed)
	for _, part := range p.parts {
		p.state.Advance(part, 0)
		if part.Wanted > 0 {
			p.token(part.Seq)
		}
	}
	return true
}

// serve gives all blocks that are asked for, and so places.
func (p *player) serve() {
	for asked := true; asked; {
		asked = false
		p.state.Share()
		for _, q := range p.state.Seqs() {
			if r := p.state.NextKV(q); r.Op != batch.KVNone {
				p.state.KVDone(q, r, nil, 0)
				asked = true
				break // the list may have changed
			}
		}
	}
}

func (p *player) token(q *batch.Seq) {
	x := &p.all[q.Owner.(int)]
	if x.got == 0 {
		x.first = p.now
	}
	x.last = p.now
	x.got++
	p.state.Append(q, 0)
	p.state.Consumed(q, q.Sent())
}

// forecast is what was played of a sequence, and what follows from that if it did not come to its end.
func (p *player) forecast(x *played) Forecast {
	if x.got == 0 { // it is as far from its first token as its rows say, at the pace so far
		share := float64(x.seq.Done()+1) / float64(x.left+1)
		x.first = p.now / share
		x.last = x.first
	}
	f := Forecast{First: seconds(x.first), Each: seconds(p.now / mostSteps)}
	if x.got > 1 {
		f.Each = seconds((x.last - x.first) / float64(x.got-1))
	} else if x.got == 1 || p.now == 0 {
		f.Each = seconds(p.costs.step(Shape{Rows: 1, Seen: x.at + x.left}))
	}
	return f
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
