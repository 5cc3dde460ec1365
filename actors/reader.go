package actors

import (
	"github.com/sluice-ai/sluice/stages/reply"
	"github.com/sluice-ai/sluice/stages/stop"
	"github.com/sluice-ai/sluice/stages/token"
)

// reader returns what reads an answer's tokens, from the first on. The request's prompt has been made.
func (s *spec) reader(a *asked) reply.Reader {
	r := reply.Reader{Vocab: s.vocab, Marks: s.marks, Detok: s.decoder(a.prompt), Stops: stop.New(a.Stop)}
	if a.Thoughts || a.Tools != nil {
		r.Forced = a.Tools != nil && a.Tools.Must
		r.Parser = s.parser(a.Thoughts, a.prompt.Tail, a.prompt.Tools)
	}
	return r
}

// decoder returns the decoder of the answer's text: a new one after a template or a control token, else one that goes
// on with the prompt's text, so that a leading space is kept.
func (s *spec) decoder(p *shared) *token.Stream {
	if p.Rendered || s.vocab.IsControl(p.Tokens[len(p.Tokens)-1]) {
		return s.vocab.Stream(false)
	}
	return s.vocab.Resume(false)
}
