package remote

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// deed is a part of a frame of a step.
type deed uint8

const (
	deedBegin  deed = iota + 1 // what the step is: tokens, spans, wanted rows
	deedIn                     // a value comes from elsewhere
	deedRun                    // a segment is run
	deedOut                    // a value is wanted
	deedFinish                 // the step ends
)

func number(b []byte, n int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(int32(n))) }

func numbers(b []byte, all []int32) []byte {
	b = number(b, len(all))
	for _, n := range all {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

func floats(b []byte, all []float32) []byte {
	for _, x := range all {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// begin appends what a step is.
func begin(b []byte, s *backend.Step) []byte {
	b = numbers(append(b, flag(s.Prompt)), s.Tokens)
	b = numbers(b, s.Wanted)
	b = number(b, len(s.Spans))
	for i := range s.Spans {
		p := &s.Spans[i]
		for _, n := range []int{p.Row, p.Rows, p.Proposed, p.Pos, p.Heard, p.Grid.Height, p.Grid.Width, len(p.Tables)} {
			b = number(b, n)
		}
		for t := range p.Tables {
			b = numbers(number(b, p.Tables[t].First), p.Tables[t].Blocks)
		}
		b = numbers(b, p.Sees)
		b = number(b, len(p.Places))
		for _, place := range p.Places {
			for _, n := range place {
				b = number(b, int(n))
			}
		}
	}
	return b
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// body is what is left of a frame's body. The first fault stays, and everything after it is zero.
type body struct {
	rest []byte
	err  error
}

// take returns the next n bytes.
func (b *body) take(n int) []byte {
	if n < 0 || n > len(b.rest) {
		if b.err == nil {
			b.err = fmt.Errorf("%w: %d bytes are missing", errGarbage, n-len(b.rest))
		}
		b.rest = nil
		return nil
	}
	taken := b.rest[:n]
	b.rest = b.rest[n:]
	return taken
}

func (b *body) byte() byte {
	if x := b.take(1); x != nil {
		return x[0]
	}
	return 0
}

func (b *body) number() int {
	if x := b.take(4); x != nil {
		return int(int32(binary.LittleEndian.Uint32(x)))
	}
	return 0
}

// count is a number of things that have so many bytes each at least.
func (b *body) count(each int) int {
	n := b.number()
	if n < 0 || n > len(b.rest)/each {
		if b.err == nil {
			b.err = fmt.Errorf("%w: %d of %d bytes each, %d bytes are left", errGarbage, n, each, len(b.rest))
		}
		return 0
	}
	return n
}

// numbers reads numbers into memory that is reused. None are nil.
func (b *body) numbers(memory []int32) []int32 {
	n := b.count(4)
	if n == 0 {
		return memory[:0:cap(memory)]
	}
	memory = memory[:0]
	for range n {
		memory = append(memory, int32(b.number()))
	}
	return memory
}

// floats reads as many as there is room for.
func (b *body) floats(into []float32) {
	x := b.take(4 * len(into))
	if x == nil {
		return
	}
	for i := range into {
		into[i] = math.Float32frombits(binary.LittleEndian.Uint32(x[4*i:]))
	}
}

// step reads what begin wrote. What it is worth is for Step.Check to say.
func (b *body) step(s *backend.Step) {
	const leastSpan = 4 * 10
	s.Prompt = b.byte() != 0
	s.Tokens, s.Wanted = b.numbers(s.Tokens), b.numbers(s.Wanted)
	n := b.count(leastSpan)
	for len(s.Spans) < n {
		s.Spans = append(s.Spans, backend.Span{})
	}
	s.Spans = s.Spans[:n]
	for i := range s.Spans {
		b.span(&s.Spans[i])
	}
}

func (b *body) span(p *backend.Span) {
	for _, n := range []*int{&p.Row, &p.Rows, &p.Proposed, &p.Pos, &p.Heard, &p.Grid.Height, &p.Grid.Width} {
		*n = b.number()
	}
	n := b.count(8)
	for len(p.Tables) < n {
		p.Tables = append(p.Tables, backend.Table{})
	}
	p.Tables = p.Tables[:n]
	for t := range p.Tables {
		p.Tables[t].First = b.number()
		p.Tables[t].Blocks = b.numbers(p.Tables[t].Blocks)
	}
	if p.Sees = b.numbers(p.Sees); len(p.Sees) == 0 {
		p.Sees = nil // each sees up to itself
	}
	var place ir.Place
	if n = b.count(4 * len(place)); n == 0 {
		p.Places = nil
		return
	}
	p.Places = p.Places[:0]
	for range n {
		for a := range place {
			place[a] = int32(b.number())
		}
		p.Places = append(p.Places, place)
	}
}
