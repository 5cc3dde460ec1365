package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/placetest"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/uring"
)

// few is a plan in which most weights are streamed.
type few = placetest.Few

// streamed has a model's weights streamed through few slots.
func streamed(f few) func(*Config) { return func(c *Config) { c.hooks.plan = f.Plan } }

// Law Recompute, for weights that come and go: however few slots there are, answers are those of weights that stay.
func TestStreamedAnswers(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, c := range []struct {
		name string
		few
	}{
		{fixture, few{Ring: 2}},
		{fixture, few{Ring: 3, Piece: 16 << 10}},
		{"gemma2", few{Ring: 2, Piece: 16 << 10}},
		{"qwen2moe", few{Shelf: 2}},
		{"qwen2moe", few{Ring: 2, Shelf: 1}},
		{"qwen3moe", few{Ring: 3, Shelf: 2, Piece: 16 << 10}},
		{"qwen3moe", few{Shelf: 5}},
		{"gemma4", few{Ring: 3, Piece: 16 << 10}}, // the embed segment has a matrix and two tables
		{"gemma4moe", few{Ring: 2, Shelf: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := prompts(8)
			quiet := startFixture(t, c.name, nil)
			want := alone(t, quiet, all, 24)
			e := startFixture(t, c.name, streamed(c.few))
			require.Less(t, e.spec.bytes(), quiet.spec.bytes()*3/4, "little stays")
			require.Equal(t, want[:2], alone(t, e, all[:2], 24), "alone")
			require.Greater(t, e.reads(), 100)
			together(t, e, all, want)
			if m := e.Snapshot().Streamed; c.Shelf > 0 {
				require.Positive(t, m.Found)
				require.Positive(t, m.Missed)
				require.Positive(t, m.StepBytes)
				guesses := c.Shelf > 2 && !devicetest.OnGPU() // which foresees nothing
				require.Equal(t, guesses, m.Guesses > 0, "experts are guessed where slots are left")
				require.LessOrEqual(t, m.Right, m.Guesses)
				require.Equal(t, m.Right > 0, m.Guesses > 0)
			}
		})
	}
}

// reads is how many reads of the disk are remembered.
func (e *Engine) reads() (n int) {
	for _, s := range e.house.Spans() {
		if s.Kind == trace.Disk {
			n++
		}
	}
	return n
}

// Law Survive while weights come and go: what brings them dies at random, and so does the device, and every answer is
// right all the same.
func TestSurviveStreaming(t *testing.T) {
	for _, c := range []struct {
		name string
		few
	}{
		{fixture, few{Ring: 2}}, {"qwen3moe", few{Ring: 3, Shelf: 2, Piece: 16 << 10}}, {"qwen3moe", few{Shelf: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() { goleak.VerifyNone(t) })
			survive(t, c.name, slices.Concat(ofModel, ofHouse), streamed(c.few))
		})
	}
}

// Law RowAlone, for models that share a device, a reader and nothing else: both stream, and each answers as alone.
func TestTwoModelsStream(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(4)
	var want [][]string
	c := HouseConfig{Device: newDevice(t), Log: zerolog.Nop(), hooks: hooks{plan: few{Ring: 2, Shelf: 1}.Plan}}
	names := []string{fixture, "qwen3moe"}
	for _, name := range names {
		want = append(want, alone(t, startFixture(t, name, nil), all, 24))
		f, err := gguf.Open(fixturePath(t, name))
		require.NoError(t, err)
		c.Models = append(c.Models, Model{File: f, KV: backend.KVF32})
	}
	h, err := Open(context.Background(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close(context.Background())) }()
	var wg sync.WaitGroup
	for m, e := range h.Engines() {
		for i, p := range all {
			s := begin(t, e, ask(p, 24))
			wg.Go(func() {
				if got, err := trySpelled(s); err != nil || got != want[m][i] {
					t.Errorf("%s, prompt %d: error %v\n got %s\nwant %s", names[m], i, err, got, want[m][i])
				}
			})
		}
	}
	for _, victim := range []string{"reader", "device/prefetcher", "device/uploader", "device"} {
		time.Sleep(5 * time.Millisecond)
		h.Engines()[0].crash(victim)
	}
	wg.Wait()
}

// clumsy is a drive that fails, stalls and gives too little, now and then.
type clumsy struct {
	tiers.Disk
	faults   *faults
	slab     int             // bytes
	straight map[uint64]bool // reads into slots, by id
}

// faults say how a drive fails.
type faults struct {
	hang  atomic.Pointer[chan struct{}] // reads do not end until it is closed
	reads atomic.Int64                  // into slots, under way
	// waits until which one in 16 finds the whole ring broken
	breaks atomic.Int64
	mu     sync.Mutex
	r      *rand.Rand
	every  int // read, on average, fails; 0: none does
	stall  int // likewise
	count  int // failures so far
}

func (f *faults) set(every, stall int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.every, f.stall = every, stall
}

func (f *faults) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

func (f *faults) open(depth int, memory []byte) (tiers.Disk, error) {
	d, err := tiers.OpenRing(depth, memory)
	return &clumsy{Disk: d, faults: f, slab: len(memory) / place.Slabs, straight: map[uint64]bool{}}, err
}

func (d *clumsy) Submit(all []uring.Request) error {
	for i := range all {
		d.straight[all[i].ID] = len(all[i].Into) != d.slab
		if d.straight[all[i].ID] {
			d.faults.reads.Add(1)
		}
	}
	return d.Disk.Submit(all)
}

func (d *clumsy) Wait(least int, done []uring.Completion) (int, error) {
	f := d.faults
	if f.breaks.Load() > 0 && f.breaks.Add(-1)%16 == 15 {
		return 0, errors.New("bad file descriptor")
	}
	n, err := d.Disk.Wait(least, done)
	if hang := f.hang.Load(); hang != nil && n > 0 {
		<-*hang
	}
	for i := range done[:n] {
		if d.straight[done[i].ID] {
			f.reads.Add(-1)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range done[:n] {
		c := &done[i]
		switch {
		case f.stall > 0 && f.r.IntN(f.stall) == 0:
			time.Sleep(rand.N(5 * time.Millisecond))
		case f.every > 0 && f.r.IntN(f.every) == 0 && c.Err == nil:
			f.count++
			for j := range c.Data {
				c.Data[j] ^= 0xff // what a failed read leaves is anything
			}
			c.Data, c.Err = nil, syscall.EIO
		}
	}
	return n, err
}

// A drive that fails now and then is asked again, and nobody notices.
func TestReadsAreTriedAgain(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(4)
	want := alone(t, startFixture(t, fixture, nil), all, 16)
	f := &faults{r: rand.New(rand.NewPCG(1, 2)), every: 30, stall: 20}
	e := startFixture(t, fixture, func(c *Config) {
		c.hooks.plan, c.hooks.disk = few{Ring: 3}.Plan, f.open
	})
	require.Equal(t, want, alone(t, e, all, 16))
	require.Greater(t, f.failures(), 5)
}

// A ring that breaks is opened again, and what it was reading is read again.
func TestRingBreaks(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(2)
	want := alone(t, startFixture(t, fixture, nil), all, 16)
	f := &faults{r: rand.New(rand.NewPCG(1, 2))}
	e := startFixture(t, fixture, func(c *Config) { c.hooks.plan, c.hooks.disk = few{Ring: 3}.Plan, f.open })
	f.breaks.Store(64)
	require.Equal(t, want, alone(t, e, all, 16))
	require.Zero(t, f.breaks.Load())
}

// While a drive fails every read, requests end with an error that names the tensor. When it is well again, so is
// everything.
func TestDriveFails(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(4)
	for name, few := range map[string]few{"ring": {Ring: 2}, "shelf": {Shelf: 1}} {
		t.Run(name, func(t *testing.T) {
			model := map[string]string{"ring": fixture, "shelf": "qwen3moe"}[name]
			want := alone(t, startFixture(t, model, nil), all, 16)
			f := &faults{r: rand.New(rand.NewPCG(1, 2))}
			e := startFixture(t, model, func(c *Config) { c.hooks.plan, c.hooks.disk = few.Plan, f.open })
			require.Equal(t, want, alone(t, e, all, 16))
			f.set(1, 0)
			_, err := drain(begin(t, e, ask(all[1], 16)))
			require.ErrorContains(t, err, "this request cannot be computed: layer ")
			require.ErrorContains(t, err, `.gguf: tensor "blk.`)
			require.ErrorContains(t, err, "input/output error")
			f.set(0, 0)
			require.NoError(t, e.Health())
			require.Equal(t, want, alone(t, e, all, 16))
		})
	}
}

// Law Cancel while a step waits for a drive that does not answer: what is given up goes at once, and the next request
// is answered when the drive is back. So does a house that closes wait for what is being read, and for nothing else.
func TestDriveHangs(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(2)
	want := alone(t, startFixture(t, fixture, nil), all, 16)
	f := &faults{r: rand.New(rand.NewPCG(1, 2))}
	e := startFixture(t, fixture, func(c *Config) { c.hooks.plan, c.hooks.disk = few{Ring: 2}.Plan, f.open })
	ends, tries := []string{"cancelled", "scheduler dies", "prefetcher dies", "closed"}, 0
	for len(ends) > 0 {
		end := ends[0]
		ends = ends[1:]
		gate := make(chan struct{})
		s := begin(t, e, ask([]int32{1, 2, 3}, 100_000))
		next(t, s, 3)
		f.hang.Store(&gate)
		time.Sleep(5 * time.Millisecond) // a step waits
		switch end {
		case "cancelled":
			began := now()
			s.Close()
			require.Eventually(t, func() bool {
				n := e.Snapshot()
				return n.Open == 0 && n.Running+n.Waiting == 0 && n.KV.Used == 0
			}, patient, time.Millisecond)
			if took := now().Sub(began); took >= 250*time.Millisecond {
				require.Less(t, tries, lawTries, "%v", took)
				ends = append([]string{end}, ends...)
			}
			tries++
			require.Zero(t, e.Snapshot().FailedSteps, "a step that nobody waits for is no failure")
		case "scheduler dies":
			e.crash("scheduler")
		case "prefetcher dies":
			e.crash("device/prefetcher")
		case "closed":
			cut, cancel := context.WithCancel(context.Background())
			cancel()
			time.AfterFunc(20*time.Millisecond, func() { close(gate) })
			require.ErrorIs(t, e.Close(cut), context.Canceled)
			return
		}
		f.hang.Store(nil)
		close(gate)
		require.Equal(t, want, alone(t, e, all, 16), end)
		s.Close()
	}
}

// watched is a device whose models are not closed while anything is read into their memory.
type watched struct {
	backend.Device
	faults *faults
	early  *atomic.Int64 // reads that were under way
	begun  *atomic.Int64 // steps
}

func (d watched) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return watchedModel{m, d}, err
}

type watchedModel struct {
	backend.Model
	d watched
}

func (m watchedModel) Run(w backend.Work, s *backend.Step) error {
	if w.Segment == 0 {
		m.d.begun.Add(1)
	}
	return m.Model.Run(w, s)
}

func (m watchedModel) Close() error {
	m.d.early.Add(m.d.faults.reads.Load())
	return m.Model.Close()
}

// Law Survive for a device that dies while a step waits: nobody blames the step for it, however often, and memory that
// is read into stays until the reads have ended.
func TestDeviceDiesWaiting(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	f, early, begun := &faults{r: rand.New(rand.NewPCG(1, 2))}, new(atomic.Int64), new(atomic.Int64)
	e := startFixture(t, fixture, func(c *Config) {
		c.Device, c.hooks.plan, c.hooks.disk = watched{c.Device, f, early, begun}, few{Ring: 2}.Plan, f.open
	})
	s := begin(t, e, ask([]int32{1, 2, 3}, 100_000))
	defer s.Close()
	next(t, s, 2)
	for range 4 {
		gate := make(chan struct{})
		f.hang.Store(&gate)
		time.Sleep(5 * time.Millisecond)
		e.crash("device")
		time.Sleep(5 * time.Millisecond)
		f.hang.Store(nil)
		close(gate)
		next(t, s, 2)
	}
	f.set(0, 1) // so slow that no step comes to its end
	for range 4 {
		before := begun.Load()
		e.crash("device")
		require.Eventually(t, func() bool { return begun.Load() > before }, patient, 100*time.Microsecond)
		time.Sleep(time.Millisecond)
	}
	f.set(0, 0)
	next(t, s, 2)
	require.Zero(t, early.Load(), "reads into memory that was freed")
}

// Law Recompute under every budget of the trained models: logits and answers are the same bits with all weights in
// memory, with half, with a quarter and with the least there can be; with io_uring and without; for one sequence and
// for eight.
func TestBudgets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	for _, model := range []string{"mini-Q4_K_M", "moe-Q4_K_M"} {
		open := func(edit func(*Config)) *Engine {
			f, err := gguf.Open(filepath.Join(testref.Dir(t), "models", model+".gguf"))
			require.NoError(t, err)
			return startFile(t, f, func(c *Config) { c.Context = 512; edit(c) })
		}
		all := goldenPrompts(t, model)
		quiet := open(func(*Config) {})
		want, logits := alone(t, quiet, all, 12), score(t, quiet, all[0])
		for _, share := range []int64{100, 50, 25, 0} {
			for name, disk := range map[string]tiers.OpenDisk{"ring": tiers.OpenRing, "pread": openPread} {
				t.Run(fmt.Sprintf("%s/%d%%/%s", model, share, name), func(t *testing.T) {
					budget := max(quiet.Info.WeightBytes*share/100, leastBudget(t, model))
					e := open(func(c *Config) { c.Weights, c.hooks.disk = budget, disk })
					require.Equal(t, want[0], spelled(t, begin(t, e, ask(all[0], 12))), "alone")
					requireSameBits(t, logits, score(t, e, all[0]), "logits")
					together(t, e, all, want)
				})
			}
		}
	}
}

func openPread(depth int, _ []byte) (tiers.Disk, error) { return uring.OpenPread(depth) }

// leastBudget asks for too little and reads what would do.
func leastBudget(t *testing.T, model string) int64 {
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "models", model+".gguf"))
	require.NoError(t, err)
	_, err = Start(context.Background(), Config{Model: Model{File: f, Weights: 1}, Device: newDevice(t)})
	require.Error(t, err)
	least := regexp.MustCompile(`at least (\d+)M`).FindStringSubmatch(err.Error())
	require.NotNil(t, least, err)
	mib, err := strconv.ParseInt(least[1], 10, 64)
	require.NoError(t, err)
	return mib << 20
}

// goldenPrompts are eight prompts that the trained models know how to answer.
func goldenPrompts(t *testing.T, model string) (all [][]int32) {
	g := readJSON[struct {
		Greedy []struct {
			Prompt []int32 `json:"prompt_tokens"`
		}
	}](t, "golden", model+".json")
	for i := range 8 {
		p := g.Greedy[i%len(g.Greedy)].Prompt
		all = append(all, p[:min(len(p), 200)])
	}
	return all
}
