//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-ai/sluice/gpu/cuda/cu"
	"github.com/sluice-ai/sluice/gpu/cuda/kernels"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
)

// Kernels loads modules for a card when their kernels are first recorded, and keeps them. Several goroutines may
// record, each into a recording of its own.
type Kernels struct {
	c     *cu.Device
	cache string // folder of compiled modules; empty: none
	// fewRows is the most rows that attend one by one, over caches of any format; tests change it, the bits are the
	// same.
	fewRows int
	// joinFrom is how many blocks there have to be for each to take all splits of its rows; tests change it, the bits are
	// the same.
	joinFrom int

	mu     sync.Mutex
	loaded map[string]*loaded
}

// loaded is a module that the first caller loads, while others wait.
type loaded struct {
	once    sync.Once
	module  *cu.Module
	args    map[string]int
	kernels map[string]*cu.Function
	err     error
}

func newKernels(c *cu.Device, cache string) *Kernels {
	return &Kernels{c: c, cache: cache, fewRows: kernel.FewColumns, joinFrom: joinFrom, loaded: map[string]*loaded{}}
}

// module returns a module, compiled for the card.
func (k *Kernels) module(name string) (*loaded, error) {
	k.mu.Lock()
	m := k.loaded[name]
	if m == nil {
		m = &loaded{}
		k.loaded[name] = m
	}
	k.mu.Unlock()
	m.once.Do(func() { m.err = m.load(k, name) })
	if m.err != nil { // forgotten, to be tried again: there may be memory for it by then
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.loaded[name] == m {
			delete(k.loaded, name)
		}
	}
	return m, m.err
}

func (m *loaded) load(k *Kernels, name string) error {
	source, err := kernels.Load(name)
	if err != nil {
		return err
	}
	cubin, err := k.compile(name, source.PTX)
	if err != nil {
		return err
	}
	if m.module, err = k.c.Load(cubin); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	m.args, m.kernels = source.Args, map[string]*cu.Function{}
	for kernel := range m.args {
		if m.kernels[kernel], err = m.module.Function(kernel); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), m.module.Close())
		}
	}
	return nil
}

// prepare returns the launch of a kernel of a module: its grid, the threads of a block, the bytes of a block's dynamic
// shared memory, and its arguments in the layout of the kernel's structure.
func (k *Kernels) prepare(module, name string, grid [3]uint32, threads, shared int, args []byte) (cu.Launch, error) {
	m, err := k.module(module)
	if err != nil {
		return cu.Launch{}, err
	}
	f := m.kernels[name]
	switch {
	case f == nil:
		return cu.Launch{}, fmt.Errorf("%s has no kernel %s", module, name)
	case m.args[name] != len(args):
		return cu.Launch{}, fmt.Errorf("%s.%s takes %d bytes of arguments, not %d", module, name, m.args[name], len(args))
	case shared > f.Shared:
		return cu.Launch{}, fmt.Errorf("%s.%s wants %d bytes of a block's memory, and %d are there", module, name, shared,
			f.Shared)
	}
	return cu.Launch{Function: f, Grid: grid, Threads: uint32(threads), Shared: uint32(shared), Args: args}, nil
}

// launch records a kernel; see prepare. An empty grid records nothing.
func launch[T any](k *Kernels, r *recording, module, name string, grid [3]uint32, threads, shared int, args *T) error {
	return k.launch(r, module, name, grid, threads, shared, bytesOf(args))
}

// launch is launch for all structures: each of its own would be a copy of this code.
func (k *Kernels) launch(r *recording, module, name string, grid [3]uint32, threads, shared int, args []byte) error {
	if grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
		return nil
	}
	l, err := k.prepare(module, name, grid, threads, shared, args)
	if err == nil {
		r.launch(l)
	}
	return err
}

// close unloads all modules. No work may be under way.
func (k *Kernels) close() (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.loaded {
		if m.module != nil {
			err = errors.Join(err, m.module.Close())
		}
	}
	clear(k.loaded)
	return err
}

// Launch implements driver.Kernels.
func (k *Kernels) Launch(to driver.Recording, l kernel.Launch) error {
	r := to.(*recording)
	switch l := l.(type) {
	case *kernel.Pack:
		return k.pack(r, l)
	case *kernel.Embed:
		return k.embed(r, l)
	case *kernel.MatVec:
		return k.matVec(r, l)
	case *kernel.HeadLinear:
		return k.headLinear(r, l)
	case *kernel.HeadCopy:
		return k.headCopy(r, l)
	case *kernel.Norm:
		return k.norm(r, l)
	case *kernel.Each:
		return k.each(r, l)
	case *kernel.GroupNorm:
		return k.groupNorm(r, l)
	case *kernel.Turn:
		return k.turn(r, l)
	case *kernel.Rotate:
		return k.rotate(r, l)
	case *kernel.Append:
		return k.append(r, l)
	case *kernel.Attend:
		return k.attend(r, l)
	case *kernel.ArgMax:
		return k.argMax(r, l)
	case *kernel.Sample:
		return k.sample(r, l)
	case *kernel.Around:
		return k.around(r, l)
	case *kernel.Finite:
		return k.finite(r, l)
	case *kernel.Read:
		return k.read(r, l)
	case *kernel.Peak:
		return k.peak(r, l)
	}
	return k.launchRest(r, l)
}

// launchRest is Launch for kernels that few models have.
func (k *Kernels) launchRest(r *recording, l kernel.Launch) error {
	switch l := l.(type) {
	case *kernel.Seal:
		return k.seal(r, l)
	case *kernel.Route:
		return k.route(r, l)
	case *kernel.Chosen:
		return k.chosen(r, l)
	case *kernel.Group:
		return k.group(r, l)
	case *kernel.Combine:
		return k.combine(r, l)
	case *kernel.Conv:
		return k.conv(r, l)
	case *kernel.Exchange:
		return k.exchange(r, l)
	case *kernel.Scan:
		return k.scan(r, l)
	case *kernel.Adapt:
		return k.adapt(r, l)
	}
	return fmt.Errorf("%T has no kernel on CUDA", l)
}
