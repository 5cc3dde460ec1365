package compute

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/gpu/cuda"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/stages/place"
)

// The names of devices. After cudaDevice or vulkanDevice and a colon, numbers choose one or several cards. Cards joined
// by a plus compute each layer together, others layers of their own.
const (
	cpuDevice    = "cpu"
	cudaDevice   = "cuda"
	vulkanDevice = "vulkan"
	autoDevice   = "auto"

	devices = "want cpu, cuda, cuda:N, cuda:N,M, cuda:N+M, vulkan, vulkan:N, vulkan:N,M or auto"
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
	asked, from := f.Device, "--device"
	usual := cpuDevice
	of := "--gpu-layers"
	if f.CPUExperts > 0 {
		of = "--cpu-experts"
	}
	if f.GPULayers > 0 || f.GPULayers == autoLayers || f.CPUExperts > 0 {
		usual = autoDevice
	}
	if asked == "" && usual == cpuDevice && !f.NoRepack {
		if d := f.unasked(e, func() (backend.Device, error) { return vulkan.OpenBest(f.gpu(e)) }); d != nil {
			return f.beside(e, d)
		}
	}
	name, list, numbered := strings.Cut(cmp.Or(asked, usual), ":")
	numbers, err := numbersOf(cmp.Or(list, "0"))
	switch {
	case numbered && (name != vulkanDevice && name != cudaDevice || list == "" || err != nil):
		return nil, env.Usagef("%s is %q: "+devices, from, asked)
	case name != cpuDevice && f.NoRepack && name != autoDevice:
		return nil, env.Usagef("--no-repack computes from the mapped file, which a GPU cannot reach: leave it out, or compute " +
			"with --device cpu")
	case name == cpuDevice && usual == autoDevice:
		return nil, env.Usagef("%s is of GPUs: leave it out, or compute with --device vulkan", of)
	case name == cpuDevice && f.VRAM > 0:
		return nil, env.Usagef("--vram is memory of GPUs: leave it out, or compute with --device vulkan")
	case name == cpuDevice && f.FastPrefill:
		return nil, env.Usagef("--fast-prefill is of GPUs: leave it out, or compute with --device vulkan")
	case name == cudaDevice && f.FastPrefill:
		return nil, env.Usagef("--fast-prefill is of Vulkan's kernels: leave it out, or compute with --device vulkan")
	case name == cpuDevice, name == autoDevice && f.NoRepack,
		(name == cudaDevice || name == vulkanDevice || name == autoDevice) && f.GPULayers == 0:
		return f.processor(e)
	case name == cudaDevice: // the driver's first one is its fastest
		return f.together(e, asked, numbers, func(team []int) (backend.Device, error) {
			o := cuda.Options{Cache: kernelCache()}
			if len(team) > 1 {
				return cuda.OpenTeam(team, o)
			}
			return cuda.Open(team[0], o)
		})
	case strings.Contains(list, "+"):
		return nil, env.Usagef("%s is %q: only --device cuda has cards compute a layer together: use cuda:N+M, or vulkan:N,M, "+
			"of which each computes some layers", from, asked)
	case numbered:
		return f.together(e, asked, numbers, func(n []int) (backend.Device, error) { return vulkan.Open(n[0], f.gpu(e)) })
	case name == vulkanDevice:
		return f.together(e, asked, numbers, func([]int) (backend.Device, error) { return vulkan.OpenBest(f.gpu(e)) })
	case name == autoDevice:
		return f.best(e)
	}
	return nil, env.Usagef("%s is %q: "+devices, from, asked)
}

// OnProcessor has the processor compute, unless another device is asked for.
func (f *Flags) OnProcessor() { f.Device = cmp.Or(f.Device, cpuDevice) }

// unasked opens a GPU that nobody asked for, if there is one with memory of its own, and leaves it to the plan how many
// layers it computes, unless that was said. A line says which one it is, or why there is a GPU that is not used; nil:
// the processor computes.
func (f *Flags) unasked(e *env.Env, open func() (backend.Device, error)) backend.Device {
	nodes, _ := fs.Glob(e.Root, "dev/dri/renderD*") // without one, no loader is looked for
	if len(nodes) == 0 {
		if nodes, _ = fs.Glob(e.Root, "dev/nvidia[0-9]*"); len(nodes) == 0 {
			return nil
		}
	}
	d, err := open()
	if err != nil {
		fmt.Fprintf(e.Stderr, "sluice: computing on the processor: %v\n", err)
		return nil
	}
	if d.Traits().Memory != backend.OwnMemory {
		fmt.Fprintf(e.Stderr, "sluice: computing on the processor: %s shares its memory (--device vulkan: on the GPU)\n",
			d.Name())
		_ = d.Close() // nothing was done there
		return nil
	}
	fmt.Fprintf(e.Stderr, "sluice: computing on %s (--device cpu: on the processor)\n", d.Name())
	if f.GPULayers == allLayers {
		f.GPULayers = autoLayers
	}
	return d
}

// numbersOf reads numbers of cards, separated by commas, or, of cards that compute each layer together, by a plus. Each
// may be named once.
func numbersOf(list string) (all [][]int, err error) {
	var named []int
	for team := range strings.SplitSeq(list, ",") {
		var numbers []int
		for text := range strings.SplitSeq(team, "+") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || slices.Contains(named, n) {
				return nil, fmt.Errorf("%q is no number of another card", text)
			}
			numbers, named = append(numbers, n), append(named, n)
		}
		all = append(all, numbers)
	}
	return all, nil
}

// together composes cards of one API with the processor as their host, which computes the layers that no card computes.
// Each card, or team of cards, has layers of its own, in the order in which they were named.
func (f *Flags) together(e *env.Env, asked string, numbers [][]int, open func(team []int) (backend.Device, error)) (
	backend.Device, error) {
	var cards []backend.Device
	for _, team := range numbers {
		d, err := open(team)
		if err != nil {
			return nil, closed(fmt.Errorf("--device %s: %w", asked, err), cards)
		}
		cards = append(cards, d)
	}
	return f.beside(e, cards...)
}

// closed closes cards after an error, as they will not be used.
func closed(err error, cards []backend.Device) error {
	for _, d := range cards {
		err = errors.Join(err, d.Close())
	}
	return err
}

// best opens the best GPU that can be used, if there is one.
func (f *Flags) best(e *env.Env) (backend.Device, error) {
	d, err := vulkan.OpenBest(f.gpu(e))
	switch {
	case err != nil && f.GPULayers > 0:
		return nil, fmt.Errorf("--gpu-layers %d: %w", f.GPULayers, err)
	case err != nil && f.CPUExperts > 0:
		return nil, fmt.Errorf("--cpu-experts %d: %w", f.CPUExperts, err)
	}
	if err != nil {
		d, cpuErr := f.processor(e)
		if cpuErr == nil {
			fmt.Fprintf(e.Stderr, "sluice: computing on the processor: %v\n", err)
		}
		return d, cpuErr
	}
	fmt.Fprintf(e.Stderr, "sluice: computing on %s\n", d.Name())
	return f.beside(e, d)
}

// beside composes cards with the processor as the first device.
func (f *Flags) beside(e *env.Env, cards ...backend.Device) (backend.Device, error) {
	host, err := f.processor(e)
	if err != nil {
		return nil, closed(err, cards)
	}
	return compose.New(append([]backend.Device{host}, cards...)...), nil
}

func (f *Flags) processor(e *env.Env) (backend.Device, error) {
	force, _ := e.Lookup("SLUICE_CPU")
	d, err := cpu.New(f.Threads, force)
	if err != nil {
		return nil, fmt.Errorf("SLUICE_CPU: %w", err)
	}
	return d, nil
}

// gpu returns the options for a Vulkan GPU.
func (f *Flags) gpu(e *env.Env) vulkan.Options {
	return vulkan.Options{Cache: kernelCache(), FastPrefill: f.FastPrefill, Without: Without(e)}
}

// WithoutVariable names features of a GPU that are not used, such as those that its driver gets wrong, separated by
// commas.
const WithoutVariable = "SLUICE_VULKAN_WITHOUT"

// Without lists the names in WithoutVariable.
func Without(e *env.Env) []string {
	text, _ := e.Lookup(WithoutVariable)
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// kernelCache is the folder for what drivers compile; empty where the system has none.
func kernelCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sluice")
}
