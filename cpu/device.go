package cpu

import (
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/system"
)

// device is the CPU with one set of kernels and one pool of threads, which its models share.
type device struct {
	set  *kernels.Set
	isa  vec.ISA
	pool *pool
}

// New starts the CPU device on so many threads; 0 means one for each core. force is empty, or names the kernels to use
// (the value of SLUICE_CPU): "ref" is the slow oracle that all others are judged by.
func New(threads int, force string) (backend.Device, error) {
	if force == "ref" {
		return ref.New(), nil
	}
	set, err := kernels.Best(force)
	if err != nil {
		return nil, err
	}
	if threads < 0 || threads > 1024 {
		return nil, fmt.Errorf("%d threads: want 1 to 1024, or 0 for one on each core", threads)
	}
	if threads == 0 {
		threads = min(system.Cores(), 1024)
	}
	return &device{set: set, isa: set.Vec, pool: newPool(threads)}, nil
}

func (d *device) Name() string { return "cpu " + d.set.Name }

func (d *device) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	return compile(d, p, c)
}

// Traits: a step computes while it is enqueued, so there is one in flight.
func (d *device) Traits() backend.Traits {
	return backend.Traits{
		Flight: 1, Shares: true, Threads: d.pool.size(), Memory: backend.HostMemory,
	}
}

func (d *device) Close() error {
	d.pool.close()
	return nil
}
