package actors

import (
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/storage/kvfiles"
)

// pressed has room on the device for hardly more than one of longPrompts, and in the host's memory for what does not
// fit.
func pressed(c *Config) {
	c.Context, c.Blocks, c.Sequences, c.Rows, c.KVHost = 512, 8, 4, 32, 256<<20
}

// Law Recompute: blocks that went to the host's memory and came back give the bits of those that never left, in every
// format of caches, of states too. Nothing of what a prompt begins with is computed again.
func TestRecomputeMovedBlocks(t *testing.T) {
	for _, test := range []struct {
		fixture string
		kv      backend.KV
	}{
		{fixture, backend.KVF16}, {fixture, backend.KVQ8}, {"gemma3", backend.KVF16}, {"gemma3", backend.KVQ8},
		{"gemma3", backendtest.Toy()}, {"mamba2", backend.KVF32}, {"qwen3next", backend.KVF32},
	} {
		t.Run(test.fixture+" "+test.kv.String(), func(t *testing.T) {
			movedAlike(t, test.fixture, 10, func(c *Config) { caches(t, c, test.kv) })
		})
	}
}

// Law Recompute on a card without hardware, to which blocks travel by its staging buffer.
func TestRecomputeMovedBlocksOfACard(t *testing.T) {
	movedAlike(t, fixture, 3, func(c *Config) {
		require.NoError(t, c.Device.Close())
		c.KV, c.Device = backend.KVF16, newCard(t)
	})
}

// caches sets the formats. Those that seal blocks are kept on a card without hardware, where tests use a GPU.
func caches(t *testing.T, c *Config, kv backend.KV) {
	if c.KV = kv; kv.Seals() && devicetest.OnGPU() {
		require.NoError(t, c.Device.Close())
		c.Device = newCard(t)
	}
}

func newCard(t *testing.T) backend.Device {
	d, err := exec.New(func() (driver.Device, error) { return null.Open(null.Options{Free: 4 << 30}), nil })
	require.NoError(t, err)
	return d
}

// whole is how much of a prompt can be found: its last token is computed in any case.
func whole(p []int32) int { return (len(p) - 1) / backend.BlockSize * backend.BlockSize }

// movedAlike asks for answers to some prompts, twice.
func movedAlike(t *testing.T, name string, prompts int, edit func(*Config)) {
	all := ended(prompts)
	want := alone(t, startFixture(t, name, func(c *Config) { wide(c); edit(c) }), all, 8)
	e := startFixture(t, name, func(c *Config) { pressed(c); edit(c) })
	require.Equal(t, want, alone(t, e, all, 8))
	before := e.Snapshot().KV
	require.Positive(t, before.Out)
	require.Positive(t, before.Host)
	for i, p := range all {
		s := begin(t, e, ask(p, 8))
		require.Equal(t, want[i], spelled(t, s))
		require.Equal(t, whole(p), s.Usage().Cached, "prompt %d", i)
	}
	after := e.Snapshot().KV
	require.Positive(t, after.Back)
	if len(e.spec.bound.Classes) == 1 && len(e.spec.bound.States) == 0 { // else some are passed
		require.Zero(t, after.Evictions, "nothing was lost")
	}
}

// Law RowAlone: sequences that share too few blocks, and wait for what comes back, give the answers of each alone.
func TestRowAloneMovedBlocks(t *testing.T) {
	for _, name := range []string{fixture, "gemma3", "mamba2"} {
		t.Run(name, func(t *testing.T) {
			all := longPrompts(6)
			want := alone(t, startFixture(t, name, wide), all, 40)
			e := startFixture(t, name, func(c *Config) { pressed(c); c.Blocks = 9 })
			for n := 0; n < 2 || e.Snapshot().KV.Back == 0; n++ { // what moves is a matter of who comes first
				require.Less(t, n, 50, "nothing came back")
				together(t, e, all, want)
			}
			require.Eventually(t, func() bool { return e.Snapshot().KV.Used == 0 }, patient, time.Millisecond)
		})
	}
}

// slowMoves is a device whose blocks are written only when a test lets them be.
type slowMoves struct {
	backend.Device
	begun, goOn chan struct{}
}

func (d *slowMoves) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return &slowMove{m, d}, err
}

type slowMove struct {
	backend.Model
	of *slowMoves
}

func (m *slowMove) Carry(all []backend.Carriage) error {
	if !slices.ContainsFunc(all, func(c backend.Carriage) bool { return !c.Out }) {
		return m.Model.Carry(all)
	}
	select {
	case m.of.begun <- struct{}{}:
	default:
	}
	<-m.of.goOn
	return m.Model.Carry(all)
}

// startSlow has the first of its prompts in the host's memory, and a device that writes no block yet.
func startSlow(t *testing.T) (e *Engine, d *slowMoves, all [][]int32, want []string) {
	all = longPrompts(4)[:3]
	want = alone(t, startFixture(t, fixture, wide), all, 12)
	d = &slowMoves{begun: make(chan struct{}, 1), goOn: make(chan struct{})}
	e = startFixture(t, fixture, func(c *Config) {
		pressed(c)
		d.Device = c.Device
		c.Device = d
	})
	require.Equal(t, want, alone(t, e, all, 12))
	require.Positive(t, e.Snapshot().KV.Host)
	return e, d, all, want
}

// carried is a device that keeps how many copies of blocks it was given at once, and is given all there are.
type carried struct {
	backend.Device
	mu  sync.Mutex
	all []int
}

func (d *carried) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return &carriedOf{m, d}, err
}

type carriedOf struct {
	backend.Model
	of *carried
}

func (m *carriedOf) Carry(all []backend.Carriage) error {
	m.of.mu.Lock()
	m.of.all = append(m.of.all, len(all))
	m.of.mu.Unlock()
	return m.Model.Carry(all)
}

// Parts are none: as on a card, all that comes is copied.
func (m *carriedOf) Parts(int, int32) ([][]byte, error) { return nil, nil }

// take returns what was kept since it was called last.
func (d *carried) take() (all []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, d.all = d.all, nil
	return all
}

// Blocks that come back for a prompt, and those that make room for them, come together: a card waits for its steps
// once.
func TestBlocksComeTogether(t *testing.T) {
	d := &carried{}
	e := startFixture(t, fixture, func(c *Config) {
		pressed(c)
		d.Device = c.Device
		c.Device = d
	})
	all := longPrompts(4)[:3]
	want := alone(t, e, all, 12)
	d.take()
	s := begin(t, e, ask(all[0], 1))
	collect(t, s)
	blocks := s.Usage().Cached / backend.BlockSize
	require.Greater(t, blocks, 1)
	at := d.take()
	require.GreaterOrEqual(t, at[0], blocks, "of %v", at)
	require.Equal(t, want, alone(t, e, all, 12))
}

// A sequence waits for its blocks that are on their way, and others' steps go on meanwhile.
func TestOthersGoOnWhileBlocksCome(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e, d, all, want := startSlow(t)
	other := begin(t, e, plain([]int32{5, 6, 7}, 40)) // all in a block that it gets now
	var ev Event
	require.NoError(t, other.Next(t.Context(), &ev))
	first := begin(t, e, ask(all[0], 12))
	<-d.begun
	require.Len(t, collect(t, other).tokens, 39)
	close(d.goOn)
	require.Equal(t, want[0], spelled(t, first))
	require.Equal(t, whole(all[0]), first.Usage().Cached)
}

// Law Survive: whoever dies while a block is on its way, the answer is the same. A request that is given up then leaves
// nothing behind.
func TestSurviveWhileBlocksCome(t *testing.T) {
	for _, victim := range []string{"kv", "mover", "scheduler", "device", ""} {
		t.Run(victim, func(t *testing.T) {
			t.Cleanup(func() { goleak.VerifyNone(t) })
			e, d, all, want := startSlow(t)
			first := begin(t, e, ask(all[0], 12))
			<-d.begun
			if victim == "" {
				first.Close()
			} else {
				e.crash(victim)
			}
			free := sync.OnceFunc(func() { close(d.goOn) })
			timer := time.AfterFunc(20*time.Millisecond, free)
			defer timer.Stop()
			if victim != "" {
				require.Equal(t, want[0], spelled(t, first))
			}
			require.Equal(t, want, alone(t, e, all, 12))
			require.Eventually(t, func() bool { return e.Snapshot().KV.Used == 0 }, patient, time.Millisecond)
		})
	}
}

// What went to the host's memory is found there by the next generation, whoever died: a device has lost its own alone.
func TestHostTierOutlivesTheDevice(t *testing.T) {
	all := longPrompts(7)[:6]
	want := alone(t, startFixture(t, fixture, wide), all, 12)
	for _, victim := range []string{"device", "scheduler", "sampler", "mover"} {
		t.Run(victim, func(t *testing.T) {
			e := startFixture(t, fixture, pressed)
			require.Equal(t, want, alone(t, e, all, 12))
			require.Positive(t, e.Snapshot().KV.Cached)
			e.crash(victim)
			// The next generation begins with nothing on the device. A request before it would have its blocks on their
			// way when the device goes, and lose them.
			require.Eventually(t, func() bool { return e.Snapshot().KV.Cached == 0 }, patient, time.Millisecond)
			first := begin(t, e, ask(all[0], 12))
			require.Equal(t, want[0], spelled(t, first))
			require.Equal(t, whole(all[0]), first.Usage().Cached)
			require.Positive(t, e.Snapshot().KV.Back)
			require.Equal(t, want, alone(t, e, all, 12))
		})
	}
}

// A move that a model's end cut short is no failure of the KV owner, whose restart would lose the host tier.
func TestClosedModelIsNoFailureOfMoves(t *testing.T) {
	owner := &kvOwner{}
	short := &move{err: new(cacheMemory).copyAll(&move{all: []kv.Move{{}}})}
	require.Error(t, short.err)
	require.NotPanics(t, func() { owner.moved(short) })
	require.Panics(t, func() { owner.moved(&move{err: io.ErrUnexpectedEOF}) })
}

// blank is a device whose blocks are copied as they are: with nothing of what the books say.
type blank struct {
	backend.Blocks
	carried *int
}

func (blank) BlockBytes(int) int { return 64 }

func (blank) Parts(int, int32) ([][]byte, error) { return nil, nil }

func (b blank) Carry(all []backend.Carriage) error {
	*b.carried += len(all)
	return nil
}

// A model that was closed and is compiled again has lost what the moves of before are to copy, as long as the KV owner
// has not heard of it: none is carried out, in mid-move neither, and no file is written by the name of what was lost.
func TestMovesOfAClosedModel(t *testing.T) {
	path, text := t.TempDir(), &kv.Text{}
	folder, err := kvfiles.Open(path, 1<<20, time.Now())
	require.NoError(t, err)
	carried := 0
	x := &cacheMemory{rooms: []kv.Class{{Blocks: 2, Host: 2, Disk: 2}},
		kept: kept{shelf: folder.Shelf("blank"), log: zerolog.Nop()}}
	t.Cleanup(func() { require.NoError(t, x.free()) })
	x.open(blank{carried: &carried})
	again := func() { x.close(); x.open(blank{carried: &carried}) }
	moves := []kv.Move{
		{From: kv.Device, To: kv.Disk, Text: text},
		{From: kv.Host, To: kv.Disk, Text: text},
		{From: kv.Device, To: kv.Host},
		{From: kv.Host, To: kv.Device},
		{From: kv.Disk, To: kv.Device, Text: text},
	}
	filed := func(want int) {
		n := 0
		eachFile(t, path, func(string) { n++ })
		require.Equal(t, want, n)
	}
	for _, one := range moves {
		m := &move{era: era{closed: x.closed.Load()}, all: []kv.Move{one}}
		again()
		require.ErrorIs(t, x.move(m), errNotCompiled, "%+v", one)
		if one.Text != nil {
			m.closed, m.files = x.closed.Load(), make([]error, 1)
			part, err := x.stage(m, 0)
			require.NoError(t, err)
			if one.From == kv.Disk { // there is one
				require.NoError(t, x.kept.shelf.Write(kvfiles.Header{}, part[0].Memory))
				filed(1)
			}
			again()
			require.ErrorIs(t, x.filePart(m, 0, part), errNotCompiled, "%+v", one)
		}
	}
	require.Zero(t, carried)
	x.kept.shelf.Remove(kvfiles.Key{}, 0)
	filed(0)

	out := &transfer{do: copyOut, tables: []backend.Table{{Blocks: []int32{0}}}, done: make(chan struct{}),
		ready: func([]backend.Table, []int) error { return nil }, carry: func(int, int, []byte) error { return nil }}
	require.ErrorIs(t, x.transfer(era{}, out), errNotCompiled)
	require.NoError(t, x.transfer(era{closed: x.closed.Load()}, out))
	require.Equal(t, 1, carried)
	for _, one := range moves {
		carried = 0
		m := &move{era: era{closed: x.closed.Load()}, all: []kv.Move{one}}
		require.NoError(t, x.move(m), "%+v", one)
		require.Equal(t, one.From == kv.Device || one.To == kv.Device, carried == 1, "%+v", one)
		require.Empty(t, slices.DeleteFunc(m.files, func(err error) bool { return err == nil }))
	}
}

// Law Survive, with everything at once, while blocks go and come.
func TestSurviveChaosOfMoves(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	survive(t, fixture, slices.Concat(ofModel, ofHouse), func(c *Config) { c.KVHost = 16 << 20 })
}

// Without memory for them no block moves, and what does not fit is given up.
func TestNothingMovesByDefault(t *testing.T) {
	e := startFixture(t, fixture, func(c *Config) { pressed(c); c.KVHost = 0 })
	alone(t, e, longPrompts(4)[:3], 12)
	s := e.Snapshot().KV
	require.Zero(t, s.Out+s.Back+uint64(s.Host))
	require.Positive(t, s.Evictions)
}
