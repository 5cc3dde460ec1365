package backendtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Split is a device of two on which every whole program has some segments on the host: the first ones, as plans have
// it, or any, now one and now the other.
func Split(d backend.Device) backend.Device { return split{d} }

type split struct{ backend.Device }

func (d split) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if host := onHost(p); c.Segments == nil && len(host) > 0 {
		c.Devices = slices.Repeat([]int{1}, len(p.Segments))
		for _, s := range host {
			c.Devices[s] = 0
		}
	}
	m, err := d.Device.Compile(p, c)
	if err != nil {
		return nil, err
	}
	return divided{m}, nil
}

// onHost draws segments, those that attend to one cache together. Programs of one shape are divided alike.
func onHost(p *ir.Bound) (segments []int) {
	rng := rand.New(rand.NewPCG(uint64(len(p.Segments)), uint64(len(p.Weights)*p.Width+len(p.Arch))))
	part := make([]int, len(p.Segments)) // 1: on the host
	first, any := 1+rng.IntN(len(part)-1), rng.IntN(2) == 0
	for s := range part[:len(part)-1] {
		switch {
		case any:
			part[s] = rng.IntN(2)
		case s < first:
			part[s] = 1
		}
	}
	(&Model{Bound: p}).keepTogether(part)
	for s, on := range part {
		if on == 1 {
			segments = append(segments, s)
		}
	}
	return segments
}

// sides lists the groups of each of the devices that d is, the one with the program's end first.
func sides(d backend.Device, p *ir.Bound, groups []ir.Group) (all [][]int) {
	host := []int(nil)
	if _, both := d.(split); both {
		host = onHost(p)
	}
	all = make([][]int, 2)
	for g := range groups {
		at := 0
		if slices.Contains(host, groups[g].Segment) {
			at = 1
		}
		all[at] = append(all[at], g)
	}
	return all
}

// divided counts what is on the host as weights and as caches: those of the model are there or on the device.
type divided struct{ backend.Model }

func (m divided) Memory() backend.Memory {
	all := m.Model.Memory()
	all.Weights, all.KV = all.Weights+all.Host, all.KV+all.Host
	return all
}

// Divided: programs on two devices are near the oracle, whatever is where, and keep the laws by bits. It is what of
// Conformance the border between them can break.
func Divided(t *testing.T, d, oracle backend.Device, matrixTypes []quant.Type) {
	d = Split(d)
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
			m, err := randomModel(p, 9, inTurn(narrowest(matrixTypes)))
			require.NoError(t, err)
			got, want := both(t, d, oracle, m, backend.KVF32, prompt(8, 22, s.vocab))
			require.LessOrEqual(t, relative(got, want), 0.08)
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
