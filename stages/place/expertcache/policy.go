package expertcache

import (
	"fmt"
	"math"
	"slices"
)

// Kind names a policy.
type Kind uint8

const (
	// LRU gives up what was used longest ago. Where a cycle of uses does not fit, it has no hits at all.
	LRU Kind = iota + 1
	// LFU gives up what was used least often.
	LFU
	// SLRU is LRU in two parts: what was used again since it arrived leaves later.
	SLRU
	// Ours gives up what is least likely to be used soon, by what it measured: see reuse.
	Ours
	// Belady gives up what is used farthest in the future, which it has to be told: no policy misses less.
	Belady
)

var kindNames = [...]string{LRU: "lru", LFU: "lfu", SLRU: "slru", Ours: "ours", Belady: "belady"}

func (k Kind) String() string { return kindNames[k] }

// ParseKind finds a policy by its name.
func ParseKind(name string) (Kind, error) {
	for k := LRU; int(k) < len(kindNames); k++ {
		if kindNames[k] == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("policy %q: want lru, lfu, slru, ours or belady", name)
}

// Policy chooses the victims of all layers of a model. One goroutine uses it at a time.
type Policy struct {
	kind    Kind
	layers  []layer
	reuse   *reuse    // nil for other policies than Ours
	scratch []float64 // by expert
}

// layer is what is known of a layer's experts.
type layer struct {
	time    int       // how often it was computed
	used    []int     // by expert: when last; 0: never
	uses    []int     // by expert: how often
	arrived []int     // by expert: the number of its arrival; 0: it is not there
	number  int       // of the last arrival
	again   []int     // by expert: when last used since it arrived; 0: it was not
	future  [][]int   // by expert: the times of its uses that are to come; Belady
	prices  []float64 // by expert: what it costs to bring; nil: all cost the same. Only Ours uses them
}

// New makes a policy for layers of so many experts each. Belady needs Foresee, too.
func New(kind Kind, experts []int) *Policy {
	p := &Policy{kind: kind, layers: make([]layer, len(experts))}
	for i, n := range experts {
		p.layers[i] = layer{used: make([]int, n), uses: make([]int, n), arrived: make([]int, n), again: make([]int, n)}
	}
	p.scratch = make([]float64, slices.Max(append(experts[:len(experts):len(experts)], 0)))
	if kind == Ours {
		p.reuse = newReuse(experts)
	}
	return p
}

// Foresee tells Belady which experts a layer will use each time that it is computed.
func (p *Policy) Foresee(l int, uses [][]int32) {
	x := &p.layers[l]
	x.future = make([][]int, len(x.used))
	for t, experts := range uses {
		for _, e := range experts {
			x.future[e] = append(x.future[e], x.time+t+1)
		}
	}
}

// Price sets what it costs to bring each expert of a layer; without it all cost the same. Experts that wait in
// memory come sooner than those on disk. Only Ours takes prices into account.
func (p *Policy) Price(l int, prices []float64) { p.layers[l].prices = prices }

// Touch records which experts the rows of a step chose, each one once. It is called before any of them arrives for
// the step.
func (p *Policy) Touch(l int, experts []int32) {
	x := &p.layers[l]
	x.time++
	if p.reuse != nil {
		p.reuse.touch(l, experts)
	}
	for _, e := range experts {
		x.used[e] = x.time
		x.uses[e]++
		if x.arrived[e] > 0 {
			x.again[e] = x.time
		}
		if f := x.future; f != nil && len(f[e]) > 0 && f[e][0] <= x.time {
			f[e] = f[e][1:]
		}
	}
}

// Arrive records that an expert has a slot, or will have it as soon as it is read.
func (p *Policy) Arrive(l, expert int) {
	x := &p.layers[l]
	x.number++
	x.arrived[expert], x.again[expert] = x.number, 0
}

// Leave records that an expert has no slot any more.
func (p *Policy) Leave(l, expert int) { p.layers[l].arrived[expert] = 0 }

// Victim is the expert that leaves first, of some that have slots; there is at least one. Of equals it is the one
// that arrived last: then the others stay, and are there when their turn comes again.
func (p *Policy) Victim(l int, among []int32) int {
	x, worth, best := &p.layers[l], p.worths(l, among), 0
	for i, e := range among {
		if worth[i] < worth[best] || worth[i] == worth[best] && x.arrived[e] > x.arrived[among[best]] {
			best = i
		}
	}
	return int(among[best])
}

// worths gives each of some experts a number: the one with the least leaves. The slice is valid until the next call.
func (p *Policy) worths(l int, among []int32) []float64 {
	worth := p.scratch[:len(among)]
	if p.kind == Ours {
		p.reuse.expect(l, among, worth)
		if x := &p.layers[l]; x.prices != nil {
			p.reuse.certain(x.time, len(x.used), worth)
			for i, e := range among {
				worth[i] *= x.prices[e]
			}
		}
		return worth
	}
	for i, e := range among {
		worth[i] = p.layers[l].worth(p.kind, e)
	}
	return worth
}

// worth is the number of an expert for policies that do not measure reuse.
func (x *layer) worth(k Kind, e int32) float64 {
	switch k {
	case LFU:
		return float64(x.uses[e])
	case SLRU:
		return x.segmented(int(e))
	case Belady:
		if x.future == nil || len(x.future[e]) == 0 {
			return math.Inf(-1)
		}
		return -float64(x.future[e][0])
	}
	return float64(x.used[e])
}

// segmented is the worth of an expert in SLRU: when it was last used; and much more if it was used since it arrived,
// unless as many experts as half of the slots were used again later than it.
func (x *layer) segmented(e int) float64 {
	const protected = 1 << 40
	if x.again[e] == 0 {
		return float64(x.used[e])
	}
	newer, there := 0, 0
	for i := range x.again {
		if x.arrived[i] > 0 {
			there++
			if x.again[i] > x.again[e] {
				newer++
			}
		}
	}
	if newer >= there/2 {
		return float64(x.used[e])
	}
	return protected + float64(x.used[e])
}
