package compute

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/gpu/cuda"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/devices"
)

// Alone is a device that computes without the processor beside it.
type Alone struct {
	Name string // as --device has it
	Open func() (backend.Device, error)
}

// EachAlone lists the processor and the cards that --device auto or --device cuda may take, or only those that are
// asked for: cpu, cuda, vulkan, or one card by its number, which may be one that is never taken unasked.
func EachAlone(e *env.Env, asked string) (list []Alone, err error) {
	o := FlagsFor(asked).options(e)
	name, number, numbered := strings.Cut(asked, ":")
	kind := devices.Kind(name)
	n, err := strconv.Atoi(number)
	switch {
	case numbered && (err != nil || n < 0 || kind != devices.CUDA && kind != devices.Vulkan),
		name != "" && kind != devices.CPU && kind != devices.CUDA && kind != devices.Vulkan:
		return nil, env.Usagef("--device is %q: want cpu, cuda, cuda:N, vulkan or vulkan:N, to test one device after the other",
			env.Printable(asked))
	case numbered && kind == devices.CUDA:
		return []Alone{cudaAlone(n)}, nil
	case numbered:
		return []Alone{vulkanAlone(o, n)}, nil
	}
	if name == "" || kind == devices.CPU {
		list = append(list, Alone{Name: string(devices.CPU), Open: o.Processor})
	}
	if name == "" || kind == devices.CUDA {
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
	if name == "" || kind == devices.Vulkan {
		cards, err := vulkan.List(o.Without...)
		if err != nil && name != "" {
			return nil, fmt.Errorf("--device %s: %w", asked, err)
		}
		for i := range cards {
			if cards[i].Auto {
				list = append(list, vulkanAlone(o, i))
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("--device %s: there is no card that can be used: sluice doctor says why", asked)
	}
	return list, nil
}

func cudaAlone(n int) Alone {
	return Alone{fmt.Sprintf("%s:%d", devices.CUDA, n), func() (backend.Device, error) {
		return devices.OpenCUDA([]int{n})
	}}
}

func vulkanAlone(o *devices.Options, n int) Alone {
	return Alone{fmt.Sprintf("%s:%d", devices.Vulkan, n), func() (backend.Device, error) { return vulkan.Open(n, o.Vulkan()) }}
}
