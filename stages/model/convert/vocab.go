package convert

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Types of tokens, as llama.cpp numbers them.
const (
	normal      int32 = 1
	unknown     int32 = 2
	control     int32 = 3
	userDefined int32 = 4
	unused      int32 = 5
	rawByte     int32 = 6
)

const mostVocab = 1 << 24 // tokens; the largest vocabularies have 300 000

// tokenizer is the content of tokenizer.json.
type tokenizer struct {
	Model struct {
		Type         string          `json:"type"`
		Vocab        json.RawMessage `json:"vocab"`
		Merges       json.RawMessage `json:"merges"`
		ByteFallback bool            `json:"byte_fallback"`
		IgnoreMerges bool            `json:"ignore_merges"`
		UnknownID    *int            `json:"unk_id"`
		Unknown      string          `json:"unk_token"`
	} `json:"model"`
	Added         []addedToken   `json:"added_tokens"`
	Normalizer    map[string]any `json:"normalizer"`
	PreTokenizer  map[string]any `json:"pre_tokenizer"`
	PostProcessor map[string]any `json:"post_processor"`
}

type addedToken struct {
	ID      int    `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
}

// tokens is a vocabulary that is being built.
type tokens struct {
	texts  []string
	scores []float32 // nil for vocabularies without
	types  []int32
}

func newTokens(n int, scored bool) *tokens {
	t := &tokens{texts: make([]string, n), types: make([]int32, n)}
	if scored {
		t.scores = make([]float32, n)
	}
	for i := range n {
		t.texts[i], t.types[i] = fmt.Sprintf("[PAD%d]", i), unused
		if scored {
			t.scores[i] = -10000
		}
	}
	return t
}

func (t *tokens) set(id int, text string, score float32, kind int32) {
	if id < 0 || id >= len(t.texts) {
		return // llama.cpp ignores these too: the model has no embedding for them
	}
	t.texts[id], t.types[id] = text, kind
	if t.scores != nil {
		t.scores[id] = score
	}
}

// tokenizer reads tokenizer.json, if it is there.
func (c *converter) tokenizer() (t tokenizer, err error) {
	if text := c.folder.Texts["tokenizer.json"]; text != nil {
		if err = json.Unmarshal(text, &t); err != nil {
			err = fmt.Errorf("tokenizer.json: %w", err)
		}
	}
	return t, err
}

// rows is the number of tokens that the model has embeddings for.
func (c *converter) rows() int {
	o := c.byName["token_embd.weight"]
	if o == nil || len(o.shape) != 2 || o.shape[0] > mostVocab {
		return 0
	}
	return o.shape[0]
}

// vocabulary writes the tokenizer's keys.
func (c *converter) vocabulary() error {
	t, err := c.tokenizer()
	if err != nil {
		return err
	}
	settings, err := parseObject("tokenizer_config.json", c.folder.Texts["tokenizer_config.json"])
	if err != nil {
		return err
	}
	size, rows := c.config.int("vocab_size"), c.rows()
	if size > rows {
		return fmt.Errorf("config.json: vocab_size is %d, and there are embeddings for %d tokens", size, rows)
	}
	if size == 0 {
		size = rows
	}
	switch pieces := c.folder.Texts["tokenizer.model"]; {
	case pieces != nil:
		err = c.sentencePieces(pieces, &t, settings, size)
	case t.Model.Type == "BPE" && t.Model.ByteFallback:
		err = c.mergedPieces(&t, size)
	case t.Model.Type == "BPE":
		err = c.byteLevel(&t, size)
	case t.Model.Type == "WordPiece":
		err = c.wordPieces(&t, size)
	case t.Model.Type == "Unigram":
		err = c.unigram(&t, size)
	case c.nameless():
		c.numbers(size)
	default:
		err = fmt.Errorf("tokenizer.json: is missing, or its model is of type %.40q: want BPE, WordPiece or Unigram, "+
			"or a tokenizer.model", t.Model.Type)
	}
	if err != nil {
		return err
	}
	return errors.Join(c.special(&t, settings), settings.err())
}

// nameless says whether the folder has nothing of a tokenizer: its model takes ids, and gives ids.
func (c *converter) nameless() bool {
	for _, name := range []string{"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.txt", "merges.txt"} {
		if c.folder.Texts[name] != nil {
			return false
		}
	}
	return c.config.has("vocab_size")
}

// numbers writes a vocabulary without texts, in which tokens have numbers alone.
func (c *converter) numbers(size int) {
	c.tokens("gpt2", "default", newTokens(size, false))
	c.meta.Set("tokenizer.ggml.merges", []string{})
}

// tokens writes the tokens to the metadata.
func (c *converter) tokens(model, pre string, t *tokens) {
	c.meta.Set("tokenizer.ggml.model", model)
	c.meta.Set("tokenizer.ggml.pre", pre)
	c.meta.Set("tokenizer.ggml.tokens", t.texts)
	if t.scores != nil {
		c.meta.Set("tokenizer.ggml.scores", t.scores)
	}
	c.meta.Set("tokenizer.ggml.token_type", t.types)
}

// ids reads the vocabulary of a tokenizer whose tokens have no scores.
func (t *tokenizer) ids() (map[string]int, error) {
	var vocab map[string]int
	if err := json.Unmarshal(t.Model.Vocab, &vocab); err != nil {
		return nil, fmt.Errorf("tokenizer.json: vocab: %w", err)
	}
	return vocab, nil
}

// byteLevel writes a vocabulary of GPT-2's kind: texts of bytes, and merges.
func (c *converter) byteLevel(t *tokenizer, size int) error {
	vocab, err := t.ids()
	if err != nil {
		return err
	}
	pre, err := c.preTokenizer(t)
	if err != nil {
		return err
	}
	merges, err := t.merges()
	if err != nil {
		return err
	}
	list := newTokens(size, false)
	for text, id := range vocab {
		list.set(id, text, 0, normal)
	}
	list.add(t.Added)
	c.tokens("gpt2", pre, list)
	if len(merges) > 0 {
		c.meta.Set("tokenizer.ggml.merges", merges)
	}
	return nil
}

// add puts added tokens over the others.
func (t *tokens) add(added []addedToken) {
	for _, a := range added {
		if a.Special || looksSpecial(a.Content) {
			t.set(a.ID, a.Content, -1000, control)
		} else {
			t.set(a.ID, strings.ReplaceAll(a.Content, "▁", " "), -1000, userDefined)
		}
	}
}

// looksSpecial says whether a token is a control token by its text: some makers forget to mark these.
func looksSpecial(text string) bool {
	switch text {
	case "<pad>", "<mask>", "<2mass>", "[@BOS@]":
		return true
	}
	return strings.HasPrefix(text, "<|") && strings.HasSuffix(text, "|>") ||
		strings.HasPrefix(text, "<｜") && strings.HasSuffix(text, "｜>") ||
		strings.HasPrefix(text, "<unused") && strings.HasSuffix(text, ">")
}

// merges lists the pairs that are merged: texts with a blank between the two, or lists of two.
func (t *tokenizer) merges() ([]string, error) {
	if len(t.Model.Merges) == 0 {
		return nil, nil
	}
	var texts []string
	if json.Unmarshal(t.Model.Merges, &texts) == nil {
		return texts, nil
	}
	var pairs [][2]string
	if err := json.Unmarshal(t.Model.Merges, &pairs); err != nil {
		return nil, fmt.Errorf("tokenizer.json: merges: %w", err)
	}
	blank := strings.NewReplacer(" ", "Ġ")
	for _, p := range pairs {
		texts = append(texts, blank.Replace(p[0])+" "+blank.Replace(p[1]))
	}
	return texts, nil
}

// mergedPieces writes a vocabulary of SentencePiece's kind whose scores were lost. Merges were sorted by score, so
// that the number of a merge serves as the score.
func (c *converter) mergedPieces(t *tokenizer, size int) error {
	vocab, err := t.ids()
	if err != nil {
		return err
	}
	merges, err := t.merges()
	if err != nil {
		return err
	}
	list := newTokens(size, true)
	for text, id := range vocab {
		kind := normal
		switch {
		case text == t.Model.Unknown:
			kind = unknown
		case len(text) == 6 && strings.HasPrefix(text, "<0x") && text[5] == '>':
			kind = rawByte
		}
		list.set(id, text, math.MinInt16*1000, kind)
		if utf8.RuneCountInString(text) == 1 || kind != normal {
			list.set(id, text, 0, kind)
		}
	}
	for i, m := range merges {
		if id, ok := vocab[strings.Replace(m, " ", "", 1)]; ok &&
			id >= 0 && id < size && list.types[id] == normal && list.scores[id] == math.MinInt16*1000 {
			list.scores[id] = -float32(i)
		}
	}
	list.add(without(t.Added, t.Model.Unknown))
	c.tokens("llama", "default", list)
	return nil
}

// without is the added tokens but the one for unknown text, which has a type of its own.
func without(added []addedToken, text string) []addedToken {
	var out []addedToken
	for _, a := range added {
		if a.Content != text {
			out = append(out, a)
		}
	}
	return out
}

// wordPieces writes BERT's kind: ggml marks the beginnings of words, where BERT marks what goes on with ##.
func (c *converter) wordPieces(t *tokenizer, size int) error {
	vocab, err := t.ids()
	if err != nil {
		return err
	}
	c.meta.Set("tokenizer.ggml.token_type_count", uint32(c.config.intOr(1, "type_vocab_size")))
	list := newTokens(size, false)
	for text, id := range vocab {
		list.set(id, text, 0, normal)
	}
	list.add(t.Added)
	for i, text := range list.texts {
		if list.types[i] == control {
			continue
		}
		rest, inside := strings.CutPrefix(text, "##")
		if list.texts[i] = rest; !inside {
			list.texts[i] = "▁" + text
		}
		if strings.HasPrefix(text, "[unused") && list.types[i] == normal {
			list.types[i] = unused
		}
	}
	pre := c.options.Pre
	if pre == "" {
		pre = "jina-v2-en" // what llama.cpp calls BERT's way to cut text
	}
	c.tokens("bert", pre, list)
	return nil
}

// unigram writes T5's kind.
func (c *converter) unigram(t *tokenizer, size int) error {
	var vocab [][2]any
	if err := json.Unmarshal(t.Model.Vocab, &vocab); err != nil {
		return fmt.Errorf("tokenizer.json: vocab: %w", err)
	}
	list := newTokens(size, true)
	for id, v := range vocab {
		text, ok1 := v[0].(string)
		score, ok2 := v[1].(float64)
		if !ok1 || !ok2 {
			return fmt.Errorf("tokenizer.json: vocab: token %d is no text with a score", id)
		}
		kind := normal
		if t.Model.UnknownID != nil && id == *t.Model.UnknownID {
			kind = unknown
		}
		list.set(id, text, float32(score), kind)
	}
	for _, a := range t.Added {
		if a.ID >= 0 && a.ID < size && list.types[a.ID] != unknown {
			list.types[a.ID] = userDefined
			if a.Special {
				list.types[a.ID] = control
			}
		}
	}
	c.tokens("t5", "default", list)
	c.meta.Set("tokenizer.ggml.add_space_prefix", true)
	c.meta.Set("tokenizer.ggml.token_type_count", uint32(c.config.intOr(1, "type_vocab_size")))
	c.meta.Set("tokenizer.ggml.remove_extra_whitespaces", true)
	if encoded := t.charsmap(); encoded != "" {
		charsmap, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return fmt.Errorf("tokenizer.json: precompiled_charsmap: %w", err)
		}
		c.meta.Set("tokenizer.ggml.precompiled_charsmap", charsmap)
	}
	return nil
}

// charsmap is what replaces characters, in base64, as the normalizer has it, alone or in a sequence; "": none.
func (t *tokenizer) charsmap() string {
	all, _ := t.Normalizer["normalizers"].([]any)
	for _, n := range append(all, t.Normalizer) {
		normalizer, _ := n.(map[string]any)
		if text, ok := normalizer["precompiled_charsmap"].(string); ok {
			return text
		}
	}
	return ""
}
