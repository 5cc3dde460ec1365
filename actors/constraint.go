package actors

import (
	"fmt"

	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// form is what an answer is bound to be.
type form struct {
	of       *Form         // nil: anything
	grammar  *grammar.Form // what of is compiled to, in a constraint
	calls    bool          // there are calls in it: marks may be tokens of their own
	lazy     bool          // it counts from the beginning of a call
	headings bool          // it has the headings of messages in it
}

// constraint keeps the answer of a sequence in the language of its request's grammar, and its thoughts short. The
// sampler alone uses it, once it is made: it finds the tokens that may follow, for the next step already while the
// device computes that.
type constraint struct {
	vocab  *token.Vocab
	trie   *grammar.Trie
	prompt int                  // tokens before the answer
	begins func() *tools.Parser // reads the answer: what is thought is not bound
	form   form
	most   int // tokens of thoughts; 0: any number

	owner   int // incarnation of the sampler that uses what follows; -1: none has
	parser  *tools.Parser
	free    bool // the model thinks, or has not begun to call
	matcher *grammar.Matcher
	masker  *grammar.Masker
	mask    []uint64
	read    int     // tokens of the sequence that were read
	last    int32   // the last of them
	masked  int     // read, when mask was found; -1: it was not
	thought int     // tokens of thoughts among those that were read
	closing []int32 // what is left to write of the mark that ends them
}

// ready finds what the answer may begin with: some ten milliseconds for a large grammar.
func (c *constraint) ready() error {
	err := c.begin(-1)
	if err == nil {
		_, err = c.find()
	}
	return err
}

// trieOf makes the trie of a vocabulary. Control tokens are no text, and never part of an answer that has a form, but
// for marks of calls.
func trieOf(v *token.Vocab, marks map[int32]bool) *grammar.Trie {
	return grammar.NewTrie(v.Size(), func(id int32) []byte {
		if v.IsControl(id) && !marks[id] {
			return nil
		}
		return v.Piece(id)
	}, v.EOG())
}

// begin goes back to the beginning of the answer, with a program of its own: nothing is left of a sampler that died.
func (c *constraint) begin(owner int) error {
	c.mask = make([]uint64, (c.vocab.Size()+63)/64)
	c.parser = c.begins()
	c.owner, c.read, c.masked, c.thought, c.closing = owner, c.prompt, -1, 0, nil
	if c.form.grammar == nil {
		c.free = true
		return nil
	}
	p := c.form.grammar.Program()
	c.matcher, c.masker = p.Matcher(), p.Masker(c.trie)
	c.free = c.form.lazy || c.apart()
	return nil
}

// allowed returns the tokens that may follow those of the sequence; nil: all. The mask is the constraint's until it
// reads on.
func (c *constraint) allowed(tokens []int32, owner int) ([]uint64, error) {
	if c.owner < 0 {
		c.owner = owner
	}
	if again := c.read > len(tokens) || c.read > c.prompt && tokens[c.read-1] != c.last; c.owner != owner || again {
		if err := c.begin(owner); err != nil {
			return nil, err
		}
	}
	for _, id := range tokens[c.read:] {
		if err := c.push(id); err != nil {
			return nil, err
		}
	}
	return c.find()
}

// ahead reads the token that was just chosen, and finds what may follow it before anybody asks.
func (c *constraint) ahead(id int32) {
	if c.push(id) == nil {
		_, _ = c.find() // who asks hears of the error
	}
}

func (c *constraint) find() ([]uint64, error) {
	if c.free {
		return c.shorten()
	}
	if c.masked != c.read {
		if err := c.masker.Mask(c.matcher, c.mask); err != nil {
			return nil, err
		}
		c.masked = c.read
	}
	return c.mask, nil
}

func (c *constraint) push(id int32) error {
	c.read++
	c.last = id
	if c.vocab.IsEOG(id) {
		return nil
	}
	piece := c.vocab.Piece(id)
	if c.free {
		if c.ends() {
			c.closing = c.closing[1:]
		}
		if c.parser.Thinks() {
			c.thought++
		}
		if piece = c.open(piece); c.free {
			return nil
		}
	}
	n, err := c.matcher.Read(piece)
	if err == nil && n < len(piece) {
		err = fmt.Errorf("token %d is not of the grammar that the answer must have", id)
	}
	return err
}

// apart says that what the model writes is no part of what is bound.
func (c *constraint) apart() bool {
	if c.form.headings {
		return c.parser.Thinks()
	}
	return c.parser.Apart()
}

// shorten allows nothing but the mark that ends a thought that is as long as it may be, token by token.
func (c *constraint) shorten() ([]uint64, error) {
	if !c.ends() {
		return nil, nil
	}
	clear(c.mask)
	c.mask[c.closing[0]/64] = 1 << (c.closing[0] % 64)
	return c.mask, nil
}

// ends says whether a thought is as long as it may be: closing is not empty then.
func (c *constraint) ends() bool {
	if c.most == 0 || c.thought < c.most || !c.parser.Thinks() {
		return false
	}
	if len(c.closing) == 0 {
		var err error
		if c.closing, err = c.vocab.Encode(nil, c.parser.Closes(), token.Options{ParseSpecial: true}); err != nil {
			return false // a mark is no text that is too long
		}
	}
	return len(c.closing) > 0
}

// open reads on where the answer is free, and returns what of the text is bound, if it is not free any more.
func (c *constraint) open(text []byte) (bound []byte) {
	c.parser.Push(text)
	if c.form.grammar == nil {
		return nil
	}
	if !c.form.lazy {
		if c.free = c.apart(); c.free {
			return nil
		}
		return text[len(text)-c.parser.Behind():]
	}
	begun, ok := c.parser.Opened()
	if !ok {
		return nil
	}
	n, err := c.matcher.Read(begun)
	c.free = err != nil || n < len(begun)
	if c.free { // it began in another way than the form: no form can be kept
		c.matcher.Reset()
	}
	return nil
}
