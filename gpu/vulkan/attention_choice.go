//go:build cgo && linux

package vulkan

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// Attention of many rows has kernels with the same bits: those that take a row at a time, and attend_rows.comp, which
// takes tiles. Which is sooner is a device's business, so it is measured there, once for each shape of heads, and kept
// beside the compiled kernels.

// choices is what the file says.
type choices struct {
	Kernels string          // a sum of those that were measured: of others it says nothing
	Tiled   map[string]bool // by shape: tiles are sooner
}

// attendSum tells the kernels of attention from those of another version.
func attendSum() string {
	sum := sha256.New()
	for _, m := range []shaders.Module{shaders.AttendRows, shaders.AttendAny} {
		sum.Write(m.Code())
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}

func choicesPath(dir string, f *vk.Facts) string {
	return strings.TrimSuffix(cachePath(dir, f), ".cache") + ".choices"
}

// loadChoices hears what was measured before. A file that cannot be read says nothing.
func (c *card) loadChoices() {
	var kept choices
	data, err := os.ReadFile(choicesPath(c.cache, &c.d.Facts))
	if c.cache != "" && err == nil && json.Unmarshal(data, &kept) == nil && kept.Kernels == attendSum() {
		c.kernels.learnTiled(kept.Tiled)
	}
}

// saveChoices writes down what is known, if there is a place for it: nobody loses more than time.
func (c *card) saveChoices() {
	if c.cache == "" {
		return
	}
	data, err := json.Marshal(choices{attendSum(), c.kernels.knownTiled()})
	if err == nil && os.MkdirAll(c.cache, 0o755) == nil {
		_ = safefile.Write(choicesPath(c.cache, &c.d.Facts), data, 0o644, true)
	}
}

// shape names what a choice is for.
func (h *Heads) shape() string {
	return fmt.Sprintf("%d/%d heads of %d and %d in %s", h.Query, h.KV, h.Features, h.values(), h.cache())
}

func (k *Kernels) learnTiled(known map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.Copy(k.tiled, known)
}

func (k *Kernels) knownTiled() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.tiled)
}

// takesTiles says whether tiles compute the attention of some rows.
func (k *Kernels) takesTiles(h *Heads, a *Attention) bool {
	if a.Alone || a.N <= fewColumns || !k.tiles(h, a) {
		return false
	}
	if k.together {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tiled[h.shape()]
}

// chooseAttention measures the shapes of a program.
func (m *model) chooseAttention(p *ir.Bound) {
	if m.capacity(false) <= fewColumns {
		return
	}
	var shapes []Heads
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if n := &p.Segments[s].Nodes[i]; n.Op == ir.Attend {
				shapes = append(shapes, m.heads(n.Attend))
			}
		}
	}
	m.device.choose(shapes)
}

// choose measures those of some shapes that were not measured before. What cannot be measured, for want of memory, say,
// goes on row by row.
func (v *Device) choose(shapes []Heads) {
	if v.computing.bits == 0 {
		return
	}
	known := v.kernels.knownTiled()
	before := len(known)
	for i := range shapes {
		h := &shapes[i]
		if _, ok := known[h.shape()]; ok || !v.kernels.hasWays(h) {
			continue
		}
		if tiled, err := v.tilesAreSooner(h); err == nil {
			known[h.shape()] = tiled
		}
	}
	if len(known) > before {
		v.kernels.learnTiled(known)
		v.saveChoices()
	}
}

// hasWays says whether tiles have the bits of what computes heads otherwise.
func (k *Kernels) hasWays(h *Heads) bool {
	return k.tiles(h, &Attention{}) && !k.Fused(h)
}

// choiceDepth is where rows stand that are measured: not at the begin of a text, where there is little to see.
const choiceDepth = 512

// tilesAreSooner measures both ways, in turns, with the same numbers, and compares what they compute: a device on which
// that differs by a bit goes by rows.
func (v *Device) tilesAreSooner(h *Heads) (bool, error) {
	memory := buffers{d: v.d}
	defer memory.free()
	a, results, err := v.someAttention(h, &memory)
	if err != nil {
		return false, err
	}
	took, failed := [2]time.Duration{math.MaxInt64, math.MaxInt64}, error(nil)
	way := func(i int) func(*vk.Recording) {
		return func(r *vk.Recording) {
			a := *a
			a.Y = results[i].Address
			splits := v.kernels.attendTogether
			if i == 0 {
				splits = v.kernels.attendSplits
			}
			if err := splits(r, h, &a); err != nil {
				failed = err
				return
			}
			failed = v.kernels.mergeAny(r, h, &a)
			r.BarrierAll()
			r.BarrierToHost()
		}
	}
	for i, began := 0, time.Now(); i < 2*ceilingPasses || time.Since(began) < ceilingWarm; i++ {
		t, err := v.pass(way(i % 2))
		if err != nil || failed != nil {
			return false, errors.Join(err, failed)
		}
		took[i%2] = min(took[i%2], t)
	}
	return took[1] < took[0] && bytes.Equal(results[0].Bytes, results[1].Bytes), nil
}

// someAttention is attention of random numbers, for as many rows as attend at once, and memory for its results.
func (v *Device) someAttention(h *Heads, memory *buffers) (*Attention, [2]*vk.Buffer, error) {
	const n, blocks = attentionRows, (choiceDepth + attentionRows) / 64
	width, out := h.Query*h.Features, h.Query*h.values()
	var to [2]*vk.Buffer
	var b [6]*vk.Buffer // queries, keys, values, parts, rows, tables
	var err error
	take := func(p vk.Place, size uint64) *vk.Buffer {
		var x *vk.Buffer
		if err == nil {
			x, err = memory.raw(p, size, "measuring attention")
		}
		return x
	}
	sizes := []uint64{uint64(4 * n * width), h.KeyBytes(blocks), h.ValueBytes(blocks)}
	for i, size := range sizes {
		b[i] = take(vk.Local, size)
	}
	b[3], b[4], b[5] = take(vk.Local, h.PartBytes(n)), take(vk.Stepwise, 8*n), take(vk.Stepwise, 4*blocks)
	to[0], to[1] = take(vk.Staging, uint64(4*n*out)), take(vk.Staging, uint64(4*n*out))
	random := take(vk.Staging, max(sizes[0], sizes[1], sizes[2]))
	if err != nil {
		return nil, to, err
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range words[uint32](random, 0, len(random.Bytes)/4) {
		words[uint32](random, 0, len(random.Bytes)/4)[i] = rnd.Uint32() & 0xbbffbbff // halves and float32 below 1
	}
	for i := range n {
		words[Row](b[4], 0, n)[i] = Row{Position: choiceDepth + uint32(i)}
	}
	for i := range blocks {
		words[uint32](b[5], 0, blocks)[i] = uint32(i)
	}
	err = v.queue.once(func(r *vk.Recording) error {
		for i, size := range sizes {
			r.Copy(b[i], 0, random, 0, size)
		}
		r.BarrierAll()
		return nil
	})
	return &Attention{X: b[0].Address, Keys: b[1].Address, Values: b[2].Address, Parts: b[3].Address, Rows: b[4].Address,
		Tables: b[5].Address, XStride: width, YStride: out, N: n, Scale: 1, Depth: choiceDepth + n - 1}, to, err
}
