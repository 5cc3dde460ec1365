package server

import (
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/anthropic"
	"github.com/sluice-ai/sluice/server/llamacpp"
	"github.com/sluice-ai/sluice/server/ollama"
	"github.com/sluice-ai/sluice/server/openai"
	"github.com/sluice-ai/sluice/server/sdapi"
)

// dialects lists the APIs of the server. The first one spells the faults of paths that belong to none.
func dialects(s *answer.Service, store ollama.Store) []answer.Dialect {
	all := []answer.Dialect{
		openai.Dialect(s),
		anthropic.Dialect(s),
		ollama.Dialect(s, store),
		llamacpp.Dialect(s),
	}
	if s.Painter != nil {
		all = append(all, sdapi.Dialect(s))
	}
	return all
}
