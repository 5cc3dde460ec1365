package paint

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Room is where networks are computed, and how much memory the weights of a file may take there. What has no room is
// read whenever a step comes to it.
type Room struct {
	backend.Device
	Bytes  int64          // 0: all that is free
	Supply *supply.Supply // brings what has no room; nil: all of it has to have some

	plans func([]*ir.Bound) []place.Model // of tests, instead of plan
}

// Budget is how many bytes the weights of a file's programs may take, if not all of them have room; 0: all do.
func (r *Room) Budget(programs ...*ir.Bound) int64 {
	free, whole := mem.Available(), int64(0)
	for _, p := range programs {
		used, _, _ := p.Used()
		for ref := range used {
			if used[ref] {
				whole += p.Size(ir.Ref(ref))
			}
		}
	}
	switch {
	case whole <= free && (r.Bytes == 0 || whole <= r.Bytes):
		return 0
	case r.Bytes > 0 && r.Bytes <= free:
		return r.Bytes
	}
	return place.ForWeights(free, false)
}

// plan says where the weights of a file's programs, which are computed one after another, have their homes; nil: all of
// them stay in memory.
func (r *Room) plan(f *gguf.File, programs ...*ir.Bound) ([]place.Model, error) {
	if r.plans != nil {
		return r.plans(programs), nil
	}
	budget := r.Budget(programs...)
	switch {
	case budget == 0:
		return nil, nil
	case r.Supply == nil:
		return nil, fmt.Errorf("%s: its weights take more memory than the %d MB that they may have", f.Name, budget>>20)
	}
	plans, err := place.Together(programs, budget)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return plans, nil
}

// fits is an error if a file's weights, all of which have to stay, have no room.
func (r *Room) fits(f *gguf.File) error {
	var bytes int64
	for i := range f.Tensors {
		bytes += f.Tensors[i].Size
	}
	if free := mem.Available(); bytes > free {
		return fmt.Errorf("%s: its weights take %d MB of memory, and %d are free", f.Name, bytes>>20, free>>20)
	}
	if r.Bytes > 0 && bytes > r.Bytes {
		return fmt.Errorf("%s: its weights take %d MB, all of which stay in memory: ask for at least %dM", f.Name, bytes>>20,
			(bytes+1<<20-1)>>20)
	}
	return nil
}

// networks gives each program of a file a network of one model, with its weights or the way on which they come. list
// says what the programs' tensors are in the file.
func (r *Room) networks(f *gguf.File, list []pixels.Tensor, programs ...*ir.Bound) ([]*blocks.Network, error) {
	plans, err := r.plan(f, programs...)
	if err != nil {
		return nil, err
	}
	all := make([]*blocks.Network, len(programs))
	for i, p := range programs {
		all[i] = &blocks.Network{Bound: p, Runs: [][]int{p.All()}}
		if plans != nil && plans[i].Streams() {
			err = errors.Join(err, r.haul(all[i], p, f, list, &plans[i]))
		}
	}
	for i, n := range all {
		if err == nil {
			n.Weights, err = r.weights(n, programs[i], f, list)
		}
		if err != nil {
			return nil, errors.Join(err, closed(all))
		}
	}
	return all, nil
}

// closed closes networks.
func closed(all []*blocks.Network) error {
	var errs []error
	for _, n := range all {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// haul has the weights of a program, or of a part of one, come to its network as a plan says.
func (r *Room) haul(n *blocks.Network, p *ir.Bound, f *gguf.File, list []pixels.Tensor, plan *place.Model) error {
	for _, g := range plan.Ring.Groups {
		for _, ref := range plan.Homes[g].Group.Weights {
			if t := &list[p.Tensors[ref]]; t.From != p.Tensors[ref] || t.Turn != 0 {
				return fmt.Errorf("%s: %.80q is in another order than it is computed in, and cannot be streamed", f.Name, t.Name)
			}
		}
	}
	n.Haul = r.Supply.Haul(tiers.Source{File: f.Share(), Bound: p, Plan: plan})
	n.From = func(ref ir.Ref, use func([]byte) error) error {
		if err := ended(r.Device); err != nil {
			return err
		}
		t := &list[n.Tensors[ref]]
		return f.View(&f.Tensors[t.From], func(data []byte) (err error) {
			if t.Turn != 0 {
				if data, err = t.Turned(data); err != nil {
					return err
				}
			}
			return use(data)
		})
	}
	return nil
}

// weights copies the weights of a program, or of a part of one, in its order, unless nobody wants what the device
// computes any more. Where they come by a haul, they are those that no file has.
func (r *Room) weights(n *blocks.Network, p *ir.Bound, f *gguf.File, list []pixels.Tensor) ([][]byte, error) {
	all := make([][]byte, len(p.Weights))
	used, _, _ := p.Used()
	for ref, i := range p.Tensors {
		if err := ended(r.Device); err != nil {
			return nil, err
		}
		switch t := list[i]; {
		case !used[ref]:
			continue
		case t.From == pixels.Computed:
			all[ref] = make([]byte, p.Size(ir.Ref(ref)))
			continue
		case n.Haul != nil:
			continue
		}
		err := f.View(&f.Tensors[list[i].From], func(data []byte) (err error) {
			all[ref], err = list[i].Turned(data)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return all, nil
}
