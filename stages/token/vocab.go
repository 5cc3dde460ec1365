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

// none stands where a vocabulary lacks a special token.
const none ID = -1

// Vocab is one model's vocabulary with its rules. It does not change after New; any number of goroutines may use it.
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

// encoder is what differs between kinds of vocabulary: it appends the ids of text that holds no special token.
// fresh says that the text is at the start or follows a special token.
type encoder interface {
	encode(dst []ID, text string, fresh bool, s *scratch) ([]ID, error)
}

// Options choose what Encode does beyond plain text.
type Options struct {
	AddSpecial   bool // add BOS, EOS and SEP where the model's metadata asks for them
	ParseSpecial bool // recognise the texts of control tokens; never set it for text from strangers

	Most int         // tokens that there is room for: a text that must have more is refused, with TooLong; 0: any number
	Stop func() bool // asked from time to time; true ends it with ErrStopped
}

// New reads the vocabulary from a model file's metadata. An id out of range counts as not given.
func New(m *meta.Map) (*Vocab, error) {
	v, err := load(m)
	if err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	return v, nil
}

// Encode appends the ids of text to dst. Bytes that are not UTF-8 become U+FFFD, except where SentencePiece has tokens
// for bytes. As in llama.cpp, a byte that a byte-level vocabulary has no token for is left out. Its memory is a small
// multiple of the text that there is room for, and is let go where that is much.
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

// Pair is the second of two texts, as Encode makes them with special tokens, where the first stands before it: a text
// begins once, and in vocabularies with a separator that are not WordPiece (RoBERTa's) that comes between, too.
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

// has says whether id is in the vocabulary.
func (v *Vocab) has(id ID) bool { return id >= 0 && int(id) < len(v.text) }

// Piece returns the bytes that a token stands for; a control token stands for its text. Part of a character is
// possible. An id outside the vocabulary has none. The caller must not change the bytes.
func (v *Vocab) Piece(id ID) []byte {
	if !v.has(id) {
		return nil
	}
	return v.pieces.at(id)
}

// IsControl says that a token is not shown in text.
func (v *Vocab) IsControl(id ID) bool { return v.has(id) && v.attr[id]&(control|unknown) != 0 }

// IsEOG says that a token ends generation.
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

// Lookup finds a token by the text that the file spells it with.
func (v *Vocab) Lookup(text string) (ID, bool) {
	id, ok := v.lookup[text]
	return id, ok
}

// arena holds the bytes of all tokens behind each other: two words of overhead a token, and nothing to collect.
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
