package actors

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// In this file heads are found, which guess tokens from their target's hidden states: those of models' own files (see
// Model.Heads), which may be left out, and those of EAGLE-3, which have files of their own.

// HasHead says whether a file has a head that predicts tokens further on and can be run: see Model.Heads.
func HasHead(f *gguf.File) bool {
	_, err := bind(&Model{File: f, KV: backend.KVF16, head: true})
	return err == nil
}

// dropHeads closes the shares of heads that were left out.
func dropHeads(models []Model) (err error) {
	for i := range models {
		if m := &models[i]; m.Heads && m.HeadsIfFit && m.Draft != nil {
			err = errors.Join(err, m.Draft.Close())
			m.Draft, m.Heads, m.DraftOnly = nil, false, false
		}
	}
	return err
}

// tapped finds the segments of a model after which there are the hidden states that a draft model takes, if that is a
// head; nil: it is none.
func (s *spec) tapped(draft *spec) (segments []int, err error) {
	in, ok := draft.bound.Input(arch.TargetRows)
	if !ok {
		return nil, nil
	}
	layers := 0
	for i := range s.bound.Segments {
		layers = max(layers, s.bound.Segments[i].Layer+1)
	}
	before := []int64{int64(layers)}
	if arch.Guesses(draft.bound.Arch) {
		before = []int64{2, int64(layers) / 2, int64(layers) - 3} // as they are trained where nothing else is said
		if m := &draft.file.Meta; m.Has(arch.EagleLayers) {
			if before, err = m.Ints(arch.EagleLayers); err != nil {
				return nil, err
			}
		}
	}
	if width := draft.bound.Widths[in]; width != len(before)*s.bound.Width {
		return nil, fmt.Errorf("%s guesses tokens from %d features of its target, and the %d hidden states of %s have %d: "+
			"it was trained for another model", draft.info.Name, width, len(before), s.info.Name, len(before)*s.bound.Width)
	}
	last := int64(-1)
	for _, l := range before {
		if l <= last || l > int64(layers) {
			return nil, fmt.Errorf("%s takes its target's hidden states before layers %d: want ascending numbers up to %d, the "+
				"layers of %s: it was trained for another model", draft.info.Name, before, layers, s.info.Name)
		}
		last = l
		segments = append(segments, s.before(int(l)))
	}
	return segments, nil
}

// before is the segment after which the residual stream is what a layer takes, or the head behind the last one.
func (s *spec) before(layer int) (segment int) {
	for segment+2 < len(s.bound.Segments) && s.bound.Segments[segment+1].Layer < layer {
		segment++
	}
	return segment
}

// heard is the width of a hidden state for the head that guesses a model's tokens; 0: none does.
func (s *spec) heard() int { return len(s.taps) * s.bound.Width }
