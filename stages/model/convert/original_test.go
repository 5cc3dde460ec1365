package convert_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// TestOriginalFolders: what a maker publishes for its own program becomes the file that transformers' folder of the
// same numbers becomes.
func TestOriginalFolders(t *testing.T) {
	plan := func(f *convert.Folder) (*convert.Model, error) { return convert.Plan(f, convert.Options{}) }
	plain, originals := converttest.OriginalFolders(t)
	want := converttest.Convert(t, plain, plan)
	for name, dir := range originals {
		t.Run(name, func(t *testing.T) {
			got := converttest.Convert(t, dir, plan)
			require.Equal(t, bytesOf(t, want), bytesOf(t, got))
			require.ElementsMatch(t, want.Meta.Keys(), got.Meta.Keys())
			for _, key := range want.Meta.Keys() {
				wanted, _ := want.Meta.Get(key)
				value, _ := got.Meta.Get(key)
				require.Equal(t, wanted, value, key)
			}
		})
	}
}

// originalFolder is a model without layers but one, in params.json and shapes.
func originalFolder(params string, others ...element.Tensor) *convert.Folder {
	f := &convert.Folder{Name: "x", Texts: map[string][]byte{"params.json": []byte(params)}}
	for name, shape := range map[string][]int{"tok_embeddings.weight": {264, 64}, "norm.weight": {64},
		"layers.0.attention_norm.weight": {64}, "layers.0.ffn_norm.weight": {64}, "layers.0.attention.wq.weight": {64, 64},
		"layers.0.attention.wk.weight": {64, 64}, "layers.0.attention.wv.weight": {64, 64},
		"layers.0.attention.wo.weight": {64, 64}, "layers.0.feed_forward.w1.weight": {96, 64},
		"layers.0.feed_forward.w2.weight": {64, 96}, "layers.0.feed_forward.w3.weight": {96, 64}} {
		f.Tensors = append(f.Tensors, element.Tensor{Name: name, Type: element.BF16, Shape: shape})
	}
	f.Tensors = append(f.Tensors, others...)
	return f
}

const smallParams = `{"dim": 64, "n_layers": 1, "n_heads": 4, "norm_eps": 1e-5`

// TestOriginalParams: the context and the scaling of positions follow from what params.json says.
func TestOriginalParams(t *testing.T) {
	for params, want := range map[string]int64{
		``: 4096, `, "norm_eps": 1e-6`: 2048, `, "rope_theta": 500000.0`: 8192, `, "rope_theta": 1000000.0`: 16384,
		`, "rope_theta": 500000.0, "use_scaled_rope": true`: 131072, `, "max_seq_len": 777`: 777, `, "sliding_window": 4096`: 32768,
	} {
		m, err := convert.Plan(originalFolder(smallParams+params+"}"), convert.Options{})
		require.NoError(t, err, params)
		n, err := m.Meta.Int("llama.context_length")
		require.NoError(t, err)
		require.Equal(t, want, n, params)
		factors := false
		for _, x := range m.Tensors {
			factors = factors || x.Name == "rope_freqs.weight"
		}
		require.Equal(t, strings.Contains(params, "scaled"), factors, params)
	}
}

// TestOriginalQuantized: Mistral's scales of FP8 belong to their weights.
func TestOriginalQuantized(t *testing.T) {
	f := originalFolder(smallParams+`, "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}}`,
		element.Tensor{Name: "layers.0.attention.wq.qscale_act", Type: element.F32},
		element.Tensor{Name: "layers.0.attention.wq.qscale_weight", Type: element.F32})
	for i := range f.Tensors {
		if f.Tensors[i].Name == "layers.0.attention.wq.weight" {
			f.Tensors[i].Type = element.F8E4M3
		}
	}
	m, err := convert.Plan(f, convert.Options{})
	require.NoError(t, err)
	require.Len(t, m.Tensors, 11)
}

// TestOriginalRefuses: what params.json says and we do not know may change what weights mean.
func TestOriginalRefuses(t *testing.T) {
	shard := func(file, name string, shape ...int) element.Tensor {
		return element.Tensor{Name: file + "/" + name, Type: element.BF16, Shape: shape}
	}
	for _, c := range []struct {
		folder *convert.Folder
		want   string
	}{
		{originalFolder(smallParams + `, "yarn": {"factor": 16}}`), `params.json: has "yarn", whose meaning is not known here`},
		{originalFolder(smallParams + `, "use_biases": true}`), "params.json: use_biases is true"},
		{originalFolder(smallParams + `, "quantization": {"qformat_weight": "int4"}}`), `qformat_weight is "int4", want fp8_e4m3`},
		{originalFolder(`{"n_layers": 1, "n_heads": 4}`), "params.json: dim is missing or 0"},
		{originalFolder(`{"dim": "x"}`), "params.json: dim is x"},
		{originalFolder(`[]`), "params.json: it holds a JSON array"},
		{originalFolder(smallParams+`}`, shard("consolidated.01.pth", "norm.weight", 64)), `tensor "norm.weight": is in 2 of 1 files`},
		{&convert.Folder{Texts: map[string][]byte{"params.json": []byte(smallParams + "}")}, Tensors: []element.Tensor{
			shard("consolidated.00.pth", "tok_embeddings.weight", 4, 64), shard("consolidated.01.pth", "tok_embeddings.weight", 4, 32)}},
			"the files do not belong together"},
		{&convert.Folder{Texts: map[string][]byte{"params.json": []byte(smallParams + "}")}, Tensors: []element.Tensor{
			shard("consolidated.00.pth", "tok_embeddings.weight", 0, 64), shard("consolidated.01.pth", "tok_embeddings.weight", 0, 64)}},
			"want rows and columns"},
	} {
		_, err := convert.Plan(c.folder, convert.Options{})
		require.ErrorContains(t, err, c.want)
	}
}

// ranks are 256 bytes in an order of their own, and pairs: th, the, in, ing; of " then" the last pair is " the" and n.
func ranks() (all [][]byte) {
	for i := range 256 {
		all = append(all, []byte{byte(i*7 + 3)})
	}
	for _, s := range []string{"th", "he", "the", " the", "ing"} {
		all = append(all, []byte(s))
	}
	return all
}

// rankLines writes them as Llama 3's tokenizer.model has them.
func rankLines() []byte {
	var lines strings.Builder
	for i, token := range ranks() {
		fmt.Fprintf(&lines, "%s %d\n", base64.StdEncoding.EncodeToString(token), i)
	}
	return []byte(lines.String())
}

// TestRanks: tokens, merges and special tokens of Llama 3's list. A token that no two lower ones make has no merge.
func TestRanks(t *testing.T) {
	f := originalFolder(smallParams + `, "rope_theta": 500000.0}`)
	f.Texts["tokenizer.model"] = rankLines()
	m, err := convert.Plan(f, convert.Options{})
	require.NoError(t, err)
	texts, err := m.Meta.Strings("tokenizer.ggml.tokens")
	require.NoError(t, err)
	require.Len(t, texts, 264)
	require.Equal(t, []string{"th", "he", "the", "Ġthe", "ing", "<|begin_of_text|>", "<|end_of_text|>",
		"<|reserved_special_token_2|>"}, texts[256:])
	for i, token := range ranks()[:256] { // as GPT-2 has them: those that cannot be seen from U+0100 on, in their order
		want, ok := map[byte]string{3: "ă", ' ': "Ġ", 0x7f: "ġ", 0xa0: "ł", 0xad: "Ń", 0xff: "ÿ", 'a': "a"}[token[0]]
		require.True(t, !ok || texts[i] == want, "byte %#x is %q", token[0], texts[i])
	}
	merges, err := m.Meta.Strings("tokenizer.ggml.merges")
	require.NoError(t, err)
	require.Equal(t, []string{"t h", "h e", "th e", "Ġ the"}, merges)
	pre, _ := m.Meta.String("tokenizer.ggml.pre")
	require.Equal(t, "llama-bpe", pre)
	begins, _ := m.Meta.Int("tokenizer.ggml.bos_token_id")
	require.EqualValues(t, 261, begins)
}

// tekkenOf writes a tekken.json of the ranks, three of whose tokens are special.
func tekkenOf(t *testing.T, size, special int, listed string) []byte {
	t.Helper()
	var vocab []map[string]any
	for i, token := range ranks() {
		vocab = append(vocab, map[string]any{"rank": i, "token_bytes": token})
	}
	text, err := json.Marshal(vocab)
	require.NoError(t, err)
	return fmt.Appendf(nil, `{"config": {"default_vocab_size": %d, "default_num_special_tokens": %d}, "vocab": %s%s}`, size,
		special, text, listed)
}

// TestTekken: special tokens come first, and only as many others as the configuration says.
func TestTekken(t *testing.T) {
	for _, listed := range []string{``, `, "special_tokens": [{"rank": 4, "token_str": "[BEGIN]"}, {"rank": 1, "token_str": "<s>"}]`} {
		f := originalFolder(smallParams + `, "head_dim": 16}`)
		f.Texts["tekken.json"] = tekkenOf(t, 264, 5, listed)
		m, err := convert.Plan(f, convert.Options{})
		require.NoError(t, err)
		texts, err := m.Meta.Strings("tokenizer.ggml.tokens")
		require.NoError(t, err)
		require.Equal(t, "<s>", texts[1])
		require.Equal(t, []string{"he", "the"}, texts[5+257:264])
		require.Equal(t, listed != "", texts[4] == "[BEGIN]", texts[4])
		ids, err := m.Meta.Ints("tokenizer.ggml.token_type")
		require.NoError(t, err)
		require.EqualValues(t, 3, ids[0])
		require.EqualValues(t, 1, ids[5])
	}
}

// TestRanksRefuse: vocabularies that lie, and such as do not fit the model.
func TestRanksRefuse(t *testing.T) {
	lines := string(rankLines())
	for _, c := range []struct{ name, text, want string }{
		{"tokenizer.model", strings.Replace(lines, " 7\n", " 8\n", 1), `line 8 is`},
		{"tokenizer.model", lines + "!! 261\n", `line 262 is "!! 261\n", want bytes in base64 and the rank 261`},
		{"tokenizer.model", lines + strings.Repeat("YQ== 261\n", 1) + "YQ== 262\nYQ== 263\nYQ== 264\n", "the tokenizer has 265 tokens"},
		{"tekken.json", `{`, "tekken.json: "},
		{"tekken.json", string(tekkenOf(t, 300, 5, "")), "has 300 tokens of which 5 are special, and lists 261"},
		{"tekken.json", string(tekkenOf(t, 2, 5, "")), "has 2 tokens of which 5"},
		{"tekken.json", string(tekkenOf(t, 260, 5, "")), "the tokenizer has 260 tokens, and there are embeddings for 264"},
		{"tekken.json", string(tekkenOf(t, 264, 5, `, "special_tokens": [{"rank": 5}]`)), "has rank 5, want one below 5"},
		{"tekken.json", strings.Replace(string(tekkenOf(t, 264, 5, "")), `"rank":3`, `"rank":4`, 1), "entry 3 has rank 4"},
	} {
		f := originalFolder(smallParams + `}`)
		f.Texts[c.name] = []byte(c.text)
		_, err := convert.Plan(f, convert.Options{})
		require.ErrorContains(t, err, c.want)
	}
}

// usable returns what is wrong with a folder: as it becomes a file, or as the file's program is made.
func usable(f *convert.Folder) error {
	m, err := convert.Plan(f, convert.Options{})
	if err != nil {
		return err
	}
	var tensors []ir.Tensor
	names := map[string]bool{}
	for _, x := range m.Tensors {
		tensors = append(tensors, ir.Tensor{Name: x.Name, Type: quant.BF16, Shape: x.Shape})
		names[x.Name] = true
	}
	p, err := arch.Record(m.Meta, func(name string) bool { return names[name] }, arch.Options{})
	if err == nil {
		_, err = ir.Bind(p, tensors)
	}
	return err
}

// TestOriginalBroken: params.json and lists of tokens that end too soon, tensors that are missing or of another shape
// or type are errors of a few words, 300 of them at least.
func TestOriginalBroken(t *testing.T) {
	good, count := smallParams+"}", 0
	fails := func(f *convert.Folder, what string, args ...any) {
		t.Helper()
		require.Error(t, usable(f), append([]any{what}, args...)...)
		require.Less(t, len(usable(f).Error()), 600)
		count++
	}
	require.NoError(t, usable(originalFolder(good)))
	for n := range good {
		fails(originalFolder(good[:n]), "params.json cut after %d bytes", n)
	}
	lines := string(rankLines())
	for n := 0; n < len(lines)-1; n += 23 {
		if n > 0 && (lines[n-1] == '\n' || lines[n] == '\n') {
			continue // a shorter list, which other models have
		}
		f := originalFolder(good)
		f.Texts["tokenizer.model"] = []byte(lines[:n])
		fails(f, "tokenizer.model cut after %d bytes", n)
	}
	for i, x := range originalFolder(good).Tensors {
		change := func(what string, of func(x *element.Tensor)) {
			f := originalFolder(good)
			at := slices.IndexFunc(f.Tensors, func(y element.Tensor) bool { return y.Name == x.Name })
			of(&f.Tensors[at])
			fails(f, "tensor %d, %s: %s", i, x.Name, what)
		}
		change("has another name", func(x *element.Tensor) { x.Name = "z" + x.Name })
		change("is in lists", func(x *element.Tensor) { x.Shape = append([]int{3, 2}, x.Shape...) })
		change("is a list", func(x *element.Tensor) { x.Shape = append([]int{2}, x.Shape...) })
		change("is of bytes", func(x *element.Tensor) { x.Type = element.U8 })
		for d := range x.Shape {
			for _, n := range []int{-1, 0, 7, 63, 65, 1 << 40, math.MaxInt} {
				if n > 0 && n < 1<<20 && x.Name == "tok_embeddings.weight" && d == 0 {
					continue // as many tokens as there are
				}
				change("has another size", func(x *element.Tensor) {
					x.Shape = slices.Clone(x.Shape)
					x.Shape[d] = n
				})
			}
		}
	}
	t.Log(count, "broken folders")
	require.GreaterOrEqual(t, count, 300)
}

// FuzzOriginal checks that no params.json and no list of ranks panics.
func FuzzOriginal(f *testing.F) {
	f.Add([]byte(smallParams+`, "use_scaled_rope": true}`), rankLines(), []byte(nil))
	f.Add([]byte(smallParams+`, "moe": {"num_experts": 2, "num_experts_per_tok": 1}}`), []byte("\n\x03\n\x01a"),
		[]byte(`{"config": {"default_vocab_size": 4, "default_num_special_tokens": 3}, "vocab": [{"rank": 0, "token_bytes": "YQ=="}]}`))
	f.Fuzz(func(t *testing.T, params, model, tekken []byte) {
		x := originalFolder(string(params))
		x.Texts["tokenizer.model"] = model
		if len(tekken) > 0 {
			x.Texts["tekken.json"] = tekken
		}
		if _, err := convert.Plan(x, convert.Options{}); err != nil {
			require.NotEmpty(t, err.Error())
		}
	})
}
