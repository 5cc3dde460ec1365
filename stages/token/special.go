package token

import (
	"errors"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// specialIDs are the ids of the tokens with a role, none for a role without a token.
type specialIDs struct {
	bos, eos, eot, eom, unk, sep, pad, mask                   ID
	fimPrefix, fimSuffix, fimMiddle, fimPad, fimRepo, fimFile ID
}

// noSpecials returns specialIDs without any token.
func noSpecials() specialIDs {
	return specialIDs{none, none, none, none, none, none, none, none, none, none, none, none, none, none}
}

// readSpecials overrides the defaults in v.special by the file's keys. As in llama.cpp, an id out of range counts
// as not given: files in use have 2^32-1 for "none". Byte-level BPE has no defaults; llama.cpp takes Falcon's 11, which
// in other vocabularies is a comma.
func (v *Vocab) readSpecials(m *meta.Map) error {
	s := &v.special
	for _, k := range []struct {
		key string
		id  *ID
	}{
		{"bos_token_id", &s.bos}, {"eos_token_id", &s.eos}, {"eot_token_id", &s.eot}, {"eom_token_id", &s.eom},
		{"unknown_token_id", &s.unk}, {"seperator_token_id", &s.sep}, {"padding_token_id", &s.pad},
		{"mask_token_id", &s.mask},
		{"fim_pre_token_id", &s.fimPrefix}, {"fim_suf_token_id", &s.fimSuffix}, {"fim_mid_token_id", &s.fimMiddle},
		{"fim_pad_token_id", &s.fimPad}, {"fim_rep_token_id", &s.fimRepo}, {"fim_sep_token_id", &s.fimFile},
		{"prefix_token_id", &s.fimPrefix}, {"suffix_token_id", &s.fimSuffix}, {"middle_token_id", &s.fimMiddle},
	} {
		if !v.has(*k.id) {
			*k.id = none
		}
		id, err := m.Int(prefix + k.key)
		if errors.Is(err, meta.ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		if id >= 0 && id < int64(len(v.text)) {
			*k.id = ID(id)
		}
	}
	return nil
}

// findSpecials completes the roles by the tokens' texts, and makes those tokens control tokens: many files leave
// both out. The lists are llama.cpp's. It takes whichever of a list its hash table has first; here the list's order
// decides.
func (v *Vocab) findSpecials() {
	s := &v.special
	for _, role := range []struct {
		id    *ID
		texts []string
	}{
		{&s.eot, []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
			"<EOT>", "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}},
		{&s.eom, []string{"<|eom_id|>"}},
		{&s.fimPrefix, gapTexts()[0]}, {&s.fimSuffix, gapTexts()[1]}, {&s.fimMiddle, gapTexts()[2]},
		{&s.fimPad, []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
		{&s.fimRepo, []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
		{&s.fimFile, []string{"<|file_sep|>"}},
	} {
		for _, text := range role.texts {
			if id, ok := v.lookup[text]; ok && *role.id == none {
				*role.id = id
				v.attr[id] |= control
			}
		}
	}
	for id, a := range v.attr {
		if a&control != 0 && strings.Contains(v.text[id], "unused") {
			v.attr[id] |= unused
		}
	}
}

// gapTexts are the texts of the tokens that mark a gap: before what precedes it, before what follows, and after both.
func gapTexts() [3][]string {
	return [3][]string{
		{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"},
		{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"},
		{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"},
	}
}

// MarksGaps reports what FillsIn would of the vocabulary in a model file's metadata, without reading all of it.
func MarksGaps(m *meta.Map) (bool, error) {
	tokens, err := m.Strings(prefix + "tokens")
	if err != nil {
		return false, err
	}
	for i, keys := range [][]string{{"fim_pre", "prefix"}, {"fim_suf", "suffix"}, {"fim_mid", "middle"}} {
		named := slices.ContainsFunc(keys, func(key string) bool {
			id, err := m.Int(prefix + key + "_token_id")
			return err == nil && id >= 0 && id < int64(len(tokens))
		})
		texts := gapTexts()[i]
		if !named && !slices.ContainsFunc(tokens, func(token string) bool { return slices.Contains(texts, token) }) {
			return false, nil
		}
	}
	return true, nil
}

// findEOG collects the tokens that end generation: by role, and by text.
func (v *Vocab) findEOG() {
	s := &v.special
	ends := map[ID]bool{s.fimPad: true, s.fimRepo: true, s.fimFile: true}
	for _, text := range []string{
		"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
		"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
		"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
	} {
		if id, ok := v.lookup[text]; ok {
			ends[id] = true
			v.attr[id] |= control
		}
	}
	for _, text := range []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"} {
		if id, ok := v.lookup[text]; ok {
			v.attr[id] = userDefined | guarded
		}
	}
	ends[s.eos], ends[s.eot], ends[s.eom] = true, true, true
	v.spareEOG(ends)
	delete(ends, none)
	for id := range ends {
		v.eog = append(v.eog, id)
	}
	slices.Sort(v.eog)
}

// spareEOG removes tokens that only look like an end. In gpt-oss and Solar "<|end|>" ends a message and not the
// answer; in Gemma 4 and PaddleOCR "</s>" is text.
func (v *Vocab) spareEOG(ends map[ID]bool) {
	ending := func(text string) bool {
		id, ok := v.lookup[text]
		return ok && ends[id]
	}
	calls := ending("<|call|>") || ending("<|calls|>")
	if ending("<|end|>") && calls && (ending("<|return|>") || ending("<|flush|>")) {
		id := v.lookup["<|end|>"]
		delete(ends, id)
		v.attr[id] = userDefined | guarded
	}
	if ending("<|tool_response>") && ending("</s>") {
		id := v.lookup["</s>"]
		delete(ends, id)
		v.attr[id] = normal
	}
}

// findStrips marks the tokens that remove white space beside them. Files do not state it; llama.cpp decides by the
// names of models.
func (v *Vocab) findStrips(m *meta.Map) {
	pre, _ := m.String(prefix + "pre")
	arch, _ := m.String("general.architecture")
	name, _ := m.String("general.name")
	name = strings.ToLower(name)
	set := func(text string, a attr, on bool) {
		if id, ok := v.lookup[text]; ok && on {
			v.attr[id] |= a
		} else if ok {
			v.attr[id] &^= a
		}
	}
	switch {
	case containsAny(pre, "jina-v2-de", "jina-v2-es", "jina-v2-code"), containsAny(arch, "nomic-bert-moe", "jina-bert-v3"):
		set("<mask>", leftStrip, true)
	case containsAny(name, "phi-3", "phi3"):
		for id, a := range v.attr {
			if a&(control|userDefined|unknown) != 0 {
				v.attr[id] |= rightStrip
			}
		}
		set("</s>", rightStrip, true)
		for _, text := range []string{"<unk>", "<s>", "<|endoftext|>"} {
			set(text, rightStrip, false)
		}
	case containsAny(name, "modern-bert"):
		set("[MASK]", leftStrip, true)
	}
	v.swallows = slices.ContainsFunc(v.attr, func(a attr) bool { return a&(leftStrip|rightStrip) != 0 })
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}
