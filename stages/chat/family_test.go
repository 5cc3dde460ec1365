package chat_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestFamilies: what a model without a template gets, and that the user is told.
func TestFamilies(t *testing.T) {
	talk := []chat.Message{
		chat.Say("system", "Be brief."), chat.Say("user", "2+2?"), chat.Say("assistant", "4"),
		chat.Say("user", "3+3?"),
	}
	for _, c := range []struct {
		arch   string
		tokens []string
		note   string
		want   string
	}{
		{"qwen2", []string{"<|im_start|>", "<|im_end|>"}, `ChatML, because the vocabulary has "<|im_start|>"`,
			"<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n" +
				"<|im_start|>user\n3+3?<|im_end|>\n<|im_start|>assistant\n"},
		{"llama", []string{"<|start_header_id|>", "<|end_header_id|>"}, "Llama 3, because the vocabulary has",
			"<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n" +
				"2+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n4<|eot_id|><|start_header_id|>user" +
				"<|end_header_id|>\n\n3+3?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
		{"granite", nil, "Granite, because the architecture is granite",
			"<|start_of_role|>system<|end_of_role|>Be brief.<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>2+2?" +
				"<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>4<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>" +
				"3+3?<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"},
		{"gemma2", []string{"<start_of_turn>", "<end_of_turn>"}, "Gemma, because the vocabulary has",
			"<s><start_of_turn>user\nBe brief.\n\n2+2?<end_of_turn>\n<start_of_turn>model\n4<end_of_turn>\n" +
				"<start_of_turn>user\n3+3?<end_of_turn>\n<start_of_turn>model\n"},
		{"phi3", []string{"<|user|>", "<|assistant|>", "<|end|>"}, "Phi 3, because the vocabulary has",
			"<|system|>\nBe brief.<|end|>\n<|user|>\n2+2?<|end|>\n<|assistant|>\n4<|end|>\n<|user|>\n3+3?<|end|>\n<|assistant|>\n"},
		{"llama", []string{"[INST]", "[/INST]"}, "Mistral, because the vocabulary has",
			"<s>[INST] Be brief.\n\n2+2? [/INST] 4</s>[INST] 3+3? [/INST]"},
		{"olmo2", nil, "Zephyr, because the architecture is olmo2",
			"<|system|>\nBe brief.</s>\n<|user|>\n2+2?</s>\n<|assistant|>\n4</s>\n<|user|>\n3+3?</s>\n<|assistant|>\n"},
		{"llama", []string{"<s>", "</s>", "<0x0A>"}, "Llama 2, because the vocabulary has",
			"<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n2+2? [/INST] 4</s>[INST] 3+3? [/INST]"},
		{"t5", []string{"<s>", "</s>", "<0x0A>"}, "T5, because the architecture is t5", "Be brief.\n2+2?\n4\n3+3?"},
		{"starcoder2", nil, "ChatML, because nothing tells the model's family",
			"<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n" +
				"<|im_start|>user\n3+3?<|im_end|>\n<|im_start|>assistant\n"},
	} {
		tmpl, note, err := chat.ForModel("", c.arch, func(s string) bool { return slices.Contains(c.tokens, s) })
		require.NoError(t, err)
		require.Contains(t, note, "the model file has no chat template: using the one of "+c.note)
		out, err := tmpl.Render(chat.Input{Messages: talk, AddGenerationPrompt: true, BOS: "<s>", EOS: "</s>"})
		require.NoError(t, err, note)
		require.Equal(t, c.want, out, note)
	}
}

func TestForModelTakesTheModelsOwn(t *testing.T) {
	none := func(string) bool { return false }
	tmpl, note, err := chat.ForModel("{{ messages[0].content }}", "llama", none)
	require.NoError(t, err)
	require.Empty(t, note)
	out, err := tmpl.Render(chat.Input{Messages: []chat.Message{chat.Say("user", "hi")}})
	require.NoError(t, err)
	require.Equal(t, "hi", out)

	_, _, err = chat.ForModel("line one\n{% if %}", "llama", none)
	require.EqualError(t, err,
		"chat template line 2: TemplateSyntaxError: Expected an expression, got 'end of statement block'")
}

// TestOwn: a template that is no text is a fault of the file, not a file without one.
func TestOwn(t *testing.T) {
	var m meta.Map
	source, err := chat.Own(&m)
	require.NoError(t, err)
	require.Empty(t, source)
	m.Set("tokenizer.chat_template", "{{ messages }}")
	source, err = chat.Own(&m)
	require.NoError(t, err)
	require.Equal(t, "{{ messages }}", source)
	m.Set("tokenizer.chat_template", uint32(7))
	_, err = chat.Own(&m)
	require.EqualError(t, err, "tokenizer.chat_template: is of type uint32, want a string")
}
