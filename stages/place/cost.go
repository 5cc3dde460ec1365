package place

import (
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Speeds is what a machine was measured to do, a second. 0: it is not known.
type Speeds struct {
	Disk    float64 // bytes read past the page cache, with many reads under way
	Devices []Speed // by device, the host first; of those that are not here nothing is known
}

// Speed is what a device was measured to do, with the link between it and the program's memory.
type Speed struct {
	Memory   float64 // bytes read by all threads that compute, or by the device
	Multiply float64 // integer operations of the same, a multiplication and an addition being two
	Attend   float64 // operations of the same in products of floats, from a core's cache, counted likewise
	Gate     float64 // values x/(1+e⁻ˣ) of the same

	// Of a device with memory of its own:
	Bus    float64 // bytes copied there from the program's memory
	Copy   float64 // seconds that each copy takes beside its bytes, among others
	Launch float64 // seconds of a kernel that waits for the one before it
	Turn   float64 // seconds from a submission until the host has seen its end
}

// of is what is known of a device.
func (s *Speeds) of(device int) (x Speed) {
	if device < len(s.Devices) {
		x = s.Devices[device]
	}
	return x
}

// Fractions of the measured peaks (Speed.Memory, Speed.Multiply) that kernels reach: of Memory in steps of few rows, of
// Multiply in long prompts (docs/performance.md). A GPU's kernels reach nearly all of Memory, but wait for one another
// (docs/gpu-figures.md).
const (
	reachMemory   = 0.85
	reachOwn      = 0.95
	reachMultiply = 0.5
	reachAttend   = 0.6  // of Attend, besides its weights: docs/history/performance.md, attention at depth
	reachGate     = 0.75 // of Gate: a value of those that arithmetic counts is a little more work, in the mean

	launches        = 16  // kernels in a row of a dense layer, or of attention and a router: fits whole steps
	launchesExperts = 17  // the same of the experts of a layer
	turns           = 1.5 // Turns of a router's choice, or of a value that crosses devices: the host has a part in them
)

// Expected is the speed that is predicted for a plan.
type Expected struct {
	Decode   float64 // tokens a second, of all sequences together
	Prefill  float64 // tokens a second of one prompt, in steps of Rows, behind the positions
	Streamed float64 // bytes read from disk for each token of Decode
	Copied   float64 // bytes copied to the device's own memory for it
	Hits     float64 // share of the experts' uses that find them there, in Decode

	// The above holds in the long run, when shared slots hold what is worth most there. At first they are empty.
	First float64 // tokens a second of the first FirstTokens, behind no positions; 0: as Decode
	Fill  float64 // bytes that are read from disk once to fill the slots
}

// FirstTokens is the number of tokens that Expected.First is about.
const FirstTokens = 32

// Expect predicts the speed of steps with one row for each of so many sequences, each with some positions before it.
// Which experts rows choose is not known; they are taken to choose evenly, so that trained models, which do not,
// should be faster.
//
// Reading and computing overlap. Dense groups are read ahead, all the time. Experts of a layer are read when its
// router has chosen, while those that are there, and those that have come, are computed: so only the last one is
// left to compute when all have come.
func (m *Model) Expect(p *ir.Bound, s Speeds, sequences, positions int) (e Expected) {
	rows := float64(max(sequences, 1))
	steps, caches := m.cost(p, rows), m.cacheBytes(p)
	uses, missed, seconds := 0.0, 0.0, 0.0
	for d := len(steps) - 1; d >= 0; d-- { // one computes after the other
		x := steps[d]
		x.remember(float64(caches[d]) * float64(positions) * rows)
		e.Streamed, e.Copied = e.Streamed+x.read()/rows, e.Copied+x.moved()/rows
		uses, missed = uses+x.uses, missed+x.missed
		seconds += x.decode(&s, d)
		e.Fill += x.fill()
	}
	if e.Hits = 1; uses > 0 {
		e.Hits = 1 - missed/uses
	}
	e.Decode = perSecond(rows, seconds)
	if e.Fill > 0 {
		e.First = first(&s, rows, steps)
	}
	e.Prefill = m.prefill(p, &s, float64(m.Rows), float64(positions))
	return e
}

// prefill is the tokens a second of a prompt that is computed in chunks of so many rows, behind some positions; 0:
// not known.
func (m *Model) prefill(p *ir.Bound, s *Speeds, chunk, positions float64) float64 {
	steps, known := m.cost(p, chunk), false
	for d, x := range steps {
		known = known || x.ops > 0 && s.of(d).Multiply > 0
	}
	if !known {
		return 0
	}
	longest, all := 0.0, 0.0
	for _, took := range m.reading(p, s, steps, chunk, positions) {
		longest, all = max(longest, took), all+took
	}
	if m.HostExperts(p.Program) == 0 {
		return perSecond(chunk, longest) // a device computes a chunk while the next one computes the one before
	}
	return perSecond(chunk, all)
}

// reading is the seconds that each device takes for its part of a step with a chunk of a prompt.
func (m *Model) reading(p *ir.Bound, s *Speeds, steps []*step, chunk, positions float64) (seconds []float64) {
	m.arithmetic(p, steps, chunk, positions)
	for d, x := range steps {
		seconds = append(seconds, x.prefill(s, d))
	}
	return seconds
}

// first is the tokens a second of the first FirstTokens steps, of so many rows each, while shared slots fill. The
// drive is taken to read all the time, for steps that wait or to fill slots, and what it reads stays, until the
// slots hold what they will in the long run.
func first(s *Speeds, rows float64, steps []*step) float64 {
	seconds, fill, there := 0.0, 0.0, 0.0
	for _, x := range steps {
		fill += x.fill()
	}
	for range FirstTokens {
		took := 0.0
		for d, x := range steps {
			took += x.lacking(1-there/fill).decode(s, d)
		}
		seconds += took
		there = min(fill, there+took*s.Disk)
	}
	return perSecond(FirstTokens*rows, seconds)
}

// lacking is the step while a share (0 to 1) of what will stay in shared slots is still on disk.
func (x *step) lacking(share float64) *step {
	y := *x
	y.layers = slices.Clone(x.layers)
	for i := range y.layers {
		l := &y.layers[i]
		l.there, l.missing = l.there-share*l.stays, l.missing+share*l.stays
	}
	return &y
}

// fill is the bytes of experts that are read from disk once, and then stay in slots.
func (x *step) fill() (bytes float64) {
	for _, l := range x.layers {
		bytes += l.fill
	}
	return bytes
}

// reach is the fraction of Speed.Memory that the step's kernels reach.
func (x *step) reach(s *Speed) float64 {
	if x.apart && s.Launch > 0 {
		return reachOwn
	}
	return reachMemory
}

// remember adds bytes of a cache that the step reads.
func (x *step) remember(bytes float64) {
	x.computed += bytes
	x.dense += bytes
}

// prefill is the seconds of a step of many rows on a device. All arithmetic is done one after the other, by all
// threads.
func (x *step) prefill(all *Speeds, device int) float64 {
	s := all.of(device)
	computing := over(x.ops, s.Multiply*reachMultiply) + over(x.attend, s.Attend*reachAttend) +
		over(x.values, s.Gate*reachGate)
	took := max(computing, over(x.computed, s.Memory*x.reach(&s)), over(x.read(), all.Disk), over(x.moved(), s.Bus))
	if x.apart { // its link is waited for
		took += x.reached(&s)
	}
	return took
}

// cacheBytes is the KV of a position, in all layers of each device.
func (m *Model) cacheBytes(p *ir.Bound) []int64 {
	bytes := make([]int64, len(m.Takes))
	layers, _ := (&Ask{Program: p}).holders(m.Devices)
	for i, l := range p.KV {
		bytes[layers[i]] += int64(m.Layout.KV.Of(i, p.Classes[l.Class]).BlockBytes(l))
	}
	for d := range bytes {
		bytes[d] /= backend.BlockSize
	}
	return bytes
}

// step is what one device does in one step.
type step struct {
	computed float64 // bytes of weights and caches
	dense    float64 // of these, all but those of experts
	ops      float64 // integer operations of products with weights
	attend   float64 // operations on floats, with positions or states
	values   float64 // values that are computed one by one
	ring     float64 // bytes of dense groups that are read from disk
	kept     float64 // bytes of dense groups that are copied from the program's memory
	copies   float64 // their number
	apart    bool    // the device has memory of its own
	launches float64 // of kernels that wait for one another
	link
	layers []mixture
	uses   float64 // of experts, in all layers
	missed float64 // of these
}

// mixture is the experts of a layer that a step uses, in bytes: those that are there, those that are copied, and those
// that are read.
type mixture struct {
	there, kept, missing float64

	last   float64 // bytes that are left to compute from when all have come
	copies float64 // their number
	stays  float64 // of there, those that were read from disk
	fill   float64 // bytes of all experts of the layer that are read from disk once and stay
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

// decode is the seconds of the step on a device.
func (x *step) decode(all *Speeds, device int) float64 {
	s := all.of(device)
	memory := s.Memory * x.reach(&s)
	seconds, copies := over(x.dense, memory), x.copies
	if x.apart {
		seconds += x.launches*s.Launch + x.reached(&s)
	}
	for _, l := range x.layers {
		copied := over(l.kept, s.Bus) + l.copies*s.Copy
		copies += l.copies
		seconds += max(over(l.missing, all.Disk), copied, over(l.there, memory)) + over(l.last, memory)
		if x.apart && l.shares {
			seconds += turns * s.Turn
		}
	}
	return max(seconds, over(x.read(), all.Disk), over(x.moved(), s.Bus)+copies*s.Copy)
}

// cost adds up what each device does of a step of so many rows.
func (m *Model) cost(p *ir.Bound, rows float64) []*step {
	steps := make([]*step, len(m.Takes))
	for d := range steps {
		steps[d] = &step{apart: m.sides[d].own, link: link{away: m.sides[d].away}}
	}
	m.visit(p, rows, steps)
	for _, c := range backend.Crossings(p, m.Devices) {
		bytes := 4 * rows * float64(p.Widths[c.Value])
		if c.From >= 0 {
			steps[m.Devices[c.From]].crosses++
			steps[m.Devices[c.From]].crossing += bytes
		}
		steps[m.Devices[c.To]].crosses++
		steps[m.Devices[c.To]].crossing += bytes
	}
	of := func(g *ir.Group) *step { return steps[m.Devices[g.Segment]] }
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
	return steps
}

// add counts a dense group. A table counts as nothing: one row of it is read.
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

// mix counts the experts of a layer. Rows that choose k of E experts each use E·(1−(1−k/E)ⁿ) together, if there are
// n rows.
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
	// Experts on disk keep slots before those that are copied, but for the slots that the copies of a step go
	// through.
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

// perSecond is tokens over seconds; 0 if the time is not known.
func perSecond(tokens, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return tokens / seconds
}
