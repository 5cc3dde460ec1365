package actors

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/actors/sight"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// ear is an encoder that reads prompts for a model, beside the device. What it makes of a prompt stands in the places
// of the prompt's tokens, as rows of a picture do.
type ear struct {
	annex
	*sight.Ear
}

// newEar opens the encoder of a model, if it has one; nil: it has none.
func newEar(f *gguf.File, text *ir.Program) (*ear, error) {
	of, err := sight.OpenEar(f)
	if err == nil && of != nil && of.Width() != text.Width {
		err = fmt.Errorf("rows of its encoder have %d values, those of the decoder %d", of.Width(), text.Width)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	if of == nil {
		return nil, nil //nolint:nilnil // most models read prompts themselves
	}
	return &ear{Ear: of, annex: newAnnex()}, nil
}

// place makes a text that an answer follows of the prompt's tokens.
func (e *ear) place(prompt []int32) []int32 {
	return append(append(make([]int32, 0, len(prompt)+1), prompt...), e.Begin)
}

// hear returns what the encoder makes of a prompt that has its place in a text: computed, or remembered.
func (e *ear) hear(text []int32) (batch.Picture, error) {
	prompt := text[:len(text)-1]
	p := batch.Picture{Grid: ir.Grid{Height: 1, Width: len(prompt)}}
	h := sha256.New()
	for _, id := range prompt {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(id)))
	}
	h.Sum(p.Hash[:0])
	if len(prompt) == 0 {
		return p, refusal.Of("the prompt has no tokens, and the answer would be to nothing: write something")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	seen, err := e.find(p.Hash), error(nil)
	if seen == nil {
		seen, err = e.compute(p.Hash, func(d backend.Device) (*sight.Seen, error) { return e.Hear(d, prompt) })
	}
	p.Seen = seen
	return p, err
}

func (e *ear) close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.Close(), e.annex.close())
}
