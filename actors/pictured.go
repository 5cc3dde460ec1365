package actors

import (
	"github.com/sluice-ai/sluice/actors/sight"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
)

// show puts pictures into the residual stream after a segment was computed: instead of the rows that hold their places
// after the first one, with what layers are given besides, and added to these after the layers that the tower says.
func (m *step) show(model backend.Model, p *ir.Program, segment int) error {
	at := &p.Segments[segment]
	stream := at.Stream()
	switch {
	case segment == 0:
		for _, v := range at.Carries {
			rows := func(s *sight.Seen) []float32 { return s.Beside }
			if v == stream {
				rows = func(s *sight.Seen) []float32 { return s.Rows }
			}
			if err := m.lay(model, v, p.Widths[v], rows, func(to, from []float32) { copy(to, from) }); err != nil {
				return err
			}
		}
		return nil
	case at.Layer >= 0 && (segment+1 == len(p.Segments) || p.Segments[segment+1].Layer != at.Layer):
		deep := func(s *sight.Seen) []float32 {
			if at.Layer >= len(s.Deep) {
				return nil
			}
			return s.Deep[at.Layer]
		}
		return m.lay(model, stream, p.Width, deep, add)
	}
	return nil
}

// lay puts what pictures have for a value into its rows in their places.
func (m *step) lay(model backend.Model, v ir.Value, width int, of func(s *sight.Seen) []float32,
	put func(to, from []float32)) error {
	var all []float32
	for i, part := range m.parts {
		for j := range part.Seq.Pictures {
			pic := &part.Seq.Pictures[j]
			values := of(pic.Seen.(*sight.Seen))
			span := &m.compute.Spans[i]
			from, to := max(span.Pos, pic.At), min(span.Pos+span.Rows, pic.End())
			if from >= to || len(values) == 0 {
				continue
			}
			if all == nil {
				all = make([]float32, m.compute.Rows()*width)
				if err := model.Out(v, m.compute, all); err != nil {
					return err
				}
			}
			put(all[(span.Row+from-span.Pos)*width:], values[(from-pic.At)*width:(to-pic.At)*width])
		}
	}
	if all == nil {
		return nil
	}
	return model.In(v, m.compute, all)
}

// add adds values to others.
func add(to, from []float32) {
	for i, x := range from {
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
