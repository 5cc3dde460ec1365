//go:build cgo && linux

package vulkan

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// Attention of many rows has two kernels with the same bits: attend_any.comp, which takes a row at a time, and
// attend_rows.comp, which takes tiles of rows. Which is faster depends on the device. So it is measured there, once for
// each shape of heads, and kept in a file beside the compiled kernels.

// choices is the content of the file.
type choices struct {
	Kernels string          // hash of the kernels that were measured: the file says nothing of others
	Tiled   map[string]bool // by shape: whether tiles are faster
}

// attendSum is a hash of the kernels that are measured: it tells versions apart.
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

// loadChoices reads what was measured before. A file that cannot be read says nothing.
func (k *Kernels) loadChoices() {
	var kept choices
	data, err := os.ReadFile(k.choices)
	if err == nil && json.Unmarshal(data, &kept) == nil && kept.Kernels == attendSum() {
		k.learnTiled(kept.Tiled)
	}
}

// saveChoices writes the file, if there is a folder for it. An error only costs the time to measure again.
func (k *Kernels) saveChoices() {
	if k.choices == "" {
		return
	}
	data, err := json.Marshal(choices{attendSum(), k.knownTiled()})
	if err == nil && os.MkdirAll(filepath.Dir(k.choices), 0o755) == nil {
		_ = safefile.Write(k.choices, data, 0o644, true)
	}
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

// takesTiles says whether attend_rows.comp computes the attention of some rows.
func (k *Kernels) takesTiles(h *kernel.Heads, a *kernel.Attention) bool {
	if a.Alone || a.N <= kernel.FewColumns || !k.tiles(h, a) {
		return false
	}
	if k.together {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tiled[h.String()]
}

// Tune implements driver.Kernels. A shape that cannot be measured, for want of memory, say, goes on row by row.
func (k *Kernels) Tune(shapes []kernel.Heads, on driver.Bench) {
	known := k.knownTiled()
	before := len(known)
	for i := range shapes {
		h := &shapes[i]
		if _, ok := known[h.String()]; ok || !k.hasWays(h) {
			continue
		}
		if tiled, ok, err := k.tilesAreSooner(h, on); err == nil && ok {
			known[h.String()] = tiled
		}
	}
	if len(known) > before {
		k.learnTiled(known)
		k.saveChoices()
	}
}

// hasWays says whether both kernels can compute attention of a shape, with the same bits.
func (k *Kernels) hasWays(h *kernel.Heads) bool {
	return k.tiles(h, &kernel.Attention{}) && !k.Fused(h)
}

// choiceDepth is the position of the first row that is measured: at the begin of a text rows have little to attend to.
const choiceDepth = 512

// The least passes of a measurement, and the least time: a card that idled has a fifth of its clock.
const (
	choicePasses = 10
	choiceWarm   = 30 * time.Millisecond
)

// tilesAreSooner runs both kernels in turns, on the same numbers. tiled says that tiles are faster, and that the
// results have the same bits. ok is false if the device has no clock.
func (k *Kernels) tilesAreSooner(h *kernel.Heads, on driver.Bench) (tiled, ok bool, err error) {
	defer on.Free()
	a, results, err := someAttention(h, on)
	if err != nil {
		return false, false, err
	}
	took := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	way := func(i int) func(driver.Recording) error {
		return func(to driver.Recording) error {
			a, r := *a, to.(*recording).Recording
			a.Y = results[i].Address
			splits := k.attendTogether
			if i == 0 {
				splits = k.attendSplits
			}
			if err := splits(r, h, &a); err != nil {
				return err
			}
			err := k.mergeAny(r, h, &a)
			r.BarrierAll()
			r.BarrierToHost()
			return err
		}
	}
	for i, began := 0, time.Now(); i < choicePasses || time.Since(began) < choiceWarm; i++ {
		t, timed, err := on.Pass(way(i % 2))
		if err != nil || !timed {
			return false, false, err
		}
		took[i%2] = min(took[i%2], t)
	}
	return took[1] < took[0] && bytes.Equal(results[0].Bytes, results[1].Bytes), true, nil
}

// someAttention is attention of random numbers, for as many rows as one launch has at most, and memory for the results
// of both kernels.
func someAttention(h *kernel.Heads, on driver.Bench) (*kernel.Attention, [2]*driver.Buffer, error) {
	const n, blocks = kernel.AttentionRows, (choiceDepth + kernel.AttentionRows) / 64
	width, out := h.Query*h.Features, h.Query*h.ValueFeatures()
	var to [2]*driver.Buffer
	var b [6]*driver.Buffer // queries, keys, values, parts, rows, tables
	var err error
	take := func(m driver.Memory, size uint64) *driver.Buffer {
		var x *driver.Buffer
		if err == nil {
			x, err = on.Take(m, size)
		}
		return x
	}
	sizes := []uint64{uint64(4 * n * width), h.KeyBytes(blocks), h.ValueBytes(blocks)}
	for i, size := range sizes {
		b[i] = take(driver.Local, size)
	}
	b[3], b[4], b[5] = take(driver.Local, h.PartBytes(n)), take(driver.Stepwise, 8*n), take(driver.Stepwise, 4*blocks)
	to[0], to[1] = take(driver.Staging, uint64(4*n*out)), take(driver.Staging, uint64(4*n*out))
	random := take(driver.Staging, max(sizes[0], sizes[1], sizes[2]))
	if err != nil {
		return nil, to, err
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range words[uint32](random, 0, len(random.Bytes)/4) {
		words[uint32](random, 0, len(random.Bytes)/4)[i] = rnd.Uint32() & 0xbbffbbff // halves and float32 below 1
	}
	for i := range n {
		words[kernel.Row](b[4], 0, n)[i] = kernel.Row{Position: choiceDepth + uint32(i)}
	}
	for i := range blocks {
		words[uint32](b[5], 0, blocks)[i] = uint32(i)
	}
	err = on.Once(func(r driver.Recording) error {
		for i, size := range sizes {
			r.Copy(b[i], 0, random, 0, size)
		}
		r.BarrierAll()
		return nil
	})
	return &kernel.Attention{X: b[0].Address, Keys: b[1].Address, Values: b[2].Address, Parts: b[3].Address,
		Rows:   b[4].Address,
		Tables: b[5].Address, XStride: width, YStride: out, N: n, Scale: 1, Depth: choiceDepth + n - 1}, to, err
}

// words is n values of a type, at an offset in bytes of a mapped buffer.
func words[T any](b *driver.Buffer, at, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&b.Bytes[at])), n)
}
