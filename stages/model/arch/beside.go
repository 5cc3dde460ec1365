package arch

import (
	"errors"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
)

// Beside is what layers of a model are given besides the stream, as the embed segment of its program makes it of a
// token: here, of any row of the stream.
type Beside struct {
	Program *ir.Program // of Rows and Found; its output is Given
	Table   string      // the tensor that Found is a row of: that of a token, for rows that are none the first one
	Scale   float32     // what embeddings are multiplied by in the stream, and Rows are not
}

// Names of the inputs and the output of a Beside.
const (
	Rows  = "rows"
	Found = "found"
	Given = "given"
)

// RecordBeside makes the program of what the model's layers are given besides the stream; nil: they are given nothing.
func RecordBeside(m *meta.Map, has func(name string) bool) (*Beside, error) {
	if name, err := m.String("general.architecture"); err != nil || name != "gemma4" {
		return nil, err
	}
	p := &params{meta: m, arch: "gemma4"}
	b := ir.NewBuilder(p.arch, has)
	g := p.gemma4(b)
	if len(p.faults) > 0 || g.each == 0 {
		return nil, errors.Join(p.faults...)
	}
	b.Part()
	rows, found := b.Input(Rows, g.width, true), b.Input(Found, g.layers*g.each, true)
	b.Block()
	b.Output(Given, g.beside(b, rows, func() ir.Value { return found }))
	program, err := b.Program(0)
	return &Beside{program, gemma4Table + ".weight", g.embeddingScale()}, err
}
