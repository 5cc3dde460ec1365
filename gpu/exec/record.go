package exec

import (
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/plan"
)

// recording returns the recording of a shape of a step, made when it is needed first.
func (m *model) recording(x *entry, key recorded) (driver.Recording, error) {
	if r := x.recordings[key]; r != nil {
		return r, nil
	}
	return m.newRecording(x, key)
}

// newRecording records a shape. It is a function of its own since its key escapes to the heap, which recording avoids.
func (m *model) newRecording(x *entry, key recorded) (driver.Recording, error) {
	stamps := m.stamps(&key)
	r, err := m.device.queue.record(driver.Compute, stamps, func(r driver.Recording) error {
		if key.tells {
			x.experts.choices[key.From].record(r, m.layout.scratch, x.shape.Rows)
			return nil
		}
		return m.record(r, x, &key, stamps > 0)
	})
	if err == nil {
		x.recordings[key] = r
	}
	return r, err
}

// record records a stream of launches, with a timestamp at the begin and at the end if timed, and between segments if
// the key has detail.
func (m *model) record(r driver.Recording, x *entry, key *recorded, timed bool) error {
	var part *region
	if key.Portion == plan.Among && m.mixes(key.From) {
		part = x.experts.regions[key.From][key.Part]
	}
	r.Barrier() // behind what was submitted before
	if timed {
		r.Stamp()
	}
	segment := key.From
	reach := func(to int) {
		for ; segment < to; segment++ {
			if key.detail {
				r.Stamp()
			}
		}
	}
	for _, c := range m.layout.plan.Stream(&key.Shape, m.places(x, part)) {
		reach(c.Segment)
		if c.Barrier {
			r.Barrier()
		}
		if err := m.device.kernels.Launch(r, c.Launch); err != nil {
			return err
		}
	}
	reach(key.To)
	if timed {
		r.Stamp() // the output's copy and drawing count as the last
	}
	if key.Portion != plan.Before && key.Portion != plan.Among {
		r.BarrierToHost()
	}
	return nil
}
