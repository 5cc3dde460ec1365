package kvmix

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// DefaultBits is the number of bits of a value that a mix has if nobody says.
const DefaultBits = 5.5

// Version is that of profiles. Others are not read.
const Version = 1

// Profile is what was measured of a model. Its JSON names are part of the interface, and of the file it is kept in.
type Profile struct {
	Version int      `json:"version"`
	Model   string   `json:"model"`
	Tokens  int      `json:"tokens"` // that were compared
	Types   []string `json:"types"`  // of errors; the last ones may be for V alone
	Layers  []Layer  `json:"layers"` // by cache of the program

	Uniform []Measured `json:"uniform"` // the same types in all layers
	Mix     Measured   `json:"mix"`     // that was chosen and measured
}

// Layer is one layer's cache.
type Layer struct {
	KVHeads int  `json:"kv_heads"`
	KDim    int  `json:"k_features"`
	VDim    int  `json:"v_features"`
	K       Side `json:"k"`
	V       Side `json:"v"`
}

// Side is K or V of a layer.
type Side struct {
	// KL is the mean divergence that codes of 2 bits, here alone, add to the model's distributions; Coarse their error.
	KL     float64 `json:"kl"`
	Coarse float64 `json:"coarse_error"`
	// Errors are by type: squares of what is lost, as a share of the squares of V, or of those by which K differs from its
	// mean over positions, which attention does not see.
	Errors []float64   `json:"errors"`
	Heads  [][]float64 `json:"head_errors"` // by head, then by type
}

// Measured is what was measured of a cache in some types against f16. KL is in nats.
type Measured struct {
	KV       [][2]string `json:"kv"`   // K and V: of all layers, or by layer
	Bits     float64     `json:"bits"` // of a value, K and V together
	BitsK    float64     `json:"bits_k"`
	BitsV    float64     `json:"bits_v"`
	KLMean   float64     `json:"kl_mean"`
	KLMedian float64     `json:"kl_median"`
	KLP999   float64     `json:"kl_p999"`
	SameTop  float64     `json:"same_top"`
}

// cost is the divergence that a type is expected to add: small errors add up, and divergence grows with their squares.
func (s *Side) cost(typ int) float64 {
	if s.Coarse <= 0 {
		return 0
	}
	return max(s.KL, 0) * s.Errors[typ] / s.Coarse
}

// Fits says whether the profile is of a program with such caches, and of this version.
func (p *Profile) Fits(caches []ir.KVLayer) bool {
	if p.Version != Version || len(p.Layers) != len(caches) || len(caches) == 0 {
		return false
	}
	for i, l := range p.Layers {
		x := caches[i]
		if l.KVHeads != x.KVHeads || l.KDim != x.KDim || l.VDim != x.VDim || len(l.K.Errors) != len(p.Types) ||
			len(l.V.Errors) != len(p.Types) {
			return false
		}
	}
	return true
}

// option is a type that K or V of a layer may have.
type option struct {
	name  string
	bytes int // of a block
	cost  float64
}

// Choose is the types by layer with the least expected divergence that take at most so many bits of a value in the
// mean. It depends on nothing but the profile, so that a model has the same types each time.
func (p *Profile) Choose(bits float64) ([][2]string, error) {
	var items [][]option
	values := 0
	for _, l := range p.Layers {
		values += backend.BlockSize * l.KVHeads * (l.KDim + l.VDim)
		k, v, err := p.options(&l)
		if err != nil {
			return nil, err
		}
		items = append(items, k, v)
	}
	chosen := knapsack(items, int(bits*float64(values)/8+1e-6))
	if chosen == nil {
		return nil, fmt.Errorf("%g bits of a value: the least are %.3g", bits, least(items, values))
	}
	types := make([][2]string, len(p.Layers))
	for i := range types {
		types[i] = [2]string{items[2*i][chosen[2*i]].name, items[2*i+1][chosen[2*i+1]].name}
	}
	return types, nil
}

// options are what K and V of a layer may be.
func (p *Profile) options(l *Layer) (k, v []option, err error) {
	for t, name := range p.Types {
		kv, err := backend.MixKV("f16", name)
		if err != nil {
			return nil, nil, err
		}
		v = append(v, option{name, l.KVHeads * kv.V.Kept().Bytes(l.VDim), l.V.cost(t)})
		if kv, err = backend.ParseKV(name); err != nil {
			continue // a type for V alone
		}
		k = append(k, option{name, l.KVHeads * kv.K.Kept().Bytes(l.KDim), l.K.cost(t)})
	}
	if len(k) == 0 {
		return nil, nil, fmt.Errorf("a profile without types of K")
	}
	return k, v, nil
}

// least is the number of bits of a value if all items take their smallest option.
func least(items [][]option, values int) float64 {
	bytes := 0
	for _, options := range items {
		smallest := options[0].bytes
		for _, o := range options {
			smallest = min(smallest, o.bytes)
		}
		bytes += smallest
	}
	return 8 * float64(bytes) / float64(values)
}

// mostUnits bounds the table of knapsack.
const mostUnits = 1 << 16

// knapsack takes one option of each item, so that they have at most so many bytes and the least cost; nil: they do not
// fit. Of equal costs it takes fewer bytes.
func knapsack(items [][]option, bytes int) []int {
	unit := 0
	for _, options := range items {
		for _, o := range options {
			unit = divisor(unit, o.bytes)
		}
	}
	if unit = max(unit, (bytes+mostUnits-1)/mostUnits, 1); bytes < 0 {
		return nil
	}
	units := bytes / unit
	best, taken := make([]float64, units+1), make([][]uint8, len(items)) // by units that are there
	for i, options := range items {
		next := make([]float64, units+1)
		taken[i] = make([]uint8, units+1)
		for u := range next {
			next[u] = math.Inf(1)
			for o, x := range options {
				left := u - (x.bytes+unit-1)/unit
				if left >= 0 && best[left]+x.cost < next[u] {
					next[u], taken[i][u] = best[left]+x.cost, uint8(o)
				}
			}
		}
		best = next
	}
	at := units
	for ; at > 0 && best[at-1] <= best[units]; at-- {
	}
	if math.IsInf(best[at], 1) {
		return nil
	}
	chosen := make([]int, len(items))
	for i := len(items) - 1; i >= 0; i-- {
		chosen[i] = int(taken[i][at])
		at -= (items[i][chosen[i]].bytes + unit - 1) / unit
	}
	return chosen
}

// divisor is the greatest common one.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// theirErrors are the errors of types in rows of many features, and keysMatter how much more those of K cost than those
// of V: what a rule goes by that knows nothing of a model.
var theirErrors = []struct {
	name  string
	error float64
}{{"f16", 1e-7}, {"q8", 3e-5}, {"q5", .0018}, {"q4", .0070}, {"tq4", .0093}, {"tq3", .034}, {"tq2", .116}}

const keysMatter = 3

// Rule is a type for K and one for V, the same in all layers, that take at most so many bits of a value in the mean.
func Rule(caches []ir.KVLayer, bits float64) (types [2]string, err error) {
	best, fewest := math.Inf(1), math.Inf(1)
	for _, k := range theirErrors {
		for _, v := range theirErrors {
			kv, err := backend.MixKV(k.name, v.name)
			if err != nil {
				continue // a type for V alone
			}
			took := Bits(kv, caches)
			fewest = min(fewest, took)
			if cost := keysMatter*k.error + v.error; took <= bits+1e-9 && cost < best {
				best, types = cost, [2]string{k.name, v.name}
			}
		}
	}
	if math.IsInf(best, 1) {
		return types, fmt.Errorf("%g bits of a value: the least are %.3g", bits, fewest)
	}
	return types, nil
}

// Bits is how many bits a value takes in the mean, K and V together.
func Bits(kv backend.KV, caches []ir.KVLayer) float64 {
	p := &ir.Program{KV: make([]ir.KVLayer, len(caches)), Classes: make([]ir.Class, 1)}
	for i, l := range caches {
		p.KV[i] = ir.KVLayer{KVHeads: l.KVHeads, KDim: l.KDim, VDim: l.VDim}
	}
	k, v := kv.Shares(p)
	return backend.KVShare{Bytes: k.Bytes + v.Bytes, Values: k.Values + v.Values}.Bits()
}
