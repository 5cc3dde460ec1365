package actors

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// draftedBy has a fixture guess tokens.
func draftedBy(t testing.TB, name string) func(*Config) {
	return func(c *Config) {
		c.took = time.Millisecond
		if c.Speculate {
			f, err := gguf.Open(fixturePath(t, name))
			require.NoError(t, err)
			c.Draft, c.DraftOnly = f, true
		}
	}
}

// Law Unseen, with a draft model: one that knows the answers, but for those of few bits, and one that knows nothing.
func TestUnseenDrafted(t *testing.T) {
	s := unseenOf(t, fixture, requestsUnseen(48, 1), draftedBy(t, fixture))
	require.Positive(t, s.DraftedRight)
	require.Equal(t, s.Accepted, s.DraftedRight, "nobody else guesses")
	require.Greater(t, float64(s.DraftedRight), 0.8*float64(s.Drafted))
	fixturePath(t, "qwen2")
	s = unseenOf(t, fixture, requestsUnseen(24, 4), draftedBy(t, "qwen2"))
	require.Positive(t, s.Drafted)
	require.Less(t, s.Drafted, s.Generated/3, "it stops by itself")
}

// Law Unseen, with a draft model beside the text, and too few blocks for all.
func TestUnseenDraftedCrowded(t *testing.T) {
	s := unseenOf(t, fixture, 24, func(c *Config) {
		draftedBy(t, fixture)(c)
		c.DraftOnly, c.Blocks, c.Rows = false, 9, 32
	})
	require.Positive(t, s.DraftedRight)
}

// Law Unseen, with a draft model on a card that draws tokens itself.
func TestUnseenDraftedOnCard(t *testing.T) {
	s := unseenOf(t, fixture, 10, func(c *Config) {
		draftedBy(t, fixture)(c)
		c.Device = devicetest.Played(t)
	})
	require.Positive(t, s.DraftedRight)
}

// A card that draws tokens itself is a step ahead of what the scheduler knows, and a draft model guesses all the same.
func TestDraftedAhead(t *testing.T) {
	e := startFixture(t, fixture, func(c *Config) {
		c.Device, c.Speculate = devicetest.Played(t), true
		draftedBy(t, fixture)(c)
	})
	for n := 0; e.Snapshot().DraftedRight == 0; n++ {
		require.Less(t, n, 5, "nothing is guessed")
		spelled(t, begin(t, e, plain(prompts(1)[0], 40)))
	}
}

// Whatever of a draft model dies, and whatever it shares with its target, answers are those without it; the target does
// not notice, and has it guess again.
func TestDraftDies(t *testing.T) {
	open := func() (*gguf.File, error) { return gguf.Open(fixturePath(t, fixture)) }
	draftDies(t, open, func(m *Model) {
		draft, err := open()
		require.NoError(t, err)
		m.Draft = draft
	})
}

// A head dies as a draft model does.
func TestHeadDies(t *testing.T) {
	path := headedFile(t, "hybrid")
	draftDies(t, func() (*gguf.File, error) { return gguf.Open(path) }, func(m *Model) {
		m.Draft, m.Heads = m.File.Share(), true
	})
}

func draftDies(t *testing.T, open func() (*gguf.File, error), edit func(*Model)) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(3)
	alone, err := open()
	require.NoError(t, err)
	want := likeliest(t, startFile(t, alone, nil), all, 40)
	h := emptyHouse(t, newDevice(t))
	m := modelIn(t, "target", open)
	m.DraftOnly, m.Speculate = true, true
	edit(&m)
	h.took = time.Millisecond
	e, err := h.Enter(t.Context(), m)
	require.NoError(t, err)
	require.Len(t, h.Engines(), 1)
	together := func(victim string) {
		t.Helper()
		var wg sync.WaitGroup
		for i, p := range all {
			wg.Go(func() {
				if got, err := trySpelled(begin(t, e, plain(p, 40))); err != nil || got != want[i] {
					t.Errorf("%s dies; prompt %d: error %v\n got %s\nwant %s", victim, i, err, got, want[i])
				}
			})
		}
		wg.Wait()
	}
	guesses := func(victim string) {
		t.Helper()
		before := e.Snapshot().DraftedRight
		for range 20 {
			if together(victim); e.Snapshot().DraftedRight > before {
				return
			}
		}
		t.Errorf("after %s died nothing is guessed", victim)
	}
	guesses("nobody")
	for _, victim := range []string{"scheduler", "kv", "sampler", "mover", "model"} {
		before := restartsOf(e)
		time.AfterFunc(time.Millisecond, func() { e.crash("draft/" + victim) }) // a moment, whichever
		guesses("the draft's " + victim)
		require.Equal(t, before, restartsOf(e), "of the target")
	}
	for _, victim := range []string{"scheduler", "kv", "sampler", "model", "sessions"} {
		time.AfterFunc(time.Millisecond, func() { e.crash(victim) })
		guesses("the target's " + victim)
	}
	for _, victim := range ofHouse {
		time.AfterFunc(time.Millisecond, func() { e.crash(victim) })
		guesses(victim)
	}
	e.draft.fail(errNoBlocks) // for good
	together("the draft")
	require.NoError(t, e.Health())
	before := e.Snapshot().Drafted
	together("the draft, before")
	require.Equal(t, before, e.Snapshot().Drafted)
	require.NoError(t, e.Leave(t.Context()))
	require.Empty(t, h.tenants)
}

// A sequence that an older incarnation asked guesses for may be dropped late. Steps of this one wait for none of them.
func TestDropOfAnOlderScheduler(t *testing.T) {
	d, old := drafting{incarnation: 1}, &sequence{}
	for _, waits := range []bool{false, true} {
		old.draft = &draft{of: old, by: 0, due: true, ask: follow{waits: waits}}
		d.drop(old)
		require.Nil(t, old.draft)
		require.Zero(t, d.due)
		require.Zero(t, d.reading)
	}
}

// A model that does not fit as a draft is refused with words, and files are closed.
func TestDraftMustFit(t *testing.T) {
	open := func(path string) *gguf.File {
		f, err := gguf.Open(path)
		require.NoError(t, err)
		return f
	}
	start := func(draft *gguf.File) error {
		f, err := gguf.Parse(mini.Name, mini.GGUF)
		require.NoError(t, err)
		_, err = Start(t.Context(), Config{Log: zerolog.Nop(), Device: newDevice(t),
			Model: Model{File: f, Context: 256, Speculate: true, Draft: draft}})
		return err
	}
	err := start(open(fixturePath(t, fixture)))
	require.ErrorContains(t, err, "cannot guess tokens for")
	require.ErrorContains(t, err, "their vocabularies differ: one has 8192 tokens, the other ")
}

// TestPlanOfDraft: a plan counts a draft model's memory, and its weights come out of the budget.
func TestPlanOfDraft(t *testing.T) {
	open := func() (*gguf.File, *gguf.File) {
		f, err := gguf.Parse(mini.Name, mini.GGUF)
		require.NoError(t, err)
		d, err := gguf.Open(filepath.Join(testref.Dir(t), "models", "draft-bf16.gguf"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		return f, d
	}
	f, d := open()
	device := newDevice(t)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	p, err := PlanFor(&Model{File: f, Context: 1024, Sequences: 2, Speculate: true, Draft: d}, device)
	require.NoError(t, err)
	require.NotNil(t, p.Draft)
	require.Equal(t, p.Info.Context, p.Draft.Info.Context)
	require.Positive(t, p.Draft.Memory.KV)
	require.Greater(t, p.Draft.Memory.Weights, int64(10<<20))
	const ram = 20 << 20
	p, err = PlanFor(&Model{File: f, Context: 1024, Sequences: 2, Speculate: true, Draft: d, Weights: ram}, device)
	require.NoError(t, err)
	require.LessOrEqual(t, p.Model.Host().Weights+p.Draft.Model.Host().Weights+p.Slabs, int64(ram))
	_, err = PlanFor(&Model{File: f, Context: 1024, Speculate: true, Draft: d, Weights: 8 << 20}, device)
	require.ErrorContains(t, err, "the draft model's weights alone take 10 MiB")

	const memory = 2 << 30 // others may have taken some of it since the budget was found
	models := []Model{{File: f, Context: 512, Speculate: true, Draft: d, Weights: place.ForWeights(memory, false)}}
	for _, left := range []int64{memory, memory - 8<<20, memory - 64<<20, memory / 2} {
		all, err := fitted(models, device.Traits(), left, nil)
		require.NoError(t, err, "%d MiB", left>>20)
		require.False(t, all.plan.Models[1].Streams(), "%d MiB", left>>20)
	}
}
