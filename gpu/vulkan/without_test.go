//go:build cgo && linux

package vulkan

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
)

// without are the capabilities that the device under test is not to use: SLUICE_VULKAN_WITHOUT runs tests so, as
//
//	SLUICE_VULKAN_WITHOUT=all go test ./gpu/vulkan -run Conformance
//
// Those of a capability itself fail then.
func without() []string {
	return strings.FieldsFunc(os.Getenv("SLUICE_VULKAN_WITHOUT"), func(r rune) bool { return r == ',' })
}

// TestWithout: whatever a device can do without, it can, and the bits are the same, but for attention
// where there are no matrices of halves. Kernels of long prompts take long
// to compile: they are the whole table's, see without.
func TestWithout(t *testing.T) {
	d, models := open(t), map[bool]*backendtest.Model{false: small(t), true: mini(t)} // by whether weights are blocks
	want := map[bool]said{false: whatItSays(t, d, models[false]), true: whatItSays(t, d, models[true])}
	lacks := d.d.Facts.Lacks()
	for _, name := range append(vk.Optional(), "all") {
		if slices.Contains(lacks, name) {
			continue // so it is without anyway
		}
		t.Run(name, func(t *testing.T) {
			g := open(t, name)
			if now := g.d.Facts.Lacks(); name != "all" {
				require.Subset(t, now, append(slices.Clone(lacks), name))
			} else {
				require.ElementsMatch(t, vk.Optional(), now)
			}
			blocks := name == "all" || name == "shaderIntegerDotProduct"
			got := whatItSays(t, g, models[blocks])
			if d.k.attendSquares == g.k.attendSquares {
				require.Equal(t, want[blocks], got)
				return
			}
			far := 5e-3 // attention has another order, and no halves but those of caches
			if blocks {
				far = 0.1 // where a value is rounded to another byte, as in TestMini
			}
			require.Less(t, judge.Relative(got.logits, want[blocks].logits), far)
			for i, id := range got.drawn {
				row := got.logits[i*len(got.logits)/len(got.drawn):][:len(got.logits)/len(got.drawn)]
				require.Equal(t, slices.Max(row), row[id])
			}
		})
	}
}

// said is the logits of a prompt, and the tokens that the device draws.
type said struct {
	logits []float32
	drawn  []int32
}

func whatItSays(t *testing.T, g *gpu, m *backendtest.Model) said {
	d := g.device()
	told := atomic.Int64{}
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 3),
		MaxRows: 1, MaxWanted: 1, Flight: 2}, Observer: backend.Observer{Ran: func(r backend.Ran) { told.Add(1) }}}
	x, err := d.Compile(m.Bound, c)
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	it := &backendtest.Running{Model: x, T: t, Of: m}
	tokens := []int32{1, 97, 3}
	all := said{logits: it.Logits(tokens, 1)}
	require.Equal(t, d.Traits().Clock, told.Load() > 0, "who has timestamps tells of segments")
	for pos := range tokens {
		s, done := it.Begin(pos, tokens[pos:pos+1], pos, true)
		require.NoError(t, <-done)
		all.drawn = append(all.drawn, s.Drawn[0])
	}
	return all
}

// TestIndispensable: a device that lacks what kernels cannot do without is refused, and told what it is.
func TestIndispensable(t *testing.T) {
	d := open(t)
	for _, name := range []string{"storageBuffer8BitAccess", "storageBuffer16BitAccess", "timelineSemaphore", "shaderInt8",
		"bufferDeviceAddress"} {
		list, err := List(name)
		require.NoError(t, err)
		require.NotEmpty(t, list)
		for _, f := range list {
			require.ErrorContains(t, f.Missing, "cannot be used: it has no "+name)
			require.False(t, f.Auto)
		}
		_, err = Open(0, Options{Without: []string{name, "shaderFloat16"}})
		require.ErrorContains(t, err, "it has no "+name)
		_, err = OpenBest(Options{Without: []string{name}})
		require.ErrorContains(t, err, "there is no GPU that can be used")
	}
	_, err := List("shaderFloat61")
	require.ErrorContains(t, err, `without "shaderFloat61", which is no capability: want some of all, timestamps,`)
	require.NotEmpty(t, d.d.Facts.Name)
}

// TestCapabilities reads what modules declare to need: that is what every device has, but for those that are chosen by
// what it has.
func TestCapabilities(t *testing.T) {
	const int64s, int16s, int8s, float16s = 11, 22, 39, 9 // SpvCapability
	const ballot, shuffle, dot, dotPacked, model, squares = 64, 65, 6019, 6018, 5345, 6022
	every := []uint32{1, int64s, int16s, int8s, 61, shuffle, 4433, 4448, 5347}
	names := 0
	for m := range shaders.Module(255) {
		name := m.String()
		if strings.HasPrefix(name, "module ") {
			break
		}
		names++
		allowed := slices.Clone(every)
		switch {
		case strings.HasSuffix(name, "_matrix") || m == shaders.Squares:
			allowed = append(allowed, model, squares)
			if strings.Contains(name, "half") || strings.Contains(name, "16") || name == "attend_matrix" {
				allowed = append(allowed, float16s)
			}
			if m == shaders.AttendMatrix {
				allowed = append(allowed, ballot)
			}
		case m == shaders.PeakDot4 || m == shaders.AttendCoded || strings.HasPrefix(name, "mat") && !strings.HasSuffix(name, "_plain") &&
			!strings.Contains(name, "half") && !strings.Contains(name, "16") && !strings.Contains(name, "float"):
			allowed = append(allowed, dot, dotPacked)
		}
		require.Subset(t, allowed, declared(m.Code()), name)
	}
	require.Greater(t, names, 50)
}

// declared are the capabilities of a module.
func declared(code []byte) (all []uint32) {
	const header, opCapability = 20, 17
	for at := header; at < len(code); {
		word := binary.LittleEndian.Uint32(code[at:])
		if word&0xffff != opCapability {
			break
		}
		all = append(all, binary.LittleEndian.Uint32(code[at+4:]))
		at += 4 * int(word>>16)
	}
	return all
}

// TestFree: what is free is of the largest of the device's own heaps.
func TestFree(t *testing.T) {
	heap := func(budget, used uint64, local bool) vk.Heap {
		return vk.Heap{Budget: budget, Used: used, Local: local}
	}
	require.Equal(t, uint64(7), free(&vk.Facts{Heaps: []vk.Heap{heap(9, 2, true), heap(99, 0, false), heap(3, 1, true)}}))
	require.Zero(t, free(&vk.Facts{Heaps: []vk.Heap{heap(9, 9, true)}}), "others have all of it")
	require.Zero(t, free(&vk.Facts{Heaps: []vk.Heap{heap(9, 12, true)}}))
}

// TestSquaresNeed: cooperative matrices are used where all is there that their kernels need.
func TestSquaresNeed(t *testing.T) {
	whole := vk.MatrixShape{M: 16, N: 16, K: 32, A: vk.Int8, B: vk.Int8, C: vk.Int32, D: vk.Int32}
	half := vk.MatrixShape{M: 16, N: 16, K: 16, A: vk.Float16, B: vk.Float16, C: vk.Float32, D: vk.Float32}
	f := vk.Facts{Subgroup: vk.Subgroup{Min: 32, Max: 32}, Matrices: []vk.MatrixShape{whole, half}}
	f.Has.Matrix, f.Has.MemoryModel, f.Has.Float16 = true, true, true
	require.True(t, hasMatrix(&f) && hasHalves(&f))
	for name, edit := range map[string]func(*vk.Facts){
		"no matrices": func(f *vk.Facts) { f.Has.Matrix = false }, "no memory model": func(f *vk.Facts) { f.Has.MemoryModel = false },
		"64 lanes": func(f *vk.Facts) { f.Subgroup.Max = 64 }, "none of the shape": func(f *vk.Facts) { f.Matrices = nil },
	} {
		g := f
		edit(&g)
		require.False(t, hasMatrix(&g) || hasHalves(&g), name)
	}
	f.Has.Float16 = false
	require.True(t, hasMatrix(&f) && !hasHalves(&f))
	f.Has.Float16, f.Matrices = true, f.Matrices[:1]
	require.True(t, hasMatrix(&f) && !hasHalves(&f))
}
