package actors

import (
	"slices"

	"github.com/sluice-ai/sluice/stages/promise"
)

// Foresee forecasts when prepared requests are answered that arrive now, in this order: busy beside the present load,
// idle on an engine without any. It returns false if nothing is known yet of the engine's speed.
func (e *Engine) Foresee(all []Request) (busy, idle []promise.Forecast, known bool) {
	o := &e.outlook
	o.mu.Lock()
	l := o.load
	l.Seqs, l.Since = slices.Clone(l.Seqs), now().Sub(o.since)
	o.mu.Unlock()
	asks := make([]promise.Ask, 0, len(all))
	for i := range all {
		r := &all[i]
		prompt := r.PromptTokens()
		end, err := e.spec.limit(r, r.PromptIDs())
		if err != nil {
			return nil, nil, false
		}
		asks = append(asks, promise.Ask{Client: r.Client, Prompt: prompt, Cached: e.cached(r), Most: end - prompt,
			Promised: r.Promised})
	}
	if busy, known = l.Predict(asks); known {
		l.Seqs, l.Flying = nil, promise.Shape{}
		idle, _ = l.Predict(asks)
	}
	return busy, idle, known
}

// cached is how many tokens of a prompt are in the cache now.
func (e *Engine) cached(r *Request) int {
	_, salt, done, err := e.spec.adapters.adapt(r.Adapters, r.Salt)
	if err != nil || len(r.Pictures) > 0 {
		return 0
	}
	defer done()
	return e.outlook.cached(salt, r.PromptIDs())
}
