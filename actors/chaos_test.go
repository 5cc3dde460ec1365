package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Each generation has steps of its own: an older one that is still in a mailbox is never taken for one that was sent
// since.
func TestGenerationsShareNoSteps(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := startFixture(t, fixture, nil)
	all := prompts(1)
	want := alone(t, e, all, 8)
	var seen []*step
	for gen := uint64(1); gen <= 3; gen++ {
		require.Eventually(t, func() bool { return e.generations.Load() == gen }, patient, time.Millisecond)
		require.Equal(t, want, alone(t, e, all, 8))
		steps := e.house.kept.guests[0].steps // nothing is computed, and no actor dies
		require.NotEmpty(t, steps)
		for _, m := range steps {
			require.False(t, slices.Contains(seen, m)) // by address
		}
		seen = append(seen, steps...)
		e.crash("kv")
	}
}

// slowLoads is a device whose weights take a while to arrive, so that actors also die while a model is loaded.
type slowLoads struct{ backend.Device }

func (d slowLoads) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return slowLoad{m}, err
}

type slowLoad struct{ backend.Model }

func (m slowLoad) Upload(w ir.Ref, row int, data []byte) error {
	time.Sleep(rand.N(time.Millisecond))
	return m.Model.Upload(w, row, data)
}

// chaos is an engine whose actors die at random while clients come, read slowly, give up and go.
type chaos struct {
	*Engine
	seed    uint64
	prompts [][]int32
	want    []string    // answers given with nothing else running
	scores  [][]float32 // likewise
	over    context.Context
	t       *testing.T

	clearly           *regexp.Regexp // how requests may fail; nil: none may
	slots             bool           // each prompt has a slot, whose text is saved and restored
	answers, failures atomic.Int64
	devices           atomic.Int64 // deaths of the device
}

// client sends one request after another.
func (x *chaos) client(r *rand.Rand) {
	for x.over.Err() == nil {
		i := r.IntN(len(x.prompts))
		if r.IntN(8) == 0 {
			x.check(x.score(i))
		} else {
			x.check(x.ask(i, r))
		}
		time.Sleep(rand.N(5 * time.Millisecond))
	}
}

func (x *chaos) check(err error) {
	switch {
	case err == nil:
		x.answers.Add(1)
	case x.clearly != nil && x.clearly.MatchString(err.Error()):
		x.failures.Add(1)
	default:
		x.t.Errorf("seed %d: %v", x.seed, err)
	}
}

// request is for an answer to a prompt: of every third one bound to a form.
func (x *chaos) request(i int) Request {
	r := ask(x.prompts[i], 60)
	if x.slots {
		r.Slot = &Slot{ID: i}
	}
	if i%3 == 2 {
		r.Form = formed(gbnf(x.t, "root ::= (a | b)+\na ::= [a-z ]+ [^z]\nb ::= [^b] [a-z ]+"))
		r.IgnoreEOG = false
	}
	return r
}

// ask reads an answer in one of several manners and compares what it read.
func (x *chaos) ask(i int, r *rand.Rand) error {
	limit, pause := math.MaxInt, 0
	switch r.IntN(4) {
	case 0:
		limit = r.IntN(60) // gives up after so many tokens
	case 1:
		pause = 1 + r.IntN(50) // sleeps after each of so many
	}
	s, err := x.Generate(x.request(i))
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	var e Event
	got := ""
	for n := range limit {
		if pause > 0 && n%pause == pause-1 {
			time.Sleep(rand.N(40 * time.Millisecond))
		}
		err := s.Next(ctx, &e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("prompt %d, after %d tokens: %w", i, n, err)
		}
		got += fmt.Sprintf("%d:%08x %q %s\n", e.Token, math.Float32bits(e.LogProb), e.Text, e.Finish)
	}
	if got != x.want[i] && (limit == math.MaxInt || !strings.HasPrefix(x.want[i], got)) {
		return fmt.Errorf("prompt %d: got\n%s\nwant\n%s", i, got, x.want[i])
	}
	return nil
}

func (x *chaos) score(i int) error {
	s, err := x.Score(x.prompts[i])
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	want := x.scores[i]
	var e Event
	for {
		err := s.Next(ctx, &e)
		if errors.Is(err, io.EOF) && len(want) == 0 {
			return nil
		}
		if err != nil || len(e.Logits) > len(want) {
			return fmt.Errorf("score of prompt %d: %w, with %d logits to come", i, err, len(want))
		}
		for j, logit := range e.Logits {
			if math.Float32bits(logit) != math.Float32bits(want[j]) {
				return fmt.Errorf("score of prompt %d differs from position %d on", i, e.Pos)
			}
		}
		want = want[len(e.Logits):]
	}
}

// Actors of a model, and those that models share.
var (
	ofModel = []string{"scheduler", "kv", "sampler", "masks", "mover", "sessions", "session", "model"}
	ofHouse = []string{"device", "device/uploader", "device/packer", "device/prefetcher", "reader", "pool"}
)

// killer ends actors, sometimes several at once, each as often as supervision forgives.
func (x *chaos) killer(r *rand.Rand, victims []string) {
	deaths := make(map[string]int)
	for x.over.Err() == nil {
		for range 1 + r.IntN(3) {
			victim := victims[r.IntN(len(victims))]
			if victim == "session" {
				victim = fmt.Sprintf("sessions/%d", max(1, int(x.opened.Load())-r.IntN(6)))
			}
			if strings.HasSuffix(victim, "model") && x.waiting(victim) {
				continue // its mailbox has room for one death
			}
			if deaths[victim] < run.MaxRestarts {
				deaths[victim]++
				if victim == "device" {
					x.devices.Add(1)
				}
				x.crash(victim)
			}
		}
		time.Sleep(rand.N(chaosTime() / 32))
	}
}

// chaosTime is how long actors are killed: SLUICE_CHAOS_TIME, such as 1m, else a moment.
func chaosTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("SLUICE_CHAOS_TIME")); err == nil && d > 0 {
		return d
	}
	return 2 * time.Second
}

// chaosSeed is SLUICE_CHAOS_SEED, else another one each time.
func chaosSeed() uint64 {
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_CHAOS_SEED"), 10, 64); err == nil {
		return s
	}
	return uint64(time.Now().UnixNano())
}

// learn finds out what the answers of an undisturbed engine are.
func (x *chaos) learn(t *testing.T, fixture string) {
	quiet := startFixture(t, fixture, nil)
	for i := range x.prompts {
		x.want = append(x.want, spelled(t, begin(t, quiet, x.request(i))))
	}
	for _, p := range x.prompts {
		x.scores = append(x.scores, score(t, quiet, p))
	}
}

// idle waits until everything is given back.
func (x *chaos) idle(t *testing.T) {
	require.NoError(t, x.Health())
	require.Eventually(t, func() bool {
		s := x.Snapshot()
		return s.Open == 0 && s.Running+s.Waiting == 0 && s.KV.Used == 0
	}, patient, time.Millisecond, "everything is given back")
	loaded, total := x.Loaded()
	require.Equal(t, total, loaded)
}

// waiting says whether an actor has messages that it has not handled.
func (x *chaos) waiting(name string) bool {
	return slices.ContainsFunc(x.Snapshot().Actors, func(s run.Status) bool {
		return s.ID == x.at(name).Id && s.Depth > 0
	})
}

// Law Survive, with everything at once: every answer is right as far as it was read, and everything is given back.
func TestSurviveChaos(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	survive(t, fixture, slices.Concat(ofModel, ofHouse), func(*Config) {})
}

// Law Survive, with a draft model whose actors die, too.
func TestSurviveChaosOfDrafts(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	victims := slices.Concat(ofModel, ofHouse)
	for _, name := range []string{"scheduler", "kv", "sampler", "mover", "model"} {
		victims = append(victims, "draft/"+name)
	}
	survive(t, fixture, victims, func(c *Config) {
		c.Speculate = true
		draftedBy(t, fixture)(c)
	})
}

// twice is how a request ends while whose steps the device died, and died again: it is taken for the cause. A slow
// machine makes long steps, and so that likely.
var twice = regexp.MustCompile(`this request cannot be computed: computing it failed twice$`)

// survive has victims die at random while clients ask.
func survive(t *testing.T, fixture string, victims []string, edit func(*Config)) {
	x := &chaos{t: t}
	x.survive(fixture, victims, edit)
}

func (x *chaos) survive(fixture string, victims []string, edit func(*Config)) {
	t := x.t
	x.seed, x.prompts, x.clearly = chaosSeed(), prompts(8), twice
	x.learn(t, fixture)
	x.Engine = startFixture(t, fixture, func(c *Config) {
		c.Device, c.Context, c.Blocks, c.Sequences, c.Rows = slowLoads{c.Device}, 256, 9, 4, 64
		edit(c)
	})
	x.rage(t, victims)
	require.LessOrEqual(t, 2*x.failures.Load(), x.devices.Load(), "given up for less than two deaths of the device")
	x.idle(t)
}

// rage kills victims and has clients ask, for a while. Actors that take turns take them in any order.
func (x *chaos) rage(t *testing.T, victims []string) {
	t.Helper()
	x.house.turns.Shuffle(rand.New(rand.NewPCG(x.seed, 9)).IntN)
	var done context.CancelFunc
	x.over, done = context.WithTimeout(context.Background(), chaosTime())
	defer done()
	var wg sync.WaitGroup
	wg.Go(func() { x.killer(rand.New(rand.NewPCG(x.seed, 0)), victims) })
	if x.slots {
		wg.Go(func() { x.keeper(rand.New(rand.NewPCG(x.seed, 10))) })
	}
	for n := range 8 {
		wg.Go(func() { x.client(rand.New(rand.NewPCG(x.seed, uint64(n+1)))) })
	}
	wg.Wait()
}

// brokenLoads is a device that dies of weights.
type brokenLoads struct{ backend.Device }

func (d brokenLoads) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return brokenLoad{m}, err
}

type brokenLoad struct{ backend.Model }

func (brokenLoad) Upload(ir.Ref, int, []byte) error { panic("index out of range") }

// A device that dies of a weight makes the engine unhealthy: the packer's goroutines take nothing down with them.
func TestUploadPanics(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	f, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	_, err = Start(context.Background(),
		Config{Model: Model{File: f}, Device: brokenLoads{newDevice(t)}, Log: zerolog.Nop()})
	require.ErrorContains(t, err, "the device failed on rows from 0 on: index out of range")
}
