package place

import (
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Speeds are what a machine was measured to do, a second. 0: it is not known.
type Speeds struct {
	Disk     float64 // bytes read past the page cache, with many reads under way
	Bus      float64 // bytes copied from the program's memory to the device's own
	Memory   float64 // bytes read by all threads that compute, or by the device
	Multiply float64 // integer operations of theirs, a multiplication and an addition being two

	HostMemory, HostMultiply float64 // Memory and Multiply of what computes in the program's memory beside a device
}

// What kernels reach of Memory when a few rows are computed, and of Multiply with long prompts: docs/performance.md.
const (
	reachMemory   = 0.85
	reachMultiply = 0.5
)

// Expected is what a plan should come to.
type Expected struct {
	Decode   float64 // tokens a second, of all sequences together
	Prefill  float64 // of one long prompt
	Streamed float64 // bytes read from disk for each token of Decode
	Copied   float64 // bytes copied to the device's own memory for it
	Hits     float64 // share of the experts' uses that find them there, in Decode
}

// Expect is what the model should reach with one row of so many sequences in each step, each with some positions
// before it. Which experts rows choose is not known; they are taken to choose evenly, so that trained models, which do
// not, should be faster.
//
// Reading and computing overlap. Dense groups are read ahead, all the time. Experts of a layer are read when its router
// has chosen: while those that are there are computed, and those that have come. So the last of them is left.
func (m *Model) Expect(p *ir.Bound, s Speeds, sequences, positions int) (e Expected) {
	rows := float64(max(sequences, 1))
	device, host := m.cost(p, rows)
	here, there := m.cacheBytes(p)
	device.remember(float64(here) * float64(positions) * rows)
	host.remember(float64(there) * float64(positions) * rows)
	memory, beside := s.Memory*reachMemory, s.HostMemory*reachMemory
	e.Streamed, e.Copied = (device.read()+host.read())/rows, device.moved()/rows
	if e.Hits = 1; device.uses+host.uses > 0 {
		e.Hits = 1 - (device.missed+host.missed)/(device.uses+host.uses)
	}
	e.Decode = perSecond(rows, device.decode(s.Disk, s.Bus, memory)+host.decode(s.Disk, s.Bus, beside))
	chunk := float64(m.Rows)
	device, host = m.cost(p, chunk)
	if s.Multiply <= 0 && (host.ops == 0 || s.HostMultiply <= 0) {
		return e // what bounds it is not known
	}
	// The host computes a chunk while the device computes the one before.
	e.Prefill = perSecond(chunk, max(device.prefill(&s, memory, s.Multiply), host.prefill(&s, beside, s.HostMultiply)))
	return e
}

// remember counts bytes of a cache that are read.
func (x *step) remember(bytes float64) {
	x.computed += bytes
	x.dense += bytes
}

// prefill is the seconds of a step of many rows.
func (x *step) prefill(s *Speeds, memory, multiply float64) float64 {
	return max(over(x.ops, multiply*reachMultiply), over(x.computed, memory), over(x.read(), s.Disk),
		over(x.moved(), s.Bus))
}

// cacheBytes is the KV of a position, in all layers of the device, and of its host.
func (m *Model) cacheBytes(p *ir.Bound) (device, host int64) {
	layout := &m.Parts[0].Layout
	var there []bool
	if layout.OnHost != nil {
		_, there, _ = p.Only(layout.OnHost).Used()
	}
	for i, l := range p.KV {
		if there != nil && there[i] {
			host += int64(layout.KV.BlockBytes(l))
		} else {
			device += int64(layout.KV.BlockBytes(l))
		}
	}
	return device / backend.BlockSize, host / backend.BlockSize
}

// step is what one step comes to.
type step struct {
	computed float64 // bytes of weights and caches
	dense    float64 // of these, what is no expert's
	ops      float64
	ring     float64 // bytes of dense groups that are read from disk
	kept     float64 // of those that are copied from the program's memory
	apart    bool    // the device has memory of its own
	layers   []mixture
	uses     float64 // of experts, in all layers
	missed   float64 // of these
}

// mixture is the experts of a layer that a step uses, in bytes: those that are there, those that are copied, and those
// that are read; last is what is left to compute when they have all come.
type mixture struct{ there, kept, missing, last float64 }

// read is the bytes that the step reads from disk.
func (x *step) read() float64 {
	bytes := x.ring
	for _, l := range x.layers {
		bytes += l.missing
	}
	return bytes
}

// moved is the bytes that the step copies to the device, with those that were read for it.
func (x *step) moved() float64 {
	if !x.apart {
		return 0
	}
	bytes := x.kept + x.ring
	for _, l := range x.layers {
		bytes += l.kept + l.missing
	}
	return bytes
}

// decode is the seconds of the step.
func (x *step) decode(disk, bus, memory float64) float64 {
	seconds := over(x.dense, memory)
	for _, l := range x.layers {
		seconds += max(over(l.missing, disk), over(l.kept, bus), over(l.there, memory)) + over(l.last, memory)
	}
	return max(seconds, over(x.read(), disk), over(x.moved(), bus))
}

// cost adds up a step of so many rows: what the device does of it, and what its host does.
func (m *Model) cost(p *ir.Bound, rows float64) (device, host *step) {
	device, host = &step{apart: m.apart}, &step{}
	of := func(g *ir.Group) *step {
		if slices.Contains(m.Parts[0].Layout.OnHost, g.Segment) {
			return host
		}
		return device
	}
	shelves := map[int]*Shelf{}
	part := &m.Parts[0]
	for i := range part.Shelves {
		shelves[part.Shelves[i].Segment] = &part.Shelves[i]
	}
	for _, g := range part.Ring.Groups {
		x := of(&m.Homes[g].Group)
		if bytes := float64(m.Homes[g].Group.Bytes); m.Homes[g].Kept() {
			x.kept += bytes
		} else {
			x.ring += bytes
		}
	}
	for s := 0; s < len(m.Homes); {
		g := &m.Homes[s].Group
		if g.Expert == ir.Dense {
			of(g).add(p, g, rows)
			s++
			continue
		}
		end := s
		for end < len(m.Homes) && m.Homes[end].Group.Segment == g.Segment && m.Homes[end].Group.Expert != ir.Dense {
			end++
		}
		of(g).mix(p, m.Homes[s:end], shelves[g.Segment], rows)
		s = end
	}
	return device, host
}

// add counts a dense group. Of a table a row is read.
func (x *step) add(p *ir.Bound, g *ir.Group, rows float64) {
	if g.Use == ir.Table {
		return
	}
	x.computed += float64(g.Bytes)
	x.dense += float64(g.Bytes)
	if g.Use == ir.Vector {
		return
	}
	if p.Segments[g.Segment].Kind.Ends() {
		rows = 1 // of a prompt one row is wanted; of a step that decodes reading counts
	}
	x.ops += 2 * rows * values(p, g)
}

// mix counts the experts of a layer. Of E experts, rows that choose k each use E·(1−(1−k/E)ⁿ).
func (x *step) mix(p *ir.Bound, homes []Home, shelf *Shelf, rows float64) {
	g := &homes[0].Group
	experts, chosen := float64(len(homes)), float64(used(p, g.Segment))
	touched := experts * (1 - math.Pow(1-chosen/experts, rows))
	here := 1.0
	if shelf != nil {
		here = float64(len(shelf.Slots)) / experts
	}
	bytes := touched * float64(g.Bytes)
	x.computed += bytes
	x.ops += 2 * rows * chosen * values(p, g)
	x.uses += touched
	x.missed += touched * (1 - here)
	kept := 0.0
	for i := range homes {
		if homes[i].Kept() {
			kept += (1 - here) / experts
		}
	}
	x.layers = append(x.layers, mixture{
		there: bytes * here, kept: bytes * kept, missing: bytes * (1 - here - kept),
		last: min(bytes*(1-here), float64(g.Bytes)),
	})
}

// values is the number of weights of a group.
func values(p *ir.Bound, g *ir.Group) (n float64) {
	for _, r := range g.Weights {
		from, to := g.Rows(&p.Weights[r])
		n += float64(to-from) * float64(p.Weights[r].Cols)
	}
	return n
}

// over is the time that an amount takes; none at a speed that is not known.
func over(amount, speed float64) float64 {
	if speed <= 0 {
		return 0
	}
	return amount / speed
}

// perSecond is 0 if the time is not known.
func perSecond(tokens, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return tokens / seconds
}
