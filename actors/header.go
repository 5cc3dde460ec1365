package actors

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/token"
)

// Header is what the header of a model's file says, whether or not the model runs. No weights are read for it.
type Header struct {
	Info     Info       // Context is the most that a request could hold; without Program, Sequences and KV
	Settings *meta.Map  // the file's metadata long lists, such as those of a vocabulary, are nil
	Type     quant.Type // of most bytes of the weights
	Embeds   bool       // it computes embeddings, and writes no text
	Fills    bool       // it was trained to fill in gaps
	Modified time.Time  // when the file was written; zero: not known
}

// HeaderOf reads the header of a model's file. It returns nothing that keeps the file open.
func HeaderOf(m *Model) (*Header, error) {
	bound, err := bind(m)
	if err != nil {
		return nil, err
	}
	h := &Header{Info: infoOf(m, bound), Settings: withoutLists(&m.File.Meta), Type: mostOf(bound), Embeds: embeds(bound)}
	h.Info.Context = bound.Context
	if m.Context > 0 {
		h.Info.Context = min(m.Context, bound.Context)
	}
	h.Info.Program = nil
	if h.Fills, err = token.MarksGaps(&m.File.Meta); err != nil {
		return nil, fmt.Errorf("%s: %w", m.File.Name, err)
	}
	return h, nil
}

// mostListed is how many values a list of settings may have, such as texts to stop at.
const mostListed = 64

// withoutLists returns metadata with nil in place of its lists, but for short ones of texts.
func withoutLists(m *meta.Map) *meta.Map {
	all := &meta.Map{}
	for _, key := range m.Keys() {
		switch v, _ := m.Get(key); v := v.(type) {
		case bool, string, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64:
			all.Set(key, v)
		case []string:
			all.Set(key, nil)
			if len(v) <= mostListed {
				all.Set(key, v)
			}
		default:
			all.Set(key, nil)
		}
	}
	return all
}

// Header returns the header of the model's file.
func (e *Engine) Header() *Header {
	return &Header{Info: e.Info, Settings: withoutLists(e.Metadata()), Type: mostOf(e.Info.Program), Embeds: e.Embeds(),
		Fills: e.Vocab().FillsIn()}
}

// mostOf is the type with most bytes of a model's weights.
func mostOf(bound *ir.Bound) quant.Type {
	bytes := map[quant.Type]int64{}
	for ref, t := range bound.Types {
		bytes[t] += bound.Size(ir.Ref(ref))
	}
	return slices.MaxFunc(bound.Types, func(a, b quant.Type) int { return int(min(max(bytes[a]-bytes[b], -1), 1)) })
}
