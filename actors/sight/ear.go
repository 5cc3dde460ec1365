package sight

import (
	"errors"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Ear is an encoder that reads prompts for a model, of the model's own file.
type Ear struct {
	Begin   int32 // the token that answers begin behind
	network blocks.Network
}

// OpenEar reads the encoder of a model's file; nil: the model reads prompts itself.
func OpenEar(f *gguf.File) (*Ear, error) {
	of, err := arch.RecordEar(&f.Meta, func(name string) bool { _, ok := f.Tensor(name); return ok })
	if err != nil || of == nil {
		return nil, err
	}
	e := &Ear{Begin: of.Begin}
	e.network, err = inFile(f, of.Program)
	return e, err
}

// Hear computes a prompt: a row for each of its tokens.
func (e *Ear) Hear(d backend.Device, tokens []int32) (*Seen, error) {
	if len(tokens) == 0 {
		return nil, errors.New("a prompt without tokens")
	}
	rows, err := e.network.Vectors(d, tokens)
	return &Seen{Grid: line(len(tokens)), Rows: rows}, err
}

// Width is the features of a row.
func (e *Ear) Width() int { return e.network.OutputWidth() }

// Bytes is the memory that its weights take.
func (e *Ear) Bytes() int64 { return bytesOf(&e.network) }

// Close frees what the device has of it.
func (e *Ear) Close() error { return e.network.Close() }
