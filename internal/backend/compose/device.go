// Package compose is a device made of several: each computes some segments of a program, with weights and caches of its
// own and its own arithmetic. Who drives it sees one device (docs/adr/0046).
//
// Any of them may compute within Run or beside the program. A value that one hands to another is copied through the
// program's memory, just after the segment that writes it: the goroutine that runs the step waits there for the value.
// So a step goes through its devices in turn, and each computes while those before it have begun the next step.
package compose

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Device computes what Layout.Devices gives to each of its devices, or all on the last one.
type Device struct {
	backend.Device // the last one
	devices        []backend.Device
}

// New composes devices, the host first. They are closed with the composition.
func New(devices ...backend.Device) *Device {
	return &Device{Device: devices[len(devices)-1], devices: devices}
}

// Traits are the last device's, except those that depend on all, and those that one of them needs to have: each device
// refuses for itself what it cannot do. Steps in flight are as many as every device allows
// that computes beside the program: any other one has ended a step before the next begins.
func (d *Device) Traits() backend.Traits {
	t := d.Device.Traits()
	t.Devices = nil
	var aparts []func(*ir.Bound) bool
	for _, x := range d.devices {
		of := x.Traits()
		of.Name = x.Name()
		t.Devices = append(t.Devices, of)
		if of.Threads == 0 {
			t.Flight = min(t.Flight, of.Flight)
		}
		if of.Apart != nil {
			aparts = append(aparts, of.Apart)
		}
		t.Clock, t.Halves, t.Shares = t.Clock || of.Clock, t.Halves || of.Halves, t.Shares || of.Shares
	}
	if len(aparts) > 0 {
		t.Apart = func(p *ir.Bound) bool {
			return slices.ContainsFunc(aparts, func(apart func(*ir.Bound) bool) bool { return apart(p) })
		}
	}
	return t
}

// Close closes all of them, the last one first.
func (d *Device) Close() error {
	var errs []error
	for _, x := range slices.Backward(d.devices) {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// Compile compiles the program for one device, or parts of it for several.
func (d *Device) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	if c.Devices == nil {
		return d.Device.Compile(p, c)
	}
	if err := c.Check(p, d.Traits()); err != nil {
		return nil, err
	}
	m := &model{program: p.Program, config: c, devices: len(d.devices), entered: -1}
	if err := m.compile(d, p); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *model) compile(d *Device, p *ir.Bound) error {
	segments := make([][]int, len(d.devices))
	for s, at := range m.config.Devices {
		segments[at] = append(segments[at], s)
	}
	var err error
	if m.links, err = newLinks(p, m.config.Devices, m.config.MaxRows); err != nil {
		return err
	}
	m.of, m.writers = make([]*member, len(p.Segments)), make([]int, len(p.Widths))
	config := m.config
	config.Crossing = m.links.memory
	for at, mine := range segments {
		if len(mine) == 0 {
			continue
		}
		x, err := newMember(d.devices[at], p, config, mine, m.ran)
		x.device, m.members = at, append(m.members, x)
		if err != nil {
			return fmt.Errorf("on %s: %w", d.devices[at].Name(), err)
		}
		for _, s := range mine {
			m.of[s] = x
		}
		m.Joined = append(m.Joined, x)
	}
	m.steps = m.of[len(m.of)-1].ring
	for i, s := range m.steps {
		m.ends = append(m.ends, m.newEnding(i, s))
	}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			m.writers[p.Segments[s].Nodes[i].Out] = s
		}
	}
	return nil
}
