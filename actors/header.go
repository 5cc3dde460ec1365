package actors

import (
	"fmt"
	"time"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/token"
)

// Header is what the header of a model's file says, whether or not the model runs. No weights are read for it.
type Header struct {
	Info     Info       // Context is the most that a request could hold; without Program, Sequences and KV
	Settings *meta.Map  // the file's metadata; long lists, such as those of a vocabulary, are nil
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

// Header returns the header of the model's file.
func (e *Engine) Header() *Header {
	settings, mostly := e.spec.about()
	return &Header{Info: e.Info, Settings: settings, Type: mostly, Embeds: e.Embeds(), Fills: e.Vocab().FillsIn()}
}
