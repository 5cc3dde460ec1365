package answer

import (
	"math/rand/v2"
	"unsafe"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/stages/reply"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Kind is the kind of a part of an answer.
type Kind uint8

// Kinds of parts.
const (
	Speech  Kind = iota // what the model says
	Thought             // its thinking
	Call                // it calls a tool
)

// Part is a piece of an answer. A piece that continues the part before it has the same kind and, for calls, the same
// number.
type Part struct {
	Kind Kind
	Call int    // which of the calls, from 0
	Name string // of the tool, in the first part of a call
	ID   string // of the call, in its first part
	Text []byte // of a call: its arguments, which are an object of JSON once they are complete
}

// News holds the parts of an answer in the order in which they were generated. Neighbouring pieces of one part are
// joined.
type News struct {
	Parts []Part
	Probs []Prob // of the tokens, if they are wanted
}

// Said joins all parts of a kind.
func (n *News) Said(kind Kind) (all []byte) {
	for i := range n.Parts {
		switch p := &n.Parts[i]; {
		case p.Kind != kind:
		case all == nil:
			all = p.Text[:len(p.Text):len(p.Text)]
		default:
			all = append(all, p.Text...)
		}
	}
	return all
}

// Prob is a token with its log-probability and its likeliest alternatives.
type Prob struct {
	sample.TokenProb
	Top    []sample.TokenProb
	Offset int // characters in the text of the tokens before this one
}

// add appends a part of an engine event; text is the part's text. newID makes an id for a call that has none.
func (n *News) add(p reply.Part, text []byte, newID func(call int) string) {
	kind := Call
	switch p.Kind {
	case tools.Text:
		kind = Speech
	case tools.Thought:
		kind = Thought
	}
	if p.Kind != tools.Call {
		if last := len(n.Parts) - 1; last >= 0 && n.Parts[last].Kind == kind {
			n.Parts[last].Text = append(n.Parts[last].Text, text...)
			return
		}
	}
	var room []byte
	if len(n.Parts) < cap(n.Parts) { // the buffer of a part that was sent is used again
		room = n.Parts[:len(n.Parts)+1][len(n.Parts)].Text[:0]
	}
	id := p.ID
	if p.Kind == tools.Call && id == "" {
		id = newID(p.Call)
	}
	n.Parts = append(n.Parts, Part{kind, p.Call, p.Name, id, append(room, text...)})
}

// newID returns an id of a call, which follows from the request's nonce: nine letters and digits, since some templates
// (Mistral's) take nothing else.
func (c *Choice) newID(call int) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	random := rand.New(rand.NewPCG(c.nonce, uint64(c.Index)<<32|uint64(call)))
	var id [9]byte
	for i := range id {
		id[i] = letters[random.IntN(len(letters))]
	}
	return string(id[:])
}

// weight returns the memory that an event takes while it is kept, in bytes. Slices count twice, for the room that
// append leaves.
func weight(e *actors.Event, probs bool) int64 {
	bytes := 2 * len(e.Text)
	for i := range e.Parts {
		if e.Parts[i].Kind == tools.Call {
			bytes += 2*int(unsafe.Sizeof(Part{})) + len(e.Parts[i].Name)
		}
	}
	if probs && e.HasToken {
		bytes += 2*int(unsafe.Sizeof(Prob{})) + len(e.Top)*int(unsafe.Sizeof(sample.TokenProb{}))
	}
	return int64(bytes)
}
