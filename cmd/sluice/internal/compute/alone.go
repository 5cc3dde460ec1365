package compute

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/gpu/cuda"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/backend"
)

// Alone is a device that computes without the processor beside it.
type Alone struct {
	Name string // as --device has it
	Open func() (backend.Device, error)
}

// EachAlone lists the processor and the cards that --device auto or --device cuda may take, or only those that are
// asked for: cpu, cuda, vulkan, or one card by its number, which may be one that is never taken unasked.
func EachAlone(e *env.Env, asked string) (list []Alone, err error) {
	f := FlagsFor(asked)
	name, number, numbered := strings.Cut(asked, ":")
	n, err := strconv.Atoi(number)
	switch {
	case numbered && (err != nil || n < 0 || name != cudaDevice && name != vulkanDevice),
		name != "" && name != cpuDevice && name != cudaDevice && name != vulkanDevice:
		return nil, env.Usagef("--device is %q: want cpu, cuda, cuda:N, vulkan or vulkan:N, to test one device after the other",
			env.Printable(asked))
	case numbered && name == cudaDevice:
		return []Alone{cudaAlone(n)}, nil
	case numbered:
		return []Alone{f.vulkanAlone(e, n)}, nil
	}
	if name == "" || name == cpuDevice {
		list = append(list, Alone{Name: cpuDevice, Open: func() (backend.Device, error) { return f.processor(e) }})
	}
	if name == "" || name == cudaDevice {
		cards, err := cuda.List(cuda.Options{})
		if err != nil && name != "" {
			return nil, fmt.Errorf("--device %s: %w", asked, err)
		}
		for i := range cards {
			if cards[i].Missing == nil {
				list = append(list, cudaAlone(i))
			}
		}
	}
	if name == "" || name == vulkanDevice {
		cards, err := vulkan.List(Without(e)...)
		if err != nil && name != "" {
			return nil, fmt.Errorf("--device %s: %w", asked, err)
		}
		for i := range cards {
			if cards[i].Auto {
				list = append(list, f.vulkanAlone(e, i))
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("--device %s: there is no card that can be used: sluice doctor says why", asked)
	}
	return list, nil
}

func cudaAlone(n int) Alone {
	return Alone{fmt.Sprintf("%s:%d", cudaDevice, n), func() (backend.Device, error) {
		return cuda.Open(n, cuda.Options{Cache: kernelCache()})
	}}
}

func (f *Flags) vulkanAlone(e *env.Env, n int) Alone {
	return Alone{fmt.Sprintf("%s:%d", vulkanDevice, n), func() (backend.Device, error) { return vulkan.Open(n, f.gpu(e)) }}
}
