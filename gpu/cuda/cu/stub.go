//go:build !linux || !(amd64 || arm64) || !(cgo || cuda)

package cu

import "errors"

// Library is the opened driver; there is none in this build.
type Library struct{}

// Open says that this build has no CUDA.
func Open(string) (*Library, error) {
	return nil, errors.New("this program was built without CUDA: build it on Linux with CGO_ENABLED=1, or with -tags cuda")
}
