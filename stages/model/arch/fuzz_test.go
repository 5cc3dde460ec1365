package arch

import (
	"encoding/binary"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// hostile turns fuzz input into edits of a fixture's metadata, each a byte that chooses the key, one that
// chooses the type and eight that are the value.
func hostile(good *meta.Map, edits []byte) *meta.Map {
	m := new(meta.Map)
	for _, key := range good.Keys() {
		value, _ := good.Get(key)
		m.Set(key, value)
	}
	keys := append([]string(nil), m.Keys()...)
	for _, extra := range []string{
		"rope.scaling.factor", "rope.scaling.type", "rope.scaling.attn_factor", "rope.scaling.yarn_beta_fast",
		"rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier", "rope.scaling.original_context_length",
		"rope.dimension_count", "rope.freq_base", "attention.key_length", "attention.value_length",
		"attention.sliding_window", "attention.sliding_window_pattern", "vocab_size", "expert_count",
		"expert_used_count", "expert_feed_forward_length", "expert_weights_scale",
	} {
		arch, _ := m.String("general.architecture")
		keys = append(keys, arch+"."+extra)
	}
	for ; len(edits) >= 10; edits = edits[10:] {
		key, n := keys[int(edits[0])%len(keys)], binary.LittleEndian.Uint64(edits[2:])
		switch edits[1] % 8 {
		case 0:
			m.Set(key, uint32(n))
		case 1:
			m.Set(key, n)
		case 2:
			m.Set(key, int32(n))
		case 3:
			m.Set(key, math.Float32frombits(uint32(n)))
		case 4:
			m.Set(key, math.Float64frombits(n))
		case 5:
			m.Set(key, []string{"none", "linear", "yarn", "longrope", "llama", "phi3", ""}[n%7])
		case 6:
			m.Set(key, make([]bool, n%64))
		case 7:
			m.Set(key, uint32(n%64))
		}
	}
	return m
}

// FuzzSpecimens is FuzzRecord of the architectures that have no fixture.
func FuzzSpecimens(f *testing.F) {
	tokenizer := &open(f, "qwen3").Meta
	for i := range backendtest.Specimens {
		for key := range byte(24) {
			for _, value := range [][]byte{{1, 0, 0, 0, 0, 0, 1, 0, 0}, {2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
				{3, 0, 0, 0xc0, 0x7f, 0, 0, 0, 0}, {7, 0, 0, 0, 0, 0, 0, 0, 0}, {7, 7, 0, 0, 0, 0, 0, 0, 0}} {
				f.Add(uint8(i), append([]byte{key}, value...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		s := &backendtest.Specimens[int(which)%len(backendtest.Specimens)]
		p, err := Record(hostile(s.Describe(tokenizer), edits), s.Has, Options{})
		if err == nil {
			require.NoError(t, ir.Check(p))
		}
	})
}

// FuzzRecord: whatever the metadata says, recording and binding return, and a program that is returned is legal.
func FuzzRecord(f *testing.F) {
	var files []*gguf.File
	for i, name := range fixtures {
		files = append(files, open(f, name))
		f.Add(uint8(i), []byte{})
		for key := range byte(40) {
			f.Add(uint8(i), []byte{key, 1, 0, 0, 0, 0, 0, 1, 0, 0})             // 2⁴⁰
			f.Add(uint8(i), []byte{key, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}) // −1
			f.Add(uint8(i), []byte{key, 3, 0, 0, 0xc0, 0x7f, 0, 0, 0, 0})       // NaN
			f.Add(uint8(i), []byte{key, 7, 0, 0, 0, 0, 0, 0, 0, 0})             // 0
			f.Add(uint8(i), []byte{key, 7, 7, 0, 0, 0, 0, 0, 0, 0})             // 7
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		file := files[int(which)%len(files)]
		m := hostile(&file.Meta, edits)
		p, err := Record(m, holds(file), Options{})
		if err != nil {
			return
		}
		require.NoError(t, ir.Check(p))
		if b, err := ir.Bind(p, tensorsOf(file)); err == nil {
			require.GreaterOrEqual(t, len(b.On(b.All())), len(p.Segments))
		}
	})
}

// TestHostileCounts: the largest numbers that are believed still cost little memory.
func TestHostileCounts(t *testing.T) {
	m := llamaMeta()
	m.Set("llama.block_count", uint32(maxLayers))
	m.Set("llama.embedding_length", uint32(maxWidth))
	m.Set("llama.feed_forward_length", uint32(maxFFN))
	m.Set("llama.attention.head_count", uint32(maxHeads))
	m.Set("llama.attention.head_count_kv", uint32(maxHeads))
	m.Set("llama.attention.key_length", uint32(maxHeadDim))
	m.Set("llama.context_length", uint32(maxContext))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := Record(m, nil, Options{})
	require.NoError(t, err)
	_, err = ir.Bind(p, nil)
	require.ErrorContains(t, err, "more")
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}
