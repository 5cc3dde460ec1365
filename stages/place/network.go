package place

import "github.com/sluice-ai/sluice/internal/ir"

// link is what passes between the program's memory and a device in a step.
type link struct {
	away     bool    // the device is on another machine
	visits   float64 // of the step there: one message goes and one comes
	crosses  float64 // values that go there, or from there
	crossing float64 // bytes of these
}

// Traffic is what a step passes through the network to a device on another machine.
type Traffic struct {
	Device  int     // by number
	Visits  float64 // how often a message goes there and one comes back
	Bytes   float64 // of values, both ways
	Seconds float64 // that takes, by what was measured: however fast devices are, a step takes them; 0: not known
}

// Traffic lists devices on other machines that compute some of the model, for steps with one row of each sequence.
func (m *Model) Traffic(p *ir.Bound, s Speeds, sequences int) (all []Traffic) {
	for d, x := range m.cost(p, float64(max(sequences, 1))) {
		if of := s.of(d); x.away && x.visits > 0 {
			all = append(all, Traffic{d, x.visits, x.crossing, x.reached(&of)})
		}
	}
	return all
}

// visit counts how often a step goes to each device, and the logits that come back from another machine.
func (m *Model) visit(p *ir.Bound, rows float64, steps []*step) {
	for s, d := range m.Devices {
		if s == 0 || m.Devices[s-1] != d {
			steps[d].visits++
		}
	}
	if end := steps[m.Devices[len(m.Devices)-1]]; end.away {
		end.crossing += 4 * min(rows, float64(m.Sequences)) * float64(p.OutputWidth())
	}
}

// reached is the seconds of a step in which values come to a device and leave it.
func (x *link) reached(s *Speed) float64 {
	if x.away { // a message brings all of them
		return x.visits*s.Turn + over(x.crossing, s.Bus)
	}
	return x.crosses*turns*s.Turn + over(x.crossing, s.Bus)
}
