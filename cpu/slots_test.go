package cpu_test

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// streamed is a model whose matrices all pass through two slots.
type streamed struct {
	*running
	m      *backendtest.Model
	first  int // of the slots
	groups [][]int
	data   [2][][][]byte // by slot, group and weight: where it lies
	work   backend.Work
	leases int
}

// stream compiles m so that its head is in pieces. tables is where rows of the embedding are read.
func stream(t *testing.T, m *backendtest.Model, rows int, tables [][]byte) *streamed {
	t.Helper()
	bound := *m.Bound
	bound.Piece = 1
	m = &backendtest.Model{Model: &judge.Model{Bound: &bound, Weights: m.Weights}}
	groups := m.On(m.All())
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 1),
		MaxRows: rows, MaxWanted: rows}, Weights: backend.Uploaded{Tables: tables}}
	var all []int
	for g := range groups {
		if groups[g].Use == ir.Matrix {
			all = append(all, g)
		} else {
			c.Slots = append(c.Slots, []int{g})
		}
	}
	s := &streamed{m: m, first: len(c.Slots), groups: make([][]int, len(m.Segments))}
	c.Slots = append(c.Slots, all, all)
	s.running = startNone(t, device(t, 2, ""), m, c)
	for g := range groups {
		for slot := range s.data {
			s.data[slot] = append(s.data[slot], nil)
		}
		if groups[g].Use != ir.Matrix {
			for _, r := range groups[g].Weights {
				require.NoError(t, s.Upload(r, 0, m.Weights[r]))
			}
			continue
		}
		s.groups[groups[g].Segment] = append(s.groups[groups[g].Segment], g)
		for slot := range s.data {
			s.data[slot][g] = s.lay(&groups[g], s.Slot(s.first+slot))
		}
	}
	s.work = backend.Work{Groups: make([]int, 1), Done: func() { s.leases-- }}
	return s
}

// lay finds room for a group in a slot.
func (s *streamed) lay(g *ir.Group, memory []byte) (data [][]byte) {
	for _, r := range g.Weights {
		n := len(s.rowsOf(g, r))
		data, memory = append(data, memory[100:][:n]), memory[backend.ExtentBytes(int64(n)):]
	}
	return data
}

func (s *streamed) rowsOf(g *ir.Group, r ir.Ref) []byte {
	w := &s.m.Program.Weights[r]
	from, to := g.Rows(w)
	row := len(s.m.Weights[r]) / w.Rows
	return s.m.Weights[r][from*row : to*row]
}

// run is a step with a part for each group, in the slot after that of the one before.
func (s *streamed) run(groups []ir.Group) error {
	defer s.Finish(&s.step, func(error) {})
	for i, list := range s.groups {
		s.work.Segment, s.work.Last = i, false
		if len(list) == 0 {
			if err := backend.Enqueue(s, i, &s.step); err != nil {
				return err
			}
		}
		for k, g := range list {
			slot := k % len(s.data)
			for j, r := range groups[g].Weights {
				copy(s.data[slot][g][j], s.rowsOf(&groups[g], r))
			}
			if err := s.Place(g, s.first+slot, s.data[slot][g]); err != nil {
				return err
			}
			s.work.Groups[0], s.work.Last = g, k == len(list)-1
			s.leases++
			if err := s.Run(s.work, &s.step); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestSlotMemory: slots begin with a sector, do not overlap, and are all that streams.
func TestSlotMemory(t *testing.T) {
	m := mixture(t, quant.Q8_0)
	s := stream(t, m, 1, m.Weights)
	defer s.Close()
	a, b := s.Slot(s.first), s.Slot(s.first+1)
	for _, slot := range [][]byte{a, b} {
		require.NotEmpty(t, slot)
		require.Zero(t, uintptr(unsafe.Pointer(&slot[0]))%backend.Sector)
		require.Len(t, slot, cap(slot))
	}
	for i := range a {
		a[i] = 7
	}
	require.NotContains(t, b, byte(7))
	own := int64(0)
	for _, g := range m.On(m.All()) {
		if g.Use == ir.Vector {
			own += (g.Bytes + 63) / 64 * 64
		}
	}
	require.LessOrEqual(t, s.Memory().Weights, own+int64(len(a)+len(b))+64*10)
	require.Nil(t, s.Slot(0))
}

// TestNoAllocInParts: neither placing nor computing in parts allocates.
func TestNoAllocInParts(t *testing.T) {
	for name, m := range map[string]*backendtest.Model{"toy": toy(t, quant.Q8_0, 1), "mixture": mixture(t, quant.Q5_0)} {
		s := stream(t, m, 20, m.Weights)
		groups := s.m.On(s.m.All())
		for _, rows := range []int{1, 20} {
			s.at(0, rows, 1)
			n := 1.0
			for range 5 { // see allocated
				if n = testing.AllocsPerRun(20, func() {
					if err := s.run(groups); err != nil {
						t.Error(err)
					}
				}); n == 0 {
					break
				}
			}
			require.Zero(t, n, "%s, %d rows", name, rows)
		}
		require.Zero(t, s.leases)
		require.NoError(t, s.Close())
	}
}

// TestTablesGoAway: rows of an embedding that is cut while it is in use are an error of the step. The same weight's
// pieces in slots are not touched by that.
func TestTablesGoAway(t *testing.T) {
	m := toy(t, quant.Q8_0, 1)
	path := filepath.Join(t.TempDir(), "table")
	table := ir.Ref(0)
	require.Equal(t, "token_embd.weight", m.Program.Weights[table].Name)
	require.NoError(t, os.WriteFile(path, m.Weights[table], 0o600))
	tables := make([][]byte, len(m.Weights))
	tables[table] = mapped(t, path)
	s := stream(t, m, 8, tables)
	defer s.Close()
	groups := s.m.On(s.m.All())
	s.at(0, 8, 8)
	require.NoError(t, s.run(groups))
	want := append([]float32(nil), s.step.Logits...)
	require.NoError(t, os.Truncate(path, 0))
	require.ErrorContains(t, s.run(groups), "a page of the weights cannot be read")
	require.NoError(t, os.WriteFile(path, m.Weights[table], 0o600))
	require.NoError(t, s.run(groups))
	require.Equal(t, want, s.step.Logits)
}

// TestPlacing: a group is where it was placed last, until another one is placed there.
func TestPlacing(t *testing.T) {
	m := toy(t, quant.Q8_0, 1)
	s := stream(t, m, 1, m.Weights)
	defer s.Close()
	groups := s.m.On(s.m.All())
	mix, ffn := s.groups[1][0], s.groups[2][0]
	place := func(g, slot int) {
		for j, r := range groups[g].Weights {
			copy(s.data[slot][g][j], s.rowsOf(&groups[g], r))
		}
		require.NoError(t, s.Place(g, s.first+slot, s.data[slot][g]))
	}
	// step runs the first segments; between says what happens before the third one.
	step := func(segments int, between func()) (err error) {
		defer s.Finish(&s.step, func(error) {})
		for i := range segments {
			if i == 2 && between != nil {
				between()
			}
			if err = backend.Enqueue(s, i, &s.step); err != nil {
				break
			}
		}
		return err
	}
	s.at(0, 1, 1)
	const missing = "mix 0: group 5 (with blk.0.attn_q.weight) is in no slot"
	require.EqualError(t, step(2, nil), missing)
	place(mix, 0)
	require.NoError(t, step(3, func() { place(ffn, 0) }))
	require.EqualError(t, step(2, nil), missing)
	place(ffn, 1)
	place(mix, 0)
	require.NoError(t, step(3, nil), "it has moved")
	place(ffn, 1)
	require.NoError(t, step(3, nil), "it was placed again")
	place(mix, 1)
	require.NoError(t, step(2, nil))
	require.ErrorContains(t, step(3, nil), "is in no slot")
}
