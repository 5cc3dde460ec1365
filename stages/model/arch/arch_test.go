package arch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/storage/gguf"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// fixtures are files of each architecture; llama has two kinds of RoPE, and Mixtral.
var fixtures = []string{
	"bert", "nomicbert", "qwen3emb",
	"commandr", "deepseek2", "deepseek3", "ernie45", "gemma2", "gemma3", "gemma4", "gemma4moe", "glm4moe", "gptoss", "granite", "granitemoe", "hunyuan", "llama",
	"lfm2", "llama3rope", "llama4", "mamba2", "mixtral", "olmo2", "olmoe", "phi3", "qwen2", "qwen2moe", "qwen3", "qwen3moe",
	"qwen3next", "qwen35", "qwen35moe", "seedoss", "smollm3",
	"starcoder2_k256",
}

func open(t testing.TB, name string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", name+".gguf"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func holds(f *gguf.File) func(string) bool {
	return func(name string) bool { _, ok := f.Tensor(name); return ok }
}

func tensorsOf(f *gguf.File) []ir.Tensor {
	tensors := make([]ir.Tensor, len(f.Tensors))
	for i, x := range f.Tensors {
		tensors[i] = ir.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape}
	}
	return tensors
}

// TestPrograms compares what each family computes with a text that was read in review. -update rewrites it.
func TestPrograms(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range fixtures {
		f := open(t, name)
		p, err := Record(&f.Meta, holds(f), Options{})
		require.NoError(t, err, name)
		_, err = ir.Bind(p, tensorsOf(f))
		require.NoError(t, err, name)
		seen[p.Arch] = true

		golden := filepath.Join("testdata", name+".txt")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(golden, []byte(p.String()), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), p.String(), "%s: go test ./stages/model/arch -update, and read the difference", name)
	}
	for _, name := range Names() {
		if !seen[name] { // then llama.cpp is the reference
			require.FileExists(t, filepath.Join("..", "..", "..", "cpu", "ref", "testdata", "peer", name+".f32"))
		}
	}
}

func TestUnknownArchitecture(t *testing.T) {
	var m meta.Map
	_, err := Record(&m, nil, Options{})
	require.EqualError(t, err, "general.architecture: missing from the metadata")
	m.Set("general.architecture", "mamba3")
	_, err = Record(&m, nil, Options{})
	require.EqualError(t, err, `general.architecture: "mamba3" is not supported; the nearest name that is: mamba2. All are: `+
		strings.Join(Names(), ", "))
	for name, want := range map[string]string{"qwen4": "qwen2", "qwen3-moe": "qwen3moe", "glm5": "glm4", "deepseek3": "deepseek32",
		"llama5": "llama4", "": "t5"} {
		require.Equal(t, want, nearest(name), name)
	}
}

// A file whose weights have to be turned back first is refused by the name of what says so.
func TestTransformedWeights(t *testing.T) {
	has := func(string) bool { return false }
	_, err := Record(llamaMeta(), has, Options{})
	require.NoError(t, err)
	for _, key := range []string{"prism.hadamard.block_size", "quantization.rotation.kind"} {
		m := llamaMeta()
		m.Set(key, uint32(64))
		_, err := Record(m, has, Options{})
		require.EqualError(t, err, key+": weights that are transformed so are not supported: take a file of this model in "+
			"another quantisation")
	}
}

// llamaMeta is complete metadata of a small model.
func llamaMeta() *meta.Map {
	var m meta.Map
	m.Set("general.architecture", "llama")
	m.Set("tokenizer.ggml.tokens", make([]string, 10))
	for key, n := range map[string]uint32{
		"block_count": 2, "embedding_length": 64, "feed_forward_length": 96, "attention.head_count": 4,
		"attention.head_count_kv": 2, "context_length": 512,
	} {
		m.Set("llama."+key, n)
	}
	m.Set("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	return &m
}

func TestAllFaultsAtOnce(t *testing.T) {
	m := llamaMeta()
	m.Set("llama.block_count", uint64(1<<40))
	m.Set("llama.embedding_length", int32(-64))
	m.Set("llama.feed_forward_length", "many")
	m.Set("llama.attention.head_count", uint32(4))
	m.Set("llama.attention.head_count_kv", uint32(3))
	m.Set("llama.attention.key_length", uint32(15))
	m.Set("llama.attention.layer_norm_rms_epsilon", float32(-1))
	m.Set("llama.rope.scaling.type", "wild")
	m.Set("llama.expert_count", uint32(8))
	m.Set("llama.expert_used_count", uint32(9))
	_, err := Record(m, nil, Options{})
	require.EqualError(t, err, `metadata of llama: llama.block_count: is 1099511627776, want 1 to 1024
llama.embedding_length: is -64, want 1 to 1048576
llama.attention.layer_norm_rms_epsilon: is -1, want a number above 0
llama.feed_forward_length: is of type string, want an integer
llama.attention.head_count_kv: is 3, want a divisor of llama.attention.head_count, 4
llama.expert_used_count: is 9, want at most llama.expert_count, 8
llama.rope.dimension_count: is 15, want an even number of at most the head size, 15
llama.rope.scaling.type: is "wild", want none, linear, yarn or longrope`)
}

// TestLayersAhead leaves out the layers of a file that only predict tokens further on.
func TestLayersAhead(t *testing.T) {
	f := open(t, "glm4moe")
	f.Meta.Set("glm4moe.nextn_predict_layers", uint32(1))
	p, err := Record(&f.Meta, holds(f), Options{})
	require.NoError(t, err)
	require.Len(t, p.KV, 1)
	_, err = ir.Bind(p, tensorsOf(f))
	require.NoError(t, err)
	f.Meta.Set("glm4moe.nextn_predict_layers", uint32(2))
	_, err = Record(&f.Meta, holds(f), Options{})
	require.EqualError(t, err, "metadata of glm4moe: glm4moe.nextn_predict_layers: is 2, want 0 to 1")
}

// TestMixtureOfFile changes what a file says about its routers.
func TestMixtureOfFile(t *testing.T) {
	f := open(t, "glm4moe")
	set := func(name string, value any) { f.Meta.Set("glm4moe."+name, value) }
	route := func() *ir.RouteArgs {
		p, err := Record(&f.Meta, holds(f), Options{})
		require.NoError(t, err)
		for _, s := range p.Segments {
			for _, n := range s.Nodes {
				if n.Op == ir.Route {
					return n.Route
				}
			}
		}
		return nil
	}
	require.Equal(t, &ir.RouteArgs{Scoring: ir.SigmoidEach, Used: 2, Normalise: true, Scale: 1.5}, route())
	set("expert_gating_func", uint32(1))
	set("expert_weights_norm", false)
	set("expert_group_count", uint32(3))
	set("expert_group_used_count", uint32(2))
	require.Equal(t, &ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 2, Scale: 1.5, Groups: 3, GroupsUsed: 2, GroupBest: 1},
		route())
	set("expert_group_count", uint32(4))
	set("expert_gating_func", uint32(3))
	_, err := Record(&f.Meta, holds(f), Options{})
	require.EqualError(t, err, "metadata of glm4moe: glm4moe.expert_gating_func: is 3, want 1 to 2\n"+
		"glm4moe.expert_group_count: is 4, want a divisor of glm4moe.expert_count, 6")
}

// onProcessors are the architectures that cards lack a kernel for: the processor beside them computes their models.
var onProcessors = []string{
	"apertus", "arwkv7", "bailingmoe3", "bloom", "dbrx", "deepseek4", "dots3note", "gemma-embedding", "gemma3n", "grovemoe",
	"hy_v4", "jais", "jamba", "jina-bert-v2", "kimi-k3", "kimi-linear", "laguna", "mamba", "maple", "minimax-01",
	"modern-bert", "mpt", "qwen4exp", "refact", "rwkv6", "rwkv6qwen2", "rwkv7", "smallthinker", "spark2_5",
	"step35", "t5", "t5encoder",
}

// TestDocument compares the table of docs/architectures.md with the list. -update rewrites it. That all of it is
// true is what the tests of cpu and gpu/vulkan say, which run every architecture.
func TestDocument(t *testing.T) {
	const path, begin, end = "../../../docs/architectures.md", "<!-- architectures -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	table := "| `general.architecture` | CPU | GPU | folders | compared with | since |\n| --- | --- | --- | --- | --- | --- |\n"
	folders := convert.Architectures()
	for _, name := range Names() {
		with := "transformers"
		if _, err := os.Stat(filepath.Join("..", "..", "..", "cpu", "ref", "testdata", "peer", name+".f32")); err == nil {
			with = "llama.cpp"
		}
		if name == "grovemoe" { // whose second mixture llama.cpp computes otherwise
			with = "a plain program"
		}
		folder := "no"
		if slices.Contains(folders, name) {
			folder = "yes"
		}
		card := "yes"
		if slices.Contains(onProcessors, name) {
			card = "no"
		}
		table += fmt.Sprintf("| %s | yes | %s | %s | %s | %s |\n", name, card, folder, with, Since(name))
	}
	want := before + begin + table + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./stages/model/arch -update")
}

// TestNames: the list is sorted, so that a new line has one place, and each has a day.
func TestNames(t *testing.T) {
	require.True(t, slices.IsSorted(Names()))
	for _, name := range Names() {
		_, err := time.Parse(time.DateOnly, Since(name))
		require.NoError(t, err, name)
	}
	require.Empty(t, Since("mamba3"))
}

// TestTypesOfPairs: rerankers whose vocabulary has a separator tell two texts apart by it.
func TestTypesOfPairs(t *testing.T) {
	f := open(t, "bert")
	typed := func() *ir.Node {
		p, err := Record(&f.Meta, holds(f), Options{})
		require.NoError(t, err)
		return &p.Segments[0].Nodes[1]
	}
	require.Equal(t, ir.Affine, typed().Op)
	f.Meta.Set("bert.pooling_type", uint32(ir.PoolRank))
	n := typed()
	sep, err := f.Meta.Int("tokenizer.ggml.seperator_token_id")
	require.NoError(t, err)
	require.Equal(t, ir.TokenType, n.Op)
	require.EqualValues(t, sep, n.Sep)
	f.Meta.Set("tokenizer.ggml.seperator_token_id", int32(-2))
	_, err = Record(&f.Meta, holds(f), Options{})
	require.EqualError(t, err, "metadata of bert: tokenizer.ggml.seperator_token_id: is -2, want a token")
}
