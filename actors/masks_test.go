package actors

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// masking runs the embedded model. With quick as 1, all masks are found beside steps but for those that cost nothing.
func masking(t *testing.T, quick int, before func()) *Engine {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	return startFile(t, f, func(c *Config) { c.quick, c.masking, c.Log = quick, before, zerolog.Nop() })
}

// dear are grammars whose masks take long after a few tokens, or from the first one on.
func dear() map[string]string {
	many, bodies := "root ::= (r0", ""
	for i := range 200 {
		many += fmt.Sprintf(" | r%d", i)
		bodies += fmt.Sprintf("\nr%d ::= [a-z ]{0,50}", i)
	}
	return map[string]string{
		"two of itself": "root ::= s\ns ::= [a-z ] s s | [a-z ]",
		"palindromes":   "root ::= s\ns ::= [a-z ] s [a-z ] | [a-z ]",
		"three rules":   "root ::= x\nx ::= [a-z ] y z | [a-z ]\ny ::= [a-z ] z x | [a-z ]\nz ::= [a-z ] x y | [a-z ]",
		"many rules":    many + ")*" + bodies,
	}
}

func gbnf(t *testing.T, text string) *grammar.Grammar {
	g, err := grammar.GBNF(text)
	require.NoError(t, err)
	return g
}

// TestDearGrammars: a request whose grammar takes too long ends with an error of its client's that says so, and those
// beside it are answered as they are alone.
func TestDearGrammars(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := startMini(t)
	ask := Request{Text: "Once upon a time", Sampling: greedy(), MaxTokens: 16}
	want := collect(t, begin(t, e, ask)).text
	for name, text := range dear() {
		t.Run(name, func(t *testing.T) {
			r := bound(gbnf(t, text), 1)
			r.Client = "another"
			s := begin(t, e, r)
			require.Equal(t, want, collect(t, begin(t, e, ask)).text)
			a, err := drain(s)
			require.ErrorAs(t, err, new(*refusal.Error))
			require.ErrorContains(t, err, fmt.Sprintf("after %d tokens of the answer, the grammar needs more than 1000000 "+
				"steps to find what may follow", len(a.tokens)))
		})
	}
	left(t, e)
}

// TestSamplerTakesNoLonger: however many sequences of a step have grammars, and whatever these take, the sampler takes
// no more steps of them than there is time for between two steps, and some for each.
func TestSamplerTakesNoLonger(t *testing.T) {
	e := startMini(t)
	cheap, err := grammar.GBNF(`root ::= "a"+`)
	require.NoError(t, err)
	s, m := &sampler{quick: constrain.Quick, left: constrain.Quick}, &step{results: make([]outcome, 32)}
	a, err := e.spec.vocab.Encode(nil, "a", token.Options{})
	require.NoError(t, err)
	var all []*constrain.Constraint
	for i := range m.results {
		g := gbnf(t, dear()["two of itself"])
		if i%4 == 3 {
			g = cheap
		}
		made, err := formed(g).Make()
		require.NoError(t, err)
		c := constrain.New(constrain.Answer{Bound: constrain.Bound{Grammar: made}, Vocab: e.spec.vocab, Trie: e.spec.trie(),
			Begins: func() *tools.Parser { return e.spec.parser(true, "", nil) }})
		require.NoError(t, c.Ready(nil))
		require.NoError(t, c.Follow(nil, constrain.Grant{Steps: 1e7}))
		all = append(all, c)
		m.results[i].unmasked = true
		s.bound = append(s.bound, chosen{c, a[len(a)-1], i})
	}
	before := 0
	for _, c := range all {
		before += c.Steps()
	}
	s.ahead(m)
	after := 0
	for i, c := range all {
		after += c.Steps()
		require.Equal(t, i%4 != 3, m.results[i].unmasked, "%d", i)
	}
	require.Less(t, after-before, constrain.Quick+constrain.Quick/10)
	for i, c := range all { // masks goes on where the sampler stopped
		require.NoError(t, c.Follow(a[len(a)-1:], constrain.Grant{Steps: 1e7}), "%d", i)
	}
}

// TestShareOfProposed: however many steps of grammars there are, masks of proposed rows are found at once by their
// share of them, all proposals of a step together, and the others by what is left.
func TestShareOfProposed(t *testing.T) {
	e := startMini(t)
	a, err := e.spec.vocab.Encode(nil, "a", token.Options{})
	require.NoError(t, err)
	id := a[len(a)-1]
	constrained := func() *constrain.Constraint {
		made, err := formed(gbnf(t, dear()["two of itself"])).Make()
		require.NoError(t, err)
		c := constrain.New(constrain.Answer{Bound: constrain.Bound{Grammar: made}, Vocab: e.spec.vocab, Trie: e.spec.trie(),
			Begins: func() *tools.Parser { return e.spec.parser(true, "", nil) }})
		require.NoError(t, c.Ready(nil))
		require.NoError(t, c.Follow(nil, constrain.Grant{Steps: 1e7}))
		return c
	}
	for _, quick := range []int{1, 3, 300, 3001} {
		s, m := &sampler{quick: quick}, &step{results: make([]outcome, 1)}
		s.step(m)
		var proposing []*constrain.Constraint
		before := 0
		for i := range 3 { // the first one is cut, and the next ones have nothing left
			c := constrained()
			before += c.Steps()
			proposing = append(proposing, c)
			r := &outcome{}
			require.True(t, s.binds(0, &sequence{bound: c}, r, id, true), "quick %d, proposal %d", quick, i)
			require.True(t, r.cut)
			require.True(t, r.unmasked)
		}
		tried := 0
		for _, c := range proposing {
			tried += c.Steps()
		}
		tried -= before
		const slack = 200 // a grammar looks at its grant from time to time
		require.Equal(t, quick-tried, s.left, "quick %d", quick)
		require.LessOrEqual(t, tried, quick/shareOfProposed+slack, "quick %d", quick)
		if quick/shareOfProposed == 0 {
			require.Zero(t, tried)
		}
	}
}

// gate blocks masks at the first one until it is opened, at the latest when the test ends.
type gate struct {
	entered, free chan struct{}
	once          sync.Once
}

func newGate() *gate { return &gate{entered: make(chan struct{}), free: make(chan struct{})} }

func (g *gate) pass() {
	g.once.Do(func() { close(g.entered) })
	<-g.free
}

// opener is called by the test, or when it ends.
func (g *gate) opener(t *testing.T) func() {
	open := sync.OnceFunc(func() { close(g.free) })
	t.Cleanup(open)
	return open
}

// TestMasksHoldNobodyUp: while a mask is being found, others are answered, and what the device waits for then is called
// by its name. Whoever goes meanwhile has given everything back, and no more work is done for it.
func TestMasksHoldNobodyUp(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	g := newGate()
	e := masking(t, 1, g.pass)
	open := g.opener(t)
	r := bound(gbnf(t, dear()["many rules"]), 1)
	s := begin(t, e, r)
	<-g.entered
	at := e.house.tenants[0].masking.Load().bound
	steps, waited := at.Steps(), func() bool { return e.house.DeviceTime().Idle[trace.Mask] > 0 }
	require.Eventually(t, waited, patient, time.Millisecond)
	ask := Request{Text: "Once upon a time", Sampling: greedy(), MaxTokens: 40}
	require.Len(t, collect(t, begin(t, e, ask)).tokens, 40)
	require.True(t, waited(), "when it is over, too")
	s.Close()
	left(t, e)
	open()
	_, err := drain(begin(t, e, r)) // after the other
	require.ErrorAs(t, err, new(*refusal.Error))
	require.Less(t, at.Steps()-steps, stretch+stretch/2)
	shut(t, e)
}

// TestMasksSurvive: an answer is the same if its masks are found beside steps, whoever dies on the way.
func TestMasksSurvive(t *testing.T) {
	r := bound(forms(t)[0], 1)
	want := collect(t, begin(t, masking(t, 0, nil), r)).text
	for _, name := range []string{"", "masks", "sampler", "scheduler", "session", "device"} {
		e := masking(t, 1, nil)
		victim := name
		for at := range 3 {
			s := begin(t, e, r)
			if name == "session" {
				victim = fmt.Sprintf("sessions/%d", e.opened.Load())
			}
			_, text := listen(t, s, func(n int) {
				if name != "" && n == 3*at {
					e.crash(victim)
				}
			})
			require.Equal(t, want, text, "%s dead at %d", name, 3*at)
		}
		left(t, e)
	}
}

// TestMasksDieOfARequest: a request of which masks die twice ends with an error, and others are answered.
func TestMasksDieOfARequest(t *testing.T) {
	var poison atomic.Bool
	e := masking(t, 1, func() {
		if poison.Load() {
			panic("poison")
		}
	})
	r := bound(forms(t)[0], 1)
	want := collect(t, begin(t, e, r)).text
	poison.Store(true)
	_, err := drain(begin(t, e, r))
	require.ErrorContains(t, err, "this request cannot be computed: finding what its grammar allows failed twice")
	require.False(t, errors.As(err, new(*refusal.Error)))
	poison.Store(false)
	require.Equal(t, want, collect(t, begin(t, e, r)).text)
	require.NoError(t, e.Health())
}

// TestMasksOfClients: a client with many dear masks keeps another's waiting for two of them at most: the one that is
// being found, and the one that waits already.
func TestMasksOfClients(t *testing.T) {
	var found []string
	g := newGate()
	var e *Engine
	e = masking(t, 1, func() {
		found = append(found, e.house.tenants[0].masking.Load().seq.Client)
		g.pass()
	})
	open := g.opener(t)
	var all []*Stream
	r := bound(gbnf(t, "root ::= (a | b)+\na ::= [a-z ]+\nb ::= [a-z ]+"), 1)
	r.MaxTokens = 2
	add := func(client string) {
		r.Client = client
		all = append(all, begin(t, e, r))
		require.Eventually(t, func() bool { s := e.Snapshot(); return int(s.Running+s.Waiting) == len(all) }, patient,
			time.Millisecond)
	}
	for range 8 {
		add("many")
	}
	add("one")
	open()
	for _, s := range all {
		require.Len(t, collect(t, s).tokens, 2)
	}
	shut(t, e)
	require.Equal(t, "many many one", strings.Join(found[:3], " "))
}
