package ref_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/synth"
)

const eagleConfig = `{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 48,
	"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 20, "max_position_embeddings": 64,
	"rms_norm_eps": 1e-5, "rope_theta": 100, "draft_vocab_size": 12, "target_hidden_size": 24}`

// plainEagle is EAGLE-3 as loops.
type plainEagle struct {
	plainHead
	normed bool // the stream goes past attention normalised
	keys   [][]float64
	values [][]float64
}

const eagleHeads, eagleKVHeads, eagleDim = 4, 2, 8

// turned turns the pairs of neighbours of each head.
func turned(x []float64, pos int) []float64 {
	out := make([]float64, len(x))
	for i := 0; i < len(x); i += 2 {
		angle := float64(pos) * math.Pow(100, -float64(i%eagleDim)/eagleDim)
		sin, cos := math.Sincos(angle)
		out[i], out[i+1] = x[i]*cos-x[i+1]*sin, x[i]*sin+x[i+1]*cos
	}
	return out
}

// attend is causal attention of the newest row.
func (p *plainEagle) attend(q []float64) []float64 {
	out := make([]float64, len(q))
	for h := range eagleHeads {
		from := h / (eagleHeads / eagleKVHeads) * eagleDim
		weights, sum := make([]float64, len(p.keys)), 0.0
		for j, k := range p.keys {
			dot := 0.0
			for i := range eagleDim {
				dot += q[h*eagleDim+i] * k[from+i]
			}
			weights[j] = math.Exp(dot / math.Sqrt(eagleDim))
			sum += weights[j]
		}
		for j, v := range p.values {
			for i := range eagleDim {
				out[h*eagleDim+i] += weights[j] / sum * v[from+i]
			}
		}
	}
	return out
}

func plus(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] + y[i]
	}
	return out
}

// row gives the logits of a row, and what it leaves. hidden is its target's, or its own of the width of the stream.
func (p *plainEagle) row(pos int, token int32, hidden []float64) []float64 {
	e := make([]float64, p.width)
	for i := range e {
		e[i] = float64(p.weights["token_embd.weight"][int(token)*p.width+i])
	}
	x := hidden
	if len(hidden) != p.width {
		x = p.times("fc", hidden)
	}
	g := p.norm(x, "blk.0.attn_norm_2")
	both := append(p.norm(e, "blk.0.attn_norm"), g...)
	if p.normed {
		x = g
	}
	p.keys = append(p.keys, turned(p.times("blk.0.attn_k", both), pos))
	p.values = append(p.values, p.times("blk.0.attn_v", both))
	x = plus(x, p.times("blk.0.attn_output", p.attend(turned(p.times("blk.0.attn_q", both), pos))))
	n := p.norm(x, "blk.0.ffn_norm")
	gate, up := p.times("blk.0.ffn_gate", n), p.times("blk.0.ffn_up", n)
	for i, v := range gate {
		up[i] *= v / (1 + math.Exp(-v))
	}
	return p.times("output", p.norm(plus(x, p.times("blk.0.ffn_down", up)), "output_norm"))
}

// TestEagle compares the program of EAGLE-3 with loops written from its description, rows that are told hidden states
// and rows that go on from their own, with a head that knows some tokens only.
func TestEagle(t *testing.T) {
	for name, normed := range map[string]bool{"": false, "normed": true} {
		t.Run(name, func(t *testing.T) {
			config, err := synth.Parse([]byte(eagleConfig))
			require.NoError(t, err)
			known := []int32{1, 2, 3, 5, 7, 11, 13, 17, 19}
			p := &plainEagle{plainHead: plainHead{weights: map[string][]float32{}, width: config.Width}, normed: normed}
			m := p.model(t, config, known)
			require.Equal(t, len(known), m.OutputWidth())
			const rows, told = 5, 3
			tokens, random := []int32{3, 19, 0, 7, 7}, rand.New(rand.NewPCG(1, 2))
			x := backendtest.Run(t, ref.New(), m, rows)
			s := x.Steps()[0]
			wide := arch.Taps * config.TargetWidth
			inputs := [2][]float32{make([]float32, rows*wide), make([]float32, rows*p.width)}
			hidden := make([][]float64, rows)
			for r := range rows {
				into := inputs[0][r*wide:][:wide]
				if r >= told {
					into = inputs[1][r*p.width:][:p.width]
				}
				for i := range into {
					into[i] = float32(random.NormFloat64() * 3)
					hidden[r] = append(hidden[r], float64(into[i]))
				}
			}
			for i, name := range []string{arch.TargetRows, arch.OwnRows} {
				v, ok := m.Input(name)
				require.True(t, ok)
				require.NoError(t, x.In(v, s, inputs[i]))
			}
			_, done := x.Begin(0, tokens, 0, false)
			require.NoError(t, <-done)
			for r := range rows {
				for i, want := range p.row(r, tokens[r], hidden[r]) {
					require.InDelta(t, want, s.Logits[r*len(known)+i], 2e-3, "row %d, column %d", r, i)
				}
			}
		})
	}
}

// model is the program with random weights, which p gets, too.
func (p *plainEagle) model(t *testing.T, config *synth.Config, known []int32) *backendtest.Model {
	md := config.Meta("x")
	md.Set("eagle3.norm_before_residual", p.normed)
	program, err := arch.Record(md, func(name string) bool { return name == "output.weight" }, arch.Options{Known: known})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	var tensors []ir.Tensor
	var data [][]byte
	for i := range program.Weights {
		w := &program.Weights[i]
		values, bytes := make([]float32, w.Rows*w.Cols), []byte(nil)
		for k := range values {
			values[k] = float32(random.NormFloat64() / math.Sqrt(float64(w.Cols)))
			if w.Rows == 1 {
				values[k] = float32(1 + random.NormFloat64()/4)
			}
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(values[k]))
		}
		p.weights[w.Name] = values
		tensors = append(tensors, ir.Tensor{Name: w.Name, Type: quant.F32, Shape: w.Shape()})
		data = append(data, bytes)
	}
	m, err := backendtest.NewModel(program, tensors, func(i int, use func([]byte) error) error { return use(data[i]) })
	require.NoError(t, err)
	return m
}
