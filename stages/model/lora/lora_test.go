package lora

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// tensor has values 1, 2, 3, … times unit.
func tensor(name string, unit float32, shape ...int) Tensor {
	return Tensor{Name: name, Shape: shape, Read: func(to []float32) error {
		for i := range to {
			to[i] = unit * float32(i+1)
		}
		return nil
	}}
}

// program has a table, one matrix of 5 × 4, and a tied head.
func program(t testing.TB) *ir.Program {
	t.Helper()
	b := ir.NewBuilder("llama", func(string) bool { return false })
	b.Adaptable()
	x := b.Embed("token_embd", 7, 4)
	b.Layer(0)
	x = b.Add(x, b.Linear(b.Linear(x, "attn_q", 5), "attn_output", 4))
	b.Head(b.Rows(x), "output", "token_embd")
	p, err := b.Program(10)
	require.NoError(t, err)
	return p
}

func asIs(module string, rows int) ([]Named, error) {
	name, ok := map[string]string{"model.layers.0.self_attn.q_proj": "blk.0.attn_q", "model.layers.0.self_attn.o_proj": "blk.0.attn_output",
		"model.embed_tokens": "token_embd", "lm_head": "output"}[module]
	if !ok {
		return nil, errors.New("llama has no such module")
	}
	n := Named{Matrix: name}
	for i := range rows {
		n.Rows = append(n.Rows, i)
	}
	return []Named{n}, nil
}

const q = "base_model.model.model.layers.0.self_attn.q_proj."

// pairOf is the factors of the query matrix.
func pairOf(rank int) []Tensor {
	return []Tensor{tensor(q+"lora_A.weight", 0.5, rank, 4), tensor(q+"lora_B.weight", 0.25, 5, rank)}
}

func ggufMeta(alpha any) *meta.Map {
	m := &meta.Map{}
	m.Set("general.type", "adapter")
	m.Set("general.architecture", "llama")
	m.Set("adapter.type", "lora")
	m.Set("adapter.lora.alpha", alpha)
	return m
}

// TestScales: what a change is multiplied by, for each way to say it.
func TestScales(t *testing.T) {
	for _, c := range []struct {
		config string
		rank   int
		want   float64
	}{
		{`"r": 2, "lora_alpha": 8`, 2, 4},
		{`"r": 2, "lora_alpha": 8, "use_rslora": true`, 2, 8 / math.Sqrt2},
		{`"r": 4, "lora_alpha": 8, "rank_pattern": {"q_proj": 2}`, 2, 4},
		{`"r": 4, "lora_alpha": 8, "rank_pattern": {"layers.[1-9].*": 3, "self_attn.q_proj": 2}`, 2, 4},
		{`"r": 2, "lora_alpha": 8, "alpha_pattern": {"k_proj": 1, "q_proj": 6, ".*": 5}`, 2, 3},
		{`"r": 2, "lora_alpha": 8, "alpha_pattern": {"proj": 6}`, 2, 4},
	} {
		a, err := PEFT("x", []byte(`{"peft_type": "LORA", `+c.config+`}`), pairOf(c.rank), asIs)
		require.NoError(t, err, c.config)
		require.InDelta(t, c.want, a.Changes[0].Scale, 1e-6, c.config)
	}
	for alpha, want := range map[float32]float32{3: 1.5, 0: 1} {
		a, err := GGUF("x", ggufMeta(alpha), []Tensor{tensor("blk.0.attn_q.weight.lora_a", 1, 2, 4),
			tensor("blk.0.attn_q.weight.lora_b", 1, 5, 2)})
		require.NoError(t, err)
		require.Equal(t, want, a.Changes[0].Scale)
	}
}

// TestRefusals: what an adapter's files may have wrong, and what is said of it.
func TestRefusals(t *testing.T) {
	with := func(more ...Tensor) []Tensor { return append(pairOf(2), more...) }
	for _, c := range []struct {
		config  string
		tensors []Tensor
		want    string
	}{
		{`{`, nil, "adapter_config.json: unexpected end of JSON input"},
		{`{"peft_type": "IA3", "r": 2, "lora_alpha": 1}`, nil, `peft_type is "IA3", want LORA`},
		{`{"peft_type": "LORA", "r": 2}`, nil, "lora_alpha is missing"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1, "use_dora": true}`, nil, "use_dora is set: such adapters are not supported"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1, "modules_to_save": ["lm_head"]}`, nil, "modules_to_save is set"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1, "bias": "all"}`, nil, "bias is set"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1, "rank_pattern": {"(": 1}}`, nil, "missing closing"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1}`, nil, "holds no changes of matrices"},
		{`{"peft_type": "LORA", "r": 3, "lora_alpha": 1}`, pairOf(2), "has rank 2, and adapter_config.json says 3"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1}`, pairOf(2)[:1], "has no second factor (B)"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1}`, pairOf(2)[1:], "has no first factor (A)"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1}`, with(tensor(q+"lora_magnitude_vector", 1, 5)), "is no factor of a change"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1}`, with(tensor(q+"lora_A.default.weight", 1, 2, 4)), "is there twice"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1}`, []Tensor{tensor(q+"lora_A.weight", 1, 2, 4), tensor(q+"lora_B.weight", 1, 5, 3)},
			"has factors of rank 2 and 3"},
		{`{"peft_type": "LORA", "r": 2, "lora_alpha": 1}`, []Tensor{tensor("x.lora_A.weight", 1, 2, 4), tensor("x.lora_B.weight", 1, 5, 2)},
			"llama has no such module"},
		{`{"peft_type": "LORA", "r": 5000, "lora_alpha": 1}`, pairOf(5000), "has rank 5000, want 1 to 1024"},
	} {
		_, err := PEFT("x", []byte(c.config), c.tensors, asIs)
		require.ErrorContains(t, err, c.want)
	}
	m := ggufMeta(float32(1))
	m.Set("general.type", "model")
	_, err := GGUF("x", m, nil)
	require.ErrorContains(t, err, "is a model, not an adapter")
	_, err = GGUF("x", ggufMeta("y"), nil)
	require.ErrorContains(t, err, "adapter.lora.alpha")
	_, err = GGUF("x", ggufMeta(float32(1)), []Tensor{tensor("blk.0.attn_q.weight", 1, 2, 4)})
	require.ErrorContains(t, err, "is no factor of a change, whose name would end in .weight.lora_a")
}

// TestBind: all misfits are reported at once, with the tensor and both shapes.
func TestBind(t *testing.T) {
	p := program(t)
	bind := func(arch string, tensors ...Tensor) error {
		m := ggufMeta(float32(1))
		m.Set("general.architecture", arch)
		a, err := GGUF("x.gguf", m, tensors)
		require.NoError(t, err)
		b, err := a.Bind(p)
		if err == nil {
			require.NoError(t, b.Close())
		}
		return err
	}
	factors := func(matrix string, in, out int) []Tensor {
		return []Tensor{tensor(matrix+".weight.lora_a", 1, 2, in), tensor(matrix+".weight.lora_b", 1, out, 2)}
	}
	require.NoError(t, bind("llama", factors("output", 4, 7)...))
	require.EqualError(t, bind("qwen3", factors("output", 4, 7)...),
		`x.gguf: is an adapter of a model of architecture "qwen3", and this one is llama`)
	require.EqualError(t, bind("llama", append(factors("blk.0.attn_q", 6, 8), factors("blk.1.attn_q", 4, 5)...)...),
		"x.gguf: does not fit the model:\n"+
			`  "blk.0.attn_q.weight.lora_a" is 2×6, want 2×4: blk.0.attn_q of the model has 4 columns`+"\n"+
			`  "blk.0.attn_q.weight.lora_b" is 8×2, want 5×2: blk.0.attn_q of the model has 5 rows`+"\n"+
			`  "blk.1.attn_q.weight.lora_a" changes blk.1.attn_q, which is no matrix of this model that an adapter can change `+
			`(experts, routers and vectors are none)`)
	require.ErrorContains(t, bind("llama", tensor("output.weight.lora_a", float32(math.NaN()), 2, 4), tensor("output.weight.lora_b", 1, 7, 2)),
		"value 0 of")
}

// TestKept: factors lie by rows, in halves where those are exact, and compute what the files say.
func TestKept(t *testing.T) {
	for _, unit := range []float32{1, 1e-7, 1.0 / 3, 1 << 18} { // numbers of 24 bits are no halves
		tensors := []Tensor{tensor(q+"lora_A.weight", unit, 2, 4), tensor(q+"lora_B.weight", 0.25, 5, 2)}
		reversed := func(string, int) ([]Named, error) { return []Named{{"blk.0.attn_q", []int{4, 3, 2, 1, 0}}}, nil }
		a, err := PEFT("x", []byte(`{"peft_type": "LORA", "r": 2, "lora_alpha": 3}`), tensors, reversed)
		require.NoError(t, err)
		p := program(t)
		b, err := a.Bind(p)
		require.NoError(t, err)
		require.True(t, b.Fits(p))
		require.LessOrEqual(t, b.Bytes, a.Size())
		site := 0
		for p.Sites[site].Name != "blk.0.attn_q" {
			site++
		}
		u := b.Updates[site]
		require.Equal(t, unit == 1 || unit == 1<<18, u.A.Halves != nil, unit)
		for o := range 5 {
			for i := range 4 {
				got, want := 0.0, 0.0
				for k := range 2 {
					got += float64(u.Scale) * float64(u.A.At(i*16+k)) * float64(u.B.At(k*16+o))
					want += 1.5 * float64(unit) * float64(k*4+i+1) * 0.25 * float64((4-o)*2+k+1)
				}
				require.InEpsilon(t, want, got, 1e-6)
			}
		}
		require.NoError(t, b.Close())
	}
}

// TestDigest: two adapters are told apart by what they compute, and not by their names.
func TestDigest(t *testing.T) {
	digest := func(name string, alpha int, unit float32) [32]byte {
		a, err := PEFT(name, fmt.Appendf(nil, `{"peft_type": "LORA", "r": 2, "lora_alpha": %d}`, alpha),
			[]Tensor{tensor(q+"lora_A.weight", unit, 2, 4), tensor(q+"lora_B.weight", 1, 5, 2)}, asIs)
		require.NoError(t, err)
		b, err := a.Bind(program(t))
		require.NoError(t, err)
		defer b.Close()
		return b.Digest
	}
	require.Equal(t, digest("x", 1, 1), digest("y", 1, 1))
	require.NotEqual(t, digest("x", 1, 1), digest("x", 2, 1))
	require.NotEqual(t, digest("x", 1, 1), digest("x", 1, 3))
}

// TestWritten: the GGUF file of an adapter binds to the same numbers, with one scale for all and with several.
func TestWritten(t *testing.T) {
	p := program(t)
	for _, alphas := range []string{`{}`, `{"o_proj": 5}`} {
		tensors := append(pairOf(2), tensor("base_model.model.model.layers.0.self_attn.o_proj.lora_A.weight", 1, 2, 5),
			tensor("base_model.model.model.layers.0.self_attn.o_proj.lora_B.weight", 0.5, 4, 2),
			tensor("base_model.model.model.embed_tokens.lora_embedding_A", 1, 2, 7),
			tensor("base_model.model.model.embed_tokens.lora_embedding_B", 2, 4, 2),
			tensor("base_model.model.model.embed_tokens.base_layer.weight", 2, 7, 4))
		a, err := PEFT("x", []byte(`{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "alpha_pattern": `+alphas+`}`), tensors, asIs)
		require.NoError(t, err)
		m, outputs := a.Outputs("llama")
		var back []Tensor
		for i := range outputs {
			var data bytes.Buffer
			require.NoError(t, outputs[i].Write(&data, quant.F32))
			back = append(back, Tensor{Name: outputs[i].Name, Shape: []int{outputs[i].Shape[1], outputs[i].Shape[0]},
				Read: func(to []float32) error {
					_, err := binary.Decode(data.Bytes(), binary.LittleEndian, to)
					return err
				}})
		}
		again, err := GGUF("y", m, back)
		require.NoError(t, err)
		want, err := a.Bind(p)
		require.NoError(t, err)
		got, err := again.Bind(p)
		require.NoError(t, err)
		require.Equal(t, alphas == `{}`, want.Digest == got.Digest)
		for i, u := range want.Updates {
			require.Equal(t, u == nil, got.Updates[i] == nil)
			if u == nil {
				continue
			}
			for j := range u.A.Len() {
				require.Equal(t, u.A.At(j), got.Updates[i].A.At(j))
			}
			for j := range u.B.Len() {
				require.InDelta(t, u.Scale*u.B.At(j), got.Updates[i].Scale*got.Updates[i].B.At(j), 1e-5)
			}
		}
		require.NoError(t, errors.Join(want.Close(), got.Close()))
	}
}

// FuzzPEFT checks that no configuration and no shapes break the reader, and that what it takes binds or is refused.
func FuzzPEFT(f *testing.F) {
	f.Add([]byte(`{"peft_type": "LORA", "r": 2, "lora_alpha": 8, "rank_pattern": {"q_proj": 2}}`), q+"lora_A.weight", q+"lora_B.weight", 2, 4, 5, 2)
	f.Add([]byte(`{"peft_type": "LORA", "r": 2, "lora_alpha": 1e300, "alpha_pattern": null}`),
		"model.embed_tokens.lora_embedding_A", "model.embed_tokens.lora_embedding_B", 2, 7, 4, 2)
	f.Fuzz(func(t *testing.T, config []byte, a, b string, a0, a1, b0, b1 int) {
		for _, n := range []int{a0, a1, b0, b1} {
			if n < 0 || n > 64 { // shapes are those of data that is there
				return
			}
		}
		tensors := []Tensor{tensor(a, 1, a0, a1), tensor(b, 1, b0, b1)}
		if x, err := PEFT("x", config, tensors, asIs); err == nil {
			if bound, err := x.Bind(program(t)); err == nil {
				require.NoError(t, bound.Close())
			}
		}
		m := ggufMeta(float32(a0))
		if x, err := GGUF("x", m, tensors); err == nil {
			if bound, err := x.Bind(program(t)); err == nil {
				require.NoError(t, bound.Close())
			}
		}
	})
}

// TestRandom: a random adapter changes each matrix of layers and nothing else, in halves, and another seed is another.
func TestRandom(t *testing.T) {
	p := program(t)
	one, err := Random(p, 3, 1).Bind(p)
	require.NoError(t, err)
	two, err := Random(p, 3, 2).Bind(p)
	require.NoError(t, err)
	require.NotEqual(t, one.Digest, two.Digest)
	for i, u := range one.Updates {
		name := p.Sites[i].Name
		require.Equal(t, name == "blk.0.attn_q" || name == "blk.0.attn_output", u != nil, name)
		if u != nil {
			require.NotNil(t, u.A.Halves)
			require.NotNil(t, u.B.Halves)
			require.Equal(t, 3, u.Rank)
		}
	}
	require.NoError(t, errors.Join(one.Close(), two.Close()))
}
