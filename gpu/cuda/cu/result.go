package cu

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// Result is what a function of the driver returned, by its number.
type Result int32

// Results that callers distinguish.
const (
	Success        Result = 0
	invalidValue   Result = 1
	OutOfMemory    Result = 2
	noDevice       Result = 100
	noBinary       Result = 209
	invalidPTX     Result = 218
	newerPTX       Result = 222
	notFound       Result = 500
	notReady       Result = 600
	illegalAddress Result = 700
	tooLarge       Result = 701
	reached        Result = 704 // memory of the other card is reached already
	timeout        Result = 702
	assertFailed   Result = 710
	launchFailed   Result = 719
	notPermitted   Result = 800
	unknown        Result = 999
)

var texts = map[Result]string{
	invalidValue:   "an argument is wrong (CUDA_ERROR_INVALID_VALUE)",
	OutOfMemory:    "out of memory (CUDA_ERROR_OUT_OF_MEMORY)",
	noDevice:       "there is no card (CUDA_ERROR_NO_DEVICE)",
	noBinary:       "the card is older than the kernels (CUDA_ERROR_NO_BINARY_FOR_GPU)",
	invalidPTX:     "the driver does not understand a kernel (CUDA_ERROR_INVALID_PTX)",
	newerPTX:       "the driver is older than the kernels: install a newer one (CUDA_ERROR_UNSUPPORTED_PTX_VERSION)",
	notFound:       "there is no such function (CUDA_ERROR_NOT_FOUND)",
	notReady:       "not ready (CUDA_ERROR_NOT_READY)",
	illegalAddress: "a kernel used memory that is none (CUDA_ERROR_ILLEGAL_ADDRESS)",
	tooLarge:       "a kernel wants more registers, threads or memory than there are (CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)",
	timeout:        "a kernel ran too long (CUDA_ERROR_LAUNCH_TIMEOUT)",
	launchFailed:   "a kernel failed (CUDA_ERROR_LAUNCH_FAILED)",
	notPermitted:   "it is not permitted here (CUDA_ERROR_NOT_PERMITTED)",
	unknown:        "an unknown error (CUDA_ERROR_UNKNOWN)",
}

func (r Result) Error() string {
	if text := texts[r]; text != "" {
		return text
	}
	return fmt.Sprintf("CUDA's error %d", int32(r))
}

// Is says whether a result is one of package driver's errors. Errors that kernels cause end the context: nothing on the
// card works from then on.
func (r Result) Is(target error) bool {
	switch target {
	case driver.ErrLost:
		return r >= illegalAddress && r <= launchFailed && r != tooLarge && (r >= 714 || r <= timeout || r == assertFailed) ||
			r == unknown
	case driver.ErrScarce:
		return r == OutOfMemory
	}
	return false
}

// err is nil for success, else the result with the name of what failed.
func (r Result) err(what string) error {
	if r == Success {
		return nil
	}
	return fmt.Errorf("%s: %w", what, r)
}
