//go:build !linux || !(amd64 || arm64) || !(cgo || cuda)

// Package fake is a libcuda.so.1 that computes on the processor, for tests: where programs have no CUDA there is none.
package fake

import (
	"testing"

	"github.com/sluice-ai/sluice/internal/testref"
)

// Library skips a test.
func Library(t testing.TB) string {
	t.Helper()
	testref.Missing(t, "c++", "this program was built without CUDA")
	return ""
}
