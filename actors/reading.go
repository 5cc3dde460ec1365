package actors

import (
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/stop"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// reading turns the tokens of an answer into its parts: bytes, what they mean, and whether a stop string ends them.
// Stop strings are looked for in what a reader sees, text or thought; what belongs to a call never stops an answer.
type reading struct {
	vocab  *token.Vocab
	marks  map[int32]bool // control tokens that the syntax of the model's calls mentions
	detok  *token.Stream
	parser *tools.Parser // nil: all is text
	forced bool          // nothing but calls is to come
	stops  *stop.Matcher
	within tools.Kind // of the text that stops watches

	text  []byte // of the token at hand
	parts []Part
}

// push reads a token, which may be the answer's last one, and says whether a stop string is complete with it.
func (r *reading) push(id int32, end batch.End) (stopped bool) {
	r.text, r.parts = r.text[:0], r.parts[:0]
	if end != batch.EndToken {
		stopped = r.take(r.piece(id))
	}
	if end == batch.NotEnded || stopped {
		return stopped
	}
	if r.take(r.detok.Flush()) || r.parser != nil && r.follow(r.rest(end)) {
		return true
	}
	r.settle()
	return false
}

// rest is what the parser still has when the answer ends.
func (r *reading) rest(end batch.End) []tools.Part {
	if end == batch.EndLength {
		return r.parser.Cut(r.forced)
	}
	return r.parser.End()
}

func (r *reading) piece(id int32) []byte {
	text := r.detok.Push(id)
	if r.parser != nil && r.marks[id] {
		text = append(text, r.vocab.Piece(id)...)
	}
	return text
}

func (r *reading) take(text []byte) (stopped bool) {
	if r.parser != nil {
		return r.follow(r.parser.Push(text))
	}
	text, stopped = r.stops.Push(text)
	r.text = append(r.text, text...)
	return stopped
}

func (r *reading) follow(parts []tools.Part) (stopped bool) {
	for i := range parts {
		p := &parts[i]
		if p.Kind != r.within {
			r.settle()
			r.within = p.Kind
		}
		text := p.Text
		if p.Kind == tools.Text || p.Kind == tools.Thought {
			text, stopped = r.stops.Push(text)
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
func (r *reading) settle() {
	held := r.stops.Flush()
	switch {
	case len(held) == 0:
	case r.parser == nil:
		r.text = append(r.text, held...)
	default:
		r.add(Part{Kind: r.within}, held)
	}
}

func (r *reading) add(p Part, text []byte) {
	p.Len = len(text)
	r.text, r.parts = append(r.text, text...), append(r.parts, p)
}
