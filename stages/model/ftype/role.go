package ftype

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// kind is what a tensor is for.
type kind uint8

const (
	other kind = iota
	embed
	output
	attnV // alone, or in one matrix with others
	attnK
	attnQ
	attnOut
	ffnUp
	ffnGate
	ffnDown
	kinds // one more than the last
)

// kindNames are looked for in this order, anywhere in a name; the feed-forward ones match those of experts too.
var kindNames = []struct {
	part string
	kind kind
}{
	{"attn_qkv.weight", attnV},
	{"attn_kv_b.weight", attnV},
	{"attn_v.weight", attnV},
	{"attn_k.weight", attnK},
	{"attn_q.weight", attnQ},
	{"attn_output.weight", attnOut},
	{"ffn_up", ffnUp},
	{"ffn_gate", ffnGate},
	{"ffn_down", ffnDown},
}

func kindOf(name string) kind {
	switch name {
	case "output.weight":
		return output
	case "token_embd.weight", "per_layer_token_embd.weight":
		return embed
	}
	for _, k := range kindNames {
		if strings.Contains(name, k.part) {
			return k.kind
		}
	}
	return other
}

// layerOf is the number in a name such as blk.3.attn_q.weight, -1 where there is none.
func layerOf(name string) int {
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		digits, _, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(digits); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// small are parts of names of matrices that cost few bytes and much quality: norms, routers, convolutions,
// positions, the low-rank parts of recurrent and multimodal models.
var small = []string{
	"_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj",
	"ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight",
	"time_mix_first.weight", "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight",
	"time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight",
	"time_mix_a0.weight", "time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight", "time_mix_g2.weight",
	"time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight", "attn_rel_b.weight",
	".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd", ".patch_merger",
	"a.rvq.codebook", "mm.a.code_embd",
}

// stays says whether a tensor is never quantised: it is no matrix of weights, or too small to be worth it.
func stays(t *Tensor) bool {
	if !strings.HasSuffix(t.Name, "weight") || t.Name == "position_embd.weight" || t.Name == "token_types.weight" {
		return true
	}
	if !slices.ContainsFunc(t.Shape[1:], func(n int) bool { return n > 1 }) {
		return true
	}
	return slices.ContainsFunc(small, func(part string) bool { return strings.Contains(t.Name, part) })
}

// facts are what rules ask about a model.
type facts struct {
	arch       string
	layers     int
	experts    int64
	gqa        int64 // query heads for each head of keys and values; 0 if there are none of those
	is70B      bool
	importance bool
	tied       bool // the token embeddings are the output matrix too
	values     int  // tensors of kind attnV
}

func readFacts(m *meta.Map, tensors []Tensor, o Options) (*facts, error) {
	f := &facts{importance: o.Importance, tied: true}
	var err error
	if f.arch, err = m.String("general.architecture"); err != nil {
		return nil, fmt.Errorf("key %w: the rules of a file type depend on it, so only a model's file can have one", err)
	}
	read := func(key string, ifMissing int64) int64 {
		n, readErr := headOrInt(m, f.arch+"."+key)
		switch {
		case errors.Is(readErr, meta.ErrMissing):
			return ifMissing
		case readErr != nil && err == nil:
			err = fmt.Errorf("key %w", readErr)
		}
		return n
	}
	f.layers = int(read("block_count", 0))
	f.experts = read("expert_count", 0)
	heads := read("attention.head_count", 0)
	shared := read("attention.head_count_kv", heads)
	if shared > 0 {
		f.gqa = heads / shared
	}
	switch f.arch {
	case "llama":
		f.is70B = f.layers == 80 && heads != shared
	case "qwen2", "olmo", "deci":
		f.is70B = f.layers == 80
	}
	for i := range tensors {
		switch kindOf(tensors[i].Name) {
		case output:
			f.tied = false
		case attnV:
			f.values++
		}
	}
	return f, err
}

// headOrInt reads a number, or the first layer's where each layer has its own.
func headOrInt(m *meta.Map, key string) (int64, error) {
	if list, err := m.Ints(key); err == nil && len(list) > 0 {
		return list[0], nil
	}
	return m.Int(key)
}

// role is the part a tensor plays in its model: what it is for, and which of its kind it is.
type role struct {
	*facts
	tensor *Tensor
	kind   kind
	index  int // how many tensors of its kind came before it
}

// layer is the number that rules count by: the layer, known by counting, because names need not say it; where there
// are experts, a layer has several tensors of a kind, and the name must.
func (r *role) layer() int {
	if n := layerOf(r.tensor.Name); r.kind != attnV && r.experts > 1 && n >= 0 {
		return n
	}
	return r.index
}

// of is how many there are of what layer counts: tensors of the kind attnV, or layers.
func (r *role) of() int {
	if r.kind == attnV {
		return r.values
	}
	return r.layers
}

// choose applies the rules to one tensor.
func (ft *Type) choose(r *role) quant.Type {
	switch ft.Base {
	case quant.F32, quant.F16, quant.BF16:
		return ft.Base
	case quant.MXFP4:
		if r.kind != output && len(r.tensor.Shape) > 2 && r.tensor.Shape[2] > 1 {
			return quant.MXFP4
		}
		return quant.Q8_0 // what every token passes through
	}
	if r.kind == output && (r.arch == "falcon" || r.tensor.Shape[0]%ft.Base.Block() != 0) {
		return quant.Q8_0
	}
	for _, rule := range ft.rules[r.kind] {
		if rule.when(r) {
			return ft.adjust(r, rule.give)
		}
	}
	if r.kind == output && ft.Base != quant.Q8_0 {
		return quant.Q6_K
	}
	return ft.adjust(r, ft.Base)
}

// adjust gives the values of a model of 70 billion parameters more bits: eight heads share each of them.
// The file types of one and two bits do not go that far.
func (ft *Type) adjust(r *role, t quant.Type) quant.Type {
	if r.kind != attnV || !r.is70B || t != quant.Q3_K && t != quant.Q4_K {
		return t
	}
	switch ft.Base {
	case quant.IQ1_S, quant.IQ1_M, quant.IQ2_XXS, quant.IQ2_XS, quant.IQ2_S:
		return t
	}
	return quant.Q5_K
}

// fit replaces a type whose blocks do not fill rows of n values.
func fit(t quant.Type, n int) quant.Type {
	if n%t.Block() == 0 {
		return t
	}
	switch t {
	case quant.IQ1_S, quant.IQ1_M, quant.IQ2_XXS, quant.IQ2_XS, quant.IQ2_S, quant.IQ3_XXS, quant.IQ3_S, quant.IQ4_XS:
		t = quant.IQ4_NL
	case quant.Q2_K, quant.Q3_K, quant.TQ1_0, quant.TQ2_0:
		t = quant.Q4_0
	case quant.Q4_K:
		t = quant.Q5_0
	case quant.Q5_K:
		t = quant.Q5_1
	case quant.Q6_K:
		t = quant.Q8_0
	}
	if n%t.Block() != 0 {
		return quant.F16
	}
	return t
}
