package ftype

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

var skeletonsTo = flag.String("skeletons", "", "write the models of TestTypesAsLlamaCpp to this folder")

// skeleton is a model with the names and metadata of a real one and rows so few that quantising it takes no time.
// To make the golden file again: go test -run LlamaCpp -skeletons DIR, then quantise each file to each type.
type skeleton struct {
	name, arch    string
	layers        int
	heads, shared int
	experts       int
	width         int      // of rows; at 256 every type fits
	parts         []string // of each layer; those of experts end in _exps
	tied          bool
}

var (
	attention = []string{"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight", "attn_norm.weight"}
	dense     = append(attention[:5:5], "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight")
	mixed     = append(attention[:5:5],
		"ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight")
	latent = []string{"attn_q.weight", "attn_kv_a_mqa.weight", "attn_kv_b.weight", "attn_output.weight",
		"ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight",
		"ffn_gate_shexp.weight", "ffn_up_shexp.weight", "ffn_down_shexp.weight"}
)

var skeletons = []skeleton{
	{name: "equal", arch: "llama", layers: 17, heads: 8, shared: 8, width: 256, parts: dense, tied: true},
	{name: "grouped", arch: "llama", layers: 32, heads: 32, shared: 8, width: 256, parts: dense},
	{name: "mixtral", arch: "llama", layers: 32, heads: 32, shared: 8, experts: 8, width: 256, parts: mixed},
	{name: "qwen3moe", arch: "qwen3moe", layers: 12, heads: 32, shared: 4, experts: 16, width: 256, parts: mixed},
	{name: "llama70b", arch: "llama", layers: 80, heads: 64, shared: 8, width: 256, parts: dense[:4]},
	{name: "qwen2-72b", arch: "qwen2", layers: 80, heads: 64, shared: 32, width: 256, parts: dense[:4]},
	{name: "falcon", arch: "falcon", layers: 32, heads: 71, shared: 1, width: 256,
		parts: []string{"attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight"}},
	{name: "deepseek", arch: "deepseek2", layers: 10, heads: 16, shared: 16, experts: 8, width: 256, parts: latent},
	{name: "narrow", arch: "llama", layers: 3, heads: 4, shared: 4, width: 96, parts: dense},
}

// file is the metadata and the tensors that llama.cpp asks for before it quantises.
func (s *skeleton) file() (*meta.Map, []gguf.Tensor) {
	m := new(meta.Map)
	m.Set("general.architecture", s.arch)
	m.Set("tokenizer.ggml.model", "no_vocab")
	for key, n := range map[string]int{"vocab_size": 2, "context_length": 64, "embedding_length": s.width,
		"block_count": s.layers, "feed_forward_length": s.width, "attention.head_count": s.heads,
		"attention.head_count_kv": s.shared, "expert_count": s.experts, "expert_used_count": min(2, s.experts),
		"rope.dimension_count": 2, "leading_dense_block_count": 0, "attention.kv_lora_rank": 32, "attention.q_lora_rank": 32,
		"expert_shared_count": 1, "expert_feed_forward_length": s.width, "attention.key_length": 2,
		"attention.value_length": 2} {
		m.Set(s.arch+"."+key, uint32(n))
	}
	m.Set(s.arch+".attention.layer_norm_rms_epsilon", float32(1e-5))
	m.Set(s.arch+".attention.layer_norm_epsilon", float32(1e-5))
	tensors := []gguf.Tensor{{Name: "token_embd.weight", Shape: []int{s.width, 2}}}
	if !s.tied {
		tensors = append(tensors, gguf.Tensor{Name: "output.weight", Shape: []int{s.width, 2}})
	}
	for l := range s.layers {
		for _, part := range s.parts {
			shape := []int{s.width, 2}
			if strings.Contains(part, "_exps") {
				shape = append(shape, 2)
			}
			if strings.Contains(part, "_norm") {
				shape = shape[:1]
			}
			tensors = append(tensors, gguf.Tensor{Name: fmt.Sprintf("blk.%d.%s", l, part), Shape: shape})
		}
	}
	return m, tensors
}

// runs are the types of the tensors of one kind in the order of the layers, such as Q6_K*2 Q4_K*3.
func runs(types []string) string {
	var out []string
	for i := 0; i < len(types); {
		n := 1
		for i+n < len(types) && types[i+n] == types[i] {
			n++
		}
		out = append(out, fmt.Sprintf("%s*%d", types[i], n))
		i += n
	}
	return strings.Join(out, " ")
}

// TestTypesAsLlamaCpp compares with what llama.cpp v0.5.0 made of skeletons of all shapes that its rules look at.
// The file has a line for each kind of tensor: model, file type, kind: types from the first layer to the last. Where
// the file type has "+imatrix" behind it, every tensor had an importance matrix.
func TestTypesAsLlamaCpp(t *testing.T) {
	if *skeletonsTo != "" {
		writeSkeletons(t, *skeletonsTo)
		return
	}
	file, err := os.Open(filepath.Join("testdata", "llamacpp.txt"))
	require.NoError(t, err)
	defer file.Close()
	want := map[[2]string]map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		what, types, ok := strings.Cut(lines.Text(), ": ")
		fields := strings.Fields(what)
		require.True(t, ok && len(fields) == 3, lines.Text())
		key := [2]string{fields[0], fields[1]}
		if want[key] == nil {
			want[key] = map[string]string{}
		}
		want[key][fields[2]] = types
	}
	for _, s := range skeletons {
		compared := 0
		for key, kinds := range want {
			if key[0] == s.name {
				got := s.typesByKind(t, key[1])
				for kind, types := range kinds {
					require.Equal(t, types, got[kind], "%v %s", key, kind)
				}
				compared++
			}
		}
		require.NotZero(t, compared, s.name)
	}
}

func (s *skeleton) typesByKind(t *testing.T, name string) map[string]string {
	t.Helper()
	name, guided := strings.CutSuffix(name, "+imatrix")
	m, ok := Find(name)
	require.True(t, ok, name)
	model, stored := s.file()
	var tensors []Tensor
	for _, x := range stored {
		tensors = append(tensors, Tensor{Name: x.Name, Type: quant.F32, Shape: x.Shape})
	}
	types, err := m.Types(model, tensors, Options{Importance: guided})
	require.NoError(t, err)
	lists := map[string][]string{}
	for i, x := range tensors {
		kind := x.Name
		if rest, ok := strings.CutPrefix(kind, "blk."); ok {
			_, kind, _ = strings.Cut(rest, ".")
		}
		lists[kind] = append(lists[kind], types[i].String())
	}
	kinds := map[string]string{}
	for kind, list := range lists {
		kinds[kind] = runs(list)
	}
	return kinds
}

func writeSkeletons(t *testing.T, dir string) {
	t.Helper()
	for _, s := range skeletons {
		m, tensors := s.file()
		f, err := os.Create(filepath.Join(dir, s.name+".gguf"))
		require.NoError(t, err)
		require.NoError(t, gguf.Write(f, m, tensors, func(x *gguf.Tensor, w io.Writer) error {
			_, err := w.Write(make([]byte, x.Size))
			return err
		}))
		require.NoError(t, f.Close())
	}
}
