package token

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxWord is the most bytes that are merged as one word: merging takes some 50 bytes of memory for each. Text of
// people has shorter ones, and where no token reaches across, longer ones are cut in two without a change.
const maxWord = 512 << 10

// keptScratch is the most working memory that is kept from one call to the next, in bytes.
const keptScratch = 4 << 20

// askEvery is how many bytes may pass between two questions whether to go on.
const askEvery = 64 << 10

// ErrStopped is returned where Options.Stop said so.
var ErrStopped = errors.New("encoding was stopped")

// TooLong is the error of a text that has more tokens than Options.Most. It is found without encoding the text.
type TooLong struct {
	Bytes int // of the text
	Least int // tokens that it has at least; what lies behind them was not looked at
}

func (e *TooLong) Error() string {
	return fmt.Sprintf("a text of %d bytes has more than %d tokens", e.Bytes, e.Least-1)
}

// WordTooLong is the error of a word that cannot be merged in bounded memory.
type WordTooLong struct{ Bytes int }

func (e *WordTooLong) Error() string {
	return fmt.Sprintf("a word of %d bytes, without a space or anything else that parts words: at most %d can be encoded", e.Bytes, maxWord)
}

// fits checks that a text may have no more than most tokens: from each place the longest token is taken as if every
// place before it could be reached as well, so that no way to cut the text has fewer. The time is that of the text up
// to where most tokens cannot reach.
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

// leaves says that a byte may be left out: there is no token for it alone.
func (b *bpe) leaves(x byte) bool {
	if b.chars {
		return b.fallback[x] == none
	}
	return b.bytes[x] == none
}

// whole finds all tokens by their bytes. It is made when it is first needed: few texts are long enough.
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

// reach is the length of the longest key that text begins with.
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

// admits says why a stretch of text cannot be merged as one word: it is too long, or whoever waits has gone, which is
// asked from time to time; asked is where the last time was.
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

// large says that the working memory has grown beyond what is worth keeping.
func (s *scratch) large() bool {
	const symbolBytes, pairBytes, intBytes, fragmentBytes, choiceBytes = 20, 20, 8, 24, 16
	return cap(s.chain.symbols)*symbolBytes+cap(s.chain.pairs)*pairBytes+(cap(s.cuts[0])+cap(s.cuts[1]))*intBytes+
		(cap(s.parts[0])+cap(s.parts[1]))*fragmentBytes+cap(s.best)*choiceBytes+cap(s.buf)+cap(s.marked) > keptScratch
}
