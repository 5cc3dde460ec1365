package token

import (
	"errors"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/meta"
)

// unigram covers text by the tokens with the greatest sum of log-probabilities (Kudo 2018), after SentencePiece's
// normalisation.
type unigram struct {
	tokens      trie
	scores      []float32
	userDefined trie // never normalised
	chars       charsMap
	unk         ID
	unkScore    float64
	attr        []attr

	prefixSpace bool // a space goes before text
	mergeSpaces bool // runs of spaces become one, those at the ends go
}

// unkPenalty is the difference of the log-probabilities of the least likely token and an unknown character.
const unkPenalty = 10

// choice is the best way to reach a position in the text: its last token, and where that begins.
type choice struct {
	score float64
	id    ID
	from  int32
}

var errNoUnknown = errors.New(prefix + "unknown_token_id: names no token of the vocabulary, but this kind needs one")

func (u *unigram) encode(dst []ID, text string, _ bool, s *scratch) ([]ID, error) {
	clean, err := u.normalize(s.buf[:0], text)
	s.buf = clean
	if err != nil || len(clean) == 0 {
		return dst, err
	}
	best := slices.Grow(s.best[:0], len(clean)+1)[:len(clean)+1]
	s.best = best
	for i := range best {
		best[i] = choice{-math.MaxFloat64, u.unk, 0}
	}
	best[0].score = 0
	for i := 0; i < len(clean); {
		end := min(len(clean), i+utf8Len(clean[i]))
		if !u.extend(best, clean, i, end) {
			if x := best[i].score + u.unkScore; x > best[end].score {
				best[end] = choice{x, u.unk, int32(i)}
			}
		}
		i = end
	}
	return u.trace(dst, best), nil
}

// extend tries every token that begins at i, and reports whether one of them is exactly the character up to end.
func (u *unigram) extend(best []choice, clean []byte, i, end int) (whole bool) {
	for node, j := int32(0), i; j < len(clean); {
		if node = u.tokens.step(node, clean[j]); node < 0 {
			break
		}
		j++
		id := u.tokens.nodes[node].id
		if id == none {
			continue
		}
		whole = whole || j == end
		score := float64(u.scores[id])
		if u.attr[id]&userDefined != 0 {
			score = 0
		}
		if x := best[i].score + score; x > best[j].score {
			best[j] = choice{x, id, int32(i)}
		}
	}
	return whole
}

// trace appends the ids of the best way to the end; consecutive unknown characters become one token.
func (u *unigram) trace(dst []ID, best []choice) []ID {
	start := len(dst)
	for i := len(best) - 1; i > 0; i = int(best[i].from) {
		id := best[i].id
		if n := len(dst); id != u.unk || n == start || dst[n-1] != u.unk {
			dst = append(dst, id)
		}
	}
	slices.Reverse(dst[start:])
	return dst
}

// normalize appends text with its characters replaced and its spaces normalised, spelled as U+2581.
func (u *unigram) normalize(dst []byte, text string) ([]byte, error) {
	inWord, begun := false, false
	for i := 0; i < len(text); {
		part, n, err := u.next(text[i:])
		if err != nil {
			return dst, err
		}
		i += n
		for _, b := range []byte(part) {
			if b == ' ' {
				inWord = false
				if !u.mergeSpaces {
					dst = append(dst, wordStart...)
				}
				continue
			}
			if !inWord {
				inWord = true
				if u.prefixSpace && !begun || u.mergeSpaces {
					dst = append(dst, wordStart...)
					begun = true
				}
			}
			dst = append(dst, b)
		}
	}
	return dst, nil
}

// next returns the replacement of the beginning of text, and that beginning's length in bytes. A prefix of a
// user-defined token stays as it is, even if the token does not continue: llama.cpp matches it so.
func (u *unigram) next(text string) (part string, n int, err error) {
	for node := int32(0); n < len(text); n++ {
		if node = u.userDefined.step(node, text[n]); node < 0 {
			break
		}
	}
	if n > 0 {
		return text[:n], n, nil
	}
	if part, n, err = u.chars.longest(text); err != nil || n > 0 {
		return part, n, err
	}
	r, n := decode(text)
	if r == 0xFFFD && n == 1 {
		return "\uFFFD", 1, nil
	}
	return text[:n], n, nil
}

func (v *Vocab) planUnigram(m *meta.Map) (func() error, error) {
	scores, err := v.readScores(m)
	if err != nil {
		return nil, err
	}
	u := &unigram{scores: scores, attr: v.attr}
	if u.chars, err = readCharsMap(m); err != nil {
		return nil, err
	}
	if err := readFlag(m, "add_space_prefix", &u.prefixSpace); err != nil {
		return nil, err
	}
	if err := readFlag(m, "remove_extra_whitespaces", &u.mergeSpaces); err != nil {
		return nil, err
	}
	v.kind, v.spacePrefix = u, u.prefixSpace || u.mergeSpaces
	v.addEOS = true
	v.special.eos, v.special.unk, v.special.pad = 1, 2, 0
	return func() error { return v.buildUnigram(u) }, nil
}

func (v *Vocab) buildUnigram(u *unigram) error {
	if u.unk = v.special.unk; u.unk == none {
		return errNoUnknown
	}
	var tokens, userTokens []trieKey
	worst := float32(0)
	for id, a := range v.attr {
		if a&(control|unknown) != 0 {
			continue
		}
		key := trieKey{v.text[id], ID(id)}
		if a&(normal|userDefined|unused) != 0 {
			tokens = append(tokens, key)
		}
		if a&userDefined != 0 {
			userTokens = append(userTokens, key)
		}
		if a&normal != 0 {
			worst = min(worst, u.scores[id])
		}
	}
	u.tokens, u.userDefined = newTrie(tokens), newTrie(userTokens)
	u.unkScore = float64(worst) - unkPenalty
	return v.addSentencePieces()
}
