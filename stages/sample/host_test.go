package sample

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// A device draws what it can draw as the host would, and nothing else.
func TestDraw(t *testing.T) {
	with := func(edit func(*Params)) Params {
		p := Defaults()
		p.Seed = 7
		edit(&p)
		return p
	}
	for name, c := range map[string]struct {
		p    Params
		want backend.Draw
	}{
		"the usual chain": {with(func(*Params) {}),
			backend.Draw{Temp: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, Seed: 7, Position: 12}},
		"everything allowed": {with(func(p *Params) { p.TopK, p.TopP, p.MinP = -1, 1, 0 }),
			backend.Draw{Temp: 0.8, TopP: 1, Seed: 7, Position: 12}},
		"greedy":                        {with(func(p *Params) { p.Temp = 0 }), backend.Draw{TopP: 1, Seed: 7, Position: 12}},
		"greedy ignores other samplers": {with(func(p *Params) { p.Temp, p.Mirostat = 0, 2 }), backend.Draw{TopP: 1, Seed: 7, Position: 12}},
		"log-probabilities":             {with(func(p *Params) { p.LogProbs = 0 }), backend.Draw{Host: true}},
		"bias":                          {with(func(p *Params) { p.Bias = []Bias{{1, 2}} }), backend.Draw{Host: true}},
		"ignored ends":                  {with(func(p *Params) { p.Temp, p.IgnoreEOG = 0, []int32{1} }), backend.Draw{Host: true}},
		"penalty":                       {with(func(p *Params) { p.RepeatPenalty = 1.1 }), backend.Draw{Host: true}},
		"DRY":                           {with(func(p *Params) { p.DRY.Multiplier = 1 }), backend.Draw{Host: true}},
		"mirostat":                      {with(func(p *Params) { p.Mirostat = 2 }), backend.Draw{Host: true}},
		"dynamic temperature":           {with(func(p *Params) { p.DynTempRange = 0.5 }), backend.Draw{Host: true}},
		"n sigma":                       {with(func(p *Params) { p.TopNSigma = 1 }), backend.Draw{Host: true}},
		"typical":                       {with(func(p *Params) { p.TypicalP = 0.9 }), backend.Draw{Host: true}},
		"keeping several":               {with(func(p *Params) { p.MinKeep = 2 }), backend.Draw{Host: true}},
		"XTC":                           {with(func(p *Params) { p.XTCProbability, p.XTCThreshold = 0.5, 0.1 }), backend.Draw{Host: true}},
	} {
		require.Equal(t, c.want, c.p.Draw(12), name)
	}
}
