//go:build cgo && linux

package vulkan

import (
	"fmt"
	"sync"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// Kernels compiles kernels for a device when they are first recorded, and keeps them. Several goroutines may record,
// each into a recording of its own.
type Kernels struct {
	d       *vk.Device
	Plain   bool // do without the device's integer dot products; for tests, the bits are the same
	CoopMat bool // many columns are multiplied by cooperative matrices; the bits are the same

	Halves bool // block-quantised models multiply prompts in half precision, too; set before Compile

	squares  bool   // there are cooperative matrices of half precision
	rows     int    // rows of a prompt that a workgroup of attend.comp takes, one after another
	layout   uint32 // which lane holds which element of a cooperative matrix, see findLayout
	together bool   // for tests: attend_rows.comp takes many rows wherever it can; the bits are the same
	emulate  bool   // for tests: products in half precision without cooperative matrices

	attendSquares bool // attention over f16 caches is computed by cooperative matrices

	mu       sync.Mutex
	compiled map[variant]*compiled
	tiled    map[string]bool // by shape of heads that was measured: whether attend_rows.comp is faster
	choices  string          // file that keeps what was measured; empty: none
}

// compiled is a kernel that the first caller compiles, while others wait.
type compiled struct {
	once   sync.Once
	kernel *vk.Kernel
	err    error
}

// variant is a module with its constants.
type variant struct {
	module    shaders.Module
	constants [12]uint32
}

// NewKernels prepares kernels for a device that nothing uses yet.
func NewKernels(d *vk.Device) *Kernels {
	k := &Kernels{d: d, Plain: !d.Facts.Has.Dot4, CoopMat: hasMatrix(&d.Facts), squares: hasHalves(&d.Facts),
		attendSquares: attendsBySquares(&d.Facts), compiled: map[variant]*compiled{}, rows: 8, tiled: map[string]bool{}}
	if k.CoopMat {
		k.layout = k.findLayout()
	}
	return k
}

// kernel returns a module compiled with constants. Kernels run with any subgroups of 8 lanes or more.
func (k *Kernels) kernel(m shaders.Module, constants []uint32) (*vk.Kernel, error) {
	v := variant{module: m}
	subgroup := uint32(0)
	if s := k.d.Facts.Subgroup; s.Min < 8 {
		subgroup = s.Max
	}
	if copy(v.constants[:], constants) < len(constants) {
		return nil, fmt.Errorf("%s has %d constants, want at most %d", m, len(constants), len(v.constants))
	}
	k.mu.Lock()
	c := k.compiled[v]
	if c == nil {
		c = &compiled{}
		k.compiled[v] = c
	}
	k.mu.Unlock()
	c.once.Do(func() {
		c.kernel, c.err = k.d.Compile(vk.KernelSource{Name: m.String(), Code: m.Code(), Constants: constants,
			Subgroup: subgroup})
	})
	if c.err != nil {
		k.forget(v, c)
	}
	return c.kernel, c.err
}

// forget drops a kernel that could not be compiled, so that it is tried again: there may be memory for it by then.
func (k *Kernels) forget(v variant, c *compiled) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.compiled[v] == c {
		delete(k.compiled, v)
	}
}

// Close releases all kernels. No work may be under way.
func (k *Kernels) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.compiled {
		k.d.Release(c.kernel)
	}
	clear(k.compiled)
}
