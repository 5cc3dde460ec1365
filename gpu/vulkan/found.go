package vulkan

import "github.com/sluice-ai/sluice/gpu/vulkan/vk"

// Options are how a device is used.
type Options struct {
	Cache string // folder for compiled kernels; empty: they are compiled anew each time
	// FastPrefill has prompts multiplied in half precision, if the device has cooperative matrices, as those of files of
	// F16 and BF16 are anyway. It is faster, and a prompt's bits are no longer those of the same tokens as an answer.
	FastPrefill bool
	Without     []string  // capabilities that it is not to use, as vk.Options has them
	Trial       *vk.Trial // what a test has it suffer; nil: nothing
}

// Found is a device as a person sees it.
type Found struct {
	Name, Kind, API, Driver string
	Memory, Free            int64 // bytes of its own; Free as the driver sees it now
	Shared                  int64 // bytes of a workgroup's memory
	Subgroup                int   // lanes
	Has                     []string
	Lacks                   []string // of what it can be used without, by Vulkan's names
	Missing                 error    // what it lacks; nil: it can be used
	Auto                    bool     // it is taken without being named
}
