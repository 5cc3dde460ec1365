package speculate

// Source guesses the tokens that follow.
type Source interface {
	// Guess appends to out at most n tokens that may follow a text, and says how sure it is of them. Each text is
	// the last one that it was given, or goes on from it. It keeps neither slice.
	Guess(text []int32, n int, out []int32) ([]int32, Trust)
}

// Trust is how sure a source is of a guess. How often guesses of each level are right is learned.
type Trust uint8

const (
	Scant   Trust = iota // no more tokens match than may do so by chance
	Some                 // a few words
	Much                 // a line
	Told                 // by the client
	Drafted              // by a draft model
	trusts  = iota
)

// trust is the level of a guess for which so many tokens before it match.
func trust(tokens int) Trust {
	switch {
	case tokens < 4:
		return Scant
	case tokens < 12:
		return Some
	}
	return Much
}

// NGram finds an earlier place in the text that has the text's last tokens, and guesses what followed there. Of
// several places it takes the one where most tokens match; of these, the latest.
type NGram struct{ index index }

// NewNGram makes an NGram for a text that begins so, and is expected to have so many tokens.
func NewNGram(text []int32, tokens int) *NGram {
	g := &NGram{newIndex(tokens)}
	g.index.add(text, len(text)-1)
	return g
}

func (g *NGram) Guess(text []int32, n int, out []int32) ([]int32, Trust) {
	g.index.add(text, len(text)-1) // nothing follows the last token
	place, tokens := g.index.find(text, text)
	if tokens == 0 {
		return out, Scant
	}
	begin := len(out)
	for i := range n {
		if at := place + 1 + i; at < len(text) {
			out = append(out, text[at])
		} else { // what repeats itself goes on so
			out = append(out, out[begin+at-len(text)])
		}
	}
	return out, trust(tokens)
}

// Predicted guesses from a text that the client expects as the answer: the answer begins as it does, and goes on as
// it does where it has the answer's last tokens. Where it has not, another source guesses.
type Predicted struct {
	text   []int32
	index  index
	prompt int // tokens of the prompt
	read   int // tokens of prompt and answer
	next   int // index in text of the token that follows; -1: the answer has left it
	agreed int // tokens before next that match the answer's last ones
	other  Source
}

// NewPredicted makes a Predicted for an answer to a prompt of so many tokens. other may be nil.
func NewPredicted(text []int32, prompt int, other Source) *Predicted {
	p := &Predicted{text: text, index: newIndex(len(text)), prompt: prompt, other: other}
	p.begin()
	p.index.add(text, len(text)-1)
	return p
}

func (p *Predicted) Guess(text []int32, n int, out []int32) ([]int32, Trust) {
	p.follow(text)
	if p.next >= 0 {
		out = append(out, p.text[p.next:min(p.next+n, len(p.text))]...)
		if t := trust(p.agreed); t != Much {
			return out, t
		}
		return out, Told
	}
	if p.other != nil {
		return p.other.Guess(text, n, out)
	}
	return out, Scant
}

// begin expects the answer to begin as the prediction does.
func (p *Predicted) begin() { p.read, p.next, p.agreed = p.prompt, 0, longest }

// follow finds where in the prediction the answer is.
func (p *Predicted) follow(text []int32) {
	if len(text) < p.read { // another one
		p.begin()
	}
	for ; p.read < len(text); p.read++ {
		if p.next >= 0 && p.text[p.next] == text[p.read] {
			p.next, p.agreed = p.next+1, p.agreed+1
		} else {
			p.next = -1
		}
		if p.next == len(p.text) {
			p.next = -1
		}
	}
	if len(p.text) == 0 {
		p.next = -1
	}
	if p.next < 0 && len(text) > p.prompt {
		if place, tokens := p.index.find(p.text, text[p.prompt:]); tokens > 0 {
			p.next, p.agreed = place+1, tokens
		}
	}
}
