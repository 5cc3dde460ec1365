package ref_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/synth"
)

const (
	latentHead = `{"model_type": "deepseek_v3", "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48,
		"num_attention_heads": 2, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
		"v_head_dim": 8, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
		"n_shared_experts": 1, "first_k_dense_replace": 1, "vocab_size": 20, "max_position_embeddings": 64,
		"rms_norm_eps": 1e-5, "num_nextn_predict_layers": 1}`
	hybridHead = `{"model_type": "qwen3_5_text", "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48,
		"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "linear_conv_kernel_dim": 4,
		"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
		"full_attention_interval": 2, "vocab_size": 20, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
		"mtp_num_hidden_layers": 1}`
)

// plainHead is a head whose layer adds nothing, as loops: what is left is what makes it a head.
type plainHead struct {
	weights map[string][]float32
	next    string // what names of its own tensors begin with
	normed  bool   // Qwen's: hidden states are normalised as before the output matrix
	width   int
}

// norm is RMSNorm with a weight.
func (p *plainHead) norm(x []float64, weight string) []float64 {
	sum, out := 0.0, make([]float64, len(x))
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		out[i] = v / math.Sqrt(sum/float64(len(x))+1e-5) * float64(p.weights[weight+".weight"][i])
	}
	return out
}

func (p *plainHead) times(matrix string, x []float64) []float64 {
	w := p.weights[matrix+".weight"]
	out := make([]float64, len(w)/len(x))
	for r := range out {
		for i, v := range x {
			out[r] += float64(w[r*len(x)+i]) * v
		}
	}
	return out
}

// logits is those of a row: of the token after the one whose embedding it is given.
func (p *plainHead) logits(token int32, hidden []float64, own bool) []float64 {
	e := make([]float64, p.width)
	for i := range e {
		e[i] = float64(p.weights["token_embd.weight"][int(token)*p.width+i])
	}
	switch {
	case p.normed && own:
		hidden = p.norm(hidden, p.next+"shared_head_norm")
	case p.normed:
		hidden = p.norm(hidden, "output_norm")
	}
	both := append(p.norm(e, p.next+"enorm"), p.norm(hidden, p.next+"hnorm")...)
	u := p.times(p.next+"eh_proj", both)
	return p.times("output", p.norm(u, p.next+"shared_head_norm"))
}

// TestHeads compares the program of a head with loops written from its description: which half of the matrix sees the
// embedding, which norms there are, and whose hidden state a row is given.
func TestHeads(t *testing.T) {
	for _, c := range []struct {
		config string
		normed bool
	}{{latentHead, false}, {hybridHead, true}} {
		config, err := synth.Parse([]byte(c.config))
		require.NoError(t, err)
		t.Run(config.ModelType, func(t *testing.T) {
			p := &plainHead{map[string][]float32{}, "blk.2.nextn.", c.normed, config.Width}
			m := p.model(t, config)
			const rows = 4
			tokens, random := []int32{3, 19, 0, 7}, rand.New(rand.NewPCG(1, 2))
			x := backendtest.Run(t, ref.New(), m, rows)
			s := x.Steps()[0]
			inputs := [2][]float32{make([]float32, rows*p.width), make([]float32, rows*p.width)}
			for r := range rows { // the first two are told, the others go on from their own
				for i := range p.width {
					inputs[r/2][r*p.width+i] = float32(random.NormFloat64() * 3)
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
				hidden := make([]float64, p.width)
				for i := range hidden {
					hidden[i] = float64(inputs[r/2][r*p.width+i])
				}
				for i, want := range p.logits(tokens[r], hidden, r/2 == 1) {
					require.InDelta(t, want, s.Logits[r*config.Vocab+i], 1e-4, "row %d, token %d", r, i)
				}
			}
		})
	}
}

// model is the head's program with random weights, which p gets, too. What its layer adds to the stream is 0.
func (p *plainHead) model(t *testing.T, config *synth.Config) *backendtest.Model {
	md := config.Meta("x")
	program, err := arch.Record(md, config.Has, arch.Options{Head: true})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	var tensors []ir.Tensor
	var data [][]byte
	for i := range program.Weights {
		w := &program.Weights[i]
		values, bytes := make([]float32, w.Rows*w.Cols), []byte(nil)
		for k := range values {
			if values[k] = float32(random.NormFloat64()); strings.Contains(w.Name, "attn_output") || strings.Contains(w.Name, "ffn_down") {
				values[k] = 0
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
