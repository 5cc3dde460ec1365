package backendtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Split is a composition that divides every whole program over its devices: some programs in runs of neighbouring
// segments, as plans do, others with a random device for each segment.
func Split(d backend.Device) backend.Device {
	return split{d, func(p *ir.Bound) []int { return deal(p, len(d.Traits().Devices)) }}
}

// Dealt is a composition that divides every whole program as devices says.
func Dealt(d backend.Device, devices func(p *ir.Bound) []int) backend.Device {
	return split{d, devices}
}

type split struct {
	backend.Device
	devices func(p *ir.Bound) []int
}

func (d split) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if devices := d.devices(p); c.Segments == nil && slices.Min(devices) < slices.Max(devices) {
		c.Devices = devices
	}
	m, err := d.Device.Compile(p, c)
	if err != nil {
		return nil, err
	}
	return divided{m}, nil
}

// deal draws a device for each segment, and the last device for the end. Segments that attend to one cache are on one
// device. Programs of one shape are divided alike.
func deal(p *ir.Bound, n int) []int {
	rng := rand.New(rand.NewPCG(uint64(len(p.Segments)), uint64(len(p.Weights)*p.Width+len(p.Arch))))
	devices, last := make([]int, len(p.Segments)), len(p.Segments)-1
	starts, any := make([]int, n-1), rng.IntN(2) == 0
	for i := range starts {
		starts[i] = 1 + rng.IntN(last)
	}
	for s := range devices {
		for _, start := range starts {
			if s >= start {
				devices[s]++
			}
		}
		if any {
			devices[s] = rng.IntN(n)
		}
	}
	devices[last] = n - 1
	Together(p.Program, devices)
	return devices
}

// sides lists the groups of each device of d; the device with the program's end comes first.
func sides(d backend.Device, p *ir.Bound, groups []ir.Group) [][]int {
	devices := make([]int, len(p.Segments))
	if s, several := d.(split); several {
		devices = s.devices(p)
	}
	all := make([][]int, slices.Max(devices)+1)
	for g := range groups {
		at := devices[groups[g].Segment]
		all[at] = append(all[at], g)
	}
	end := devices[len(devices)-1]
	all[0], all[end] = all[end], all[0]
	return all
}

// divided counts weights and caches in the program's memory as the model's: there or on a device, they are the same
// ones.
type divided struct{ backend.Model }

func (m divided) Memory() backend.Memory {
	all := m.Model.Memory()
	all.Weights, all.KV = all.Weights+all.Host, all.KV+all.Host
	return all
}

// Divided checks that programs on several devices are near the oracle, however they are divided, and keep the laws by
// bits. It is the part of Conformance that the division can break.
func Divided(t *testing.T, d, oracle backend.Device, matrixTypes []quant.Type) {
	if _, dealt := d.(split); !dealt {
		d = Split(d)
	}
	t.Run("order", func(t *testing.T) { badOrder(t, d) })
	s := small{layers: 3, width: 32, ffn: 96, vocab: 51, heads: 2, kvHeads: 1, head: 16, used: 3}
	for _, f := range models {
		switch f.name {
		case "gemma", "mixture", "hybrid", "shared": // all that masks, routers, states and borders can have
		default:
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			p, err := f.record(s)
			require.NoError(t, err)
			m, err := made(judge.Random(p, 9, inTurn(narrowest(matrixTypes))))
			require.NoError(t, err)
			got, want := both(t, d, oracle, m, backend.KVF32, prompt(8, 22, s.vocab))
			require.LessOrEqual(t, judge.Relative(got, want), 0.08)
			w := newLawful(t, d, m)
			w.fewTimes(t)
			t.Run("ChunkFree", func(t *testing.T) {
				got := w.sequence(t, w.tokens, table(len(w.tokens), 0), 1)
				sameBits(t, "row by row", m.Vocab, got, w.want)
			})
			t.Run("RowAlone", w.wanted)
			t.Run("Recompute", func(t *testing.T) { // in other blocks, after others were in its own
				w.step(t, rows{prompt(11, 70, m.Vocab), 0, []int32{0, 1}})
				sameBits(t, "once more", m.Vocab, w.sequence(t, w.tokens, []int32{9, 0, 4}, 31), w.want)
			})
		})
	}
}
