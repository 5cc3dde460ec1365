package convert

import (
	"fmt"
	"slices"
	"strings"
)

// Expressions by which tokenizers cut text before they merge, as they stand in tokenizer.json of the models' makers.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	blanks       = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	upper        = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lower        = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	cased        = `[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+%[1]s|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower + `*%[1]s`
	gpt2Cut      = "ByteLevel" // the expression of GPT-2, which is built in
	digitCut     = "Digits"    // each digit alone
)

// cut is a way to cut text, and what llama.cpp calls it: the first name, or another of the list that a family prefers.
type cut struct {
	steps  []string
	whole  bool // words that are tokens are not merged from bytes
	names  []string
	either bool // whole does not matter
}

func cuts() []cut {
	qwen := contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks
	llama := contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks
	marked := contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + blanks
	seed := contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+` + blanks
	gpt4o := fmt.Sprintf(cased, contractions+"?") + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanks
	tekken := fmt.Sprintf(cased, "") + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanks
	deepseek := "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+" +
		`| ?[\p{P}\p{S}]+[\r\n]*` + blanks
	return []cut{
		{steps: []string{qwen}, names: []string{"qwen2", "stablelm2", "hunyuan", "deepseek-r1-qwen", "megrez"}, either: true},
		{steps: []string{llama}, whole: true, names: []string{"llama-bpe", "lfm2", "falcon3", "falcon-h1", "smollm3"}},
		{steps: []string{llama}, names: []string{"dbrx", "glm4", "smaug-bpe", "chatglm-bpe"}},
		{steps: []string{marked}, names: []string{"qwen35"}, either: true},
		{steps: []string{seed}, names: []string{"seed-coder"}, either: true},
		{steps: []string{gpt4o}, names: []string{"gpt-4o", "llama4"}, either: true},
		{steps: []string{tekken}, whole: true, names: []string{"tekken"}, either: true},
		{steps: []string{`\p{N}{1,3}`, `[一-龥぀-ゟ゠-ヿ]+`, deepseek}, names: []string{"deepseek-v3", "hunyuan-dense"}, either: true},
		{steps: []string{digitCut, gpt2Cut}, names: []string{"starcoder", "smollm", "command-r", "refact", "exaone"}, either: true},
		{steps: []string{gpt2Cut}, names: []string{"gpt-2", "olmo", "mpt", "exaone4", "phi-2", "jais"}, either: true},
	}
}

// preTokenizer finds the name of the way in which tokenizer.json cuts text.
func (c *converter) preTokenizer(t *tokenizer) (string, error) {
	if c.options.Pre != "" {
		return c.options.Pre, nil
	}
	steps := t.steps()
	for _, k := range cuts() {
		if !slices.Equal(k.steps, steps) || !k.either && k.whole != t.Model.IgnoreMerges {
			continue
		}
		if slices.Contains(k.names, c.family.pre) {
			return c.family.pre, nil
		}
		return k.names[0], nil
	}
	return "", fmt.Errorf("tokenizer.json: cuts text in a way that has no name here (%.200q): say what llama.cpp calls it, "+
		"with --pre NAME", steps)
}

// steps lists how a text is cut, one cutter after the other.
func (t *tokenizer) steps() []string {
	var steps []string
	add := func(p map[string]any) {
		switch p["type"] {
		case "Split":
			pattern, _ := p["pattern"].(map[string]any)
			expression, _ := pattern["Regex"].(string)
			steps = append(steps, strings.ReplaceAll(expression, `\u3040`, "぀"))
		case "Digits":
			steps = append(steps, digitCut)
		case "ByteLevel":
			if use, set := p["use_regex"].(bool); use || !set {
				steps = append(steps, gpt2Cut)
			}
		default:
			kind, _ := p["type"].(string)
			steps = append(steps, kind)
		}
	}
	list, _ := t.PreTokenizer["pretokenizers"].([]any)
	for _, p := range list {
		if cutter, ok := p.(map[string]any); ok {
			add(cutter)
		}
	}
	if t.PreTokenizer != nil && t.PreTokenizer["type"] != "Sequence" {
		add(t.PreTokenizer)
	}
	return steps
}
