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
	Attend   float64 // operations of theirs in products of floats, from a core's cache, likewise
	Gate     float64 // values x/(1+e⁻ˣ) of theirs

	// The same of what computes in the program's memory beside a device.
	HostMemory, HostMultiply, HostAttend, HostGate float64

	// Of a device with memory of its own, in seconds beside the work that there is:
	Copy   float64 // of a copy to it, among others
	Launch float64 // of a kernel that waits for the one before it
	Turn   float64 // from when something is submitted until the host has seen its end
}

// What kernels reach of Memory when a few rows are computed, and of Multiply with long prompts: docs/performance.md. A
// device's own kernels reach nearly all of Memory, but wait for one another: docs/gpu-figures.md.
const (
	reachMemory   = 0.85
	reachOwn      = 0.95
	reachMultiply = 0.5
	reachAttend   = 0.6  // of Attend, besides its weights: docs/history/performance.md, attention at depth
	reachGate     = 0.75 // of Gate: a value of those that arithmetic counts is a little more work, in the mean

	launches        = 16  // that a dense layer waits for, or attention and a router: what whole steps take, by their bytes
	launchesExperts = 17  // and its experts
	turns           = 1.5 // of a router's choice, or a value that crosses: the host has a part in them
)

// Expected is what a plan should come to.
type Expected struct {
	Decode   float64 // tokens a second, of all sequences together
	Prefill  float64 // of the rows of one step, of one prompt, behind the positions
	Streamed float64 // bytes read from disk for each token of Decode
	Copied   float64 // bytes copied to the device's own memory for it
	Hits     float64 // share of the experts' uses that find them there, in Decode

	// All that is of the long run, when shared slots hold what is worth most there. At first they are empty.
	First float64 // tokens a second of the first FirstTokens, with nothing before them; 0: as Decode
	Fill  float64 // bytes that are read from disk once, until then
}

// FirstTokens are those of Expected.First.
const FirstTokens = 32

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
	memory, beside := device.reach(&s)*s.Memory, s.HostMemory*reachMemory
	e.Streamed, e.Copied = (device.read()+host.read())/rows, device.moved()/rows
	if e.Hits = 1; device.uses+host.uses > 0 {
		e.Hits = 1 - (device.missed+host.missed)/(device.uses+host.uses)
	}
	e.Decode = perSecond(rows, device.decode(&s, memory)+host.decode(&s, beside))
	if e.Fill = device.fill() + host.fill(); e.Fill > 0 {
		e.First = first(&s, rows, [2]*step{device, host}, [2]float64{memory, beside})
	}
	e.Prefill = m.prefill(p, &s, float64(m.Rows), float64(positions))
	return e
}

// prefill is the tokens a second of a chunk of a prompt behind some positions; 0: what bounds it is not known.
func (m *Model) prefill(p *ir.Bound, s *Speeds, chunk, positions float64) float64 {
	device, host := m.cost(p, chunk)
	if s.Multiply <= 0 && (host.ops == 0 || s.HostMultiply <= 0) {
		return 0
	}
	own, beside := m.reading(p, s, device, host, chunk, positions)
	if m.HostExperts(p.Program) == 0 {
		return perSecond(chunk, max(own, beside)) // the host computes a chunk while the device computes the one before
	}
	return perSecond(chunk, own+beside)
}

// reading is the seconds of what the device does of a step with a chunk of a prompt, and of what its host does.
func (m *Model) reading(p *ir.Bound, s *Speeds, device, host *step, chunk, positions float64) (own, other float64) {
	m.arithmetic(p, device, host, chunk, positions)
	beside := Speeds{Disk: s.Disk, Memory: s.HostMemory, Multiply: s.HostMultiply, Attend: s.HostAttend, Gate: s.HostGate}
	return device.prefill(s), host.prefill(&beside)
}

// first is the tokens a second of the first ones, by as many rows each step. What drives give stays, until all is there
// that is to: a step that has to wait has them work, and so does what fills slots while it does not.
func first(s *Speeds, rows float64, of [2]*step, memory [2]float64) float64 {
	seconds, fill, there := 0.0, of[0].fill()+of[1].fill(), 0.0
	for range FirstTokens {
		took := 0.0
		for i, x := range of {
			took += x.lacking(1-there/fill).decode(s, memory[i])
		}
		seconds += took
		there = min(fill, there+took*s.Disk)
	}
	return perSecond(FirstTokens*rows, seconds)
}

// lacking is the step while a share of what will stay in shared slots is not there.
func (x *step) lacking(share float64) *step {
	y := *x
	y.layers = slices.Clone(x.layers)
	for i := range y.layers {
		l := &y.layers[i]
		l.there, l.missing = l.there-share*l.stays, l.missing+share*l.stays
	}
	return &y
}

// fill is the bytes of experts that are read from disk once, and stay.
func (x *step) fill() (bytes float64) {
	for _, l := range x.layers {
		bytes += l.fill
	}
	return bytes
}

// reach is how much of a memory's speed the step's kernels reach.
func (x *step) reach(s *Speeds) float64 {
	if x.apart && s.Launch > 0 {
		return reachOwn
	}
	return reachMemory
}

// remember counts bytes of a cache that are read.
func (x *step) remember(bytes float64) {
	x.computed += bytes
	x.dense += bytes
}

// prefill is the seconds of a step of many rows. All arithmetic is done one after the other, by all threads.
func (x *step) prefill(s *Speeds) float64 {
	computing := over(x.ops, s.Multiply*reachMultiply) + over(x.attend, s.Attend*reachAttend) +
		over(x.values, s.Gate*reachGate)
	return max(computing, over(x.computed, s.Memory*x.reach(s)), over(x.read(), s.Disk), over(x.moved(), s.Bus))
}

// cacheBytes is the KV of a position, in all layers of the device, and of its host.
func (m *Model) cacheBytes(p *ir.Bound) (device, host int64) {
	layout := &m.Layout
	var there []bool
	if layout.OnHost != nil {
		_, there, _ = p.Only(layout.OnHost).Used()
	}
	for i, l := range p.KV {
		if there != nil && there[i] {
			host += int64(layout.KV.Of(p.Classes[l.Class]).BlockBytes(l))
		} else {
			device += int64(layout.KV.Of(p.Classes[l.Class]).BlockBytes(l))
		}
	}
	return device / backend.BlockSize, host / backend.BlockSize
}

// step is what one step comes to.
type step struct {
	computed float64 // bytes of weights and caches
	dense    float64 // of these, what is no expert's
	ops      float64 // of whole numbers, with weights
	attend   float64 // of floats, with positions or states
	values   float64 // that are computed one by one
	ring     float64 // bytes of dense groups that are read from disk
	kept     float64 // of those that are copied from the program's memory
	copies   float64 // their number
	apart    bool    // the device has memory of its own
	launches float64 // of kernels that wait for one another
	crosses  float64 // values that go to it from its host, or there
	layers   []mixture
	uses     float64 // of experts, in all layers
	missed   float64 // of these
}

// mixture is the experts of a layer that a step uses, in bytes: those that are there, those that are copied, and those
// that are read.
type mixture struct {
	there, kept, missing float64

	last   float64 // what is left to compute when they have all come
	copies float64 // their number
	stays  float64 // of there, those that were read from disk
	fill   float64 // bytes of all experts of the layer that were, and stay
	shares bool    // they share slots
}

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
func (x *step) decode(s *Speeds, memory float64) float64 {
	seconds, copies := over(x.dense, memory), x.copies
	if x.apart {
		seconds += x.launches*s.Launch + x.crosses*turns*s.Turn
	}
	for _, l := range x.layers {
		copied := over(l.kept, s.Bus) + l.copies*s.Copy
		copies += l.copies
		seconds += max(over(l.missing, s.Disk), copied, over(l.there, memory)) + over(l.last, memory)
		if x.apart && l.shares {
			seconds += turns * s.Turn
		}
	}
	return max(seconds, over(x.read(), s.Disk), over(x.moved(), s.Bus)+copies*s.Copy)
}

// cost adds up a step of so many rows: what the device does of it, and what its host does.
func (m *Model) cost(p *ir.Bound, rows float64) (device, host *step) {
	device, host = &step{apart: m.apart, crosses: float64(m.crossings(p))}, &step{}
	of := func(g *ir.Group) *step { return m.whose(g.Segment, device, host) }
	shelves := map[int]*Shelf{}
	for i := range m.Shelves {
		shelves[m.Shelves[i].Segment] = &m.Shelves[i]
	}
	for _, g := range m.Ring.Groups {
		x := of(&m.Homes[g].Group)
		if bytes := float64(m.Homes[g].Group.Bytes); m.Homes[g].Kept() {
			x.kept += bytes
			x.copies++
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
	for i := range p.Segments {
		g := &ir.Group{Segment: i}
		switch p.Segments[i].Kind {
		case ir.SegMix, ir.SegRoute, ir.SegFFN:
			of(g).launches += launches / 2
		case ir.SegExperts:
			of(g).launches += launchesExperts
		}
	}
	return device, host
}

// whose is who computes a segment.
func (m *Model) whose(segment int, device, host *step) *step {
	if slices.Contains(m.Layout.OnHost, segment) {
		return host
	}
	return device
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
	bytes := touched * float64(g.Bytes)
	x.computed += bytes
	x.ops += 2 * rows * chosen * values(p, g)
	x.uses += touched
	if shelf == nil {
		x.layers = append(x.layers, mixture{there: bytes})
		return
	}
	// Those on disk stay before those that are copied, but for slots that the copies of a step go through.
	slots, kept := float64(len(shelf.Slots)), 0.0
	for i := range homes {
		if homes[i].Kept() {
			kept++
		}
	}
	read := experts - kept
	stay := min(read, max(slots-min(kept, touched), 0))
	copied := max(kept-(slots-stay), 0)
	x.missed += touched * (read - stay + copied) / experts
	each := bytes / experts // of an expert, by how likely it is to be used
	come := copied + read - stay
	x.layers = append(x.layers, mixture{there: each * (experts - come), kept: each * copied,
		missing: each * (read - stay), last: min(each*come, float64(g.Bytes)),
		copies: touched / experts * copied, stays: each * stay, fill: float64(g.Bytes) * stay, shares: true})
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
