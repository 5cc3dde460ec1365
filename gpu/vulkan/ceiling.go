//go:build cgo && linux

package vulkan

import (
	"slices"
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

const (
	ceilingPasses = 5
	ceilingWarm   = 30 * time.Millisecond // before them: a card that idled has a fifth of its clock
	ceilingLeast  = time.Millisecond      // of a pass that multiplies

	readMost, readLeast = 1 << 30, 64 << 20 // bytes of a pass: more than caches hold
	readGroups          = 2048              // of 256 threads
	peakGroups          = 1024              // of 128
)

// Ceilings measures what bounds a device: how many bytes a second it reads from its own memory, and how many operations
// it multiplies and adds, in each of some passes: of halves, or of whole numbers, with what its kernels have for them.
// Of a device that is none of ours, or has no timestamps, it says nothing. It takes tenths of a second.
func Ceilings(d backend.Device, halves bool) (read, multiply []float64, err error) {
	v, ok := d.(*Device)
	if !ok || v.computing.bits == 0 {
		return nil, nil, nil
	}
	if read, err = v.reads(); err != nil {
		return nil, nil, err
	}
	multiply, err = v.multiplies(halves)
	return read, multiply, err
}

// reads measures with as much memory as is free, up to what suffices.
func (v *Device) reads() ([]float64, error) {
	size, memory := uint64(readMost), buffers{d: v.d}
	defer memory.free()
	if v.facts.Kind == vk.CPU {
		size = readLeast
	}
	b, err := memory.raw(vk.Local, size, "measuring")
	for ; err != nil && size > readLeast; size /= 2 {
		b, err = memory.raw(vk.Local, size/2, "measuring")
	}
	if err != nil {
		return nil, err
	}
	never, err := memory.raw(vk.Local, 16, "measuring")
	if err != nil {
		return nil, err
	}
	kernel, err := v.kernels.kernel(shaders.Read, nil)
	if err != nil {
		return nil, err
	}
	return v.passes(float64(b.Size), func(r *vk.Recording) {
		vk.Use(r, kernel, &shaders.ReadPush{X: b.Address, Never: never.Address, Quads: uint32(b.Size / 16)})
		r.Dispatch(readGroups, 1, 1)
	})
}

// multiplies measures passes that are long enough.
func (v *Device) multiplies(halves bool) ([]float64, error) {
	m, ops := v.kernels.peak(halves)
	kernel, err := v.kernels.kernel(m, nil)
	if err != nil {
		return nil, err
	}
	memory := buffers{d: v.d}
	defer memory.free()
	y, err := memory.raw(vk.Local, 4*peakGroups, "measuring")
	if err != nil {
		return nil, err
	}
	for rounds := uint32(16); ; rounds *= 4 {
		record := func(r *vk.Recording) {
			vk.Use(r, kernel, &shaders.PeakPush{Y: y.Address, Seed: 1, Rounds: rounds})
			r.Dispatch(peakGroups, 1, 1)
		}
		took, err := v.pass(record)
		if err != nil {
			return nil, err
		}
		if took >= ceilingLeast || rounds >= 1<<24 {
			return v.passes(ops*float64(rounds), record)
		}
	}
}

// peak is the kernel that multiplies, and its operations in a round of all workgroups.
func (k *Kernels) peak(halves bool) (shaders.Module, float64) {
	const sums, threads, teams = 8, 128, 4 // of a workgroup
	switch {
	case k.Matrix && k.squares && halves:
		return shaders.PeakHalfMatrix, peakGroups * teams * sums * 2 * 16 * 16 * 16
	case k.Matrix && !halves:
		return shaders.PeakMatrix, peakGroups * teams * sums * 2 * 16 * 16 * 32
	case !k.Plain && !halves:
		return shaders.PeakDot4, peakGroups * threads * sums * 2 * 4
	}
	return shaders.Peak, peakGroups * threads * sums * 2
}

// passes are the rates of some that do an amount each.
func (v *Device) passes(amount float64, record func(*vk.Recording)) (rates []float64, err error) {
	for began := time.Now(); time.Since(began) < ceilingWarm && err == nil; {
		_, err = v.pass(record)
	}
	for range ceilingPasses {
		took, failed := v.pass(record)
		if err == nil {
			err = failed
		}
		rates = append(rates, amount/max(took, 1).Seconds())
	}
	return slices.Clip(rates), err
}

// pass is how long something takes, by the device's own clock.
func (v *Device) pass(record func(*vk.Recording)) (time.Duration, error) {
	q := v.queue
	r, err := q.record(2, func(r *vk.Recording) error {
		r.BarrierAll()
		r.Stamp()
		record(r)
		r.BarrierAll()
		r.Stamp()
		return nil
	})
	if err != nil {
		return 0, err
	}
	defer q.close(r)
	value, err := q.submit(0, r)
	if err == nil {
		err = q.wait(value)
	}
	if err != nil {
		return 0, err
	}
	at, err := r.Stamps()
	if err != nil {
		return 0, err
	}
	return time.Duration(at[1]), nil
}
