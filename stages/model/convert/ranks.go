package convert

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// In this file vocabularies are read that list bytes by rank, as tiktoken does: what has the lowest rank is merged
// first. Llama 3's is a text of lines, Mistral's tekken.json. They have no merges; these follow from the ranks.

// isRanks says whether a tokenizer.model is a list of ranks: its first line is bytes in base64, and 0.
func isRanks(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	encoded, rank, ok := strings.Cut(string(line), " ")
	_, err := base64.StdEncoding.DecodeString(encoded)
	return ok && err == nil && rank == "0"
}

// parseRanks reads the lines of a list of ranks.
func parseRanks(text []byte) ([]string, error) {
	var ranks []string
	for line := range strings.Lines(string(text)) {
		encoded, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if encoded == "" {
			continue
		}
		token, err := base64.StdEncoding.DecodeString(encoded)
		rank, other := strconv.Atoi(number)
		if err != nil || other != nil || rank != len(ranks) || len(token) == 0 || len(token) > mostToken {
			return nil, fmt.Errorf("tokenizer.model: line %d is %.60q, want bytes in base64 and the rank %d",
				len(ranks)+1, line, len(ranks))
		}
		if len(ranks) == mostVocab {
			return nil, errors.New("tokenizer.model: holds more tokens than any model has")
		}
		ranks = append(ranks, string(token))
	}
	return ranks, nil
}

const mostToken = 1 << 10 // bytes

// tekken is the content of tekken.json.
type tekken struct {
	Config struct {
		Size    int `json:"default_vocab_size"`
		Special int `json:"default_num_special_tokens"`
	} `json:"config"`
	Vocab []struct {
		Rank  int    `json:"rank"`
		Bytes []byte `json:"token_bytes"` // base64
	} `json:"vocab"`
	Special []struct {
		Rank int    `json:"rank"`
		Text string `json:"token_str"`
	} `json:"special_tokens"`
}

// oldTekkenSpecial are the special tokens of files that do not list them.
var oldTekkenSpecial = []string{"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
	"[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "<pad>", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"}

// parseTekken reads tekken.json: the ranks that are in use, and the special tokens in front of them.
func parseTekken(text []byte) (ranks, special []string, err error) {
	var t tekken
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, nil, fmt.Errorf("tekken.json: %w", err)
	}
	n := t.Config.Special
	if n < 3 || n > mostLayers || t.Config.Size <= n || t.Config.Size-n > len(t.Vocab) {
		return nil, nil, fmt.Errorf("tekken.json: has %d tokens of which %d are special, and lists %d: is the download complete?",
			t.Config.Size, n, len(t.Vocab))
	}
	for i, v := range t.Vocab[:t.Config.Size-n] {
		if v.Rank != i || len(v.Bytes) == 0 || len(v.Bytes) > mostToken {
			return nil, nil, fmt.Errorf("tekken.json: vocab: entry %d has rank %d and %d bytes: want ranks in order", i, v.Rank,
				len(v.Bytes))
		}
		ranks = append(ranks, string(v.Bytes))
	}
	special = make([]string, n)
	for i := range special {
		if special[i] = fmt.Sprintf("<SPECIAL_%d>", i); i < len(oldTekkenSpecial) && len(t.Special) == 0 {
			special[i] = oldTekkenSpecial[i]
		}
	}
	for _, s := range t.Special {
		if s.Rank < 0 || s.Rank >= n {
			return nil, nil, fmt.Errorf("tekken.json: special_tokens: %.40q has rank %d, want one below %d", s.Text, s.Rank, n)
		}
		special[s.Rank] = s.Text
	}
	return ranks, special, nil
}

// llama3Special are Llama 3's special tokens that mean something, by their place behind the others. 3.1 has more.
func llama3Special(n int, newer bool) []string {
	special := make([]string, n)
	for i := range special {
		special[i] = fmt.Sprintf("<|reserved_special_token_%d|>", i)
	}
	named := map[int]string{0: "<|begin_of_text|>", 1: "<|end_of_text|>", 6: "<|start_header_id|>", 7: "<|end_header_id|>",
		9: "<|eot_id|>"}
	if newer {
		named[4], named[8], named[10] = "<|finetune_right_pad_id|>", "<|eom_id|>", "<|python_tag|>"
	}
	for i, text := range named {
		if i < n {
			special[i] = text
		}
	}
	return special
}

// originalVocabulary writes the vocabulary of a folder of Meta or Mistral.
func originalVocabulary(c *converter) error {
	var ranks, special []string
	var err error
	pre, first, begins := "llama-bpe", 0, 1 // where ranks begin, and the token that begins texts
	switch texts := c.folder.Texts; {
	case texts["tokenizer.json"] != nil:
		return c.vocabulary()
	case texts["tekken.json"] != nil:
		ranks, special, err = parseTekken(texts["tekken.json"])
		pre, first = "tekken", len(special)
	case isRanks(texts["tokenizer.model"]):
		ranks, err = parseRanks(texts["tokenizer.model"])
		_, newer := c.config.values["rope_scaling"]
		special = llama3Special(max(c.rows()-len(ranks), 0), newer)
		begins = len(ranks)
	default:
		return c.vocabulary()
	}
	if err != nil {
		return err
	}
	if n := len(ranks) + len(special); n != c.rows() {
		return fmt.Errorf("the tokenizer has %d tokens, and there are embeddings for %d: the files do not belong together",
			n, c.rows())
	}
	list := newTokens(c.rows(), false)
	for i, token := range ranks {
		list.set(first+i, byteTexts(token), 0, normal)
	}
	for i, text := range special {
		list.set((first+len(ranks)+i)%c.rows(), text, 0, control)
	}
	if c.options.Pre != "" {
		pre = c.options.Pre
	}
	c.tokens("gpt2", pre, list)
	c.meta.Set("tokenizer.ggml.merges", mergesOf(ranks))
	c.specialID("bos", begins)
	c.specialID("eos", begins+1)
	c.meta.Set("tokenizer.ggml.add_bos_token", true)
	return c.templates(object{values: map[string]any{}, faults: c.config.faults, name: "tokenizer_config.json"})
}

// mergesOf lists the pairs that are merged: of each token the two that it is made of by all lower ranks.
func mergesOf(ranks []string) []string {
	byText := make(map[string]int, len(ranks))
	for i, token := range ranks {
		byText[token] = i
	}
	merges := make([]string, 0, len(ranks))
	for rank, token := range ranks {
		if cut := lastCut(byText, token, rank); cut > 0 {
			merges = append(merges, byteTexts(token[:cut])+" "+byteTexts(token[cut:]))
		}
	}
	return merges
}

// lastCut is where the last two parts of a token meet, once all pairs of lower ranks are merged; 0: there are not two.
func lastCut(ranks map[string]int, token string, rank int) int {
	cuts := make([]int, len(token)+1)
	for i := range cuts {
		cuts[i] = i
	}
	for len(cuts) > 3 {
		best, at := rank, 0
		for i := 1; i+1 < len(cuts); i++ {
			if r, ok := ranks[token[cuts[i-1]:cuts[i+1]]]; ok && r < best {
				best, at = r, i
			}
		}
		if at == 0 {
			return 0
		}
		cuts = append(cuts[:at], cuts[at+1:]...)
	}
	if len(cuts) < 3 {
		return 0
	}
	return cuts[1]
}

// byteTexts writes bytes as GPT-2's vocabularies do: each as one letter, those that cannot be seen as letters from
// U+0100 on.
func byteTexts(token string) string {
	var out strings.Builder
	for i := range len(token) {
		out.WriteRune(byteText(token[i]))
	}
	return out.String()
}

func byteText(b byte) rune {
	seen := func(b byte) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b != 0xad }
	if seen(b) {
		return rune(b)
	}
	r := rune(0x100)
	for other := range b {
		if !seen(other) {
			r++
		}
	}
	return r
}
