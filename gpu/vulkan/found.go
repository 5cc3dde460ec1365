package vulkan

import "github.com/sluice-ai/sluice/gpu/vulkan/vk"

// Options say how a device is used.
type Options struct {
	Cache string // folder for compiled kernels; empty: they are compiled anew each time
	// FastPrefill multiplies prompts in half precision, if the device has cooperative matrices. Models of F16 and BF16
	// are multiplied so anyway. It is faster, but a prompt's bits are then no longer those of the same tokens
	// generated.
	FastPrefill bool
	Without     []string  // capabilities that are not used, named as in vk.Options
	Trial       *vk.Trial // faults that a test causes; nil: none
}

// Found is the description of a device for people.
type Found struct {
	Name, Kind, API, Driver string
	Memory, Free            int64 // bytes of the device's own memory; Free as the driver says now
	Shared                  int64 // bytes of a workgroup's memory
	Subgroup                int   // lanes
	Has                     []string
	Lacks                   []string // capabilities that it lacks but can be used without, by Vulkan's names
	Missing                 error    // what it lacks; nil: it can be used
	Auto                    bool     // OpenBest may take it
}
