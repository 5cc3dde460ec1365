package constrain

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Bound is the form that an answer must have, and where in the answer it applies.
type Bound struct {
	Of       *Form         // nil: anything
	Grammar  *grammar.Form // what Of is compiled to; set in the Bound of a Constraint
	Calls    bool          // there are calls in it: marks may be tokens of their own
	Lazy     bool          // the form applies only from the beginning of a call on
	Headings bool          // the form includes the headings of messages
}

// Answer is what a Constraint has to know of the answer that it binds.
type Answer struct {
	Bound  Bound
	Vocab  *token.Vocab
	Trie   *grammar.Trie        // of the vocabulary; nil where Bound has no grammar
	Prompt int                  // tokens before the answer
	Begins func() *tools.Parser // makes a parser of the answer: the form does not apply to thoughts
	Most   int                  // tokens of thoughts; 0: any number
}

// Constraint keeps the answer of a sequence in the language of its request's grammar, and its thoughts short. One
// goroutine at a time may use it.
// Wide: the answer, its thoughts and the mark between them are read in one pass.
type Constraint struct {
	of Answer

	torn    bool // a call is under way, or was cut short by a panic
	parser  *tools.Parser
	free    bool // the model thinks, or has not begun to call
	program *grammar.Program
	matcher *grammar.Matcher
	masker  *grammar.Masker
	mask    []uint64
	found   bool     // may is up to date
	may     []uint64 // tokens that may follow what was read; nil: any
	read    int      // tokens of the sequence that were taken in
	last    int32    // the last of them
	unread  []byte   // what of the last token the matcher has yet to read
	opening bool     // unread may turn out not to begin the form
	thought int      // tokens of thoughts among those that were taken in
	closing []int32  // tokens that are left to write of the mark that ends the thought
}

// New returns the constraint of an answer; Ready or Follow begins it.
func New(a Answer) *Constraint { return &Constraint{of: a} }

// Found says whether May is up to date.
func (c *Constraint) Found() bool { return c.found }

// May returns the tokens that may come next, as bits by id; nil: any may.
func (c *Constraint) May() []uint64 { return c.may }

// In returns err as a fault of the request's field that the form comes from.
func (c *Constraint) In(err error) error {
	if c.of.Bound.Of == nil {
		return err
	}
	return refusal.In(c.of.Bound.Of.Field, err)
}

// Grant is how many steps a grammar may take, and a function that may grant as many again; see
// grammar.Program.Grant.
type Grant struct {
	Steps int
	More  func() bool
}

// Quick is how many steps grammars may take between two steps of the model: some 0.4 ms. Schemas take a hundredth of
// it.
const Quick = 20_000

// Ready prepares for the answer's next token, which takes some ten milliseconds for a large grammar. If it takes
// more steps than Quick to find the tokens that may follow, they are left for Follow.
func (c *Constraint) Ready(answer []int32) error {
	c.begin()
	if err := c.Follow(answer, Grant{Steps: Quick}); !errors.Is(err, grammar.ErrPaused) {
		return err
	}
	return nil
}

// Trie makes the trie of a vocabulary. Control tokens are no text, and never part of an answer that has a form, but
// for marks of calls.
func Trie(v *token.Vocab, marks map[int32]bool) *grammar.Trie {
	return grammar.NewTrie(v.Size(), func(id int32) []byte {
		if v.IsControl(id) && !marks[id] {
			return nil
		}
		return v.Piece(id)
	}, v.EOG())
}

// begin goes back to the beginning of the answer, with a new program, so that a panic in the middle of a call leaves
// nothing behind.
func (c *Constraint) begin() {
	c.mask = make([]uint64, (c.of.Vocab.Size()+63)/64)
	c.parser = c.of.Begins()
	c.torn, c.found, c.read, c.unread, c.opening, c.thought, c.closing = false, false, c.of.Prompt, nil, false, 0, nil
	if c.of.Bound.Grammar == nil {
		c.free = true
		return
	}
	c.program = c.of.Bound.Grammar.Program()
	c.matcher, c.masker = c.program.Matcher(), c.program.Masker(c.of.Trie)
	c.free = c.of.Bound.Lazy || c.apart()
}

// Follow reads the answer's tokens and finds what may follow them. If it has read other tokens before, or was torn,
// it begins anew. It returns grammar.ErrPaused if that takes more steps than granted, and goes on when it is called
// again.
func (c *Constraint) Follow(answer []int32, g Grant) error {
	read := c.read - c.of.Prompt
	if c.torn || read > len(answer) || read > 0 && answer[read-1] != c.last {
		c.begin()
	}
	c.grant(g)
	c.torn = true
	err := c.catchUp()
	for _, id := range answer[c.read-c.of.Prompt:] {
		if err != nil {
			break
		}
		c.take(id)
		err = c.catchUp()
	}
	if err == nil {
		err = c.find()
	}
	c.torn = false
	return err
}

// Ahead reads the token that was just chosen, and says whether what may follow it was found within a grant. If not,
// Follow will return the reason. spent is the number of steps that were taken.
func (c *Constraint) Ahead(id int32, g Grant) (spent int, found bool) {
	from := c.grant(g)
	c.torn = true
	c.take(id)
	if c.catchUp() == nil {
		_ = c.find()
	}
	c.torn = false
	return c.Steps() - from, c.found
}

// grant grants steps, and returns how many were taken before.
func (c *Constraint) grant(g Grant) (before int) {
	if c.program != nil {
		c.program.Grant(g.Steps, g.More)
	}
	return c.Steps()
}

// Steps is how many steps the constraint's grammar has taken.
func (c *Constraint) Steps() int {
	if c.program == nil {
		return 0
	}
	return c.program.Steps()
}

// find finds what may follow what was read.
func (c *Constraint) find() error {
	switch {
	case c.found:
		return nil
	case c.free:
		c.may = c.shorten()
	default:
		if err := c.masker.Mask(c.matcher, c.mask); err != nil {
			return err
		}
		c.may = c.mask
	}
	c.found = true
	return nil
}

// take reads a token. What of it the form applies to is left for the matcher, in unread.
func (c *Constraint) take(id int32) {
	c.read++
	c.last, c.found = id, false
	if c.of.Vocab.IsEOG(id) {
		return
	}
	c.unread = c.of.Vocab.Piece(id)
	if c.free {
		if c.ends() {
			c.closing = c.closing[1:]
		}
		if c.parser.Thinks() {
			c.thought++
		}
		c.unread = c.open(c.unread)
	}
}

// catchUp has the matcher read what is left of the last token. An answer that turns out not to begin as the form
// does is free: the form does not apply.
func (c *Constraint) catchUp() error {
	if len(c.unread) == 0 {
		return nil
	}
	n, err := c.matcher.Read(c.unread)
	c.unread = c.unread[n:]
	switch {
	case err != nil:
		return err
	case !c.opening && len(c.unread) > 0:
		return fmt.Errorf("token %d is not of the grammar that the answer must have", c.last)
	case len(c.unread) > 0:
		c.matcher.Reset()
	default:
		c.free = false
	}
	c.unread, c.opening = nil, false
	return nil
}

// apart says whether the form does not apply to what the model writes next.
func (c *Constraint) apart() bool {
	if c.of.Bound.Headings {
		return c.parser.Thinks()
	}
	return c.parser.Apart()
}

// shorten allows nothing but the mark that ends a thought that is as long as it may be, token by token.
func (c *Constraint) shorten() []uint64 {
	if !c.ends() {
		return nil
	}
	clear(c.mask)
	c.mask[c.closing[0]/64] = 1 << (c.closing[0] % 64)
	return c.mask
}

// ends says whether the thought is as long as it may be; then closing is not empty.
func (c *Constraint) ends() bool {
	if c.of.Most == 0 || c.thought < c.of.Most || !c.parser.Thinks() {
		return false
	}
	if len(c.closing) == 0 {
		var err error
		if c.closing, err = c.of.Vocab.Encode(nil, c.parser.Closes(), token.Options{ParseSpecial: true}); err != nil {
			return false // a mark is no text that is too long
		}
	}
	return len(c.closing) > 0
}

// open reads text where the answer is free, and returns the end of it to which the form applies, or may turn out to
// apply.
func (c *Constraint) open(text []byte) (bound []byte) {
	c.parser.Push(text)
	if c.of.Bound.Grammar == nil {
		return nil
	}
	if !c.of.Bound.Lazy {
		if c.free = c.apart(); c.free {
			return nil
		}
		return text[len(text)-c.parser.Behind():]
	}
	begun, ok := c.parser.Opened()
	if !ok {
		return nil
	}
	c.opening = true
	return begun
}
