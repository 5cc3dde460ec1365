package paint

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/storage/uring"
)

// drive is one that breaks, or gives nothing until it is let go.
type drive struct {
	tiers.Disk
	broken *atomic.Bool
	held   *atomic.Pointer[chan struct{}]
}

func (d *drive) Wait(least int, done []uring.Completion) (int, error) {
	n, err := d.Disk.Wait(least, done)
	if held := d.held.Load(); held != nil && n > 0 {
		<-*held
	}
	for i := range done[:n] {
		if d.broken.Load() {
			done[i].Data, done[i].Err = nil, errors.New("input/output error")
		}
	}
	return n, err
}

// asked is an evaluation of a reference.
type asked struct {
	grid ir.Grid
	rows []float32
	text *Text
}

func reference(t *testing.T) asked {
	t.Helper()
	x := converttest.Tensors(t, "multimodal", "flux", "transformer.safetensors")
	grid, rows := latents(x["latents"])
	return asked{grid, rows, fluxText(t)}
}

func (a *asked) of(x *Flux) ([]float32, error) { return x.Evaluate(a.grid, a.rows, a.text, 0.5, 0) }

// TestStreamedFromBrokenDrives: what cannot be read is an error that names it; once it can, evaluations go on. Who
// leaves waits for no drive, and one that gives nothing is not waited for for ever.
func TestStreamedFromBrokenDrives(t *testing.T) {
	testref.Dir(t) // without it nothing is begun
	t.Cleanup(func() { goleak.VerifyNone(t) })
	processor, err := cpu.New(1, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	var broken atomic.Bool
	var held atomic.Pointer[chan struct{}]
	s, err := supply.Open(zerolog.Nop(), func(depth int, _ []byte) (tiers.Disk, error) {
		d, err := uring.OpenPread(depth)
		return &drive{d, &broken, &held}, err
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := tight(t, Turning(ctx, processor, nil))
	r.Supply = s
	a := reference(t)
	want, err := a.of(flux(t, processor, "flux"))
	require.NoError(t, err)
	x := fluxIn(t, r, "flux")
	broken.Store(true)
	_, err = a.of(x)
	require.ErrorContains(t, err, "tensor ")
	require.ErrorContains(t, err, "input/output error")
	broken.Store(false)
	got, err := a.of(x)
	require.NoError(t, err)
	require.Equal(t, want, got)

	stuck := make(chan struct{})
	held.Store(&stuck)
	gone := errors.New("the client has left")
	go func() {
		for s.Waiting() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel(gone)
	}()
	_, err = a.of(x)
	require.ErrorIs(t, err, gone)
	held.Store(nil)
	close(stuck)
}

// TestStreamedLeavesDrives: an actor that keeps failing ends pictures with an error.
func TestStreamedGivenUp(t *testing.T) {
	testref.Dir(t) // without it nothing is begun
	t.Cleanup(func() { goleak.VerifyNone(t) })
	processor, err := cpu.New(1, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	s, err := supply.Open(zerolog.Nop(), nil)
	require.NoError(t, err)
	r := tight(t, processor)
	r.Supply = s
	x, a := fluxIn(t, r, "flux"), reference(t)
	for range run.MaxRestarts + 1 {
		before := restarts(s, "supply/reader")
		s.Crash("reader")
		require.Eventually(t, func() bool { return s.Err() != nil || restarts(s, "supply/reader") > before }, 10*time.Second,
			time.Millisecond)
	}
	_, err = a.of(x)
	require.ErrorContains(t, err, "weights cannot be brought any more: actor supply/reader keeps failing")
	require.NoError(t, x.Close())
	require.NoError(t, s.Close())
}

// restarts is how often an actor was restarted.
func restarts(s *supply.Supply, id string) uint64 {
	for _, a := range s.Status() {
		if a.ID == id {
			return a.Restarts
		}
	}
	return 0
}

// Law Survive, of pictures: whichever actors die while weights come, an evaluation has the same bits.
func TestSurviveChaosOfPictures(t *testing.T) {
	testref.Dir(t) // without it nothing is begun
	t.Cleanup(func() { goleak.VerifyNone(t) })
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_CHAOS_SEED"), 10, 64); err == nil {
		seed = s
	}
	processor, err := cpu.New(1, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	a := reference(t)
	want, err := a.of(flux(t, processor, "flux"))
	require.NoError(t, err)
	r := tight(t, processor)
	x := fluxIn(t, r, "flux")
	over, done := context.WithTimeout(t.Context(), time.Second)
	defer done()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		dice, deaths := rand.New(rand.NewPCG(seed, 0)), map[string]int{}
		victims := []string{"dock", "dock/uploader", "dock/packer", "dock/prefetcher", "reader", "pool"}
		for over.Err() == nil {
			victim := victims[dice.IntN(len(victims))]
			if deaths[victim]++; deaths[victim] < run.MaxRestarts {
				r.Supply.Crash(victim)
			}
			time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
		}
	}()
	n := 0
	for ; over.Err() == nil || n == 0; n++ {
		got, err := a.of(x)
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, want, got, "seed %d", seed)
	}
	<-ended
	t.Logf("%d evaluations", n)
}
