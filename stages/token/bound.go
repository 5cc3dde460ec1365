package token

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxWord bounds the bytes that are merged as one word, which takes some 50 bytes of memory each. Words of natural
// text are shorter; a longer word is cut in two without a change of the result if no token crosses the cut.
const maxWord = 512 << 10

// keptScratch bounds the working memory that is kept between calls, in bytes.
const keptScratch = 4 << 20

// askEvery is the number of bytes between two calls of Options.Stop.
const askEvery = 64 << 10

// ErrStopped is returned when Options.Stop asked for it.
var ErrStopped = errors.New("encoding was stopped")

// TooLong is the error for a text that has more tokens than Options.Most. It is found without encoding the text.
type TooLong struct {
	Bytes int // of the text
	Least int // tokens that it has at least; what lies behind them was not looked at
}

func (e *TooLong) Error() string {
	return fmt.Sprintf("a text of %d bytes has more than %d tokens", e.Bytes, e.Least-1)
}

// WordTooLong is the error for a word that cannot be merged in bounded memory.
type WordTooLong struct{ Bytes int }

func (e *WordTooLong) Error() string {
	return fmt.Sprintf("a word of %d bytes, without a space or anything else that parts words: at most %d can be encoded", e.Bytes, maxWord)
}

// fits fails with a TooLong if a text must have more than most tokens. At each position it takes the longest token,
// as if every position before could be reached as well, so its count is a lower bound for any way to cut the text. It
// stops where the bound exceeds most.
func (v *Vocab) fits(text string, most int, stop func() bool) error {
	if most <= 0 || len(text) <= most || v.swallows || !utf8.ValidString(text) {
		return nil // or it is not the vocabulary's pieces that cover it
	}
	leaves := func(byte) bool { return false }
	switch kind := v.kind.(type) {
	case *spm:
	case *bpe:
		leaves = kind.leaves
	default:
		return nil // they normalise text first
	}
	pieces := v.whole()
	count, end, far := 0, 0, 0 // with count tokens end can be reached, with one more far
	for i := range len(text) {
		if i%askEvery == askEvery-1 && stop != nil && stop() {
			return ErrStopped
		}
		n := pieces.reach(text[i:])
		if n == 0 || leaves(text[i]) {
			end = max(end, i+1)
			continue
		}
		far = max(far, i+n)
		if i == end {
			count, end = count+1, far
			if count > most {
				return &TooLong{len(text), count}
			}
		}
	}
	return nil
}

// leaves reports whether a byte without a token of its own is left out.
func (b *bpe) leaves(x byte) bool {
	if b.chars {
		return b.fallback[x] == none
	}
	return b.bytes[x] == none
}

// whole returns a trie of all tokens by their bytes. It is built at the first use, since few texts are long enough.
func (v *Vocab) whole() *trie {
	v.pieceOnce.Do(func() {
		keys := make([]trieKey, 0, len(v.text))
		for id := range v.text {
			if piece := v.pieces.at(ID(id)); len(piece) > 0 {
				keys = append(keys, trieKey{string(piece), ID(id)})
			}
		}
		v.pieceTrie = newTrie(keys)
	})
	return &v.pieceTrie
}

// reach returns the length of the longest key at the beginning of text.
func (t *trie) reach(text string) (longest int) {
	for node, i := int32(0), 0; i < len(text); {
		if node = t.step(node, text[i]); node < 0 {
			break
		}
		i++
		if t.nodes[node].id != none {
			longest = i
		}
	}
	return longest
}

// admits returns the error of a stretch of text that cannot be merged as one word: it is too long, or Stop ends the
// call. asked is the position of the last call of Stop.
func (s *scratch) admits(from, end int, asked *int) error {
	if end-from > maxWord {
		return &WordTooLong{end - from}
	}
	if end-*asked > askEvery {
		if *asked = end; s.stopped() {
			return ErrStopped
		}
	}
	return nil
}

// large reports whether the working memory is too large to be kept.
func (s *scratch) large() bool {
	const symbolBytes, pairBytes, intBytes, fragmentBytes, choiceBytes = 20, 20, 8, 24, 16
	return cap(s.chain.symbols)*symbolBytes+cap(s.chain.pairs)*pairBytes+(cap(s.cuts[0])+cap(s.cuts[1]))*intBytes+
		(cap(s.parts[0])+cap(s.parts[1]))*fragmentBytes+cap(s.best)*choiceBytes+cap(s.buf)+cap(s.marked) > keptScratch
}
