//go:build cgo && linux

package vk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkNoLoader is what --device auto costs a machine without Vulkan.
func BenchmarkNoLoader(b *testing.B) {
	for b.Loop() {
		_, err := OpenWith(Options{loader: "libvulkan-is-not-here.so.1"})
		require.Error(b, err)
	}
}
