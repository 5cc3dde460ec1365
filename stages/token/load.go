package token

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// prefix begins all the keys that this package reads.
const prefix = "tokenizer.ggml."

func load(m *meta.Map) (*Vocab, error) {
	model, err := m.String(prefix + "model")
	if err != nil {
		return nil, err
	}
	v := &Vocab{special: noSpecials()}
	v.pool.New = func() any { return new(scratch) }
	if err := v.readTokens(m); err != nil {
		return nil, err
	}
	var build func() error // once it is known which tokens are control tokens
	switch model {
	case "gpt2", "gemma4":
		build, err = v.planBPE(m, model)
	case "llama":
		build, err = v.planSPM(m)
	case "t5":
		build, err = v.planUnigram(m)
	case "bert":
		build, err = v.planWordPiece(m)
	case "rwkv":
		build = v.planWorld()
	case "clip":
		build, err = v.planClip(m)
	default:
		return nil, fmt.Errorf("%smodel is %q, want gpt2, gemma4, llama, t5, bert, rwkv or clip: sluice cannot encode "+
			"text for it", prefix, model)
	}
	if err != nil {
		return nil, err
	}
	if err := v.readSpecials(m); err != nil {
		return nil, err
	}
	if err := v.readAdds(m); err != nil {
		return nil, err
	}
	v.findSpecials()
	v.findEOG()
	v.findStrips(m)
	if err := build(); err != nil {
		return nil, err
	}
	v.plain = newCutter(v.text, v.attr, func(a attr) bool {
		return a&userDefined != 0 && a&(control|unknown|guarded) == 0
	})
	v.parsed = newCutter(v.text, v.attr, func(a attr) bool { return a&(control|userDefined|unknown) != 0 })
	return v, nil
}

// readTokens reads the tokens' texts and types.
func (v *Vocab) readTokens(m *meta.Map) error {
	texts, err := m.Strings(prefix + "tokens")
	if err != nil {
		return err
	}
	if len(texts) == 0 {
		return fmt.Errorf("%stokens: is empty, want at least one token", prefix)
	}
	if len(texts) > math.MaxInt32/4 {
		return fmt.Errorf("%stokens: has %d tokens, at most %d make sense", prefix, len(texts), math.MaxInt32/4)
	}
	v.text = make([]string, len(texts))
	v.attr = make([]attr, len(texts))
	v.lookup = make(map[string]ID, len(texts))
	for i, text := range texts {
		if text == "" {
			text = fmt.Sprintf("[EMPTY_%d]", i)
		}
		if first, ok := v.lookup[text]; ok {
			return fmt.Errorf("%stokens: %q is both token %d and token %d, want each text once", prefix, text, first, i)
		}
		v.text[i], v.attr[i], v.lookup[text] = text, normal, ID(i)
	}
	types, err := m.Ints(prefix + "token_type")
	if errors.Is(err, meta.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(types) < len(texts) {
		return fmt.Errorf("%stoken_type: has %d values, want one for each of %d tokens", prefix, len(types), len(texts))
	}
	for i := range texts {
		v.attr[i] = attrOf(types[i])
	}
	return nil
}

// readScores reads the tokens' scores; without the key they are all zero.
func (v *Vocab) readScores(m *meta.Map) ([]float32, error) {
	const key = prefix + "scores"
	scores, err := m.Floats(key)
	if errors.Is(err, meta.ErrMissing) {
		return make([]float32, len(v.text)), nil
	}
	if err != nil {
		ints, intErr := m.Ints(key)
		if intErr != nil {
			return nil, err
		}
		scores = make([]float32, len(ints))
		for i, n := range ints {
			scores[i] = float32(n)
		}
	}
	if len(scores) < len(v.text) {
		return nil, fmt.Errorf("%s: has %d values, want one for each of %d tokens", key, len(scores), len(v.text))
	}
	for i, x := range scores {
		if math.IsNaN(float64(x)) {
			return nil, fmt.Errorf("%s: value %d is %v, want a number: tokens are ordered by it", key, i, x)
		}
	}
	return scores[:len(v.text)], nil
}

// readFlag overrides *flag by a key, if the file has it.
func readFlag(m *meta.Map, key string, flag *bool) error {
	on, err := m.Bool(prefix + key)
	if errors.Is(err, meta.ErrMissing) {
		return nil
	}
	if err == nil {
		*flag = on
	}
	return err
}

// readAdds reads which special tokens Encode adds; those tokens must exist.
func (v *Vocab) readAdds(m *meta.Map) error {
	b, isBPE := v.kind.(*bpe)
	_, isBERT := v.kind.(*wordPiece)
	for _, add := range []struct {
		flag   *bool
		id     ID
		name   string
		idName string
	}{
		{&v.addBOS, v.special.bos, "add_bos_token", "bos_token_id"},
		{&v.addEOS, v.special.eos, "add_eos_token", "eos_token_id"},
		{&v.addSEP, v.special.sep, "add_sep_token", "seperator_token_id"},
	} {
		if err := readFlag(m, add.name, add.flag); err != nil {
			return err
		}
		switch add.flag {
		case &v.addBOS:
			*add.flag = *add.flag || isBERT || isBPE && b.gemma4 // Gemma 4's files say false, and are wrong
		case &v.addSEP:
			v.pairSEP = !isBERT && add.id != none && (*add.flag || !m.Has(prefix+add.name))
			*add.flag = isBERT
		}
		if *add.flag && add.id == none {
			return fmt.Errorf("%s%s: is true or the model's default, but %s%s names no token of the vocabulary",
				prefix, add.name, prefix, add.idName)
		}
	}
	return nil
}

// byteOf returns the byte of a byte token's text, <0xNN>.
func byteOf(text string) (byte, bool) {
	if len(text) != 6 || !strings.HasPrefix(text, "<0x") || text[5] != '>' {
		return 0, false
	}
	var b byte
	for _, c := range []byte(text[3:5]) {
		switch {
		case c >= '0' && c <= '9':
			b = b<<4 | (c - '0')
		case c >= 'A' && c <= 'F':
			b = b<<4 | (c - 'A' + 10)
		case c >= 'a' && c <= 'f':
			b = b<<4 | (c - 'a' + 10)
		default:
			return 0, false
		}
	}
	return b, true
}
