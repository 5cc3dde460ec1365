package compute

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/remote"
	"github.com/sluice-ai/sluice/internal/devices"
	"github.com/sluice-ai/sluice/internal/pass"
	"github.com/sluice-ai/sluice/stages/place"
)

// layers is how many layers a GPU computes: a number, or one of these constants.
type layers int

const (
	allLayers  layers = -1
	autoLayers layers = -2
)

// UnmarshalText takes a number, all, or auto.
func (l *layers) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	switch {
	case string(text) == "all":
		*l = allLayers
	case string(text) == "auto":
		*l = autoLayers
	case err != nil || n < 0 || n > env.MaxTokens:
		return fmt.Errorf("%q is no number of layers: want one from 0 on, all, or auto", text)
	default:
		*l = layers(n)
	}
	return nil
}

// String is the value as UnmarshalText takes it.
func (l layers) String() string {
	switch l {
	case allLayers:
		return "all"
	case autoLayers:
		return "auto"
	}
	return strconv.Itoa(int(l))
}

// Planned is the value as package place takes it.
func (l layers) Planned() int {
	switch l {
	case allLayers:
		return 0
	case autoLayers:
		return place.Auto
	}
	return int(l)
}

// FlagsFor are the flags of a command that has no more of them than the device.
func FlagsFor(device string) *Flags { return &Flags{Device: device, GPULayers: allLayers} }

// OpenDevice opens the device that was asked for. If it was left to us, a line says which one was taken.
func (f *Flags) OpenDevice(e *env.Env) (backend.Device, error) {
	o := f.options(e)
	asked, usual := f.Device, devices.CPU
	of := "--gpu-layers"
	if f.CPUExperts > 0 {
		of = "--cpu-experts"
	}
	if f.GPULayers > 0 || f.GPULayers == autoLayers || f.CPUExperts > 0 {
		usual = devices.Auto
	}
	if asked == "" && usual == devices.CPU && !f.NoRepack {
		if d := f.unasked(e, o.Best); d != nil {
			return o.Beside(d)
		}
	}
	name, err := devices.Parse(cmp.Or(asked, string(usual)))
	if err != nil {
		return nil, env.Usagef("--device %v", err)
	}
	switch {
	case name.Kind != devices.CPU && f.NoRepack && name.Kind != devices.Auto:
		return nil, env.Usagef("--no-repack computes from the mapped file, which a GPU cannot reach: leave it out, or compute " +
			"with --device cpu")
	case name.Kind == devices.CPU && usual == devices.Auto:
		return nil, env.Usagef("%s is of GPUs: leave it out, or compute with --device vulkan", of)
	case name.Kind == devices.Member && f.Pass == "":
		return nil, env.Usagef("--device member needs --pass FILE, by which other members of the cluster let this one in: " +
			"sluice cluster cert makes it")
	case name.Kind == devices.CPU && f.VRAM > 0:
		return nil, env.Usagef("--vram is memory of GPUs: leave it out, or compute with --device vulkan")
	case name.Kind == devices.CPU && f.FastPrefill:
		return nil, env.Usagef("--fast-prefill is of GPUs: leave it out, or compute with --device vulkan")
	case name.Kind == devices.Member && f.FastPrefill:
		return nil, env.Usagef("--fast-prefill is of GPUs: leave it out, as members compute on their processors")
	case name.Kind == devices.CUDA && f.FastPrefill:
		return nil, env.Usagef("--fast-prefill is of Vulkan's kernels: leave it out, or compute with --device vulkan")
	case name.Kind == devices.CPU, f.GPULayers == 0, name.Kind == devices.Auto && f.NoRepack:
		return o.Processor()
	case name.Kind == devices.Auto:
		return f.best(e)
	}
	if name.Kind == devices.Member {
		if o.Member, err = f.member(e); err != nil {
			return nil, err
		}
		if f.GPULayers == allLayers {
			f.GPULayers = autoLayers
		}
	}
	d, err := o.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--device %s: %w", asked, err)
	}
	return d, nil
}

// OverMembers says whether members of a cluster are asked to compute.
func (f *Flags) OverMembers() bool {
	name, err := devices.Parse(f.Device)
	return err == nil && name.Kind == devices.Member
}

// member returns a function that opens what a member of the cluster lends.
func (f *Flags) member(e *env.Env) (func(string, backend.Device) (backend.Device, error), error) {
	text, err := e.ReadFile(f.Pass, 64<<10)
	if err != nil {
		return nil, err
	}
	p, err := pass.Parse(text, e.Now)
	if err != nil {
		return nil, fmt.Errorf("--pass %s: %w", f.Pass, err)
	}
	return func(addr string, like backend.Device) (backend.Device, error) {
		return remote.Open(remote.Options{Addr: addr, Dial: remote.Dial(p, addr), Build: build(), Like: like})
	}, nil
}

// Lender has this machine's processor compute for other members of a cluster, in so many bytes of memory. Its caller
// closes it, and then its device.
func (f *Flags) Lender(e *env.Env, bytes int64) (*remote.Lender, error) {
	d, err := f.options(e).Processor()
	if err != nil {
		return nil, err
	}
	speeds, err := RecallAt(e, "", d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &remote.Lender{Build: build(), Device: d, Lends: bytes, Read: int64(speeds.Memory)}, nil
}

// OnProcessor has the processor compute, unless another device is asked for.
func (f *Flags) OnProcessor() { f.Device = cmp.Or(f.Device, string(devices.CPU)) }

// unasked opens a GPU that nobody asked for, if there is one with memory of its own, and leaves it to the plan how many
// layers it computes, unless that was said. A line says which one it is, or why there is a GPU that is not used; nil:
// the processor computes.
func (f *Flags) unasked(e *env.Env, open func() (backend.Device, error)) backend.Device {
	d, why := devices.Unasked(e.Root, open)
	if why != nil {
		fmt.Fprintf(e.Stderr, "sluice: computing on the processor: %v\n", why)
	}
	if d == nil {
		return nil
	}
	fmt.Fprintf(e.Stderr, "sluice: computing on %s (--device cpu: on the processor)\n", d.Name())
	if f.GPULayers == allLayers {
		f.GPULayers = autoLayers
	}
	return d
}

// best opens the best GPU that can be used, if there is one.
func (f *Flags) best(e *env.Env) (backend.Device, error) {
	o := f.options(e)
	d, err := o.Best()
	switch {
	case err != nil && f.GPULayers > 0:
		return nil, fmt.Errorf("--gpu-layers %d: %w", f.GPULayers, err)
	case err != nil && f.CPUExperts > 0:
		return nil, fmt.Errorf("--cpu-experts %d: %w", f.CPUExperts, err)
	}
	if err != nil {
		d, cpuErr := o.Processor()
		if cpuErr == nil {
			fmt.Fprintf(e.Stderr, "sluice: computing on the processor: %v\n", err)
		}
		return d, cpuErr
	}
	fmt.Fprintf(e.Stderr, "sluice: computing on %s\n", d.Name())
	return o.Beside(d)
}

// options are the flags and variables of devices.
func (f *Flags) options(e *env.Env) *devices.Options {
	o := devices.FromEnvironment(e.Lookup)
	o.Threads, o.FastPrefill = f.Threads, f.FastPrefill
	return &o
}
