package actors

import (
	"github.com/sluice-ai/sluice/actors/sight"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
)

// show puts pictures into the residual stream after a segment was computed: instead of the rows that hold their places
// after the first one, and added to these after the layers that the tower says.
func (m *step) show(model backend.Model, p *ir.Program, segment int) error {
	deep := -1
	switch at := &p.Segments[segment]; {
	case segment == 0:
	case at.Layer >= 0 && (segment+1 == len(p.Segments) || p.Segments[segment+1].Layer != at.Layer):
		deep = at.Layer
	default:
		return nil
	}
	stream, all := p.Segments[segment].Stream(), []float32(nil)
	for i, part := range m.parts {
		for j := range part.Seq.Pictures {
			pic := &part.Seq.Pictures[j]
			seen := pic.Seen.(*sight.Seen)
			span := &m.compute.Spans[i]
			from, to := max(span.Pos, pic.At), min(span.Pos+span.Rows, pic.End())
			if from >= to || deep >= len(seen.Deep) {
				continue
			}
			if all == nil {
				all = make([]float32, m.compute.Rows()*p.Width)
				if err := model.Out(stream, m.compute, all); err != nil {
					return err
				}
			}
			put(all[(span.Row+from-span.Pos)*p.Width:], seen, deep, (from-pic.At)*p.Width, (to-from)*p.Width)
		}
	}
	if all == nil {
		return nil
	}
	return model.In(stream, m.compute, all)
}

// put puts n values of a picture from one on where they belong.
func put(to []float32, seen *sight.Seen, deep, from, n int) {
	if deep < 0 {
		copy(to, seen.Rows[from:][:n])
		return
	}
	for i, x := range seen.Deep[deep][from:][:n] {
		to[i] += x
	}
}

// pictured says whether a step has parts of sequences with pictures.
func pictured(parts []batch.Part) bool {
	for _, p := range parts {
		if len(p.Seq.Pictures) > 0 {
			return true
		}
	}
	return false
}
