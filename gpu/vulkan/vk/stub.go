//go:build !cgo || !linux

package vk

import "errors"

// Library is the opened Vulkan loader; there is none in this build.
type Library struct{}

// Open says that this build has no Vulkan.
func Open() (*Library, error) {
	return nil, errors.New("this program was built without Vulkan: build it on Linux with CGO_ENABLED=1 and a C compiler")
}
