package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
)

// PromptFiles lists what ClipVocabulary and T5Vocabulary read of a tokenizer's folder, if it is there.
func PromptFiles() []string {
	return []string{"vocab.json", "merges.txt", "spiece.model", "tokenizer.json", "tokenizer_config.json"}
}

// ClipVocabulary makes the keys of a vocabulary (tokenizer.ggml.model "clip") of the files of a folder with CLIP's
// tokenizer: vocab.json and merges.txt, or else tokenizer.json.
func ClipVocabulary(files map[string][]byte) (*meta.Map, error) {
	t, settings, err := promptTokenizer(files)
	if err != nil {
		return nil, err
	}
	var merges []string
	vocab := map[string]int{}
	if text := files["vocab.json"]; text != nil {
		if err := json.Unmarshal(text, &vocab); err != nil {
			return nil, fmt.Errorf("vocab.json: %w", err)
		}
		merges = mergeLines(files["merges.txt"])
	} else if files["tokenizer.json"] == nil {
		return nil, errors.New("has neither vocab.json nor tokenizer.json, of which CLIP's tokenizer needs one")
	} else if vocab, err = t.ids(); err == nil {
		merges, err = t.merges()
	}
	if err != nil {
		return nil, err
	}
	for _, a := range t.Added {
		vocab[a.Content] = a.ID
	}
	list := newTokens(len(vocab), false)
	for text, id := range vocab {
		list.set(id, text, 0, normal)
	}
	c := &converter{meta: new(meta.Map)}
	for _, end := range [][2]string{{"bos", "<|startoftext|>"}, {"eos", "<|endoftext|>"}} {
		text := tokenText(settings, end[0]+"_token")
		if text == "" {
			text = end[1]
		}
		id, ok := vocab[text]
		if !ok || id < 0 || id >= len(list.texts) {
			return nil, fmt.Errorf("no token %.40q, with a number below %d, as CLIP's texts begin or end with: is the folder's "+
				"vocab.json or tokenizer.json whole?", text, len(list.texts))
		}
		list.types[id] = control
		c.specialID(end[0], id)
	}
	c.tokens("clip", "default", list)
	c.meta.Set("tokenizer.ggml.merges", merges)
	return c.meta, settings.err()
}

// promptTokenizer reads what JSON says of a tokenizer.
func promptTokenizer(files map[string][]byte) (t tokenizer, settings object, err error) {
	c := &converter{folder: &Folder{Texts: files}}
	if t, err = c.tokenizer(); err != nil {
		return t, settings, err
	}
	settings, err = parseObject("tokenizer_config.json", files["tokenizer_config.json"])
	return t, settings, err
}

// mergeLines are the pairs of a merges.txt, whose first line may tell its version.
func mergeLines(text []byte) []string {
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	if strings.HasPrefix(lines[0], "#version") {
		lines = lines[1:]
	}
	return lines
}

// T5Vocabulary makes the keys of a vocabulary (tokenizer.ggml.model "t5") of the files of a folder with T5's tokenizer:
// spiece.model, or else tokenizer.json.
func T5Vocabulary(files map[string][]byte) (*meta.Map, error) {
	c := &converter{meta: new(meta.Map)}
	pieces := files["spiece.model"]
	if pieces != nil {
		if err := c.spiece(pieces); err != nil {
			return nil, fmt.Errorf("spiece.model: %w", err)
		}
		return c.meta, nil
	}
	t, _, err := promptTokenizer(files)
	if err != nil {
		return nil, err
	}
	var vocab []json.RawMessage
	if t.Model.Type != "Unigram" || json.Unmarshal(t.Model.Vocab, &vocab) != nil {
		return nil, fmt.Errorf("no spiece.model, and tokenizer.json has a model of type %.40q: want Unigram", t.Model.Type)
	}
	size := len(vocab)
	for _, a := range t.Added {
		if a.ID == size { // they follow one another
			size++
		}
	}
	return c.meta, c.unigram(&t, size)
}

// spiece writes the vocabulary of a SentencePiece model that finds the likeliest pieces, with how it changes text.
func (c *converter) spiece(data []byte) error {
	pieces, err := parsePieces(data)
	if err != nil {
		return err
	}
	list := newTokens(len(pieces), true)
	for id, p := range pieces {
		list.set(id, p.text, p.score, p.kind)
	}
	const unigram = 1
	kind, prefix, merged, charsmap := uint64(unigram), uint64(1), uint64(1), []byte(nil)
	err = fields(data, func(number int, spec []byte, _ uint64) error {
		switch number {
		case 2: // TrainerSpec
			return fields(spec, func(number int, _ []byte, n uint64) error {
				if number == 3 {
					kind = n
				}
				return nil
			})
		case 3: // NormalizerSpec
			return fields(spec, func(number int, value []byte, n uint64) error {
				switch number {
				case 2:
					charsmap = value
				case 3:
					prefix = n
				case 4:
					merged = n
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && kind != unigram {
		err = errors.New("is not of the kind that finds the likeliest pieces (unigram), which T5 wants")
	}
	c.tokens("t5", "default", list)
	c.meta.Set("tokenizer.ggml.add_space_prefix", prefix != 0)
	c.meta.Set("tokenizer.ggml.remove_extra_whitespaces", merged != 0)
	if charsmap != nil {
		c.meta.Set("tokenizer.ggml.precompiled_charsmap", charsmap)
	}
	return err
}
