package actors

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/storage/kvfiles"
	"github.com/sluice-ai/sluice/storage/sessionfiles"
)

// saving has sessions of the engines in a folder.
func saving(t *testing.T, path string) *Sessions {
	f, err := sessionfiles.OpenFolder(path, 64<<20)
	require.NoError(t, err)
	return KeepSessions(f, zerolog.Nop())
}

// known says which model the engine runs, so that its sessions can be saved.
func known(c *Config) { c.Kept.Weights = "fixture" }

// talked answers a prompt in a slot, and returns a prompt that goes on from the answer.
func talked(t *testing.T, e *Engine, p []int32, slot Slot) []int32 {
	r := ask(p, 80)
	r.Slot = &slot
	s := begin(t, e, r)
	defer s.Close()
	var ev Event
	text := slices.Clone(p)
	for {
		err := s.Next(t.Context(), &ev)
		if errors.Is(err, io.EOF) {
			return append(text, p[:20]...)
		}
		require.NoError(t, err)
		text = append(text, ev.Token)
	}
}

// Law Recompute: a session that was saved, and restored by another process, goes on with the bits of one undisturbed
// conversation, in every format of caches, of states too; what the file has is not computed again.
func TestRecomputeSavedSessions(t *testing.T) {
	tq4, err := backend.ParseKV("tq4")
	require.NoError(t, err)
	for _, test := range []struct {
		fixture string
		kv      backend.KV
	}{
		{fixture, backend.KVF16}, {fixture, backend.KVQ8}, {fixture, tq4}, {"gemma3", backend.KVF16},
		{"gemma3", backendtest.Toy()}, {"mamba2", backend.KVF32}, {"qwen3next", backend.KVF32}, {"qwen3next", tq4},
	} {
		t.Run(test.fixture+" "+test.kv.String(), func(t *testing.T) {
			savedAlike(t, test.fixture, func(c *Config) { caches(t, c, test.kv) })
		})
	}
}

// requireCached expects so many positions of a prompt to be found; a device that computes prompts apart computes those
// of earlier answers anew.
func requireCached(t *testing.T, e *Engine, want int, s *Stream) {
	t.Helper()
	if apart := e.house.device.Traits().Apart; apart != nil && apart(e.spec.bound) {
		require.LessOrEqual(t, s.Usage().Cached, want)
		return
	}
	require.Equal(t, want, s.Usage().Cached)
}

func savedAlike(t *testing.T, name string, edit func(*Config)) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	p, path, slot := longPrompts(2)[0], t.TempDir(), Slot{"k", 2}
	e := startFixture(t, name, func(c *Config) { wide(c); edit(c); known(c) })
	next := talked(t, e, p, slot)
	saved, err := saving(t, path).Save(e, slot, "a talk")
	require.NoError(t, err)
	computed := (len(next) - 20 - 1) / backend.BlockSize * backend.BlockSize // without the last token drawn
	require.Equal(t, computed, saved.Tokens)
	want := spelled(t, begin(t, e, ask(next, 12)))
	shut(t, e)

	cold := startFixture(t, name, func(c *Config) { wide(c); edit(c); known(c) })
	require.Equal(t, want, spelled(t, begin(t, cold, ask(next, 12))))
	for range 2 { // the second time all of it is cached
		again := startFixture(t, name, func(c *Config) { wide(c); edit(c); known(c) })
		s := saving(t, path)
		for range 2 {
			m, err := s.Restore(again, Slot{"k", 0}, "a talk")
			require.NoError(t, err)
			require.Equal(t, saved, m)
		}
		st := begin(t, again, ask(next, 12))
		require.Equal(t, want, spelled(t, st))
		requireCached(t, again, saved.Tokens, st)
		m, err := s.Save(again, Slot{"k", 0}, "a copy")
		require.NoError(t, err)
		require.Equal(t, saved.Tokens, m.Tokens, "the slot has the text")
		shut(t, again)
	}
}

// TestTransfersAcrossGenerations: a transfer waits until nothing of an older generation is computed, which would write
// to its blocks.
func TestTransfersAcrossGenerations(t *testing.T) {
	owner := &kvOwner{filed: filed{restored: true}, era: era{gen: 1}, cache: kv.New(kv.Class{Blocks: 2})}
	x := &transfer{do: copyIn, tokens: make([]int32, backend.BlockSize), done: make(chan struct{})}
	owner.transfers.due = x
	owner.begin()
	require.Equal(t, x, owner.transfers.due)
	require.Nil(t, owner.transfers.now)
	owner.transfers.begun = true
	owner.begin()
	require.Nil(t, owner.transfers.due)
	require.Equal(t, x, owner.transfers.now)
	v := &mover{gen: 2}
	for gen, want := range map[uint64]bool{1: false, 2: true, 3: false} {
		of := era{gen: gen}
		require.Equal(t, want, v.takes(&move{era: of, of: new(transfer)}), "a transfer of generation %d", gen)
		require.Equal(t, want, v.takes(&move{era: of, all: []kv.Move{{}}}), "moves of generation %d", gen)
		require.True(t, v.takes(&move{era: of}))
	}
}

// TestSessionsWhileAModelBegins: whoever restores a session while the model's actors are not there, since it restarts,
// hears of it in the end.
func TestSessionsWhileAModelBegins(t *testing.T) {
	p, path, slot := longPrompts(2)[0], t.TempDir(), Slot{"k", 0}
	e := startFixture(t, fixture, func(c *Config) { wide(c); known(c) })
	talked(t, e, p, slot)
	s := saving(t, path)
	_, err := s.Save(e, slot, "x")
	require.NoError(t, err)
	for range run.MaxRestarts - 1 {
		e.crash("model")
		for began := now(); now().Sub(began) < 20*time.Millisecond; {
			if _, err := s.Restore(e, slot, "x"); err != nil && !errors.Is(err, ErrCrowded) {
				require.ErrorIs(t, err, ErrClosed)
			}
		}
	}
	require.Eventually(t, func() bool {
		_, err := s.Restore(e, slot, "x")
		return err == nil
	}, patient, time.Millisecond)
}

// TestTransfersOfAModelThatFails: a transfer ends if the model fails while it waits for an actor that is gone, and is
// not begun if that happens while it waits for another one. Then the model can leave.
func TestTransfersOfAModelThatFails(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, begun := range []bool{true, false} {
		e := startFixture(t, fixture, nil)
		alone(t, e, prompts(1), 1) // the generation has begun
		require.NoError(t, e.house.system.Stop(e.at("mover")))
		if !begun {
			e.carrying.Lock()
		}
		over := make(chan error)
		go func() { over <- e.transfer(&transfer{do: copyIn, tokens: make([]int32, backend.BlockSize)}) }()
		require.Eventually(t, func() bool {
			e.stay.mu.Lock()
			defer e.stay.mu.Unlock()
			return e.stay.open == 1 && begun == (e.wiring.kvEdges.move.Held() == 1)
		}, patient, time.Millisecond)
		e.fail(errNoRoom)
		if !begun {
			e.carrying.Unlock()
		}
		require.ErrorIs(t, <-over, errNoRoom)
		shut(t, e)
	}
}

// TestTransfersEndWithTheEngine: a transfer that waits for a generation to begin, and one behind it, keep no engine
// from closing.
func TestTransfersEndWithTheEngine(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := startFixture(t, fixture, nil)
	alone(t, e, prompts(1), 1)
	require.NoError(t, e.house.system.Stop(e.at("mover"))) // no generation begins without it
	e.crash("kv")
	require.Eventually(t, func() bool { return e.generations.Load() == 2 }, patient, time.Millisecond)
	over := make(chan error)
	for range 2 {
		go func() { over <- e.transfer(&transfer{do: copyIn, tokens: make([]int32, backend.BlockSize)}) }()
	}
	require.Eventually(t, func() bool {
		e.stay.mu.Lock()
		defer e.stay.mu.Unlock()
		return e.stay.open == 2 && e.transfers.Load() != nil
	}, patient, time.Millisecond)
	now, cut := context.WithCancel(t.Context())
	cut()
	require.ErrorIs(t, e.Close(now), context.Canceled)
	require.ErrorIs(t, <-over, ErrClosed)
	require.ErrorIs(t, <-over, ErrClosed)
}

// TestRefusedBesideATransfer: requests for which there is no room beside a transfer's blocks do not wait for one that
// lost its blocks and did not begin again.
func TestRefusedBesideATransfer(t *testing.T) {
	text := make([]int32, 3*backend.BlockSize)
	for _, over := range []bool{false, true} { // else there is no room
		x := &transfer{do: copyIn, tokens: text, done: make(chan struct{})}
		m := &kvRequest{seq: &batch.Seq{ID: 1}, of: &asked{}, tokens: text,
			want: batch.KVRequest{Op: batch.KVOpen, End: len(text)}}
		owner := &kvOwner{filed: filed{restored: true}, era: era{gen: 1}, cache: kv.New(kv.Class{Blocks: 2})}
		owner.transfers = transfers{due: x, refused: []*kvRequest{m}, begun: true}
		if over {
			x.end(errMoved)
		}
		owner.begin()
		require.True(t, x.over())
		require.Equal(t, []*kvRequest{m}, owner.waiting, "over: %t", over)
		require.True(t, m.full)
		require.Empty(t, owner.transfers.refused)
	}
}

// TestTransferOfAModelThatIsGone: a transfer that nobody takes ends.
func TestTransferOfAModelThatIsGone(t *testing.T) {
	x := &transfer{done: make(chan struct{})}
	var _ run.Refusable = x
	x.Refused()
	<-x.done
	require.ErrorIs(t, x.err, ErrClosed)
}

// TestTransfersThatAreOver: the mover calls nothing of a transfer that has ended while it was on its way.
func TestTransfersThatAreOver(t *testing.T) {
	x := &transfer{done: make(chan struct{}), ready: func([]backend.Table, []int) error { panic("the facade has gone on") }}
	x.end(errMoved)
	require.NoError(t, (&cacheMemory{device: struct{ backend.Blocks }{}}).transfer(era{}, x))
	require.False(t, (&transfer{done: make(chan struct{})}).over())
}

// The file alone is needed: nothing but its blocks is read again, whatever became of the cache between.
func TestSavedSessionsOutliveTheCache(t *testing.T) {
	for _, name := range []string{fixture, "qwen3next"} {
		all, slot := longPrompts(4), Slot{ID: 0}
		e := startFixture(t, name, func(c *Config) { pressed(c); c.KVHost = 0; known(c) })
		s := saving(t, t.TempDir())
		next := talked(t, e, all[0], slot)
		want := spelled(t, begin(t, e, ask(next, 8)))
		saved, err := s.Save(e, slot, "x")
		require.NoError(t, err)
		alone(t, e, all[1:], 8)
		m, err := s.Restore(e, slot, "x")
		require.NoError(t, err)
		require.Equal(t, saved, m)
		st := begin(t, e, ask(next, 8))
		require.Equal(t, want, spelled(t, st))
		requireCached(t, e, saved.Tokens, st)
		erased, err := s.Erase(e, slot)
		require.NoError(t, err)
		require.Equal(t, saved.Tokens, erased.Tokens)
		_, err = s.Save(e, slot, "x")
		require.ErrorIs(t, err, ErrNoText)
		shut(t, e)
	}
}

// What differs in anything that a block's bytes depend on is refused by name, and so is what belongs to another client.
func TestForeignSessions(t *testing.T) {
	p, path, slot := longPrompts(2)[0], t.TempDir(), Slot{"k", 0}
	e := startFixture(t, fixture, func(c *Config) { wide(c); known(c) })
	next := talked(t, e, p, slot)
	_, err := saving(t, path).Save(e, slot, "x")
	require.NoError(t, err)
	shut(t, e)
	for want, edit := range map[string]func(*Config){
		"":                               func(*Config) {},
		"model":                          func(c *Config) { c.Kept.Weights = "others" },
		"type of KV cache":               func(c *Config) { c.KV = backend.KVF16 },
		"build of sluice":                func(c *Config) { c.Kept.Build = "next" },
		"device, or its arithmetic or d": func(c *Config) { c.Device = updated{c.Device} },
	} {
		e := startFixture(t, fixture, func(c *Config) { wide(c); known(c); edit(c) })
		m, err := saving(t, path).Restore(e, slot, "x")
		if want == "" {
			require.NoError(t, err)
			require.Positive(t, m.Tokens)
		} else {
			require.ErrorIs(t, err, ErrForeign)
			require.ErrorContains(t, err, "the session is of another "+want)
			st := begin(t, e, ask(next, 2))
			spelled(t, st)
			require.Zero(t, st.Usage().Cached)
		}
		_, err = saving(t, path).Restore(e, Slot{"other", 0}, "x")
		require.ErrorIs(t, err, ErrSessionMissing)
		shut(t, e)
	}
}

// A file whose bits changed anywhere is never used: it is refused, and the text is computed.
func TestTornSessions(t *testing.T) {
	all, path, slot := longPrompts(3), t.TempDir(), Slot{ID: 0}
	e := startFixture(t, fixture, func(c *Config) { wide(c); known(c) })
	next := talked(t, e, all[0], slot)
	s := saving(t, path)
	_, err := s.Save(e, slot, "x")
	require.NoError(t, err)
	want := spelled(t, begin(t, e, ask(next, 8)))
	shut(t, e)
	files, err := filepath.Glob(filepath.Join(path, "*", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	good, err := os.ReadFile(files[0])
	require.NoError(t, err)
	e = startFixture(t, fixture, func(c *Config) { wide(c); known(c) })
	for at := 0; at < len(good); at += 1 + len(good)/40 {
		changed := slices.Clone(good)
		changed[at] ^= 1
		for _, bad := range [][]byte{good[:at], changed} {
			require.NoError(t, os.WriteFile(files[0], bad, 0o600))
			_, err = s.Restore(e, slot, "x")
			require.ErrorIs(t, err, ErrSessionBroken, "%d", at)
		}
	}
	st := begin(t, e, ask(next, 8))
	require.Equal(t, want, spelled(t, st))
	require.Zero(t, st.Usage().Cached)
}

// Sessions are saved and restored while answers want more blocks than there are, and while actors die: answers stay the
// same, and each call ends, with the session or an error that says to try again.
func TestSessionsBesideAnswers(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all, slot := ended(6), Slot{ID: 0}
	want := alone(t, startFixture(t, fixture, wide), all, 8)
	for _, victim := range []string{"", "device", "scheduler", "mover", "kv"} {
		t.Run(victim, func(t *testing.T) {
			e := startFixture(t, fixture, func(c *Config) { keeping(t, c, t.TempDir()) })
			s := saving(t, t.TempDir())
			next := talked(t, e, all[0], slot)
			first, err := s.Save(e, slot, "x")
			require.NoError(t, err)
			over, moved := make(chan struct{}), make(chan int)
			go func() {
				n := 0
				for {
					select {
					case <-over:
						moved <- n
						return
					default:
					}
					m, err := s.Restore(e, slot, "x")
					if err == nil {
						n += m.Tokens
						_, err = s.Save(e, slot, "y")
					}
					if err != nil && !errors.Is(err, ErrCrowded) && !errors.Is(err, ErrNotCached) {
						t.Error(err)
					}
				}
			}()
			for range 3 {
				if victim != "" {
					e.crash(victim)
				}
				together(t, e, all, want)
			}
			close(over)
			require.Positive(t, <-moved)
			m, err := s.Restore(e, slot, "x")
			require.NoError(t, err)
			require.Equal(t, first, m)
			st := begin(t, e, ask(next, 2))
			spelled(t, st)
			requireCached(t, e, first.Tokens, st)
			shut(t, e)
		})
	}
}

// Law Survive, with everything at once, while texts of slots are saved, restored and erased, and blocks go to files and
// come back.
func TestSurviveChaosOfSessions(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	folder, err := kvfiles.Open(t.TempDir(), 64<<20, time.Now())
	require.NoError(t, err)
	x := &chaos{t: t, slots: true}
	x.survive(fixture, slices.Concat(ofModel, ofHouse), func(c *Config) {
		c.Kept = Kept{Folder: folder, Weights: "fixture"}
	})
	x.kept()
}

// kept saves and restores the text of each slot once more, with nothing else running.
func (x *chaos) kept() {
	s := saving(x.t, x.t.TempDir())
	for i, want := range x.want {
		slot := Slot{ID: i}
		require.Equal(x.t, want, spelled(x.t, begin(x.t, x.Engine, x.request(i))))
		saved, err := s.Save(x.Engine, slot, "kept")
		if errors.Is(err, ErrNoText) { // it is shorter than a block
			continue
		}
		require.NoError(x.t, err)
		_, err = s.Erase(x.Engine, slot)
		require.NoError(x.t, err)
		m, err := s.Restore(x.Engine, slot, "kept")
		require.NoError(x.t, err)
		require.Equal(x.t, saved, m)
		require.Equal(x.t, want, spelled(x.t, begin(x.t, x.Engine, x.request(i))))
	}
}

// keeper saves, restores and erases texts of slots: each call ends, and fails only in ways that say what to do.
func (x *chaos) keeper(r *rand.Rand) {
	s := saving(x.t, x.t.TempDir())
	for x.over.Err() == nil {
		slot, err := Slot{ID: r.IntN(len(x.prompts))}, error(nil)
		name := strconv.Itoa(slot.ID)
		switch r.IntN(5) {
		case 0:
			_, err = s.Erase(x.Engine, slot)
		case 1, 2:
			_, err = s.Save(x.Engine, slot, name)
		default:
			_, err = s.Restore(x.Engine, slot, name)
		}
		usual := func(want error) bool { return errors.Is(err, want) }
		if err != nil && !slices.ContainsFunc([]error{ErrNoText, ErrNotCached, ErrCrowded, ErrSessionMissing}, usual) {
			x.t.Errorf("seed %d: slot %d: %v", x.seed, slot.ID, err)
		}
		time.Sleep(rand.N(5 * time.Millisecond))
	}
}
