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
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// twoModels is a target and its draft on one device.
type twoModels struct {
	target, draft *Engine
	on            *counted
	drafts        texts // what the draft said: the target is told
}

// modelIn is a file as a house of few places takes it in.
func modelIn(t *testing.T, name string, open func() (*gguf.File, error)) Model {
	f, err := open()
	require.NoError(t, err)
	return Model{Name: name, File: f, KV: backend.KVF32, Context: 256, Blocks: 9, Sequences: 4, Rows: 32}
}

// enterPair has both enter one house. The target is told what the draft said of a prompt, once that is known.
func enterPair(t *testing.T, d backend.Device, target, draft func() (*gguf.File, error)) *twoModels {
	p := &twoModels{on: &counted{Device: d}, drafts: texts{}}
	c := HouseConfig{Device: p.on, Log: zerolog.New(zerolog.NewTestWriter(t))}
	c.hooks.propose = p.drafts.proposer(10)
	h := opened(t, c)
	for _, m := range []Model{modelIn(t, "target", target), modelIn(t, "draft", draft)} {
		_, err := h.Enter(t.Context(), m)
		require.NoError(t, err)
	}
	p.target, p.draft = h.Engines()[0], h.Engines()[1]
	return p
}

// code is beginnings of programs.
func code(t *testing.T, e *Engine) (all [][]int32) {
	for _, text := range []string{"package main\n\nimport (\n\t\"fmt\"\n", "func (s *Server) Close() error {\n\tif err := ",
		"for i := 0; i < len(x); i++ {\n\t\tif x[i] "} {
		ids, err := e.spec.vocab.Encode(nil, text, token.Options{})
		require.NoError(t, err)
		all = append(all, ids)
	}
	return all
}

// likeliest are answers of the likeliest tokens, one after the other.
func likeliest(t *testing.T, e *Engine, all [][]int32, most int) (out []string) {
	for _, p := range all {
		out = append(out, spelled(t, begin(t, e, plain(p, most))))
	}
	return out
}

// A draft model is in its target's house, on the same device. What it says is tried by the target, whose answers are
// those that it gives alone, as the draft's are, whatever of either dies, and whatever dies that both share. The other
// one's actors do not notice.
func TestDraftSharesTheHouse(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	small := func() (*gguf.File, error) { return gguf.Open(fixturePath(t, fixture)) }
	for _, c := range []struct {
		name          string
		device        func(t *testing.T) backend.Device
		target, draft func() (*gguf.File, error)
		most          int
	}{
		{"processor", func(t *testing.T) backend.Device { return newDevice(t) },
			func() (*gguf.File, error) { return gguf.Parse(mini.Name, mini.GGUF) },
			func() (*gguf.File, error) {
				return gguf.Open(filepath.Join(testref.Dir(t), "models", "draft-bf16.gguf"))
			}, 24},
		{"card", func(t *testing.T) backend.Device { return devicetest.Played(t) }, small, small, 12},
	} {
		if testing.Short() && c.most > 12 {
			continue // the models are larger
		}
		t.Run(c.name, func(t *testing.T) {
			all := prompts(3)
			alone := func(name string, open func() (*gguf.File, error)) []string {
				h := emptyHouse(t, c.device(t))
				e, err := h.Enter(t.Context(), modelIn(t, name, open))
				require.NoError(t, err)
				if e.Info.Vocab > 1000 { // it was trained, and goes on from code as others do
					all = code(t, e)
				}
				return likeliest(t, e, all, c.most)
			}
			want := map[string][]string{"target": alone("target", c.target), "draft": alone("draft", c.draft)}
			p := enterPair(t, c.device(t), c.target, c.draft)
			require.EqualValues(t, 2, p.on.models.Load(), "of one device")
			var asked []Request
			for _, prompt := range all {
				asked = append(asked, plain(prompt, c.most))
			}
			p.drafts.learn(t, p.draft, asked)
			p.both(t, all, want, c.most, "nobody")
			require.Positive(t, p.target.Snapshot().Accepted)
			for _, victim := range ofModel {
				p.killed(t, victim, p.draft, p.target, all, want, c.most)
				p.killed(t, victim, p.target, p.draft, all, want, c.most)
			}
			for _, victim := range ofHouse {
				p.draft.crash(victim)
				p.both(t, all, want, c.most, victim)
			}
			clear(p.drafts)
			require.NoError(t, p.draft.Leave(t.Context()))
			require.EqualValues(t, 1, p.on.models.Load())
			require.Equal(t, want["target"], likeliest(t, p.target, all, c.most), "when the draft has left")
		})
	}
}

// both has the two answer at once, while something of either may be on its way back.
func (p *twoModels) both(t *testing.T, all [][]int32, want map[string][]string, most int, victim string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, e := range []*Engine{p.target, p.draft} {
		for i, prompt := range all {
			wg.Go(func() {
				if got, err := trySpelled(begin(t, e, plain(prompt, most))); err != nil || got != want[e.Info.Name][i] {
					t.Errorf("%s dies; %s, prompt %d: error %v\n got %s\nwant %s", victim, e.Info.Name, i, err, got,
						want[e.Info.Name][i])
				}
			})
		}
	}
	wg.Wait()
}

// killed ends an actor of one while both answer. Nothing of the other one starts again.
func (p *twoModels) killed(t *testing.T, victim string, one, other *Engine, all [][]int32, want map[string][]string,
	most int) {
	t.Helper()
	if victim == "session" {
		return // its request ends with it, which other tests hold
	}
	before := restartsOf(other)
	time.AfterFunc(time.Millisecond, func() { one.crash(victim) }) // a moment, whichever
	p.both(t, all, want, most, one.Info.Name+"/"+victim)
	require.Equal(t, before, restartsOf(other), "%s of %s died", victim, one.Info.Name)
	require.NoError(t, other.Health())
}

// restartsOf is how often actors of a model have died that no other one shares.
func restartsOf(e *Engine) (n uint64) {
	for _, a := range e.Status() {
		n += a.Restarts
	}
	return n
}
