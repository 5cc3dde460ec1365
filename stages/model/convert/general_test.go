package convert

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
)

// What llama.cpp's converter makes of names (conversion of August 2026), some of them hard.
func TestNames(t *testing.T) {
	const billion = 1_000_000_000
	for id, c := range map[string]struct {
		parameters int64
		want       name // without full
	}{
		"Mixtral":                           {0, name{}},
		"Mixtral-8x7B":                      {0, name{base: "Mixtral", size: "8x7B"}},
		"NousResearch/Meta-Llama-3-8B":      {0, name{organization: "NousResearch", base: "Meta-Llama-3", size: "8B"}},
		"Qwen1.5-MoE-A2.7B-Chat":            {0, name{base: "Qwen1.5-MoE", finetune: "Chat", size: "A2.7B"}},
		"Qwen2-57B-A14B-Instruct":           {0, name{base: "Qwen2", finetune: "Instruct", size: "57B-A14B"}},
		"microsoft/Phi-3-mini-4k-instruct":  {4 * billion, name{organization: "microsoft", base: "Phi-3", finetune: "4k-instruct", size: "mini"}},
		"smallcloudai/Refact-1_6B-fim":      {0, name{organization: "smallcloudai", base: "Refact", finetune: "fim", size: "1.6B"}},
		"UCLA-AGI/Gemma-2-9B-It-SPPO-Iter3": {0, name{organization: "UCLA-AGI", base: "Gemma-2", finetune: "It-SPPO", version: "Iter3", size: "9B"}},
		"internlm/internlm2_5-7b-chat-1m":   {7 * billion, name{organization: "internlm", base: "internlm2_5", finetune: "chat-1m", size: "7B"}},
		"abacaj/llama-161M-100B":            {161_000_000, name{organization: "abacaj", base: "llama", finetune: "100b", size: "161M"}},
		"bigscience/bloom-7b1-petals":       {0, name{organization: "bigscience", base: "bloom", finetune: "petals", size: "7.1B"}},
		"mistralai/-Mistral--Nemo-Base-2407-": {0, name{organization: "mistralai", base: "Mistral-Nemo-Base",
			version: "2407"}},
		"OpenGVLab/Mini-InternVL-Chat-2B-V1-5": {0, name{organization: "OpenGVLab", base: "Mini-InternVL", finetune: "Chat",
			version: "V1-5", size: "2B"}},
		"MaziyarPanahi/GreenNode-mini-7B-multilingual-v1olet-Mistral-7B-Instruct-v0.1": {0, name{organization: "MaziyarPanahi",
			base: "GreenNode-mini", finetune: "multilingual-v1olet-Mistral-Instruct", version: "v0.1", size: "7B"}},
	} {
		got := nameOf(id, c.parameters)
		got.full = ""
		require.Equal(t, c.want, got, id)
	}
	require.Equal(t, "Sluice Mini Draft v2 7b GPT", title("sluice-mini-draft-v2-7b-GPT"))
}

func TestSizeLabels(t *testing.T) {
	for n, want := range map[int64]string{83_392: "83K", 5_200_000: "5.2M", 999: "1.0K", 8_030_000_000: "8.0B", 671e9: "671B"} {
		require.Equal(t, want, rounded(n))
	}
}

// A vocabulary of pieces without scores gets them from its merges: what was merged first scores best.
func TestScoresOfMerges(t *testing.T) {
	f := &Folder{Texts: map[string][]byte{"tokenizer.json": []byte(`{"model": {"type": "BPE", "byte_fallback": true,
		"unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "a": 3, "b": 4, "▁": 5, "ab": 6, "▁ab": 7, "bbb": 8},
		"merges": ["a b", ["▁", "ab"]]}, "added_tokens": [{"id": 0, "content": "<unk>", "special": true},
		{"id": 1, "content": "<s>", "special": true}]}`)}}
	c, err := familyConverter(f)
	require.NoError(t, err)
	require.ErrorContains(t, c.vocabulary(), "merges") // of two kinds
	f.Texts["tokenizer.json"] = []byte(`{"model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
		"vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "a": 3, "b": 4, "▁": 5, "ab": 6, "▁ab": 7, "bbb": 8},
		"merges": [["a", "b"], ["▁", "ab"]]}, "added_tokens": [{"id": 0, "content": "<unk>", "special": true},
		{"id": 1, "content": "<s>", "special": true}]}`)
	require.NoError(t, c.vocabulary())
	scores, err := c.meta.Floats("tokenizer.ggml.scores")
	require.NoError(t, err)
	require.Greater(t, scores[6], scores[7])
	require.Greater(t, scores[7], scores[8])
	types, err := c.meta.Ints("tokenizer.ggml.token_type")
	require.NoError(t, err)
	require.Equal(t, []int64{2, 3, 6, 1, 1, 1, 1, 1, 1}, types)
}

// familyConverter is a converter of a model of nine tokens.
func familyConverter(f *Folder) (*converter, error) {
	config, err := modelConfig([]byte(`{"vocab_size": 9}`))
	c := &converter{folder: f, config: config, family: &family{arch: "llama"}, meta: new(meta.Map),
		byName: map[string]*output{"token_embd.weight": {shape: []int{9, 1}}}}
	return c, err
}

// How tokenizers cut text, as their files say it, by the names that are known.
func TestPreTokenizers(t *testing.T) {
	split := func(expression string) string {
		return `{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "` + expression +
			`"}}, {"type": "ByteLevel", "use_regex": false}]}`
	}
	llama3 := split(`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*` +
		`|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`)
	for _, c := range []struct{ cutter, model, family, want string }{
		{llama3, `"ignore_merges": true`, "", "llama-bpe"},
		{llama3, `"ignore_merges": false`, "glm4", "glm4"},
		{llama3, `"ignore_merges": false`, "qwen35", "dbrx"},
		{`{"type": "ByteLevel"}`, `"x": 0`, "", "gpt-2"},
		{`{"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel", "use_regex": true}]}`, `"x": 0`,
			"command-r", "command-r"},
		{split("a+"), `"x": 0`, "qwen2", ""},
		{`{"type": "Whitespace"}`, `"x": 0`, "qwen2", ""},
	} {
		c2 := &converter{family: &family{pre: c.family}, folder: &Folder{Texts: map[string][]byte{
			"tokenizer.json": []byte(`{"model": {` + c.model + `}, "pre_tokenizer": ` + c.cutter + `}`)}}}
		parsed, err := c2.tokenizer()
		require.NoError(t, err)
		got, err := c2.preTokenizer(&parsed)
		require.Equal(t, c.want, got)
		if c.want == "" {
			require.ErrorContains(t, err, "--pre NAME")
		}
	}
}

// What is put around texts, and the templates.
func TestSpecial(t *testing.T) {
	f := &Folder{Texts: map[string][]byte{
		"tokenizer.json": []byte(`{"model": {"type": "BPE", "vocab": {"a": 0}}, "pre_tokenizer": {"type": "ByteLevel"},
			"added_tokens": [{"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true}],
			"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
				"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}]}}`),
		"tokenizer_config.json": []byte(`{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_eos_token": false,
			"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]}`),
	}}
	c, err := familyConverter(f)
	require.NoError(t, err)
	c.config.values["pad_token_id"] = json.Number("0")
	require.NoError(t, c.vocabulary())
	for key, want := range map[string]any{
		"tokenizer.ggml.bos_token_id": uint32(1), "tokenizer.ggml.eos_token_id": uint32(2),
		"tokenizer.ggml.padding_token_id": uint32(0), "tokenizer.ggml.add_bos_token": true,
		"tokenizer.ggml.add_eos_token": false, "tokenizer.chat_template": "D", "tokenizer.chat_template.tool_use": "T",
		"tokenizer.chat_templates": []string{"tool_use"},
	} {
		got, ok := c.meta.Get(key)
		require.True(t, ok, key)
		require.Equal(t, want, got, key)
	}
}
