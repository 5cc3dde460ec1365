package actors

import (
	"bytes"
	"encoding/json"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/sample"
)

// reel is a tape that is kept in memory. Each trace of it begins where the one before was lost.
type reel struct {
	*Tape
	mu     sync.Mutex
	traces [][]byte
	parted bool
	slow   chan struct{} // if it is not nil, Append waits for it
	closed bool
}

func newReel() *reel { return newSlowReel(nil) }

func newSlowReel(slow chan struct{}) *reel {
	r := &reel{parted: true, slow: slow}
	r.Tape = NewTape(r, true)
	return r
}

func (r *reel) Append(records []byte, head func() []byte) {
	if r.slow != nil {
		<-r.slow
	}
	if r.mu.Lock(); r.parted {
		r.mu.Unlock()
		begin := head()
		r.mu.Lock()
		r.traces, r.parted = append(r.traces, begin), false
	}
	defer r.mu.Unlock()
	last := len(r.traces) - 1
	r.traces[last] = append(r.traces[last], records...)
}

func (r *reel) Lost(error) { r.parted = true }
func (r *reel) Close()     { r.closed = true }

// end ends the tape, and returns what is on it, but for what came before it was parted.
func (r *reel) end() []byte {
	r.Tape.Close()
	return r.traces[len(r.traces)-1]
}

func (r *reel) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, t := range r.traces {
		n += len(t)
	}
	return n
}

// TestTapeLosesLittle: what is recorded is written within half a second, also while more comes all the time.
func TestTapeLosesLittle(t *testing.T) {
	defer goleak.VerifyNone(t)
	synctest.Test(t, func(t *testing.T) {
		tape, m := newReel(), &tokentrace.Model{}
		tape.begin(m)
		synctest.Wait()
		before := tape.size()
		for i := range 500 {
			tape.write(m, &tokentrace.Drawn{Token: int32(i % 100)}, false)
			time.Sleep(10 * time.Millisecond)
			written := (tape.size() - before) / 4 // bytes of a record
			require.GreaterOrEqual(t, written, i-int(tapedEvery/(10*time.Millisecond)))
		}
		tape.write(m, &tokentrace.End{}, true)
		written := tape.size()
		synctest.Wait()
		require.Greater(t, tape.size(), written, "who reads along waits for an end")
		tape.write(m, &tokentrace.Drawn{Token: 7}, false)
		all := recorded(t, tape.end())
		require.Equal(t, &tokentrace.Drawn{Token: 7}, all[len(all)-1])
		require.True(t, tape.closed)
	})
}

// TestSlowTape: while a disk does not write, memory is bounded. What is written then begins a trace that can be read,
// with all models that it is of.
func TestSlowTape(t *testing.T) {
	tape := newSlowReel(make(chan struct{}))
	a, b := &tokentrace.Model{Name: "a"}, &tokentrace.Model{Name: "b"}
	tape.begin(a)
	tape.begin(b)
	require.Eventually(t, func() bool {
		tape.Tape.mu.Lock()
		defer tape.Tape.mu.Unlock()
		return tape.spare == nil
	}, patient, time.Millisecond, "the first records are being written")
	const most = 1 << 20
	tape.Tape.mu.Lock()
	tape.most = most
	tape.Tape.mu.Unlock()
	prompt := make([]int32, 1<<14)
	for range 3 * most / len(prompt) {
		tape.write(a, &tokentrace.Open{Prompt: prompt}, false)
		tape.Tape.mu.Lock()
		waits := tape.waiting.Len()
		tape.Tape.mu.Unlock()
		require.LessOrEqual(t, waits, most)
	}
	tape.write(a, &tokentrace.Drawn{Token: 8}, false)
	close(tape.slow)
	require.Eventually(t, func() bool { return tape.size() > 0 }, patient, time.Millisecond)
	tape.write(a, &tokentrace.Drawn{Token: 9}, false)
	all := recorded(t, tape.end())
	traces := len(tape.traces)
	require.Equal(t, 2, traces)
	require.Equal(t, &tokentrace.Drawn{Token: 9}, all[len(all)-1])
}

// TestTapeOfSeveralModels: events keep their models, of which those that left are forgotten.
func TestTapeOfSeveralModels(t *testing.T) {
	tape := newReel()
	for i, name := range []string{"a", "b", "c"} {
		m := &tokentrace.Model{Name: name}
		tape.begin(m)
		require.Equal(t, i, m.Number)
		tape.write(m, &tokentrace.Drawn{Token: int32(i)}, true)
		tape.Tape.end(m)
	}
	tape.hurry <- struct{}{} // only its own goroutine may flush
	require.Eventually(t, func() bool {
		tape.Tape.mu.Lock()
		defer tape.Tape.mu.Unlock()
		return len(tape.models) == 0
	}, patient, time.Millisecond)
	r, err := tokentrace.NewReader(bytes.NewReader(tape.end()))
	require.NoError(t, err)
	for i, name := range []string{"a", "b", "c"} {
		e, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, &tokentrace.Drawn{Token: int32(i)}, e)
		require.Equal(t, name, r.Model.Name)
	}
}

// TestBatchesStandAlone: a batch that begins a trace says whose its events are, though the batch before it said so.
func TestBatchesStandAlone(t *testing.T) {
	tape := newReel()
	a, b := &tokentrace.Model{Name: "a"}, &tokentrace.Model{Name: "b"}
	tape.begin(a)
	tape.begin(b)
	tape.write(a, &tokentrace.Drawn{Token: 1}, true)
	require.Eventually(t, func() bool { return tape.size() > 0 }, patient, time.Millisecond)
	tape.mu.Lock()
	tape.parted = true
	tape.mu.Unlock()
	tape.write(a, &tokentrace.Drawn{Token: 2}, false)
	r, err := tokentrace.NewReader(bytes.NewReader(tape.end()))
	require.NoError(t, err)
	_, err = r.Next()
	require.NoError(t, err)
	require.Equal(t, "a", r.Model.Name)
}

// mixture is requests of all kinds.
func mixture(t *testing.T, e *Engine) (all []Request) {
	for i, p := range prompts(24) {
		r := ask(p, 12+i)
		s := &r.Sampling
		switch i % 6 {
		case 1:
			r = plain(p, 12+i)
		case 2:
			r = Request{Tokens: p, MaxTokens: 60, Sampling: *s, Stop: []string{},
				Form: constrain.Source{Kind: constrain.Regex, Texts: []string{"[a-f]{4,9}(x|y)z+"}}.Form("regex")}
		case 3:
			s.DRY.Multiplier, s.DRY.Breakers = 2, sample.NewBreakers([][]int32{{5}, {6, 7}})
			s.Bias = []sample.Bias{{ID: 9, Add: float32(math.Inf(-1))}, {ID: 10, Add: 1.5}}
		case 4:
			s.XTCProbability, s.TypicalP, s.TopNSigma, s.DynTempRange, s.Mirostat = 0.5, 0.9, 2, 0.3, 0
		case 5:
			before := collect(t, begin(t, e, r))
			r.Drawn, r.Drift, s.Mirostat = before.tokens[:5], -4, 2
		}
		r.ID, r.Client = string(rune('a'+i)), string(rune('A'+i%3))
		all = append(all, r)
	}
	return all
}

// TestRecordedAgain: what a trace says of requests of all kinds is enough to answer them again, to the same tokens;
// also where what they are computed by has failed meanwhile.
func TestRecordedAgain(t *testing.T) {
	defer goleak.VerifyNone(t)
	tape := newReel()
	e := startFixture(t, fixture, nil)
	all := mixture(t, e)
	shut(t, e)
	e = startFixture(t, fixture, func(c *Config) { c.Tapes = []*Tape{tape.Tape} })
	var wait sync.WaitGroup
	for i, r := range all {
		s := begin(t, e, r)
		wait.Go(func() { collect(t, s) })
		if i == len(all)/2 {
			e.crash("scheduler")
		}
	}
	wait.Wait()
	shut(t, e)

	open, drawn := map[uint64]*tokentrace.Open{}, map[uint64][]int32{}
	for _, event := range recorded(t, tape.end()) {
		switch x := event.(type) {
		case *tokentrace.Open:
			open[x.Sequence] = x
			require.NotEmpty(t, x.Text)
		case *tokentrace.Drawn:
			drawn[x.Sequence] = append(drawn[x.Sequence], x.Token)
		}
	}
	require.GreaterOrEqual(t, len(open), len(all))
	e = startFixture(t, fixture, nil)
	ids := map[string]bool{}
	for sequence, x := range open {
		if len(drawn[sequence]) == 0 {
			continue
		}
		var said Recorded
		r, err := said.Again(x.Settings, x.Prompt, len(drawn[sequence]))
		require.NoError(t, err)
		ids[said.ID] = true
		require.Equal(t, drawn[sequence], collect(t, begin(t, e, r)).tokens, "%s", x.Settings)
	}
	require.Len(t, ids, len(all))
	shut(t, e)
}

// TestNotAgain: a request that the trace does not hold is not answered otherwise.
func TestNotAgain(t *testing.T) {
	settings := func(edit func(*Recorded)) []byte {
		r := Recorded{Params: sample.Defaults()}
		edit(&r)
		text, err := json.Marshal(&r)
		require.NoError(t, err)
		return text
	}
	for want, text := range map[string][]byte{
		"does not say how it was answered":        nil,
		"its settings are":                        []byte("{"),
		"was answered with: pictures":             settings(func(r *Recorded) { r.Beyond = "pictures" }),
		"does not have the form of its answer":    settings(func(r *Recorded) { r.Masked = true }),
		"3 of its 3 tokens are said to have been": settings(func(r *Recorded) { r.Drawn = 3 }),
		"-1 of its 3 tokens":                      settings(func(r *Recorded) { r.Drawn = -1 }),
	} {
		_, err := new(Recorded).Again(text, []int32{1, 2, 3}, 1)
		require.ErrorContains(t, err, want)
	}
}

// TestWaitedIsRecorded: the times of a token trace sum to the request's account, less what is below a microsecond each.
func TestWaitedIsRecorded(t *testing.T) {
	tape := newReel()
	e := startFixture(t, fixture, func(c *Config) { c.Tapes = []*Tape{tape.Tape} })
	s := begin(t, e, plain([]int32{5, 6, 7}, 20))
	collect(t, s)
	spent := s.Usage().Spent
	shut(t, e)
	sum, tokens := [bill.Causes]time.Duration{}, 0
	for _, event := range recorded(t, tape.end()) {
		switch x := event.(type) {
		case *tokentrace.Waited:
			for _, s := range x.For {
				sum[s.Cause] += time.Duration(s.Time) * time.Microsecond
			}
		case *tokentrace.Drawn:
			tokens++
		}
	}
	require.Equal(t, 20, tokens)
	for c := range bill.Causes {
		if c != bill.Write { // goes on after the last token
			require.InDelta(t, spent.Of(c), sum[c], float64(21*time.Microsecond), c.String())
		}
	}
	require.Positive(t, sum[bill.Compute])
}

// BenchmarkTape: a step of eight answers, and their tokens.
func BenchmarkTape(b *testing.B) {
	const answers = 8
	tape := NewTape(nowhere{}, false)
	defer tape.Close()
	m := &tokentrace.Model{}
	tape.begin(m)
	track := &track{began: now(), on: []taped{{tape, m}}}
	s := &step{compute: &backend.Step{}, budget: batch.Budget{Rows: 512, Alone: 512, Fixed: 40}}
	all := make([]*sequence, answers)
	for i := range all {
		all[i] = &sequence{Seq: batch.Seq{ID: batch.ID(1000 + i)}}
		all[i].spending.bill = bill.Begin(now())
		s.parts = append(s.parts, batch.Part{Seq: &all[i].Seq})
		s.compute.Spans = append(s.compute.Spans, backend.Span{Pos: 1000, Rows: 1, Row: i})
		s.compute.Tokens = append(s.compute.Tokens, int32(20000+i))
	}
	at := now()
	b.ReportAllocs()
	for b.Loop() {
		track.step(s)
		at = at.Add(3 * time.Millisecond)
		for i, h := range all {
			h.spending.bill.Until(at.Add(-time.Millisecond), bill.Compute)
			h.spending.bill.Until(at, bill.Sampling)
			track.drawn(h, int32(20000+i))
		}
	}
}

type nowhere struct{}

func (nowhere) Append([]byte, func() []byte) {}
func (nowhere) Lost(error)                   {}
func (nowhere) Close()                       {}
