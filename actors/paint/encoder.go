package paint

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Text is a text as a transformer reads it.
type Text struct {
	Rows   []float32 // of its tokens
	Pooled []float32 // of all of it; nil: the transformer wants none
	Width  int       // features of a row; 0: as the transformer wants
}

// fits is an error if rows are not of the width that a transformer reads.
func (t *Text) fits(width int) error {
	if t.Width != 0 && t.Width != width {
		return fmt.Errorf("the encoder of texts makes rows of %d features, and the transformer reads %d: want the encoder that it "+
			"was trained with", t.Width, width)
	}
	return nil
}

// Clip makes vectors of texts by a CLIP model: a row for each token, and the one that stands for all, which is that of
// the first token with the largest id: the end. The file's model is computed on the device once, and not kept.
func Clip(r Room, f *gguf.File, s pixels.TextSettings, tokens []int32) (rows, pooled []float32, err error) {
	e, err := pixels.NewClip(tensors(f), s)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	if rows, err = r.encode(f, e, tokens); err != nil {
		return nil, nil, err
	}
	end := slices.Index(tokens, slices.Max(tokens))
	return rows, rows[end*e.Width:][:e.Width], nil
}

// T5 makes rows of a text by the encoder of a T5 model, as Clip does.
func T5(r Room, f *gguf.File, s pixels.TextSettings, tokens []int32) ([]float32, error) {
	e, err := pixels.NewT5(tensors(f), s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return r.encode(f, e, tokens)
}

func (r *Room) encode(f *gguf.File, e *pixels.Encoder, tokens []int32) (states []float32, err error) {
	most := mostWords
	if e.Positions > 0 {
		most = min(most, e.Positions)
	}
	if n := len(tokens); n < 1 || n > most {
		return nil, fmt.Errorf("%s: a text of %d tokens, want 1 to %d", f.Name, n, most)
	}
	rows, err := looked(f, e, tokens)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	all, err := r.networks(f, e.Tensors, e.Bound)
	if err != nil {
		return nil, err
	}
	n := all[0]
	defer func() {
		if closed := n.Close(); err == nil {
			err = closed
		}
	}()
	spans := func(int) []ir.Grid { return []ir.Grid{{Height: 1, Width: len(tokens)}} }
	out, err := n.Run(r.Device, spans, nil, map[string][]float32{pixels.Texts: rows})
	return out[pixels.States], err
}

// looked reads the rows of tokens from the table of a file.
func looked(f *gguf.File, e *pixels.Encoder, tokens []int32) ([]float32, error) {
	t := &f.Tensors[e.Tensors[e.Embedding].From]
	each, err := t.Type.RowBytes(e.Width)
	if err != nil {
		return nil, err
	}
	rows := make([]float32, len(tokens)*e.Width)
	return rows, f.View(t, func(data []byte) error {
		for i, id := range tokens {
			if id < 0 || int(id) >= e.Tokens {
				return fmt.Errorf("token %d, want one of %d", id, e.Tokens)
			}
			if err := quant.Dequantize(t.Type, rows[i*e.Width:][:e.Width], data[int(id)*each:][:each]); err != nil {
				return err
			}
		}
		return nil
	})
}
