package vk

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// Result is what a Vulkan function returned: below 0 it is an error.
type Result int32

// Results that callers distinguish.
const (
	Success         Result = 0
	NotReady        Result = 1
	Timeout         Result = 2
	outOfHostMemory Result = -1
	OutOfMemory     Result = -2
	Lost            Result = -4
	noLayer         Result = -6
	noExtension     Result = -7
	noFeature       Result = -8
	noDriver        Result = -9
)

func (r Result) Error() string {
	switch r {
	case NotReady:
		return "not ready (VK_NOT_READY)"
	case Timeout:
		return "still running after the time given (VK_TIMEOUT)"
	case outOfHostMemory:
		return "out of host memory (VK_ERROR_OUT_OF_HOST_MEMORY)"
	case OutOfMemory:
		return "out of device memory (VK_ERROR_OUT_OF_DEVICE_MEMORY)"
	case Lost:
		return "the device was lost: reset, unplugged, or a kernel ran too long (VK_ERROR_DEVICE_LOST)"
	case noLayer:
		return "a layer is missing (VK_ERROR_LAYER_NOT_PRESENT)"
	case noExtension:
		return "an extension is missing (VK_ERROR_EXTENSION_NOT_PRESENT)"
	case noFeature:
		return "a feature is missing (VK_ERROR_FEATURE_NOT_PRESENT)"
	case noDriver:
		return "no driver fits (VK_ERROR_INCOMPATIBLE_DRIVER)"
	}
	return fmt.Sprintf("Vulkan's result %d", int32(r))
}

// Is says whether a result is one of package driver's errors.
func (r Result) Is(target error) bool {
	switch target {
	case driver.ErrTimeout:
		return r == Timeout
	case driver.ErrLost:
		return r == Lost
	case driver.ErrScarce:
		return r == OutOfMemory || r == outOfHostMemory
	}
	return false
}

// Scarce says whether an error means that memory is full, the device's or the host's.
func Scarce(err error) bool { return errors.Is(err, OutOfMemory) || errors.Is(err, outOfHostMemory) }

// err is nil for success, else the result with the name of what failed.
func (r Result) err(what string) error {
	if r >= 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", what, r)
}
