package token

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/internal/meta"
)

// ID is a token's index in its vocabulary.
type ID = int32

// none stands for a special token that a vocabulary lacks.
const none ID = -1

// Vocab is a model's vocabulary with its rules. It does not change after New and is safe for concurrent use.
// Wide: each is a rule of a vocabulary, or a table.
type Vocab struct {
	text    []string // as the file spells it: byte-level tokens in their printable alphabet
	attr    []attr
	lookup  map[string]ID // text to id
	pieces  arena         // what each token stands for
	special specialIDs
	eog     []ID // ascending

	addBOS, addEOS, addSEP bool // addSEP: WordPiece only, as in llama.cpp
	pairSEP                bool // SEP stands between two texts, besides what ends the first
	spacePrefix            bool // text is encoded with a space before it, which decoding takes away

	kind   encoder
	plain  cutter // tokens cut out of any text
	parsed cutter // tokens cut out where special tokens are parsed
	pool   sync.Pool

	swallows  bool // some token takes white space beside it along
	pieceOnce sync.Once
	pieceTrie trie // all tokens by their bytes
}

// encoder is the part of Encode that depends on the kind of vocabulary: it appends the ids of text without special
// tokens. fresh reports that the text is at the start or follows a special token.
type encoder interface {
	encode(dst []ID, text string, fresh bool, s *scratch) ([]ID, error)
}

// Options control what Encode does beyond plain text.
type Options struct {
	AddSpecial   bool // add BOS, EOS and SEP where the model's metadata asks for them
	ParseSpecial bool // recognise the texts of control tokens; never set it for text from strangers

	Most int         // tokens that there is room for: a text that must have more is refused, with TooLong; 0: any number
	Stop func() bool // asked from time to time; true ends it with ErrStopped
}

// New reads the vocabulary from a model file's metadata. A special token's id out of range counts as absent. It fails
// if a key is missing, of a wrong type or contradictory.
func New(m *meta.Map) (*Vocab, error) {
	v, err := load(m)
	if err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	return v, nil
}

// Encode appends the ids of text to dst. Bytes that are not UTF-8 become U+FFFD, except where SentencePiece has
// tokens for bytes. As in llama.cpp, a byte without a token of a byte-level vocabulary is left out. Working memory is
// a small multiple of the text's size, and is released if it is large. It fails with ErrStopped, a TooLong or a
// WordTooLong, or if the text has more than 512 MiB.
func (v *Vocab) Encode(dst []ID, text string, o Options) ([]ID, error) {
	if len(text) > math.MaxInt32/4 {
		return dst, fmt.Errorf("text has %d bytes, at most %d can be encoded: split it", len(text), math.MaxInt32/4)
	}
	if err := v.fits(text, o.Most, o.Stop); err != nil {
		return dst, err
	}
	if o.AddSpecial && v.addBOS {
		dst = append(dst, v.special.bos)
	}
	s := v.pool.Get().(*scratch)
	s.stop = o.Stop
	defer func() {
		if s.stop = nil; !s.large() {
			v.pool.Put(s)
		}
	}()
	cut := &v.plain
	if o.ParseSpecial {
		cut = &v.parsed
	}
	fresh := true
	var err error
	for _, f := range cut.fragments(text, s) {
		if s.stopped() {
			return dst, ErrStopped
		}
		if f.id != none {
			dst, fresh = append(dst, f.id), true
			continue
		}
		if dst, err = v.kind.encode(dst, text[f.start:f.end], fresh, s); err != nil {
			return dst, err
		}
		fresh = false
	}
	if o.AddSpecial && v.addEOS {
		dst = append(dst, v.special.eos)
	}
	if o.AddSpecial && v.addSEP {
		dst = append(dst, v.special.sep)
	}
	return dst, nil
}

// Pair returns the second of two texts, encoded with special tokens, as it follows the first: without the token that
// begins a text, and in vocabularies with a separator that are not WordPiece (RoBERTa's) with the separator instead.
func (v *Vocab) Pair(second []ID) []ID {
	if v.addBOS && len(second) > 1 && second[0] == v.special.bos {
		second = second[1:]
	}
	if v.pairSEP {
		second = append([]ID{v.special.sep}, second...)
	}
	return second
}

// Size returns the number of tokens.
func (v *Vocab) Size() int { return len(v.text) }

// has reports whether id is in the vocabulary.
func (v *Vocab) has(id ID) bool { return id >= 0 && int(id) < len(v.text) }

// Piece returns the bytes of a token, which may be part of a character; for a control token its text. An id outside
// the vocabulary has no bytes. The caller must not change them.
func (v *Vocab) Piece(id ID) []byte {
	if !v.has(id) {
		return nil
	}
	return v.pieces.at(id)
}

// IsControl reports whether a token is not shown in text.
func (v *Vocab) IsControl(id ID) bool { return v.has(id) && v.attr[id]&(control|unknown) != 0 }

// IsEOG reports whether a token ends generation.
func (v *Vocab) IsEOG(id ID) bool {
	_, ok := slices.BinarySearch(v.eog, id)
	return ok
}

// EOG lists the tokens that end generation, ascending. The caller must not change the slice.
func (v *Vocab) EOG() []ID { return v.eog }

// BOS returns the token that begins a sequence, if there is one.
func (v *Vocab) BOS() (ID, bool) { return v.special.bos, v.special.bos != none }

// EOS returns the token that ends a sequence, if there is one.
func (v *Vocab) EOS() (ID, bool) { return v.special.eos, v.special.eos != none }

// BOSText returns the text of BOS as chat templates spell it, or "".
func (v *Vocab) BOSText() string { return v.spelling(v.special.bos) }

// EOSText returns the text of EOS as chat templates spell it, or "".
func (v *Vocab) EOSText() string { return v.spelling(v.special.eos) }

func (v *Vocab) spelling(id ID) string {
	if !v.has(id) {
		return ""
	}
	return v.text[id]
}

// Lookup returns the token with a text, in the file's spelling, and whether there is one.
func (v *Vocab) Lookup(text string) (ID, bool) {
	id, ok := v.lookup[text]
	return id, ok
}

// arena holds the bytes of all tokens contiguously: an overhead of two words a token, and no pointers for the garbage
// collector.
type arena struct {
	bytes []byte
	ends  []uint32 // ends[i] is where token i ends
}

func (a *arena) at(id ID) []byte {
	start := uint32(0)
	if id > 0 {
		start = a.ends[id-1]
	}
	return a.bytes[start:a.ends[id]:a.ends[id]]
}

func (a *arena) add(piece []byte) {
	a.bytes = append(a.bytes, piece...)
	a.ends = append(a.ends, uint32(len(a.bytes)))
}

// scratch is the working memory of one Encode, kept between calls.
type scratch struct {
	cuts   [2][]int      // ends of words, before and after a rule
	parts  [2][]fragment // text and special tokens, before and after a length
	chain  chain
	buf    []byte
	best   []choice
	marked []bool
	stop   func() bool // Options.Stop
}

func (s *scratch) stopped() bool { return s.stop != nil && s.stop() }
