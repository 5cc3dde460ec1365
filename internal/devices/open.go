package devices

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/gpu/cuda"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
)

// Options say how devices are opened.
type Options struct {
	Threads     int      // of the processor; 0: one for each core
	Kernels     string   // of the processor, as SLUICE_CPU has it; empty: the best ones
	FastPrefill bool     // of Vulkan: prompts are read in half precision
	Without     []string // features of Vulkan that are not used

	// Member opens what a member of a cluster lends, for models of which this machine's processor computes the rest;
	// nil: there is no cluster.
	Member func(addr string, like backend.Device) (backend.Device, error)
}

// KernelsVariable names the processor's kernels, and WithoutVariable features of a GPU that are not used, such as those
// that its driver gets wrong, separated by commas.
const (
	KernelsVariable = "SLUICE_CPU"
	WithoutVariable = "SLUICE_VULKAN_WITHOUT"
)

// FromEnvironment are the options that variables of the environment say.
func FromEnvironment(lookup func(string) (string, bool)) (o Options) {
	o.Kernels, _ = lookup(KernelsVariable)
	text, _ := lookup(WithoutVariable)
	o.Without = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return o
}

// Open opens the devices of a name. Cards have the processor beside them, which computes the layers that no card
// computes.
func (o *Options) Open(n Name) (backend.Device, error) {
	cards := n.Cards
	if cards == nil {
		cards = [][]int{{0}} // CUDA's driver has its fastest first
	}
	switch {
	case n.Kind == CPU:
		return o.Processor()
	case n.Kind == Member:
		return o.lent(n.Members)
	case n.Kind == CUDA:
		return o.together(cards, OpenCUDA)
	case n.Kind == Vulkan && n.Cards != nil:
		return o.together(cards, func(team []int) (backend.Device, error) { return vulkan.Open(team[0], o.Vulkan()) })
	case n.Kind == Vulkan:
		return o.together(cards, func([]int) (backend.Device, error) { return o.Best() })
	}
	card, err := o.Best()
	if err != nil {
		return o.Processor()
	}
	return o.Beside(card)
}

// Processor opens this machine's processor.
func (o *Options) Processor() (backend.Device, error) {
	d, err := cpu.New(o.Threads, o.Kernels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KernelsVariable, err)
	}
	return d, nil
}

// Best opens the best card that Vulkan has.
func (o *Options) Best() (backend.Device, error) { return vulkan.OpenBest(o.Vulkan()) }

// Vulkan are the options for one of its cards.
func (o *Options) Vulkan() vulkan.Options {
	return vulkan.Options{Cache: kernelCache(), FastPrefill: o.FastPrefill, Without: o.Without}
}

// OpenCUDA opens a card, or several that compute each layer together.
func OpenCUDA(team []int) (backend.Device, error) {
	o := cuda.Options{Cache: kernelCache()}
	if len(team) > 1 {
		return cuda.OpenTeam(team, o)
	}
	return cuda.Open(team[0], o)
}

// Unasked opens a GPU that nobody asked for, if there is a sign of one below root, and takes it if it has memory of its
// own. Otherwise why says what keeps the one that there is from being used; nil: there is none.
func Unasked(root fs.FS, open func() (backend.Device, error)) (card backend.Device, why error) {
	nodes, _ := fs.Glob(root, "dev/dri/renderD*") // without one, no loader is looked for
	if len(nodes) == 0 {
		if nodes, _ = fs.Glob(root, "dev/nvidia[0-9]*"); len(nodes) == 0 {
			return nil, nil
		}
	}
	d, err := open()
	if err != nil {
		return nil, err
	}
	if d.Traits().Memory != backend.OwnMemory {
		why = fmt.Errorf("%s shares its memory (--device vulkan: on the GPU)", d.Name())
		_ = d.Close() // nothing was done there
		return nil, why
	}
	return d, nil
}

// together composes cards of one API. Each card, or team of cards, has layers of its own, in the order in which they
// were named.
func (o *Options) together(teams [][]int, open func(team []int) (backend.Device, error)) (backend.Device, error) {
	var cards []backend.Device
	for _, team := range teams {
		d, err := open(team)
		if err != nil {
			return nil, closed(err, cards)
		}
		cards = append(cards, d)
	}
	return o.Beside(cards...)
}

// Beside composes cards with the processor as the first device.
func (o *Options) Beside(cards ...backend.Device) (backend.Device, error) {
	host, err := o.Processor()
	if err != nil {
		return nil, closed(err, cards)
	}
	return compose.New(append([]backend.Device{host}, cards...)...), nil
}

// lent composes what members lend with the processor as the first device. Each has layers of its own, in the order in
// which they were named.
func (o *Options) lent(members []string) (backend.Device, error) {
	if o.Member == nil {
		return nil, errors.New("who is a member of a cluster has a pass, by which others let him in: give it")
	}
	host, err := o.Processor()
	if err != nil {
		return nil, err
	}
	all := []backend.Device{host}
	for _, addr := range members {
		d, err := o.Member(addr, host)
		if err != nil {
			return nil, closed(err, all)
		}
		all = append(all, d)
	}
	return compose.New(all...), nil
}

// closed closes cards after an error, as they will not be used.
func closed(err error, cards []backend.Device) error {
	for _, d := range cards {
		err = errors.Join(err, d.Close())
	}
	return err
}

// kernelCache is the folder for what drivers compile; empty where the system has none.
func kernelCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sluice")
}
