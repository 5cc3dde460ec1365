package actors

import (
	"errors"
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
// session makes it; the sampler uses it while it has a step of the sequence, masks while the sequence sits steps out.
type constraint struct {
	vocab  *token.Vocab
	trie   *grammar.Trie
	prompt int                  // tokens before the answer
	begins func() *tools.Parser // reads the answer: what is thought is not bound
	form   form
	most   int // tokens of thoughts; 0: any number

	torn    bool // somebody is at it, or died of it
	parser  *tools.Parser
	free    bool // the model thinks, or has not begun to call
	program *grammar.Program
	matcher *grammar.Matcher
	masker  *grammar.Masker
	mask    []uint64
	found   bool     // may is what may follow what was read
	may     []uint64 // nil: anything
	read    int      // tokens of the sequence that were taken in
	last    int32    // the last of them
	unread  []byte   // what the matcher has to read of it yet
	opening bool     // that may not be what the form begins with
	thought int      // tokens of thoughts among those that were taken in
	closing []int32  // what is left to write of the mark that ends them
}

// grant is how many steps a grammar may take, and who may grant as many again; see grammar.Program.Grant.
type grant struct {
	steps int
	more  func() bool
}

// quick is how many steps grammars may take between two steps of the model: some 0.4 ms. Schemas take a hundredth of
// it.
const quick = 20_000

// ready prepares for the answer's next token: some ten milliseconds for a large grammar. What may follow is not found
// where that takes long.
func (c *constraint) ready(answer []int32) error {
	c.begin()
	if err := c.follow(answer, grant{steps: quick}); !errors.Is(err, grammar.ErrPaused) {
		return err
	}
	return nil
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

// begin goes back to the beginning of the answer, with a program of its own: nothing is left of what was torn.
func (c *constraint) begin() {
	c.mask = make([]uint64, (c.vocab.Size()+63)/64)
	c.parser = c.begins()
	c.torn, c.found, c.read, c.unread, c.opening, c.thought, c.closing = false, false, c.prompt, nil, false, 0, nil
	if c.form.grammar == nil {
		c.free = true
		return
	}
	c.program = c.form.grammar.Program()
	c.matcher, c.masker = c.program.Matcher(), c.program.Masker(c.trie)
	c.free = c.form.lazy || c.apart()
}

// follow takes the answer's tokens in and finds what may follow them. What has read other tokens, or is torn, begins
// anew. It ends with grammar.ErrPaused where that takes more than is granted, and goes on when it is called again.
func (c *constraint) follow(answer []int32, g grant) error {
	read := c.read - c.prompt
	if c.torn || read > len(answer) || read > 0 && answer[read-1] != c.last {
		c.begin()
	}
	c.grant(g)
	c.torn = true
	err := c.catchUp()
	for _, id := range answer[c.read-c.prompt:] {
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

// ahead takes in the token that was just chosen, and says whether what may follow it was found within a grant. Where it
// was not, whoever calls follow hears why. spent is what of the grant was used.
func (c *constraint) ahead(id int32, g grant) (spent int, found bool) {
	from := c.grant(g)
	c.torn = true
	c.take(id)
	if c.catchUp() == nil {
		_ = c.find()
	}
	c.torn = false
	return c.steps() - from, c.found
}

// grant returns the steps taken before.
func (c *constraint) grant(g grant) (before int) {
	if c.program != nil {
		c.program.Grant(g.steps, g.more)
	}
	return c.steps()
}

func (c *constraint) steps() int {
	if c.program == nil {
		return 0
	}
	return c.program.Steps()
}

// find finds what may follow what was read.
func (c *constraint) find() error {
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

// take takes a token in. What of it is bound is left for the matcher.
func (c *constraint) take(id int32) {
	c.read++
	c.last, c.found = id, false
	if c.vocab.IsEOG(id) {
		return
	}
	c.unread = c.vocab.Piece(id)
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

// catchUp has the matcher read what is bound of the last token. An answer that turns out to begin in another way than
// the form is free: no form can be kept.
func (c *constraint) catchUp() error {
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

// apart says that what the model writes is no part of what is bound.
func (c *constraint) apart() bool {
	if c.form.headings {
		return c.parser.Thinks()
	}
	return c.parser.Apart()
}

// shorten allows nothing but the mark that ends a thought that is as long as it may be, token by token.
func (c *constraint) shorten() []uint64 {
	if !c.ends() {
		return nil
	}
	clear(c.mask)
	c.mask[c.closing[0]/64] = 1 << (c.closing[0] % 64)
	return c.mask
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

// open reads on where the answer is free, and returns what of the text is bound, if it is not free any more, or may be.
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
	c.opening = true
	return begun
}
