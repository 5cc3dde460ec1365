package answer

import (
	"github.com/sluice-ai/sluice/server/wire"
)

// Task is a use of a model that a request asks for.
type Task uint8

const (
	Write Task = iota // generate text
	Embed             // vectors of texts
	Rank              // how well texts answer a query
	Tell              // state its properties, tokenize, render prompts: any model can
)

// refused returns the fault of a model that is not made for the task, which says what the model is made for.
func (t Task) refused(m *Model) *wire.Fault {
	e := m.Engine
	pooling := e.Info.Program.Pooling.String()
	is := "generates text"
	switch {
	case t == Tell:
		return nil
	case !e.Embeds():
		if t == Write {
			return nil
		}
	case e.Ranks():
		if t == Rank {
			return nil
		}
		is = "scores documents for a query (POST /v1/rerank)"
	case pooling == "rank":
		is = "tells classes of texts apart, which has no endpoint"
	case pooling == "none":
		is = "makes a vector of each token and does not say how they become a text's: use a file with pooling_type, " +
			"or sluice embed --pooling"
	default:
		if t == Embed {
			return nil
		}
		is = "turns texts into vectors (POST /v1/embeddings)"
	}
	wanted := [...]string{"generates text", "turns texts into vectors", "scores documents: a reranker, whose file has rank pooling"}[t]
	instead := ""
	if !e.Embeds() && t == Embed { // ADR 66
		instead = " (sluice pull has them by name, such as nomic-embed-text)"
	}
	return wire.Invalid("model", "model_not_supported", "the model %s %s: ask one here that %s%s", wire.Shown(m.Name), is, wanted,
		instead)
}
