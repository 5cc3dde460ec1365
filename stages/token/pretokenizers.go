package token

// Pre-tokenizers by the names of GGUF's tokenizer.ggml.pre. Each is a list of rules. The regular expressions in the
// comments are the makers' as llama.cpp reads them (its llama-vocab.cpp), since models are run that way. Tests
// compare every list with those expressions.

// preTokenizer is the rules of a name, and the name's other properties.
type preTokenizer struct {
	rules      []rule
	wholeWords bool // a word that is a token is not merged from bytes
	addBOS     bool // the default without tokenizer.ggml.add_bos_token
}

// preTokenizers maps names to pre-tokenizers. It is built for each vocabulary, used and dropped.
func preTokenizers() map[string]preTokenizer {
	table := make(map[string]preTokenizer, 100)
	for _, g := range []struct {
		pre   preTokenizer
		names []string
	}{
		{preTokenizer{rules: gpt2Rules()}, []string{
			"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
			"modern-bert", "mpt", "olmo", "jais", "exaone4", "trillion", "granite-docling", "jina-v1-en", "jina-v2-code",
			"roberta-bpe"}},
		{preTokenizer{rules: llama3Rules(), wholeWords: true, addBOS: true}, []string{
			"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"}},
		{preTokenizer{rules: llama3Rules()}, []string{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}},
		{preTokenizer{rules: qwen2Rules()}, []string{
			"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2",
			"bailingmoe", "bailingmoe2", "llada-moe"}},
		{preTokenizer{rules: starcoderRules()}, []string{
			"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"}},
		{preTokenizer{rules: deepseek3Rules()}, []string{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}},
		{preTokenizer{rules: gpt4oRules()}, []string{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}},
		{preTokenizer{rules: graniteEmbedRules(), wholeWords: true}, []string{"granite-embed-multi-97m"}},
		{preTokenizer{rules: tekkenRules(), wholeWords: true, addBOS: true}, []string{"tekken"}},
		{preTokenizer{rules: bloomRules()}, []string{"bloom", "gpt3-finnish", "poro-chat"}},
		{preTokenizer{rules: vikingRules()}, []string{"viking"}},
		{preTokenizer{rules: tinyAyaRules()}, []string{"tiny_aya", "cohere2moe"}},
		{preTokenizer{rules: defaultRules()}, []string{"", "default"}},
		{preTokenizer{rules: falconRules()}, []string{"falcon"}},
		{preTokenizer{rules: deepseekLLMRules()}, []string{"deepseek-llm"}},
		{preTokenizer{rules: deepseekCoderRules()}, []string{"deepseek-coder"}},
		{preTokenizer{rules: sparkRules()}, []string{"spark2_5"}},
		{preTokenizer{rules: youtuRules(), wholeWords: true}, []string{"youtu"}},
		{preTokenizer{rules: jais2Rules()}, []string{"jais-2"}},
		{preTokenizer{rules: qwen35Rules()}, []string{"qwen35"}},
		{preTokenizer{rules: chameleonRules(), addBOS: true}, []string{"chameleon"}},
		{preTokenizer{rules: exaoneMoERules()}, []string{"exaone-moe"}},
		{preTokenizer{rules: kimiRules()}, []string{"kimi-k2"}},
		{preTokenizer{rules: superBPERules()}, []string{"superbpe"}},
		{preTokenizer{rules: seedCoderRules()}, []string{"seed-coder"}},
		{preTokenizer{rules: ufakzekaRules()}, []string{"ufakzeka"}},
		{preTokenizer{rules: afmoeRules()}, []string{"afmoe"}},
		{preTokenizer{rules: lagunaRules()}, []string{"laguna"}},
		{preTokenizer{rules: miniCPM5Rules(), wholeWords: true}, []string{"minicpm5"}},
	} {
		for _, name := range g.names {
			table[name] = g.pre
		}
	}
	return table
}

const notSpaceLetterNumber = ^(space | letter | number)

// gpt2Rules: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)
func gpt2Rules() []rule {
	return []rule{words(shortForms, afterBlank(run(letter)), afterBlank(run(number)),
		afterBlank(run(notSpaceLetterNumber)), spacesButLast)}
}

// modern is the shape that most makers took from GPT-4: a word with any one character before it, digits, other
// characters with what may follow them, lines, and white space, of which one character stays with the next word.
func modern(word match, digits match, marks match) rule {
	return words(word, digits, marks, lines, spacesButLast, spaces)
}

// contracted is modern after contractions.
func contracted(word match, digits match, marks match) rule {
	return words(anyShortForms, word, digits, marks, lines, spacesButLast, spaces)
}

// letterWord is [^\r\n\p{L}\p{N}]?\p{L}+.
func letterWord() match { return afterOne(letter|number, run(letter)) }

// otherRun is " ?[^\s\p{L}\p{N}]+" and the bytes of tail.
func otherRun(tail string) match { return then(afterBlank(run(notSpaceLetterNumber)), tail) }

// llama3Rules: (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
// |\s*[\r\n]+|\s+(?!\S)|\s+
func llama3Rules() []rule {
	return []rule{contracted(letterWord(), upTo(3, number), otherRun("\r\n"))}
}

// qwen2Rules: as Llama 3, with single digits.
func qwen2Rules() []rule { return []rule{qwen2Rule()} }

func qwen2Rule() rule { return contracted(letterWord(), upTo(1, number), otherRun("\r\n")) }
