package arch

import (
	"errors"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/meta"
)

// The largest values that are believed, far above any model, so that products of two fit an int64 and a hostile
// count allocates little.
const (
	maxLayers  = 1 << 10
	maxHeads   = 1 << 12
	maxHeadDim = 1 << 12
	maxWidth   = 1 << 20
	maxFFN     = 1 << 22
	maxExperts = 1 << 12
	maxVocab   = 1 << 24
	maxContext = 1 << 30
)

// params reads hyper-parameters by key. A lookup that fails is noted, and answers a value in range.
type params struct {
	meta    *meta.Map
	arch    string
	options Options
	context int // positions the model was trained for, once dense has read it
	faults  []error
}

func (p *params) faultf(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf(format, args...))
}

// key is the full name of a hyper-parameter of this architecture.
func (p *params) key(name string) string { return p.arch + "." + name }

func (p *params) has(name string) bool { return p.meta.Has(p.key(name)) }

// count reads an integer in [1, most].
func (p *params) count(name string, most int) int { return p.integer(name, 1, most) }

// countOr is count for an optional key; the default is believed.
func (p *params) countOr(name string, most, otherwise int) int {
	if !p.has(name) {
		return max(otherwise, 1)
	}
	return p.integer(name, 1, most)
}

// integer reads an integer in [least, most].
func (p *params) integer(name string, least, most int) int {
	n, err := p.meta.Int(p.key(name))
	if err != nil {
		p.faults = append(p.faults, err)
		return least
	}
	if n < int64(least) || n > int64(most) {
		p.faultf("%s: is %d, want %d to %d", p.key(name), n, least, most)
		return least
	}
	return int(n)
}

// byLayer reads an integer in [1, most] for each layer: one for all, or a list.
func (p *params) byLayer(name string, layers, most int) []int {
	return p.byLayerFrom(1, name, layers, most)
}

// byLayerFrom is byLayer of integers in [least, most].
func (p *params) byLayerFrom(least int, name string, layers, most int) []int {
	all := make([]int, layers)
	list, err := p.meta.Ints(p.key(name))
	if err == nil && len(list) < layers {
		p.faultf("%s: has %d layers, want %d", p.key(name), len(list), layers)
	}
	one := least
	if err != nil {
		one = p.integer(name, least, most)
	}
	for l := range all {
		all[l] = one
		switch {
		case l >= len(list):
		case list[l] < int64(least) || list[l] > int64(most):
			p.faultf("%s: is %d for layer %d, want %d to %d", p.key(name), list[l], l, least, most)
		default:
			all[l] = int(list[l])
		}
	}
	return all
}

// flag reads a bool.
func (p *params) flag(name string) bool {
	x, err := p.meta.Bool(p.key(name))
	if err != nil {
		p.faults = append(p.faults, err)
	}
	return x
}

// flags reads a flag for each layer; without the key all are set.
func (p *params) flags(name string, layers int) func(layer int) bool {
	if !p.has(name) {
		return func(int) bool { return true }
	}
	all, err := p.meta.Bools(p.key(name))
	if err == nil && len(all) < layers {
		err = fmt.Errorf("%s: has %d layers, want %d", p.key(name), len(all), layers)
	}
	if err != nil {
		p.faults = append(p.faults, err)
		return func(int) bool { return true }
	}
	return func(l int) bool { return all[l] }
}

// window reads a sliding window in positions; 0 and absent both mean that there is none.
func (p *params) window() int {
	const name = "attention.sliding_window"
	if !p.has(name) {
		return 0
	}
	return p.integer(name, 0, maxContext)
}

// positive reads a finite number above 0.
func (p *params) positive(name string) float64 {
	x, err := p.meta.Float(p.key(name))
	if err != nil {
		p.faults = append(p.faults, err)
		return 1
	}
	if !(x > 0) || x > math.MaxFloat32 {
		p.faultf("%s: is %v, want a number above 0", p.key(name), x)
		return 1
	}
	return x
}

// positiveOr is positive for an optional key.
func (p *params) positiveOr(name string, otherwise float64) float64 {
	if !p.has(name) {
		return otherwise
	}
	return p.positive(name)
}

// optional reads a number above 0; 0 and absent both mean that there is none.
func (p *params) optional(name string) float64 {
	if x, err := p.meta.Float(p.key(name)); errors.Is(err, meta.ErrMissing) || err == nil && x == 0 {
		return 0
	}
	return p.positive(name)
}

// vocab is the number of rows of the embedding: that of the tokenizer's tokens, or what the file says.
func (p *params) vocab() int {
	const tokens = "tokenizer.ggml.tokens"
	if p.has("vocab_size") && !p.meta.Has(tokens) {
		return p.count("vocab_size", maxVocab)
	}
	list, err := p.meta.Strings(tokens)
	if err != nil {
		p.faults = append(p.faults, err)
		return 1
	}
	if len(list) < 1 || len(list) > maxVocab {
		p.faultf("%s: has %d tokens, want 1 to %d", tokens, len(list), maxVocab)
		return 1
	}
	return len(list)
}

// local says which layers attend to a window only. The file has a flag for each layer, or the period after
// which one layer is global, or neither: then the family's period holds.
func (p *params) local(layers, period int) func(layer int) bool {
	const name = "attention.sliding_window_pattern"
	if flags, err := p.meta.Bools(p.key(name)); err == nil {
		if len(flags) < layers {
			p.faultf("%s: has %d layers, want %d", p.key(name), len(flags), layers)
			return func(int) bool { return false }
		}
		return func(l int) bool { return flags[l] }
	}
	period = p.countOr(name, maxLayers, period)
	return func(l int) bool { return (l+1)%period != 0 }
}
