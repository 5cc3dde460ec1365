package ref_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// grove is a plain program of a model of GroveMoE with one layer, for texts of one token: such a token attends to
// itself alone, and RoPE does not turn it. Written from what the model's authors published with it.
type grove struct {
	t *testing.T
	f *gguf.File
}

// tensor is a tensor of the file, row by row.
func (g grove) tensor(name string) [][]float64 {
	for i := range g.f.Tensors {
		if x := &g.f.Tensors[i]; x.Name == name {
			data, rows := g.f.Bytes(x), [][]float64(nil)
			for at := 0; at < len(data); at += 4 * x.Shape[0] {
				row := make([]float64, x.Shape[0])
				for j := range row {
					row[j] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[at+4*j:])))
				}
				rows = append(rows, row)
			}
			return rows
		}
	}
	g.t.Fatalf("no tensor %s", name)
	return nil
}

func times(matrix [][]float64, x []float64) []float64 {
	y := make([]float64, len(matrix))
	for o, row := range matrix {
		for i, v := range x {
			y[o] += row[i] * v
		}
	}
	return y
}

func (g grove) norm(x []float64, name string) []float64 {
	sum, w, y := 0.0, g.tensor(name)[0], make([]float64, len(x))
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		y[i] = w[i] * v / math.Sqrt(sum/float64(len(x))+1e-6)
	}
	return y
}

// network is expert e of a stack of experts.
func (g grove) network(kind string, e, experts int, x []float64) []float64 {
	part := func(name string) [][]float64 {
		all := g.tensor("blk.0.ffn_" + name + "_" + kind + ".weight")
		n := len(all) / experts
		return all[e*n:][:n]
	}
	h, up := times(part("gate"), x), times(part("up"), x)
	for i, v := range h {
		h[i] = v / (1 + math.Exp(-v)) * up[i]
	}
	return times(part("down"), h)
}

func add(y, x []float64, factor float64) {
	for i, v := range x {
		y[i] += factor * v
	}
}

// logits are those of a token.
func (g grove) logits(token int32) []float64 {
	const heads, kvHeads, head, experts, used, group, factor = 4, 2, 16, 8, 3, 2, 0.4
	x := g.tensor("token_embd.weight")[token]
	v := times(g.tensor("blk.0.attn_v.weight"), g.norm(x, "blk.0.attn_norm.weight"))
	var seen []float64
	for h := range heads {
		seen = append(seen, v[h/(heads/kvHeads)*head:][:head]...)
	}
	add(x, times(g.tensor("blk.0.attn_output.weight"), seen), 1)
	n := g.norm(x, "blk.0.ffn_norm.weight")
	scores, order := times(g.tensor("blk.0.ffn_gate_inp.weight"), n), []int(nil)
	for e := range scores {
		order = append(order, e)
	}
	slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, scores[b]-scores[a])) })
	total := 0.0
	for _, e := range order[:used] {
		total += math.Exp(scores[e])
	}
	for _, e := range order[:used] {
		weight := math.Exp(scores[e]) / total
		add(x, g.network("exps", e, experts, n), weight)
		add(x, g.network("chexps", e/group, experts/group, n), weight*float64(float32(factor)))
	}
	return times(g.tensor("output.weight"), g.norm(x, "output_norm.weight"))
}

// TestGrove compares GroveMoE with the plain program, since llama.cpp's second mixture is another one.
func TestGrove(t *testing.T) {
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "qwen3.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	path := filepath.Join(t.TempDir(), "grove.gguf")
	archtest.Write(t, path, &backendtest.Grove, &f.Meta)
	file, err := gguf.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for _, token := range backendtest.SpecimenTokens()[:9] {
		got := backendtest.Logits(t, ref.New(), archtest.Open(t, path, nil), []int32{token})
		for i, want := range (grove{t, file}).logits(token) {
			require.InDelta(t, want, got[i], 1e-4, "token %d, logit %d", token, i)
		}
	}
}
