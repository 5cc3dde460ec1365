package sample

import "github.com/sluice-ai/sluice/internal/backend"

// Draw returns the draw of the token at a position, which is the number of tokens before it, for a device that draws
// itself. Features of the host alone (masks, penalties, biases, log-probabilities, rarer samplers) make it a draw of
// the host.
func (p *Params) Draw(position int) backend.Draw {
	if p.LogProbs >= 0 || p.Masked || p.adjusts() {
		return backend.Draw{Host: true}
	}
	if p.Temp <= 0 {
		return backend.Draw{TopP: 1, Seed: p.Seed, Position: uint64(position)}
	}
	plain := p.Mirostat == 0 && p.DynTempRange == 0 && p.TopNSigma <= 0 && p.TypicalP >= 1 && p.MinKeep <= 1 &&
		(p.XTCProbability <= 0 || p.XTCThreshold > 0.5)
	if !plain {
		return backend.Draw{Host: true}
	}
	return backend.Draw{
		Temp: p.Temp, TopK: int32(max(p.TopK, 0)), TopP: p.TopP, MinP: p.MinP, Seed: p.Seed, Position: uint64(position),
	}
}
