package chat

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/chat/gotemplate"
)

// family is a way to write conversations that many models share. The templates are ours: system messages where
// the family has them, turns, generation prompt; no tools.
type family struct {
	name   string
	tokens []string // all of them in the vocabulary: it is this family
	archs  []string // architectures that use it when no tokens tell
	source string
}

// families, the surest signs first.
var families = [...]family{
	{name: "ChatML", tokens: []string{"<|im_start|>", "<|im_end|>"}, archs: []string{"qwen2", "qwen3"}, source: chatML},
	{
		name: "Llama 3", tokens: []string{"<|start_header_id|>", "<|end_header_id|>"},
		source: `{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>

{{ m.content | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}`,
	},
	{
		name: "Granite", tokens: []string{"<|start_of_role|>", "<|end_of_role|>"}, archs: []string{"granite", "granitemoe"},
		source: `{% for m in messages %}<|start_of_role|>{{ m.role }}<|end_of_role|>{{ m.content }}<|end_of_text|>
{{ "" }}{% endfor %}{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}`,
	},
	{
		name: "Gemma", tokens: []string{"<start_of_turn>", "<end_of_turn>"}, archs: []string{"gemma", "gemma2", "gemma3"},
		source: `{{ bos_token }}{% set ns = namespace(system="") %}{% for m in messages %}
{%- if m.role == "system" %}{% set ns.system = m.content | trim ~ "\n\n" %}
{%- else %}<start_of_turn>{{ "model" if m.role == "assistant" else m.role }}
{{ (ns.system if m.role == "user" else "") ~ (m.content | trim) }}<end_of_turn>
{% if m.role == "user" %}{% set ns.system = "" %}{% endif %}{% endif %}{% endfor %}
{%- if add_generation_prompt %}<start_of_turn>model
{% endif %}`,
	},
	{
		name: "Phi 3", tokens: []string{"<|user|>", "<|assistant|>", "<|end|>"}, archs: []string{"phi3"},
		source: `{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}`,
	},
	{name: "Mistral", tokens: []string{"[INST]", "[/INST]"}, source: instruction(`{{ content }}`)},
	{
		name: "Zephyr", tokens: []string{"<|user|>", "<|assistant|>"}, archs: []string{"olmo2", "stablelm"},
		source: `{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}{{ eos_token }}
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}`,
	},
	{ // texts alone: these models were trained on tasks, not on talks
		name: "T5", archs: []string{"t5"},
		source: `{% for m in messages %}{{ m.content }}{{ "" if loop.last else "\n" }}{% endfor %}`,
	},
	{name: "Llama 2", tokens: []string{"<s>", "</s>", "<0x0A>"}, archs: []string{"llama"}, source: instruction(llama2System)},
}

const chatML = `{% for m in messages %}{{ "<|im_start|>" ~ m.role ~ "\n" ~ m.content ~ "<|im_end|>\n" }}{% endfor %}
{%- if add_generation_prompt %}{{ "<|im_start|>assistant\n" }}{% endif %}`

const llama2System = `{% if system %}<<SYS>>
{{ system }}
<</SYS>>

{% endif %}{{ content }}`

// instruction is the [INST] form; body writes a user's content with the system text that precedes it.
func instruction(body string) string {
	if !strings.Contains(body, "system") {
		body = `{{ system ~ "\n\n" if system else "" }}` + body
	}
	return `{{ bos_token }}{% set ns = namespace(system="") %}{% for m in messages %}
{%- if m.role == "system" %}{% set ns.system = m.content | trim %}
{%- elif m.role == "user" %}{% set system = ns.system %}{% set content = m.content | trim %}[INST] ` + body +
		` [/INST]{% set ns.system = "" %}
{%- else %} {{ m.content | trim }}{{ eos_token }}{% endif %}{% endfor %}`
}

// Own is the template in a model's metadata; "" if there is none.
func Own(m *meta.Map) (source string, err error) {
	const key = "tokenizer.chat_template"
	if !m.Has(key) {
		return "", nil
	}
	return m.String(key)
}

// FromOllama returns a template in Jinja, as model files have them, from one that may be in the language of Ollama's
// templates.
func FromOllama(template string) (source string, err error) {
	if strings.Contains(template, "{%") { // tags are written so in Jinja alone
		return template, nil
	}
	return gotemplate.Jinja(template)
}

// ForModel compiles a model's own template. Without one (source is empty) it takes that of the family which the
// vocabulary or the architecture tells, else ChatML; the note then says what was chosen and why, for the user.
// has tells whether the vocabulary holds a token of that text.
func ForModel(source, arch string, has func(token string) bool) (t *Template, note string, err error) {
	if strings.TrimSpace(source) != "" {
		t, err = Compile(source)
		return t, "", err
	}
	f, why := choose(arch, has)
	if t, err = Compile(f.source); err != nil {
		return nil, "", fmt.Errorf("our own template for %s: %w", f.name, err)
	}
	return t, fmt.Sprintf("the model file has no chat template: using the one of %s, because %s", f.name, why), nil
}

func choose(arch string, has func(token string) bool) (*family, string) {
	for i := range families {
		f := &families[i]
		all := len(f.tokens) > 0 && (f.name != "Llama 2" || arch == "llama") // its tokens are every SentencePiece vocabulary's
		for _, token := range f.tokens {
			all = all && has(token)
		}
		if all {
			return f, fmt.Sprintf("the vocabulary has %q", f.tokens[0])
		}
	}
	for i := range families {
		for _, a := range families[i].archs {
			if a == arch && a != "llama" {
				return &families[i], fmt.Sprintf("the architecture is %s", arch)
			}
		}
	}
	return &families[0], "nothing tells the model's family; it may not have been trained for chat"
}
