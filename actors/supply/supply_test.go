package supply_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/uring"
)

// stuck is a drive that gives nothing until it is let go.
type stuck struct {
	asked []uring.Request
	let   chan struct{}
}

func (d *stuck) Submit(all []uring.Request) error {
	d.asked = append(d.asked, all...)
	return nil
}

func (d *stuck) Wait(least int, done []uring.Completion) (int, error) {
	if least == 0 {
		return 0, nil
	}
	<-d.let
	n := 0
	for _, r := range d.asked {
		done[n] = uring.Completion{ID: r.ID, Data: r.Into[r.Head:][:r.Length]}
		n++
	}
	d.asked = nil
	return n, nil
}

func (*stuck) Close() error { return nil }

// model has memory for slots, and computes nothing.
type model struct {
	backend.Model
	slots [][]byte
	ran   []int
}

func (m *model) Slot(slot int) []byte         { return m.slots[slot] }
func (*model) Place(int, int, [][]byte) error { return nil }
func (*model) RowGrain() int                  { return 1 }
func (*model) Foresees(int) (int, bool)       { return 0, false }
func (m *model) Run(w backend.Work, _ *backend.Step) error {
	m.ran = append(m.ran, w.Segment)
	w.Release()
	return nil
}

// three is a program of three blocks through two slots, and its file.
func three(t *testing.T) (tiers.Source, *model) {
	p := &ir.Bound{Program: &ir.Program{}}
	plan, tensors := &place.Model{}, []gguf.Tensor(nil)
	for l := range 3 {
		p.Weights = append(p.Weights, ir.Weight{Name: fmt.Sprint("w", l), Rows: 4, Cols: 64, Use: ir.Matrix})
		p.Types, p.Tensors = append(p.Types, quant.F32), append(p.Tensors, l)
		p.Segments = append(p.Segments, ir.Segment{Kind: ir.SegBlock, Layer: l,
			Nodes: []ir.Node{{Op: ir.Linear, W: ir.Ref(l), B: ir.NoRef}}})
		tensors = append(tensors, gguf.Tensor{Name: fmt.Sprint("w", l), Type: quant.F32, Shape: []int{64, 4},
			Offset: int64(l) << 10, Size: 1 << 10})
	}
	f, err := gguf.Assemble("m.gguf", new(meta.Map), []gguf.Piece{{Data: make([]byte, 3<<10)}}, tensors)
	require.NoError(t, err)
	for g, group := range p.On(p.All()) {
		plan.Homes = append(plan.Homes, place.Home{Group: group, Tier: place.Disk, Slot: -1})
		plan.Ring.Groups = append(plan.Ring.Groups, g)
	}
	plan.Ring.Slots, plan.Layout.Slots = []int{0, 1}, [][]int{{0, 1, 2}, {0, 1, 2}}
	return tiers.Source{File: f, Bound: p, Plan: plan}, &model{slots: [][]byte{make([]byte, 12<<10), make([]byte, 12<<10)}}
}

// TestLate: a segment waits for a drive that gives nothing, not for ever, and by whom nobody wants it any more; what
// comes later is used, and waits are told by cause.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		s, err := supply.Open(zerolog.Nop(), func(int, []byte) (tiers.Disk, error) { return &stuck{let: let}, nil })
		require.NoError(t, err)
		source, m := three(t)
		h := s.Haul(source)
		leaves := errors.New("the client has left")
		var until time.Time // the client leaves; zero: never
		h.Begin(m, func() error {
			if until.IsZero() || time.Now().Before(until) {
				return nil
			}
			return leaves
		})
		began := time.Now()
		err = h.Run(0, nil)
		require.ErrorContains(t, err, `m.gguf: tensor "w0": the drive has given nothing of it for 30s: check it`)
		require.InDelta(t, 30, time.Since(began).Seconds(), 0.2)
		require.InDelta(t, 30, s.Waited()[trace.Reader].Seconds(), 0.2)

		began = time.Now()
		until = began.Add(time.Second)
		require.ErrorIs(t, h.Run(0, nil), leaves)
		require.LessOrEqual(t, time.Since(began), time.Second+250*time.Millisecond)

		until = time.Time{}
		close(let)
		for range 2 {
			for segment := range 3 {
				require.NoError(t, h.Run(segment, nil))
			}
		}
		require.NoError(t, h.Run(2, nil), "out of turn")
		require.Equal(t, []int{0, 1, 2, 0, 1, 2, 2}, m.ran)
		moved := s.Moved()
		require.GreaterOrEqual(t, moved.StepBytes+moved.AheadBytes, uint64(7<<10))
		require.NoError(t, s.Err())
		h.End()
		require.NoError(t, h.Close())
		require.NoError(t, s.Close())
	})
}
