package reply

import (
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/stop"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Part says what the next bytes of a text are.
type Part struct {
	Kind tools.Kind
	Call int    // of a call, or its arguments: the call's number in the answer, from 0
	Name string // where a call begins: of the function
	ID   string // where a call begins: if the model writes one
	Len  int    // bytes of the text; a call's beginning has none
}

// Reader turns the tokens of an answer into its parts: bytes, what they mean, and whether a stop string ends them.
// Stop strings are looked for in what a person sees, text or thought; a call never stops an answer.
type Reader struct {
	Vocab  *token.Vocab
	Marks  map[int32]bool // control tokens that the syntax of the model's calls mentions
	Detok  *token.Stream
	Parser *tools.Parser // nil: all is text
	Forced bool          // the answer must consist of calls
	Stops  *stop.Matcher

	Text  []byte // of the last token, valid until the next
	Parts []Part // likewise; none where there is no Parser

	within tools.Kind // kind of the part that bytes held back by Stops belong to
}

// Push reads a token, which may be the answer's last one, and says whether a stop string is complete with it.
func (r *Reader) Push(id int32, end batch.End) (stopped bool) {
	r.Text, r.Parts = r.Text[:0], r.Parts[:0]
	if end != batch.EndToken {
		stopped = r.take(r.piece(id))
	}
	if end == batch.NotEnded || stopped {
		return stopped
	}
	if r.take(r.Detok.Flush()) || r.Parser != nil && r.follow(r.rest(end)) {
		return true
	}
	r.settle()
	return false
}

// rest is what the parser still has when the answer ends.
func (r *Reader) rest(end batch.End) []tools.Part {
	if end == batch.EndLength {
		return r.Parser.Cut(r.Forced)
	}
	return r.Parser.End()
}

func (r *Reader) piece(id int32) []byte {
	text := r.Detok.Push(id)
	if r.Parser != nil && r.Marks[id] {
		text = append(text, r.Vocab.Piece(id)...)
	}
	return text
}

func (r *Reader) take(text []byte) (stopped bool) {
	if r.Parser != nil {
		return r.follow(r.Parser.Push(text))
	}
	text, stopped = r.Stops.Push(text)
	r.Text = append(r.Text, text...)
	return stopped
}

func (r *Reader) follow(parts []tools.Part) (stopped bool) {
	for i := range parts {
		p := &parts[i]
		if p.Kind != r.within {
			r.settle()
			r.within = p.Kind
		}
		text := p.Text
		if p.Kind == tools.Text || p.Kind == tools.Thought {
			text, stopped = r.Stops.Push(text)
		}
		if len(text) > 0 || p.Kind == tools.Call {
			r.add(Part{Kind: p.Kind, Call: p.Index, Name: p.Name, ID: p.ID}, text)
		}
		if stopped {
			return true
		}
	}
	return false
}

// settle hands on what was held back as the possible beginning of a stop string.
func (r *Reader) settle() {
	held := r.Stops.Flush()
	switch {
	case len(held) == 0:
	case r.Parser == nil:
		r.Text = append(r.Text, held...)
	default:
		r.add(Part{Kind: r.within}, held)
	}
}

func (r *Reader) add(p Part, text []byte) {
	p.Len = len(text)
	r.Text, r.Parts = append(r.Text, text...), append(r.Parts, p)
}
